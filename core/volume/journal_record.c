/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* journal_record.c - the bytes of a record, and reading one back. No state of its own.
 *
 * What comes out of the file is believed only after its checksums: a page that the kernel could not write is clean
 * afterwards, and gives the old bytes when it is read again. */
#include <errno.h>
#include <string.h>

#include "cryptfuse/bytes.h"
#include "journal_internal.h"

uint64_t cf_journal_record_at(const struct cf_journal *j, const struct cf_journal_half *half, uint32_t slot)
{
	const uint64_t first = half == &j->half[1] ? j->n_slots : 0;
	return CF_JOURNAL_SLOTS_AT + (first + slot) * j->record_bytes;
}

int cf_journal_piece_tags(const struct cf_journal *j, struct cf_mac *m, const uint8_t *data, uint8_t *tags)
{
	int rc = 0;
	for (uint32_t i = 0; i < j->du_bytes / CF_SECTOR_BYTES && !rc; i++)
		rc = cf_mac_tag(m, data + (size_t)i * CF_SECTOR_BYTES, CF_SECTOR_BYTES, tags + (size_t)i * CF_MAC_TAG);
	return rc;
}

/* Of the head and both lists of tags, which are brought together over the place of the tag itself. */
static int head_tag(const struct cf_journal *j, struct cf_mac *m, const uint8_t *record, uint8_t tag[static CF_MAC_TAG])
{
	uint8_t bytes[CF_RECORD_TAG + 2 * CF_DU_MAX / CF_SECTOR_BYTES * CF_MAC_TAG];
	const size_t tags_bytes = 2 * cf_journal_tags_bytes(j->du_bytes);
	memcpy(bytes, record, CF_RECORD_TAG);
	memcpy(bytes + CF_RECORD_TAG, record + CF_RECORD_TAGS, tags_bytes);
	return cf_mac_tag(m, bytes, CF_RECORD_TAG + tags_bytes, tag);
}

int cf_journal_record_make(const struct cf_journal *j, struct cf_mac *m, const struct cf_journal_name *name,
						   const uint8_t *data, uint8_t *record)
{
	memcpy(record + CF_RECORD_MAGIC, CF_JOURNAL_RECORD_MAGIC, 8);
	cf_store_le64(record + CF_RECORD_EPOCH, name->epoch);
	cf_store_le64(record + CF_RECORD_SLOT, name->slot);
	cf_store_le64(record + CF_RECORD_SECTOR, name->sector);
	memcpy(record + j->data_at, data, j->du_bytes);
	const int rc = cf_journal_piece_tags(j, m, data, cf_journal_new_tags(j, record));
	return rc ? rc : head_tag(j, m, record, record + CF_RECORD_TAG);
}

int cf_journal_record_head_ok(const struct cf_journal *j, struct cf_mac *m, uint64_t epoch, uint32_t slot,
							  const uint8_t *record)
{
	uint8_t tag[CF_MAC_TAG];
	if (memcmp(record + CF_RECORD_MAGIC, CF_JOURNAL_RECORD_MAGIC, 8) != 0 ||
		cf_load_le64(record + CF_RECORD_EPOCH) != epoch || cf_load_le64(record + CF_RECORD_SLOT) != slot)
		return 0;
	const int rc = head_tag(j, m, record, tag);
	return rc ? rc : memcmp(tag, record + CF_RECORD_TAG, CF_MAC_TAG) == 0;
}

int cf_journal_record_data_ok(const struct cf_journal *j, struct cf_mac *m, const uint8_t *record, uint8_t *tags)
{
	const size_t tags_bytes = cf_journal_tags_bytes(j->du_bytes);
	const int rc = cf_journal_piece_tags(j, m, record + j->data_at, tags);
	return rc ? rc : memcmp(tags, record + CF_RECORD_TAGS + tags_bytes, tags_bytes) == 0;
}

/* The tag says all: epoch, slot and sector are under it. */
static int read_checked(struct cf_journal *j, struct cf_journal_hand *h, const struct cf_journal_found *at,
						uint8_t *record, size_t len)
{
	uint8_t tag[CF_MAC_TAG];
	int rc = cf_backing_read_full(j->log, record, len, cf_journal_record_at(j, at->half, at->slot));
	if (!rc)
		rc = head_tag(j, h->mac, record, tag);
	return rc ? rc : memcmp(tag, at->half->slot[at->slot].tag, CF_MAC_TAG) ? -EIO : 0;
}

int cf_journal_read_head(struct cf_journal *j, struct cf_journal_hand *h, const struct cf_journal_found *at)
{
	return read_checked(j, h, at, h->head, j->data_at);
}

int cf_journal_read_record(struct cf_journal *j, struct cf_journal_hand *h, const struct cf_journal_found *at)
{
	int rc = read_checked(j, h, at, h->records, j->record_bytes);
	if (!rc)
		rc = cf_journal_record_data_ok(j, h->mac, h->records, h->head);
	return rc < 0 ? rc : rc ? 0 : -EIO;
}
