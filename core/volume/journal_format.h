/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* journal_format.h - the bytes of a journal. cryptfuse-format(7) has the same in words. Numbers are little-endian.
 *
 *     0       super       what volume it is for; all zero behind the version: nobody's, and nothing in it
 *     4096    state       generation g odd            the valid one with the higher generation counts
 *     8192    state       generation g even
 *     12288   half 0      records of one size: slot 0, slot 1, …       of even epochs
 *             half 1      the same                                     of odd epochs
 *
 *     record | head: magic, epoch, slot, sector | tag of it all | old tags | new tags | ciphertext |
 *
 * Every block and record ends in, or holds, a tag under the key of this journal, which depends on volume key, cipher,
 * geometry and salt. What is hashed differs in length between super, state, record and piece: none can stand for
 * another. */
#ifndef CRYPTFUSE_VOLUME_JOURNAL_FORMAT_H
#define CRYPTFUSE_VOLUME_JOURNAL_FORMAT_H

#include "cryptfuse/journal.h"
#include "cryptfuse/mac.h"
#include "cryptfuse/units.h"

#define CF_JOURNAL_MAGIC "CRYPTFUSEJOURNAL"
#define CF_JOURNAL_VERSION 1u

/** Places in the file. */
#define CF_JOURNAL_SUPER_AT 0u
#define CF_JOURNAL_STATE_AT(generation) ((generation) % 2 ? 4096u : 8192u)
#define CF_JOURNAL_SLOTS_AT 12288u

/** Super: 512 bytes. */
enum cf_journal_super {
	CF_SUPER_MAGIC = 0,
	CF_SUPER_VERSION = 16,
	CF_SUPER_DU = 20,
	CF_SUPER_DATA_OFF = 24,
	CF_SUPER_VOLUME = 32, /* bytes */
	CF_SUPER_IMAGE = 40,  /* bytes */
	CF_SUPER_FILE = 48,   /* bytes of the journal */
	CF_SUPER_SALT = 56,
	CF_SUPER_UUID = 72,
	CF_SUPER_TAG = 496,
	CF_SUPER_BYTES = 512
};

/** State: 512 bytes. */
enum cf_journal_state {
	CF_STATE_MAGIC = 0,
	CF_STATE_GENERATION = 8,
	CF_STATE_TAIL = 16,      /* the first epoch that may not be in the image */
	CF_STATE_DURABLE_0 = 24, /* records of half 0, from slot 0 on, that are known to be durable */
	CF_STATE_DURABLE_1 = 32,
	CF_STATE_TAG = 480,
	CF_STATE_BYTES = 512
};
#define CF_JOURNAL_STATE_MAGIC "CFJSTATE"

/** Record: a head, 2 tags a piece, the data unit. */
enum cf_journal_record {
	CF_RECORD_MAGIC = 0,
	CF_RECORD_EPOCH = 8,
	CF_RECORD_SLOT = 16,
	CF_RECORD_SECTOR = 24, /* of the image, where the data unit begins */
	CF_RECORD_TAG = 32,    /* of what is before and of the tags behind */
	CF_RECORD_TAGS = 48    /* old, then new */
};
#define CF_JOURNAL_RECORD_MAGIC "CFJRECRD"

static inline size_t cf_journal_tags_bytes(uint32_t du_bytes)
{
	return (size_t)(du_bytes / CF_SECTOR_BYTES) * CF_MAC_TAG;
}

/** Where its ciphertext begins. */
static inline size_t cf_journal_data_at(uint32_t du_bytes)
{
	return CF_RECORD_TAGS + 2 * cf_journal_tags_bytes(du_bytes);
}

static inline size_t cf_journal_record_bytes(uint32_t du_bytes)
{
	return cf_journal_data_at(du_bytes) + du_bytes;
}

/** How many slots a half has. */
static inline uint64_t cf_journal_slots(uint64_t file_bytes, uint32_t du_bytes)
{
	return (file_bytes - CF_JOURNAL_SLOTS_AT) / 2 / cf_journal_record_bytes(du_bytes);
}

#endif
