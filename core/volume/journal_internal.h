/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* journal_internal.h - what the files of the journal share, and nobody else sees.
 *
 * journal.c makes, syncs and ends it; journal_io.c reads and writes; journal_log.c knows what is pending and where;
 * journal_record.c the bytes of a record; journal_place.c brings them to the image; journal_super.c whose the file is;
 * journal_replay.c what is in it at open.
 *
 *     epoch      tail            head             tail + 1 == head, or tail == head
 *     half       tail % 2        head % 2
 *                sealed: goes    takes records
 *                to the image
 *
 * Locks, outer before inner: sync_mutex (one sync of the file at a time; states), place_mutex (one writer of the image
 * at a time: a round, or a discard), mutex (all fields that say so; a leaf, never held across a system call or a
 * checksum). A reader or writer of a half is counted in it instead, and who empties a half waits until none is left. */
#ifndef CRYPTFUSE_VOLUME_JOURNAL_INTERNAL_H
#define CRYPTFUSE_VOLUME_JOURNAL_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "cryptfuse/rangelock.h"
#include "cryptfuse/slots.h"
#include "journal_format.h"

#define CF_JOURNAL_NO_SLOT UINT32_MAX

/** A slot of a half, in memory. */
struct cf_journal_slot {
	uint64_t sector;         /* set when it is given out */
	uint8_t tag[CF_MAC_TAG]; /* of its record: what is read back must be that one */
};

/** One half of the file; its epoch is tail or head. All under the mutex, but what belongs to a slot that was given out.
 */
struct cf_journal_half {
	uint32_t used;    /* slots given out */
	uint32_t whole;   /* slots from 0 on that no failed write has left unwritten */
	uint32_t durable; /* slots from 0 on that are known to be */
	uint32_t live;    /* data units in the table */
	unsigned writers; /* of slots that were given out */
	unsigned readers; /* of records */
	bool dirty;       /* not emptied yet after a round */
	uint32_t *table;  /* sector -> its newest slot, plus 1; 0: free */
	struct cf_journal_slot *slot;
};

/** Where a data unit is pending. */
struct cf_journal_found {
	struct cf_journal_half *half; /* NULL: it is not */
	uint32_t slot;
};

/** What one caller works with. */
struct cf_journal_hand {
	struct cf_mac *mac;
	uint8_t *records;               /* room for a batch */
	uint8_t *old;                   /* the same of ciphertext */
	uint8_t *head;                  /* of one record, up to its ciphertext */
	struct cf_journal_found *found; /* one a data unit of the batch */
	struct cf_journal_half *half;   /* that it writes in; NULL none */
	uint64_t epoch;
	uint32_t slot, n; /* the first, and how many */
	bool builds;      /* on a record of the epoch before that may not be durable yet */
};

struct cf_journal {
	struct cf_backing base; /* first */
	struct cf_backing *image, *log;
	/* constant */
	uint32_t du_bytes, n_slots, batch;
	size_t record_bytes, data_at;
	uint64_t volume_bytes, data_off;
	unsigned table_shift, n_segments;
	struct cf_segment segment[CF_SEGMENTS_MAX];
	char uuid[CF_JOURNAL_UUID];
	uint8_t salt[CF_MAC_KEY];

	pthread_mutex_t mutex;
	pthread_cond_t changed;
	struct cf_journal_half half[2];
	uint64_t tail, head;     /* epochs */
	bool placing;            /* a round goes on */
	int error;               /* sticky */
	bool stop;               /* for the thread */
	bool opened;             /* constant after it */
	_Atomic uint32_t n_live; /* of both halves: 0 lets reads pass by */

	pthread_mutex_t sync_mutex;
	uint64_t generation; /* of the last state */
	uint64_t told[3];    /* what it said */
	_Atomic int is_ours; /* the super says whose it is; 0: nobody's yet */
	struct cf_mac *mac;  /* of whoever has sync_mutex */

