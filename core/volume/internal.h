/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* internal.h - what the files of the volume share, and nobody else sees.
 *
 * bad.c knows what cannot be read; volume.c owns the struct, workers, counters; segments.c the pieces; io.c reads and
 * writes; sync.c syncs; zero.c zeroes, punches, seeks. Everything but counters, slots and what belongs to sync.c is
 * constant after cf_volume_new. */
#ifndef CRYPTFUSE_VOLUME_INTERNAL_H
#define CRYPTFUSE_VOLUME_INTERNAL_H

#include <stdatomic.h>

#include "cryptfuse/lane.h"
#include "cryptfuse/rangelock.h"
#include "cryptfuse/slots.h"
#include "cryptfuse/units.h"
#include "cryptfuse/volume.h"

/** Ciphertext of one transfer: a request is worked off in chunks, under one lock. Small enough to stay in the L2 cache
 * between backing and cipher; with large data units no fewer than CBC encryption's lanes. A multiple of the DU. */
#define CF_CHUNK_MIN (128u * 1024u)
#define CF_CHUNK_DU 8u

enum cf_counter {
	CF_COUNT_READS,
	CF_COUNT_READ_BYTES,
	CF_COUNT_WRITES,
	CF_COUNT_WRITE_BYTES,
	CF_COUNT_RMW,
	CF_COUNT_SYNCS,
	CF_COUNT_PUNCHED_BYTES,
	CF_COUNT_ZEROED_BYTES,
	CF_COUNT_READ_ERRORS,
	CF_COUNT_WRITE_ERRORS,
	CF_COUNT_SYNC_ERRORS,
	CF_COUNT_UNDO_FAILURES,
	CF_COUNTERS
};

/** What could not be read. */
struct cf_bad {
	enum cf_bad_sectors policy;
	pthread_mutex_t mutex;
	unsigned n;
	bool overflow; /* there were more */
	struct cf_bad_range at[CF_BAD_MAX];
};

struct cf_volume {
	struct cf_backing *backing;
	struct cf_cipher *cipher;
	uint64_t bytes;
	unsigned n_segments; /* at least one */
	struct cf_segment segment[CF_SEGMENTS_MAX];
	enum cf_access access;
	enum cf_discards discards;
	uint32_t du_bytes;
	unsigned du_shift;
	uint32_t chunk_bytes;
	bool reads_in_place; /* whole data units are decrypted where they were read to */
	uint8_t *zeros;      /* chunk_bytes of plaintext */

	struct cf_rangelock ranges;

	unsigned n_workers, n_permits;
	struct cf_slots pool; /* workers: threads that may wait */
	struct cf_worker workers[CF_WORKERS_MAX];
	struct cf_slots permits; /* contexts of the cipher: threads that compute */

	struct cf_lane sync_lane;
	int sync_error;             /* of whoever is in sync_lane; 0, or what every sync says from now on */
	pthread_mutex_t sync_mutex; /* of those who wait for an answer */
	pthread_cond_t sync_done;

	_Atomic unsigned wait_level; /* of waits.c */
	_Atomic unsigned n_long;     /* threads in a call of the backing that may take seconds */

	struct cf_bad bad;

	_Atomic uint64_t counters[CF_COUNTERS];
};

static inline void cf_volume_count(struct cf_volume *v, enum cf_counter which, uint64_t n)
{
	atomic_fetch_add_explicit(&v->counters[which], n, memory_order_relaxed);
}

/** cf_volume_clamp - how much of [off, off + len) lies in the volume: the offset is judged first, nothing wraps. */
static inline uint64_t cf_volume_clamp(const struct cf_volume *v, uint64_t off, uint64_t len)
{
	if (off >= v->bytes)
		return 0;
	return len < v->bytes - off ? len : v->bytes - off;
}

/** cf_volume_set_segments - where the volume lies, checked against backing and data unit; volume.c's. 0; -EINVAL. */
int cf_volume_set_segments(struct cf_volume *v, const struct cf_backing *b, const struct cf_volume_opts *o,
						   struct cf_err *err) CF_MUST_CHECK;

