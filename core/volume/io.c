/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* io.c - reads and writes of any alignment, in whole data units.
 *
 *        DU k          DU k+1   …   DU m-1         DU m
 *     |.......hhhh| |bbbbbbbbbbbbbbbbbbbbbbb| |tttttt......|
 *        head: in part      body: whole          tail: in part
 *
 * Reading fetches head, body and tail in one go and decrypts the body straight into the caller's buffer; what is all
 * body is fetched there and decrypted in place, where the cipher can do that, which saves a buffer's worth of cache.
 * Writing treats each on its own: the body is encrypted and written; head and tail are read, changed and written back,
 * and undone if that fails, so that no byte outside the request ever changes (HAZARDS 14). Reads lock shared, writes
 * exclusive: in CBC and wide-block modes bytes that did not change get new ciphertext too. Nothing here allocates. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "cryptfuse/bytes.h"
#include "internal.h"

static size_t offset_in_du(const struct cf_volume *v, uint64_t off)
{
	return (size_t)(off & (v->du_bytes - 1));
}

static int fetch(struct cf_volume *v, struct cf_worker *w, uint8_t *buf, size_t len, uint64_t at)
{
	long watch = cf_volume_watch(w);
	int rc = cf_backing_read_full(v->backing, buf, len, at);
	cf_volume_watched(v, watch);
	return rc;
}

/* Out of w->crypt. */
static int store(struct cf_volume *v, struct cf_worker *w, size_t len, uint64_t at, size_t *written)
{
	long watch = cf_volume_watch(w);
	int rc = cf_backing_write_full(v->backing, w->crypt, len, at, written);
	cf_volume_watched(v, watch);
	return rc;
}

/* With as many permits as workers each has its own. */
int cf_volume_crypt(struct cf_volume *v, const struct cf_worker *w, enum cf_dir dir, uint64_t du, size_t n_du,
					const uint8_t *src, uint8_t *dst)
{
	if (v->n_permits == v->n_workers)
		return cf_cipher_crypt(v->cipher, w->index, dir, du, n_du, src, dst);
	unsigned permit = cf_slots_take(&v->permits);
	int rc = cf_cipher_crypt(v->cipher, permit, dir, du, n_du, src, dst);
	cf_slots_give(&v->permits, permit);
	return rc;
}

/* Under --allow-discards a DU of zero ciphertext was punched, and reads as zeros. */
int cf_volume_decrypt(struct cf_volume *v, struct cf_worker *w, uint64_t du, size_t n_du, const uint8_t *src,
					  uint8_t *dst)
{
	int rc = cf_volume_crypt(v, w, CF_DECRYPT, du, n_du, src, dst);
	if (rc || v->discards == CF_DISCARDS_REFUSED)
		return rc;
	for (size_t at = 0; at < n_du << v->du_shift; at += v->du_bytes)
		if (cf_is_zero(src + at, v->du_bytes))
			memset(dst + at, 0, v->du_bytes);
	return 0;
}

/* Decrypt what lies in w->crypt, the ciphertext of every DU the range touches. */
static int decrypt_range(struct cf_volume *v, struct cf_worker *w, uint8_t *buf, size_t len, uint64_t off)
{
	const uint8_t *src = w->crypt;
	for (size_t done = 0, take; done < len; done += take) {
		uint64_t du = cf_volume_du(v, off + done);
		size_t skip = offset_in_du(v, off + done), left = len - done;
		bool whole = skip == 0 && left >= v->du_bytes;
		size_t n_du = whole ? left >> v->du_shift : 1;
		int rc = cf_volume_decrypt(v, w, du, n_du, src, whole ? buf + done : w->edge);
		if (rc)
			return rc;
		take = whole ? n_du << v->du_shift : cf_min_size(left, v->du_bytes - skip);
		if (!whole)
			memcpy(buf + done, w->edge + skip, take);
		src += n_du << v->du_shift;
	}
	return 0;
}

static int read_chunk(struct cf_volume *v, struct cf_worker *w, uint8_t *buf, size_t len, uint64_t off)
{
	const size_t skip = offset_in_du(v, off), cipher_len = (size_t)cf_units_round_up(skip + len, v->du_bytes);
	const bool in_place = v->reads_in_place && cipher_len == len;
	int rc = fetch(v, w, in_place ? buf : w->crypt, cipher_len, cf_volume_at(v, off - skip));
	if (rc)
		return v->bad.policy == CF_BAD_ZERO ? cf_volume_read_bad(v, w, buf, len, off) : rc;
	if (in_place)
		return cf_volume_decrypt(v, w, cf_volume_du(v, off), len >> v->du_shift, buf, buf);
	return decrypt_range(v, w, buf, len, off);
}

static int read_locked(struct cf_volume *v, struct cf_worker *w, uint8_t *buf, size_t len, uint64_t off)
{
	int rc = 0;
	for (size_t done = 0, take; done < len && !rc; done += take) {
		take = cf_min_size(len - done, v->chunk_bytes - offset_in_du(v, off + done));
		rc = read_chunk(v, w, buf + done, take, off + done);
	}
	return rc;
}

/* A range inside one segment. */
static int read_piece(struct cf_volume *v, struct cf_worker *w, uint8_t *buf, size_t len, uint64_t off)
{
	if (cf_volume_segment(v, off)->kind == CF_SEGMENT_ZERO) {
		memset(buf, 0, len);
		return 0;
	}
	struct cf_range range;
	cf_volume_lock(v, &range, off, len, CF_RANGE_SHARED);
	int rc = read_locked(v, w, buf, len, off);
	cf_volume_unlock(v, &range);
	return rc;
}