	struct cf_rangelock
		granules; /* of the image, if more than a byte: a round writes back what it shares with others */
	pthread_mutex_t place_mutex;
	struct cf_journal_hand placer; /* of whoever has place_mutex */
	uint32_t *order;               /* slots of a half, to be sorted */

	struct cf_slots hands;
	unsigned n_hands;
	struct cf_journal_hand hand[CF_SLOTS_MAX];

	pthread_t thread;
	bool has_thread;

	_Atomic uint64_t replayed, n_records, n_commits, n_rounds;
};

static inline struct cf_journal *cf_journal_of(struct cf_backing *b)
{
	return (struct cf_journal *)b;
}

static inline struct cf_journal_half *cf_journal_half(struct cf_journal *j, uint64_t epoch)
{
	return &j->half[epoch % 2];
}

/* ---- journal_record.c: no state; the hand is the caller's ---- */

/** cf_journal_record_at - where a slot lies in the file. */
uint64_t cf_journal_record_at(const struct cf_journal *j, const struct cf_journal_half *half, uint32_t slot);

/** cf_journal_piece_tags - a checksum of every piece of a data unit. 0; -EIO. */
int cf_journal_piece_tags(const struct cf_journal *j, struct cf_mac *m, const uint8_t *data,
						  uint8_t *tags) CF_MUST_CHECK;

/** What a record is of. */
struct cf_journal_name {
	uint64_t epoch, sector;
	uint32_t slot;
};

/** cf_journal_record_make - fill in a record. @old_tags are there already; @data: the new ciphertext. 0; -EIO. */
int cf_journal_record_make(const struct cf_journal *j, struct cf_mac *m, const struct cf_journal_name *name,
						   const uint8_t *data, uint8_t *record) CF_MUST_CHECK;

/** cf_journal_record_head_ok - is what is before the ciphertext the record of that epoch and slot? 1, 0; -EIO. */
int cf_journal_record_head_ok(const struct cf_journal *j, struct cf_mac *m, uint64_t epoch, uint32_t slot,
							  const uint8_t *record) CF_MUST_CHECK;

/** cf_journal_record_data_ok - is its ciphertext what its tags say? @tags: scratch. 1, 0; -EIO. */
int cf_journal_record_data_ok(const struct cf_journal *j, struct cf_mac *m, const uint8_t *record,
							  uint8_t *tags) CF_MUST_CHECK;

static inline uint8_t *cf_journal_old_tags(uint8_t *record)
{
	return record + CF_RECORD_TAGS;
}

static inline uint8_t *cf_journal_new_tags(const struct cf_journal *j, uint8_t *record)
{
	return record + CF_RECORD_TAGS + cf_journal_tags_bytes(j->du_bytes);
}

/** cf_journal_read_head, cf_journal_read_record - a pending record out of the file, up to its ciphertext or all of it;
 * it must be the one that was written. @h: its head or its records are filled in. 0; -EIO. */
int cf_journal_read_head(struct cf_journal *j, struct cf_journal_hand *h,
						 const struct cf_journal_found *at) CF_MUST_CHECK;
int cf_journal_read_record(struct cf_journal *j, struct cf_journal_hand *h,
						   const struct cf_journal_found *at) CF_MUST_CHECK;

/* ---- journal_log.c: under the mutex unless it says otherwise ---- */

/** cf_journal_segment - that the byte of the image at @off belongs to; NULL: no part of the volume. Constant. */
const struct cf_segment *cf_journal_segment(const struct cf_journal *j, uint64_t off);

/** cf_journal_half_init - without the mutex. 0; -ENOMEM. */
int cf_journal_half_init(struct cf_journal *j, struct cf_journal_half *half) CF_MUST_CHECK;
void cf_journal_half_fini(struct cf_journal_half *half);

/** cf_journal_half_put - @slot is the newest of its sector. */
void cf_journal_half_put(struct cf_journal *j, struct cf_journal_half *half, uint32_t slot);

