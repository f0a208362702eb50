/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* journal_log.c - what is pending, and where: a table of sectors for each half. Everything here runs under the
 * journal's mutex, allocates nothing but in cf_journal_half_init, and makes no system call. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "journal_internal.h"

const struct cf_segment *cf_journal_segment(const struct cf_journal *j, uint64_t off)
{
	for (unsigned i = 0; i < j->n_segments; i++) {
		const struct cf_segment *s = &j->segment[i];
		if (s->kind == CF_SEGMENT_CRYPT && off >= s->data_off && off - s->data_off < s->bytes)
			return s;
	}
	return NULL;
}

/* Twice as many places as slots: an insertion always finds one. */
int cf_journal_half_init(struct cf_journal *j, struct cf_journal_half *half)
{
	const size_t places = (size_t)1 << (64 - j->table_shift);
	*half = (struct cf_journal_half){.whole = UINT32_MAX};
	half->table = malloc(places * sizeof(*half->table));
	half->slot = malloc(j->n_slots * sizeof(*half->slot));
	if (!half->table || !half->slot)
		return -ENOMEM;
	memset(half->table, 0, places * sizeof(*half->table)); /* touched now: not when memory is short */
	memset(half->slot, 0, j->n_slots * sizeof(*half->slot));
	return 0;
}

void cf_journal_half_fini(struct cf_journal_half *half)
{
	free(half->table);
	free(half->slot);
}

/* The place of a sector, or the free one where it belongs. */
static uint32_t *place_of(const struct cf_journal *j, const struct cf_journal_half *half, uint64_t sector)
{
	const size_t mask = ((size_t)1 << (64 - j->table_shift)) - 1;
	size_t at = (size_t)(sector * UINT64_C(0x9e3779b97f4a7c15) >> j->table_shift);
	while (half->table[at] && half->slot[half->table[at] - 1].sector != sector)
		at = (at + 1) & mask;
	return &half->table[at];
}

void cf_journal_half_put(struct cf_journal *j, struct cf_journal_half *half, uint32_t slot)
{
	uint32_t *place = place_of(j, half, half->slot[slot].sector);
	if (!*place) {
		half->live++;
		atomic_fetch_add(&j->n_live, 1);
	}
	*place = slot + 1;
}

uint32_t cf_journal_half_get(const struct cf_journal *j, const struct cf_journal_half *half, uint64_t sector)
{
	const uint32_t found = half->live ? *place_of(j, half, sector) : 0;
	return found ? found - 1 : CF_JOURNAL_NO_SLOT;
}

struct cf_journal_found cf_journal_find(struct cf_journal *j, uint64_t off)
{
	struct cf_journal_found at = {.half = NULL};
	for (uint64_t epoch = j->head + 1; epoch-- > j->tail && !at.half;) {
		struct cf_journal_half *half = cf_journal_half(j, epoch);
		at.slot = cf_journal_half_get(j, half, off / CF_SECTOR_BYTES);
		if (at.slot != CF_JOURNAL_NO_SLOT)
			at.half = half;
	}
	return at;
}

void cf_journal_half_empty(struct cf_journal *j, struct cf_journal_half *half)
{
	assert(!half->readers && !half->writers);
	memset(half->table, 0, ((size_t)1 << (64 - j->table_shift)) * sizeof(*half->table));
	atomic_fetch_sub(&j->n_live, half->live);
	half->live = half->used = half->durable = 0;
	half->whole = UINT32_MAX;
	half->dirty = false;
}

uint32_t cf_journal_durable(const struct cf_journal *j, const struct cf_journal_half *half)
{
	uint32_t n = half->used < half->whole ? half->used : half->whole;
	for (unsigned i = 0; i < j->n_hands; i++)
		if (j->hand[i].half == half && j->hand[i].slot < n)
			n = j->hand[i].slot;
	return n;
}

void cf_journal_seal(struct cf_journal *j)
{
	assert(j->tail == j->head && !cf_journal_half(j, j->head + 1)->dirty && !cf_journal_half(j, j->head + 1)->used);
	j->head++;
}
