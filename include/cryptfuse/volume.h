/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* volume.h - the decrypted address space: byte ranges in, whole data units out.
 *
 * The volume owns correctness: the range lock, read-modify-write at the edges, the end of the volume, zeroing and
 * discards, sticky sync errors. It knows no FUSE and no command line. */
#ifndef CRYPTFUSE_VOLUME_H
#define CRYPTFUSE_VOLUME_H

#include <stdbool.h>
#include <sys/types.h>

#include "cryptfuse/backing.h"
#include "cryptfuse/cipher.h"
#include "cryptfuse/segment.h"
#include "cryptfuse/lane.h"

struct cf_volume;
struct cf_journal_stats;

#define CF_IO_MAX (1024u * 1024u) /* bytes: the longest single read or write */

struct cf_volume_opts {
	uint64_t data_off; /* bytes: where the volume starts in the backing; any value (a partition at sector 63 is not
						  DU-aligned) */
	uint64_t bytes;    /* length of the volume, a multiple of the DU, above 0 */
	enum cf_access access;
	enum cf_discards discards;
	enum cf_bad_sectors bad_sectors; /* CF_BAD_ZERO needs CF_READ_ONLY (HAZARDS 29) */
	unsigned n_workers;              /* 1 to CF_WORKERS_MAX: requests that may wait for the backing at once */
	unsigned n_permits; /* 1 to n_workers: how many of them may compute at once, as the cipher was made for; 0: all */
	const struct cf_segment *segment; /* @n_segments, borrowed: they say where the volume lies, @data_off does not */
	unsigned n_segments;              /* 0: one piece; no discards with more */
};

/** Counters since open, for the status. */
struct cf_volume_stats {
	uint64_t reads, read_bytes, writes, write_bytes;
	uint64_t rmw; /* data units that a write covered in part */
	uint64_t syncs, punched_bytes, zeroed_bytes;
	uint64_t read_errors, write_errors, sync_errors;
	uint64_t undo_failures; /* a failed write whose old ciphertext could not be put back: that data unit is damaged */
};

/** A worker: the buffers that one thread needs while it reads or writes. Reserved at open, touched when first used. */
struct cf_worker {
	unsigned index;
	uint8_t *io; /* CF_IO_MAX bytes, for the caller's own use: a FUSE read is decrypted into it and sent from it */
	/* below: the volume's own */
	uint8_t *crypt; /* ciphertext on its way to or from the backing */
	uint8_t *edge;  /* one data unit of plaintext that is read or written in part */
	uint8_t *old;   /* its old ciphertext, until the write has succeeded */
	unsigned n_transfers;
};

/** cf_volume_new - put a volume together
 * @b, @c: taken (left NULL) on success, untouched on failure. Returns 0; -EINVAL the range or a segment does not lie in
 * the backing, or is no multiple of the DU; -ENOMEM. */
int cf_volume_new(struct cf_volume **out, struct cf_backing **b, struct cf_cipher **c,
				  const struct cf_volume_opts *opts, struct cf_err *err) CF_MUST_CHECK;

/** cf_volume_free - frees the cipher (wiping keys) and the backing too. No call may be running. Does not sync:
 * cf_volume_sync does. */
void cf_volume_free(struct cf_volume **v);

/** cf_volume_can_suspend - false where the key lies in the kernel too (AF_ALG). */
bool cf_volume_can_suspend(const struct cf_volume *v);

/** cf_volume_suspend - wipe the key, what was made of it, and the workers' buffers
 * Nobody may read, write, zero or punch meanwhile, nor before cf_volume_resume: that fails then with -EIO and changes
 * nothing. Sync, allocate, seek and all that asks go on as before. Does not sync. */
void cf_volume_suspend(struct cf_volume *v);

/** cf_volume_resume - go on with the key that it was opened with
 * @key: borrowed; NULL for a cipher without one. Returns 0; -EPERM it is another key; -EIO the engine failed its
 * self-test; -ENOMEM. On failure it stays suspended. */
int cf_volume_resume(struct cf_volume *v, const uint8_t *key, struct cf_err *err) CF_MUST_CHECK;

uint64_t cf_volume_bytes(const struct cf_volume *v);
uint32_t cf_volume_du_bytes(const struct cf_volume *v);
enum cf_access cf_volume_access(const struct cf_volume *v);
const struct cf_cipher *cf_volume_cipher(const struct cf_volume *v);
void cf_volume_stats(struct cf_volume *v, struct cf_volume_stats *out);

/** A range of the volume whose ciphertext could not be read: whole data units. */
struct cf_bad_range {
	uint64_t off, bytes;
	uint64_t image_off; /* where in the image */
};

#define CF_BAD_MAX 4096u /* ranges that are remembered */

struct cf_bad_total {
	uint64_t bytes;
	unsigned ranges;
	bool complete; /* false: there were more than can be remembered */
};

/** cf_volume_bad - what read as zeros so far under CF_BAD_ZERO: disjoint, ascending, adjoining ranges are one
 * @out: room for @max. Returns how many were filled in. Any thread. */
unsigned cf_volume_bad(struct cf_volume *v, struct cf_bad_range *out, unsigned max, struct cf_bad_total *total);