/** cf_volume_segment - the one that @off, inside the volume, lies in. */
static inline const struct cf_segment *cf_volume_segment(const struct cf_volume *v, uint64_t off)
{
	unsigned i = 0;
	while (i + 1 < v->n_segments && off >= v->segment[i + 1].off)
		i++;
	return &v->segment[i];
}

/** cf_volume_piece - how much of [off, off + len), inside the volume, lies in one segment. */
static inline uint64_t cf_volume_piece(const struct cf_volume *v, uint64_t off, uint64_t len)
{
	const struct cf_segment *s = cf_volume_segment(v, off);
	return len < s->off + s->bytes - off ? len : s->off + s->bytes - off;
}

/** cf_volume_at - where @off, which is in no segment of zeros, lies in the backing. */
static inline uint64_t cf_volume_at(const struct cf_volume *v, uint64_t off)
{
	const struct cf_segment *s = cf_volume_segment(v, off);
	return s->data_off + (off - s->off);
}

/** cf_volume_du - the data unit's number for the cipher: the volume's own only where it is in one piece. */
static inline uint64_t cf_volume_du(const struct cf_volume *v, uint64_t off)
{
	const struct cf_segment *s = cf_volume_segment(v, off);
	return (s->iv_sector >> (v->du_shift - CF_SECTOR_SHIFT)) + ((off - s->off) >> v->du_shift);
}

/** cf_volume_lock, cf_volume_unlock - hold the data units of a non-empty range inside one segment, and whatever shares
 * a granule of the backing with them. */
void cf_volume_lock(struct cf_volume *v, struct cf_range *r, uint64_t off, uint64_t len, enum cf_range_mode mode);
void cf_volume_unlock(struct cf_volume *v, struct cf_range *r);

/** cf_volume_crypt - cf_cipher_crypt under a compute permit, which is held for nothing else. Waits while all are out.
 */
int cf_volume_crypt(struct cf_volume *v, const struct cf_worker *w, enum cf_dir dir, uint64_t du, size_t n_du,
					const uint8_t *src, uint8_t *dst) CF_MUST_CHECK;

#define CF_UNWATCHED (-1L)

/** cf_volume_watch, cf_volume_watched - around a transfer from or to the backing: notes whether it waits. */
long cf_volume_watch(struct cf_worker *w);
void cf_volume_watched(struct cf_volume *v, long before);

/** cf_volume_long_begin, cf_volume_long_end - around a call of the backing that may take seconds. */
static inline void cf_volume_long_begin(struct cf_volume *v)
{
	atomic_fetch_add_explicit(&v->n_long, 1, memory_order_relaxed);
}

static inline void cf_volume_long_end(struct cf_volume *v)
{
	atomic_fetch_sub_explicit(&v->n_long, 1, memory_order_relaxed);
}

/** cf_volume_decrypt - @n_du data units of ciphertext at @src; those that were punched read as zeros. */
int cf_volume_decrypt(struct cf_volume *v, struct cf_worker *w, uint64_t du, size_t n_du, const uint8_t *src,
					  uint8_t *dst) CF_MUST_CHECK;

void cf_bad_init(struct cf_bad *b, enum cf_bad_sectors policy);
void cf_bad_fini(struct cf_bad *b);

/** cf_volume_read_bad - read a range again whose backing failed: what can be read, and zeros for the rest. */
int cf_volume_read_bad(struct cf_volume *v, struct cf_worker *w, uint8_t *buf, size_t len, uint64_t off) CF_MUST_CHECK;

void cf_volume_sync_init(struct cf_volume *v);
void cf_volume_sync_fini(struct cf_volume *v);

/** What a write came to. */
struct cf_written {
	size_t len;   /* bytes, from the start, that are surely new */
	bool damaged; /* a failed write's old ciphertext could not be put back: the error must not hide behind @len */
};

/** cf_volume_write_piece - lock, encrypt and write a range inside one segment. 0, or -errno with @out saying how far it
 * came. */
int cf_volume_write_piece(struct cf_volume *v, struct cf_worker *w, const uint8_t *buf, size_t len, uint64_t off,
						  struct cf_written *out) CF_MUST_CHECK;

#endif
