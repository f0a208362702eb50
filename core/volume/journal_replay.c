/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* journal_replay.c - what is in a journal when a volume is opened.
 *
 * A record counts if its checksums hold; one that is known to have been durable, and does not hold, is damage. What
 * counts must fit the image as it is: every 512-byte piece of each data unit is one that a record has as old or as new
 * (HAZARDS 30), or somebody else wrote there since, and nothing at all is replayed. Only reads here: the volume's own
 * round, or nothing under --readonly, does the rest. One thread, before there are others. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/err.h"
#include "journal_internal.h"

static int refuse_damage(const struct cf_journal *j, const struct cf_journal_half *half, uint32_t slot,
						 struct cf_err *err)
{
	return cf_fail(err, -ENODEV, "the journal is damaged at byte %" PRIu64 ": nothing was changed",
				   cf_journal_record_at(j, half, slot));
}

/* Does it name a data unit of this volume? */
static bool names_du(const struct cf_journal *j, uint64_t sector)
{
	if (sector > j->image->bytes / CF_SECTOR_BYTES)
		return false;
	const struct cf_segment *s = cf_journal_segment(j, sector * CF_SECTOR_BYTES);
	return s && (sector * CF_SECTOR_BYTES - s->data_off) % j->du_bytes == 0;
}

/* One slot: 1 a record of this epoch, 0 none; -EIO. Only a head that looks like one is worth the rest. */
static int load_slot(struct cf_journal *j, struct cf_journal_half *half, uint64_t epoch, uint32_t slot)
{
	struct cf_journal_hand *h = &j->placer;
	const uint64_t at = cf_journal_record_at(j, half, slot);
	int rc = cf_backing_read_full(j->log, h->records, CF_RECORD_TAGS, at);
	if (rc || memcmp(h->records, CF_JOURNAL_RECORD_MAGIC, 8) != 0 ||
		cf_load_le64(h->records + CF_RECORD_EPOCH) != epoch)
		return rc;
	rc = cf_backing_read_full(j->log, h->records, j->record_bytes, at);
	if (!rc)
		rc = cf_journal_record_head_ok(j, h->mac, epoch, slot, h->records);
	if (rc == 1)
		rc = cf_journal_record_data_ok(j, h->mac, h->records, h->head);
	if (rc != 1 || !names_du(j, cf_load_le64(h->records + CF_RECORD_SECTOR)))
		return rc < 0 ? rc : 0;
	half->slot[slot].sector = cf_load_le64(h->records + CF_RECORD_SECTOR);
	memcpy(half->slot[slot].tag, h->records + CF_RECORD_TAG, CF_MAC_TAG);
	cf_journal_half_put(j, half, slot);
	return 1;
}

static int load_half(struct cf_journal *j, uint64_t epoch, struct cf_err *err)
{
	struct cf_journal_half *half = cf_journal_half(j, epoch);
	const uint64_t durable = j->told[1 + epoch % 2];
	for (uint32_t slot = 0; slot < j->n_slots; slot++) {
		const int rc = load_slot(j, half, epoch, slot);
		if (rc < 0)
			return cf_fail(err, rc, "the journal cannot be read at byte %" PRIu64, cf_journal_record_at(j, half, slot));
		if (rc == 0 && slot < durable)
			return refuse_damage(j, half, slot, err);
		if (rc == 0 && half->whole == UINT32_MAX)
			half->whole = slot;
		if (rc == 1)
			half->used = slot + 1;
	}
	half->durable = (uint32_t)durable;
	return 0;
}

/* ---- against the image ---- */

static bool has_tag(const uint8_t *tags, size_t bytes, const uint8_t *piece, size_t at)
{
	return memcmp(tags + at, piece, CF_MAC_TAG) == 0 || memcmp(tags + bytes + at, piece, CF_MAC_TAG) == 0;
}

/* The lists of tags, old then new, of the newest record of a data unit in each epoch. Returns how many; -EIO. */
static int tags_of(struct cf_journal *j, uint64_t sector, uint8_t *out)
{
	const size_t bytes = 2 * cf_journal_tags_bytes(j->du_bytes);
	int n = 0;
	for (uint64_t epoch = j->tail; epoch <= j->head; epoch++) {
		struct cf_journal_half *half = cf_journal_half(j, epoch);
		const struct cf_journal_found at = {half, cf_journal_half_get(j, half, sector)};
		if (at.slot == CF_JOURNAL_NO_SLOT)
			continue;
		const int rc = cf_journal_read_head(j, &j->placer, &at);
		if (rc)
			return rc;
		memcpy(out + (size_t)n++ * bytes, cf_journal_old_tags(j->placer.head), bytes);
	}
	return n;
}

/* 1: every piece is old or new; 0: one is neither. @tags: room for those of two records, and of the data unit. */
static int fits(struct cf_journal *j, uint64_t sector, uint8_t *tags)
{
	struct cf_journal_hand *h = &j->placer;
	const size_t bytes = cf_journal_tags_bytes(j->du_bytes);
	uint8_t *now = tags + 4 * bytes;
	const int n = tags_of(j, sector, tags);
	int rc = n < 0 ? n : cf_backing_read_full(j->image, h->old, j->du_bytes, sector * CF_SECTOR_BYTES);
	if (!rc)
		rc = cf_journal_piece_tags(j, h->mac, h->old, now);
	if (rc)
		return rc;
	for (size_t at = 0; at < bytes; at += CF_MAC_TAG)
		if (!has_tag(tags, bytes, now + at, at) && !(n > 1 && has_tag(tags + 2 * bytes, bytes, now + at, at)))
			return 0;
	return 1;
}

static int judge_half(struct cf_journal *j, const struct cf_journal_half *half, uint8_t *tags, struct cf_err *err)
{
	for (uint32_t slot = 0; slot < half->used; slot++) {
		const uint64_t sector = half->slot[slot].sector;
		if (cf_journal_half_get(j, half, sector) != slot)
			continue;
		const int rc = fits(j, sector, tags);
		if (rc < 0)
			return cf_fail(err, rc, "cannot compare journal and image at sector %" PRIu64, sector);
		if (rc == 0)
			return cf_fail(err, -ENODEV,
						   "the image was changed at sector %" PRIu64
						   " since the journal was written: nothing was replayed. "
						   "Move the journal away if the image is to stay as it is",
						   sector);
		if (cf_journal_find(j, sector * CF_SECTOR_BYTES).half == half)
			atomic_fetch_add(&j->replayed, 1);
	}
	return 0;
}

int cf_journal_load(struct cf_journal *j, struct cf_err *err)
{
	CF_CLEANUP(cf_freep) uint8_t *tags = malloc(5 * cf_journal_tags_bytes(j->du_bytes));
	if (!tags)
		return cf_fail(err, -ENOMEM, "out of memory");
	j->head = j->tail + 1;
	int rc = load_half(j, j->tail, err);
	if (!rc)
		rc = load_half(j, j->head, err);
	if (!rc)
		rc = judge_half(j, cf_journal_half(j, j->tail), tags, err);
	if (!rc)
		rc = judge_half(j, cf_journal_half(j, j->head), tags, err);
	if (!rc && !j->half[0].used && !j->half[1].used)
		j->head = j->tail;
	return rc;
}
