/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* rangelock.h - readers and writers of byte ranges.
 *
 * Reads take a range shared, writes exclusive, in one step and whole, so that nobody waits while holding. First come,
 * first served among ranges that overlap: a writer is never starved by readers that keep coming. Records live on the
 * callers' stacks: no allocation. Offsets are whatever the caller counts in; the volume uses backing bytes rounded out
 * to the lock's granule (HAZARDS 16). */
#ifndef CRYPTFUSE_RANGELOCK_H
#define CRYPTFUSE_RANGELOCK_H

#include <pthread.h>
#include <stdbool.h>

#include "cryptfuse/base.h"

enum cf_range_mode { CF_RANGE_SHARED, CF_RANGE_EXCLUSIVE };

/** One hold or wait; on the caller's stack from acquire to release. */
struct cf_range {
	uint64_t off, end; /* [off, end) */
	enum cf_range_mode mode;
	int granted;
	pthread_cond_t wake;
	struct cf_range *prev, *next; /* in arrival order */
};

struct cf_rangelock {
	pthread_mutex_t mutex;
	struct cf_range *first, *last;
};

void cf_rangelock_init(struct cf_rangelock *l);
void cf_rangelock_fini(struct cf_rangelock *l);

/** cf_rangelock_acquire - wait until [off, off + len) is ours; @len above 0, off + len does not wrap. Any thread. */
void cf_rangelock_acquire(struct cf_rangelock *l, struct cf_range *r, uint64_t off, uint64_t len,
						  enum cf_range_mode mode);
void cf_rangelock_release(struct cf_rangelock *l, struct cf_range *r);

#endif