/** cf_journal_half_get - the newest slot of a sector, or CF_JOURNAL_NO_SLOT. */
uint32_t cf_journal_half_get(const struct cf_journal *j, const struct cf_journal_half *half, uint64_t sector);

/** cf_journal_find - the newest record of the data unit at @off of the image. */
struct cf_journal_found cf_journal_find(struct cf_journal *j, uint64_t off);

/** cf_journal_half_empty - forget all of it. */
void cf_journal_half_empty(struct cf_journal *j, struct cf_journal_half *half);

/** cf_journal_durable - how many slots from 0 on a sync that begins now makes durable. */
uint32_t cf_journal_durable(const struct cf_journal *j, const struct cf_journal_half *half);

/** cf_journal_seal - the next epoch begins, in the other half, which must be empty. */
void cf_journal_seal(struct cf_journal *j);

/* ---- journal_io.c: slots of the backing ---- */

ssize_t cf_journal_pread(struct cf_backing *b, void *buf, size_t len, uint64_t off);
ssize_t cf_journal_pwrite(struct cf_backing *b, const void *buf, size_t len, uint64_t off);

/* ---- journal_place.c ---- */

/** cf_journal_sync_log - make every record that was written durable, and note how many there are. Without the mutex. */
int cf_journal_sync_log(struct cf_journal *j) CF_MUST_CHECK;

/** cf_journal_lock_image, cf_journal_unlock_image - around a read of the image, or a write of a round: whatever lies in
 * the granules of the range. The volume's own lock keeps all others apart (HAZARDS 16). */
void cf_journal_lock_image(struct cf_journal *j, struct cf_range *r, uint64_t off, uint64_t len,
						   enum cf_range_mode mode);
void cf_journal_unlock_image(struct cf_journal *j, struct cf_range *r);

/** cf_journal_sync_image - under place_mutex: a failure is told once, and must not be taken for that of another. */
int cf_journal_sync_image(struct cf_journal *j) CF_MUST_CHECK;

/** cf_journal_write_state - under sync_mutex, or while nobody else is there. 0, -errno. */
int cf_journal_write_state(struct cf_journal *j, const uint64_t say[static 3]) CF_MUST_CHECK;

/** cf_journal_round - under the mutex, which is let go meanwhile: bring the tail, which is sealed, to the image. If
 * somebody else does, wait for him. 0; -errno it stays as it is. */
int cf_journal_round(struct cf_journal *j) CF_MUST_CHECK;

/** cf_journal_drain - without the mutex: all that was pending when it was called. */
int cf_journal_drain(struct cf_journal *j) CF_MUST_CHECK;

/* ---- journal_super.c: whose a journal is ---- */

/** cf_journal_keys - make the checksums depend on volume and salt. Before anybody else is there. 0; -ENOMEM. */
int cf_journal_keys(struct cf_journal *j, const struct cf_journal_opts *o) CF_MUST_CHECK;

/** cf_journal_read_super - is the file of this volume? Sets the salt and the keys, and tail, told and generation.
 * Returns 0 it is; 1 it is nobody's, and nothing is in it; -ENODEV. */
int cf_journal_read_super(struct cf_journal *j, const struct cf_journal_opts *o, struct cf_err *err) CF_MUST_CHECK;

/** cf_journal_adopt - write whose it is, before the first record. Under sync_mutex. */
int cf_journal_adopt(struct cf_journal *j) CF_MUST_CHECK;

/** cf_journal_disown - nothing is pending: the file is nobody's again. While nobody else is there. */
int cf_journal_disown(struct cf_journal *j) CF_MUST_CHECK;

/* ---- journal_replay.c ---- */

/** cf_journal_load - what is in the file becomes what is pending, if it may. 0; -ENODEV damaged, or not for the image
 * as it is now; -EIO …. */
int cf_journal_load(struct cf_journal *j, struct cf_err *err) CF_MUST_CHECK;

#endif
