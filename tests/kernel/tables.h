/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* tables.h - random dm-crypt tables, reproducible from a seed and an index: sound ones, which both sides should take,
 * and odd ones, which have a fault or two and on which they should agree. */
#ifndef CRYPTFUSE_TEST_TABLES_H
#define CRYPTFUSE_TEST_TABLES_H

#include <stdbool.h>

#include "cryptfuse/base.h"

#define TABLE_BACKING (1024u * 1024u) /* bytes of the image that tables are made for */
#define TABLE_PARAMS 40000u           /* bytes that any table fits in: a key of 16 KiB is 32 KiB of digits */

/** A stream of random numbers: the same for the same seed and index, on any machine. */
struct rng {
	uint64_t state;
};

struct rng rng_new(uint64_t seed, uint64_t index);
uint64_t rng_next(struct rng *r);
/** rng_below - 0 … n - 1; n above 0. */
uint64_t rng_below(struct rng *r, uint64_t n);
void rng_fill(struct rng *r, void *buf, size_t len);

struct table {
	uint64_t sectors;
	char params[TABLE_PARAMS]; /* "CIPHER KEY IV_OFFSET DEVICE OFFSET …" (dm.h) */
	/* what a sound table is, for the distribution */
	unsigned combo; /* index of its mode and IV kind */
	unsigned keycount;
	uint32_t du_bytes;
	bool large, wraps; /* iv_large_sectors; the value of the IV wraps inside the volume */
};

/** Every chaining mode with every IV kind that dm-crypt lets it have: "cbc", "essiv". */
struct table_combo {
	const char *mode, *iv;
};
extern const struct table_combo table_combos[];
unsigned table_combos_n(void);
/** table_combo_is_api - is it a name that only the kernel's crypto API knows? */
bool table_combo_is_api(const struct table_combo *c);

/** table_sound - table @index of @seed
 * The first two rounds over all combinations, in an order of the seed's own, give each of them twice; every fifth
 * table has DUs of 4096 bytes without iv_large_sectors, every fifth a wrap inside, every fifth several keys, as far as
 * the combination allows it. */
void table_sound(struct table *t, uint64_t seed, uint64_t index);

/** table_odd - the same with one or two faults. */
void table_odd(struct table *t, uint64_t seed, uint64_t index);

#endif
