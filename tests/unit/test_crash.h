/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* test_crash.h - backings in memory that remember every write and sync, and what a power cut may have left of them.
 *
 *     disks share one list of events:   write A · write B · sync B · write A · …
 *     cut at k:  what was synced before k is there; of what came after its disk's last sync any 512-byte piece may be
 *                there or not, in any order between the disks
 *
 * For one thread. */
#ifndef CRYPTFUSE_TEST_CRASH_H
#define CRYPTFUSE_TEST_CRASH_H

#include "cryptfuse/backing.h"

struct test_disk; /* one store; the struct cf_backing is its first member */
struct test_events;

struct test_events *test_events_new(void);
void test_events_free(struct test_events **e);
size_t test_events_count(const struct test_events *e);

/** test_disk_new - @bytes of a disk, which begins as @data (copied; NULL: zeros). Whoever gets the backing frees it;
 * the events keep all that is needed of it. Returns the backing; *id names it to test_events_cut. */
struct cf_backing *test_disk_new(struct test_events *e, const uint8_t *data, uint64_t bytes, unsigned *id);

/** What is left of what was not synced. */
enum test_cut {
	TEST_CUT_NOTHING, /* none of it */
	TEST_CUT_ALL,     /* all of it: as after kill -9 of the program alone */
	TEST_CUT_SOME,    /* pieces by chance, of each write on its own */
};

/** test_events_cut - the disk @id after a cut that let the first @k events happen. @seed: for TEST_CUT_SOME. Returns
 * its bytes, owned. */
uint8_t *test_events_cut(const struct test_events *e, unsigned id, size_t k, enum test_cut cut, uint64_t seed);

#endif
