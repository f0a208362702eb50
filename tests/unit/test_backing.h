/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* test_backing.h - a backing in memory that fails where it is told to and watches who writes where. */
#ifndef CRYPTFUSE_TEST_BACKING_H
#define CRYPTFUSE_TEST_BACKING_H

#include <stdatomic.h>

#include "cryptfuse/backing.h"

#define TEST_FOREVER UINT64_MAX

/** When one kind of call fails. All zero: never. */
struct test_fault {
	int code;             /* -errno of a failing call, 0: it transfers nothing */
	uint64_t after_bytes; /* that still pass, over all calls, cutting the last one short */
	uint64_t n_calls;     /* how many calls then fail before all is well again */
};

enum test_pace {
	TEST_FAST,
	TEST_YIELD, /* give way in the middle of every transfer */
	TEST_GATE,  /* the next write stops half way, says so in at_gate, and waits until the pace is another */
};
enum test_tear { TEST_CLEAN, TEST_TORN /* a failing write changes bytes all the same */ };

struct test_hole {
	uint64_t from, to;
};

enum test_call { TEST_PREAD, TEST_PWRITE, TEST_SYNC, TEST_PUNCH, TEST_ALLOCATE, TEST_SEEK, TEST_CALLS };

/** The n-th call of one kind fails, once. */
struct test_nth {
	enum test_call call;
	unsigned left; /* counts down to it; 0: none */
	int code;      /* 0: half of it is transferred */
};

struct test_backing {
	struct cf_backing base; /* first */
	uint8_t *data;
	size_t piece;   /* longest transfer of one call; 0: any */
	uint32_t block; /* only whole ones, in memory that suits, pass, as with O_DIRECT: else -EINVAL; 0: any range */
	_Atomic enum test_pace pace;
	_Atomic int at_gate;
	enum test_tear tear;
	bool whole_granules; /* a write reads the granules it touches and writes them back, as O_DIRECT must */
	void (*hook)(struct test_backing *t, enum test_call call); /* at the start of a call: may wait, as a disk does */
	struct test_fault read_fault, write_fault;
	struct test_nth nth;
	const uint8_t *unreadable; /* one flag a sector of 512 bytes, the test's; NULL: all can be read */
	int sync_code, punch_code, allocate_code;
	uint64_t punch_code_after; /* punches that succeed first */
	struct test_hole holes[4]; /* for seek, ascending; an empty one ends the list */
	_Atomic uint64_t n_reads, n_writes, n_syncs, n_punches, n_allocates;
	uint64_t punched_off, punched_len; /* the last one */
	_Atomic unsigned overlaps;         /* writes that ran at once in one granule */
	_Atomic unsigned *writing;         /* one counter a granule */
};

/** test_backing_new - @bytes of zeros, writes not to run at once in one @granule. The volume that takes it frees it. */
struct test_backing *test_backing_new(uint64_t bytes, uint32_t granule);

#endif
