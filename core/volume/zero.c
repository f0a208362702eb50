/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* zero.c - zeroing, discards, holes.
 *
 *     off                                                  off + len
 *      |zz|ZZZZZZZ|================================|ZZZZ|zzz|
 *          DU      DU and discard granule           DU
 *      z, Z: encrypted zeros           =: punched out of the backing, first
 *
 * A file system relies on reading zeros afterwards (DESIGN.md, section 3). Long ranges go piece by piece, each under
 * its own lock, so that a discard of terabytes keeps nobody out for long. */
#include <errno.h>

#include "internal.h"

#define PUNCH_STEP (UINT64_C(1) << 30) /* bytes; a multiple of any granule */

/* Encrypted zeros over a range inside the volume. */
static int write_zeros(struct cf_volume *v, struct cf_worker *w, uint64_t off, uint64_t len)
{
	while (len) {
		size_t take = (size_t)cf_min_u64(len, v->chunk_bytes - off % v->chunk_bytes);
		take = (size_t)cf_volume_piece(v, off, take);
		struct cf_written out;
		int rc = cf_volume_write_piece(v, w, v->zeros, take, off, &out);
		cf_volume_count(v, CF_COUNT_ZEROED_BYTES, out.len);
		if (rc) {
			cf_volume_count(v, CF_COUNT_WRITE_ERRORS, 1);
			return rc;
		}
		off += take;
		len -= take;
	}
	return 0;
}

int cf_volume_zero(struct cf_volume *v, struct cf_worker *w, uint64_t off, uint64_t len)
{
	if (v->access == CF_READ_ONLY)
		return -EROFS;
	if (cf_volume_clamp(v, off, len) < len)
		return -ENOSPC;
	return write_zeros(v, w, off, len);
}

/* Can any whole DU of this volume lie on the backing's discard granules? */
static bool can_punch(const struct cf_volume *v)
{
	uint32_t granule = v->backing->discard_granule;
	uint32_t unit = granule < v->du_bytes ? granule : v->du_bytes;
	return v->discards == CF_DISCARDS_ALLOWED && v->backing->ops->punch && cf_volume_at(v, 0) % unit == 0;
}

/* Punch [off, end), whole DUs on whole granules. *done: where it stopped. */
static int punch_pieces(struct cf_volume *v, uint64_t off, uint64_t end, uint64_t *done)
{
	for (*done = off; *done < end;) {
		uint64_t take = cf_min_u64(end - *done, PUNCH_STEP);
		struct cf_range range;
		cf_volume_lock(v, &range, *done, take, CF_RANGE_EXCLUSIVE);
		cf_volume_long_begin(v);
		int rc = v->backing->ops->punch(v->backing, cf_volume_at(v, *done), take);
		cf_volume_long_end(v);
		cf_volume_unlock(v, &range);
		if (rc)
			return rc;
		cf_volume_count(v, CF_COUNT_PUNCHED_BYTES, take);
		*done += take;
	}
	return 0;
}

int cf_volume_punch(struct cf_volume *v, struct cf_worker *w, uint64_t off, uint64_t len)
{
	if (v->access == CF_READ_ONLY)
		return -EROFS;
	if (!can_punch(v))
		return -EOPNOTSUPP;
	len = cf_volume_clamp(v, off, len);
	if (!len)
		return 0;
	uint32_t granule = v->backing->discard_granule;
	uint64_t end = off + len, start = cf_volume_at(v, 0);
	uint64_t first = cf_units_round_up(start + cf_units_round_up(off, v->du_bytes), granule) - start;
	uint64_t last = start + cf_units_round_down(end, v->du_bytes);
	last = cf_units_round_down(last, granule);
	last = last > start ? last - start : 0;
	if (first >= last)
		return write_zeros(v, w, off, len);
	uint64_t done;
	int rc = punch_pieces(v, first, last, &done);
	if (rc && (rc != -EOPNOTSUPP || done == first)) /* later than at first: nothing may be left half done */
		return rc;
	rc = write_zeros(v, w, off, first - off);
	return rc ? rc : write_zeros(v, w, done, end - done);
}

/* The next data or hole of the backing as an offset of the volume; its length if that lies behind. */
static int64_t seek_backing(const struct cf_volume *v, uint64_t off, enum cf_seek what)
{
	int64_t at = v->backing->ops->seek(v->backing, cf_volume_at(v, off), what);
	if (at == -ENXIO)
		return (int64_t)v->bytes;
	return at < 0 ? at : (int64_t)cf_min_u64((uint64_t)at - cf_volume_at(v, 0), v->bytes);
}

/* A DU with any data in it is data. */
static int64_t seek_data(const struct cf_volume *v, uint64_t off)
{
	int64_t data = seek_backing(v, cf_units_round_down(off, v->du_bytes), CF_SEEK_DATA);
	if (data < 0)
		return (int64_t)off; /* cannot tell: all data */
	uint64_t at = cf_units_round_down((uint64_t)data, v->du_bytes);
	if (at >= v->bytes)
		return -ENXIO;
	return (int64_t)(at > off ? at : off);
}

/* A hole that holds no whole DU is none. */
static int64_t seek_hole(const struct cf_volume *v, uint64_t off)
{
	for (uint64_t from = cf_units_round_down(off, v->du_bytes); from < v->bytes;) {
		int64_t hole = seek_backing(v, from, CF_SEEK_HOLE);
		if (hole < 0 || (uint64_t)hole >= v->bytes)
			break;
		int64_t data = seek_backing(v, (uint64_t)hole, CF_SEEK_DATA);
		if (data < 0)
			break;
		uint64_t at = cf_units_round_up((uint64_t)hole, v->du_bytes);
		if (at < v->bytes && at + v->du_bytes <= (uint64_t)data)
			return (int64_t)(at > off ? at : off);
		from = (uint64_t)data;
	}
	return (int64_t)v->bytes;
}

int64_t cf_volume_seek(struct cf_volume *v, uint64_t off, enum cf_seek what)
{
	if (off >= v->bytes)
		return -ENXIO;
	bool holes = v->discards == CF_DISCARDS_ALLOWED && v->backing->ops->seek;
	if (what == CF_SEEK_DATA)
		return holes ? seek_data(v, off) : (int64_t)off;
	return holes ? seek_hole(v, off) : (int64_t)v->bytes;
}