/** cf_volume_enter, cf_volume_leave - borrow a worker for one request: the free one with the lowest index, so that few
 * threads keep to few buffers; waits while all are out. Any thread; never fails. */
struct cf_worker *cf_volume_enter(struct cf_volume *v);
void cf_volume_leave(struct cf_volume *v, struct cf_worker *w);

/** cf_volume_waiting - how many requests wait for the backing rather than compute, as far as can be told: those in a
 * sync or discard, or CF_WORKERS_MAX while the backing makes its callers sleep. For whoever decides how many threads to
 * have. Any thread. */
unsigned cf_volume_waiting(struct cf_volume *v);

/** cf_volume_read - decrypt a byte range of the volume
 * @w: from cf_volume_enter      @off: bytes, any alignment, any value
 * @buf: out, @len bytes (may be w->io)   @len: bytes, at most CF_IO_MAX
 * Shape: touches ceil((off % DU + len) / DU) data units; short only at the end of the volume; 0 at or past it.
 * Threads: any number at once; waits for writes to the same data units. Segments are read one after the other.
 * Returns: bytes read; -EIO the backing or the engine failed (under CF_BAD_ZERO a failing backing gives zeros). On
 * error @buf is undefined. Source: Linux drivers/md/dm-crypt.c, crypt_convert(). */
ssize_t cf_volume_read(struct cf_volume *v, struct cf_worker *w, uint8_t *buf, size_t len, uint64_t off) CF_MUST_CHECK;

/** cf_volume_write - encrypt a byte range into the volume
 * @buf: borrowed, left intact. Data units covered in part are read, decrypted, changed, encrypted, written. A segment
 * of zeros takes zeros, which change nothing, and gives -EIO for anything else. Returns: bytes written: short at the
 * end of the volume, or where the backing failed after whole data units; -ENOSPC starts at or past the end; -EROFS;
 * -EIO, -ENOSPC, … the backing's own. Bytes outside the range never change, also on error (HAZARDS 14); if that could
 * not be kept: -EIO, however much was written, and undo_failures. */
ssize_t cf_volume_write(struct cf_volume *v, struct cf_worker *w, const uint8_t *buf, size_t len,
						uint64_t off) CF_MUST_CHECK;

/** A sync that was asked for; memory of the caller until it is answered. */
struct cf_sync {
	struct cf_lane_job job; /* the volume's own */
	/** Called once, from this thread or from another one that syncs, with what cf_volume_sync returns. May free @s. */
	void (*done)(struct cf_sync *s, int rc);
};

/** cf_volume_sync_start - make all writes that have completed durable, without holding more than one thread
 * While a sync of the backing runs, those who come leave their @s and go; together they are answered by the next one,
 * which begins after they came. The thread that syncs goes on until nobody waits. Any thread. Errors are sticky: once a
 * sync has failed all fail until the volume is opened anew (HAZARDS 15), each caller is told. */
void cf_volume_sync_start(struct cf_volume *v, struct cf_sync *s);

/** cf_volume_sync - the same, and wait for the answer. 0 or -EIO, -ENOSPC …. */
int cf_volume_sync(struct cf_volume *v) CF_MUST_CHECK;

/** cf_volume_start - from now on the backing may have threads of its own. 0 or -errno: then it does without. */
int cf_volume_start(struct cf_volume *v) CF_MUST_CHECK;

/** cf_volume_drain - a sync, and whatever a journal still holds goes to the image. While no write is on its way nothing
 * is left in it then. 0, or -errno: what was synced stays in the journal. */
int cf_volume_drain(struct cf_volume *v) CF_MUST_CHECK;

/** cf_volume_journal - how its journal fares; false: it has none. Any thread. */
bool cf_volume_journal(struct cf_volume *v, struct cf_journal_stats *out);

/** cf_volume_zero - write encrypted zeros (FALLOC_FL_ZERO_RANGE). Past the end: -ENOSPC and nothing changed. */
int cf_volume_zero(struct cf_volume *v, struct cf_worker *w, uint64_t off, uint64_t len) CF_MUST_CHECK;

/** cf_volume_punch - discard (FALLOC_FL_PUNCH_HOLE): whole DUs out of the backing, encrypted zeros at the edges;
 * afterwards the range reads as zeros. Clipped at the end. Returns 0; -EOPNOTSUPP without CF_DISCARDS_ALLOWED, if the
 * backing cannot, or if no data unit of this volume lies on its discard granules: always before any change. Long ranges
 * go in pieces: another request may come between. */
int cf_volume_punch(struct cf_volume *v, struct cf_worker *w, uint64_t off, uint64_t len) CF_MUST_CHECK;

/** cf_volume_allocate - reserve backing space, content unchanged. Past the end: -ENOSPC. */
int cf_volume_allocate(struct cf_volume *v, uint64_t off, uint64_t len) CF_MUST_CHECK;

/** cf_volume_seek - SEEK_DATA and SEEK_HOLE. All data unless CF_DISCARDS_ALLOWED; then a hole is whole data units,
 * edges inward (HAZARDS 9). Returns an offset, the volume's length for "hole at the end"; -ENXIO at or past the end, or
 * no data. */
int64_t cf_volume_seek(struct cf_volume *v, uint64_t off, enum cf_seek what) CF_MUST_CHECK;

#endif