ssize_t cf_volume_read(struct cf_volume *v, struct cf_worker *w, uint8_t *buf, size_t len, uint64_t off)
{
	assert(len <= CF_IO_MAX);
	len = (size_t)cf_volume_clamp(v, off, len);
	if (!len)
		return 0;
	int rc = 0;
	for (size_t done = 0, take; done < len && !rc; done += take) {
		take = (size_t)cf_volume_piece(v, off + done, len - done);
		rc = read_piece(v, w, buf + done, take, off + done);
	}
	if (rc) {
		cf_volume_count(v, CF_COUNT_READ_ERRORS, 1);
		return rc;
	}
	cf_volume_count(v, CF_COUNT_READS, 1);
	cf_volume_count(v, CF_COUNT_READ_BYTES, len);
	return (ssize_t)len;
}

/* Whole DUs, at most a chunk. Only whole ones count as written: half of one is neither old nor new. */
static int write_whole(struct cf_volume *v, struct cf_worker *w, const uint8_t *buf, size_t n_du, uint64_t off,
					   struct cf_written *out)
{
	size_t written = 0;
	int rc = cf_volume_crypt(v, w, CF_ENCRYPT, cf_volume_du(v, off), n_du, buf, w->crypt);
	if (!rc)
		rc = store(v, w, n_du << v->du_shift, cf_volume_at(v, off), &written);
	out->len += (size_t)cf_units_round_down(written, v->du_bytes);
	return rc;
}

/* Put a DU's old ciphertext back. If even that fails, look whether anything had changed at all: on a full disk the
 * first write fails without an effect, and so does this one. */
static void undo(struct cf_volume *v, struct cf_worker *w, uint64_t at, struct cf_written *out)
{
	size_t written;
	if (cf_backing_write_full(v->backing, w->old, v->du_bytes, at, &written) == 0)
		return;
	if (cf_backing_read_full(v->backing, w->crypt, v->du_bytes, at) == 0 && memcmp(w->crypt, w->old, v->du_bytes) == 0)
		return;
	cf_volume_count(v, CF_COUNT_UNDO_FAILURES, 1);
	out->damaged = true;
}

/* A range inside one DU: read, decrypt, change, encrypt, write. */
static int write_part(struct cf_volume *v, struct cf_worker *w, const uint8_t *buf, size_t len, uint64_t off,
					  struct cf_written *out)
{
	size_t skip = offset_in_du(v, off), written;
	uint64_t du = cf_volume_du(v, off), at = cf_volume_at(v, off - skip);
	int rc = fetch(v, w, w->old, v->du_bytes, at);
	if (!rc)
		rc = cf_volume_decrypt(v, w, du, 1, w->old, w->edge);
	if (rc)
		return rc;
	memcpy(w->edge + skip, buf, len);
	rc = cf_volume_crypt(v, w, CF_ENCRYPT, du, 1, w->edge, w->crypt);
	if (rc)
		return rc;
	cf_volume_count(v, CF_COUNT_RMW, 1);
	rc = store(v, w, v->du_bytes, at, &written);
	if (rc)
		undo(v, w, at, out);
	else
		out->len += len;
	return rc;
}

static int write_locked(struct cf_volume *v, struct cf_worker *w, const uint8_t *buf, size_t len, uint64_t off,
						struct cf_written *out)
{
	int rc = 0;
	while (!rc && out->len < len) {
		const uint8_t *from = buf + out->len;
		uint64_t at = off + out->len;
		size_t skip = offset_in_du(v, at), left = len - out->len;
		if (skip == 0 && left >= v->du_bytes)
			rc = write_whole(v, w, from, cf_min_size(left, v->chunk_bytes) >> v->du_shift, at, out);
		else
			rc = write_part(v, w, from, cf_min_size(left, v->du_bytes - skip), at, out);
	}
	return out->damaged ? -EIO : rc;
}

int cf_volume_write_piece(struct cf_volume *v, struct cf_worker *w, const uint8_t *buf, size_t len, uint64_t off,
						  struct cf_written *out)
{
	*out = (struct cf_written){.len = 0};
	if (cf_volume_segment(v, off)->kind == CF_SEGMENT_ZERO) {
		out->len = cf_is_zero(buf, len) ? len : 0;
		return out->len ? 0 : -EIO;
	}
	struct cf_range range;
	cf_volume_lock(v, &range, off, len, CF_RANGE_EXCLUSIVE);
	int rc = write_locked(v, w, buf, len, off, out);
	cf_volume_unlock(v, &range);
	return rc;
}

ssize_t cf_volume_write(struct cf_volume *v, struct cf_worker *w, const uint8_t *buf, size_t len, uint64_t off)
{
	assert(len <= CF_IO_MAX);
	if (v->access == CF_READ_ONLY)
		return -EROFS;
	if (!len)
		return 0;
	len = (size_t)cf_volume_clamp(v, off, len);
	if (!len)
		return -ENOSPC;
	struct cf_written out = {.damaged = false};
	size_t done = 0;
	int rc = 0;
	while (done < len && !rc) {
		rc = cf_volume_write_piece(v, w, buf + done, (size_t)cf_volume_piece(v, off + done, len - done), off + done,
								   &out);
		done += out.len;
	}
	if (rc)
		cf_volume_count(v, CF_COUNT_WRITE_ERRORS, 1);
	if (rc && (out.damaged || !done))
		return rc;
	cf_volume_count(v, CF_COUNT_WRITES, 1);
	cf_volume_count(v, CF_COUNT_WRITE_BYTES, done);
	return (ssize_t)done;
}
