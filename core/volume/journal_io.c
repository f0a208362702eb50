/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* journal_io.c - reads and writes through the journal.
 *
 * A write takes slots, makes its records and appends them; it is pending when they are in the file, and never
 * overwrites a record that may still count: a failed write leaves what was. A read takes what is pending from the file
 * and the rest from the image. When a half is full the next epoch begins in the other one; who finds both full brings
 * the older one to the image himself, or waits for whoever does. Nothing here allocates. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "cryptfuse/bytes.h"
#include "journal_internal.h"

static struct cf_journal_hand *take_hand(struct cf_journal *j)
{
	return &j->hand[cf_slots_take(&j->hands)];
}

static void give_hand(struct cf_journal *j, const struct cf_journal_hand *h)
{
	cf_slots_give(&j->hands, (unsigned)(h - j->hand));
}

/* ---- reads ---- */

static void let_go(struct cf_journal *j, struct cf_journal_half *half)
{
	if (half && --half->readers == 0)
		pthread_cond_broadcast(&j->changed);
}

/* Where the byte at @off is; *len: how many bytes from there on are found in the same way. A half that is named counts
 * the caller as a reader. */
static struct cf_journal_found look(struct cf_journal *j, uint64_t off, uint64_t start, size_t *len)
{
	size_t span = (size_t)(start + j->du_bytes - off);
	pthread_mutex_lock(&j->mutex);
	const struct cf_journal_found at = cf_journal_find(j, start);
	if (at.half)
		at.half->readers++;
	while (!at.half && span < *len && !cf_journal_find(j, off + span).half)
		span += j->du_bytes;
	pthread_mutex_unlock(&j->mutex);
	*len = cf_min_size(span, *len);
	return at;
}

static ssize_t read_pending(struct cf_journal *j, const struct cf_journal_found *at, void *buf, size_t len, size_t skip)
{
	struct cf_journal_hand *h = take_hand(j);
	const int rc = cf_journal_read_record(j, h, at);
	if (!rc)
		memcpy(buf, h->records + j->data_at + skip, len);
	give_hand(j, h);
	pthread_mutex_lock(&j->mutex);
	let_go(j, at->half);
	pthread_mutex_unlock(&j->mutex);
	return rc ? rc : (ssize_t)len;
}

static ssize_t read_image(struct cf_journal *j, void *buf, size_t len, uint64_t off)
{
	struct cf_range range;
	if (!len || off >= j->image->bytes)
		return 0;
	cf_journal_lock_image(j, &range, off, len, CF_RANGE_SHARED);
	const ssize_t n = j->image->ops->pread(j->image, buf, len, off);
	cf_journal_unlock_image(j, &range);
	return n;
}

ssize_t cf_journal_pread(struct cf_backing *b, void *buf, size_t len, uint64_t off)
{
	struct cf_journal *j = cf_journal_of(b);
	if (!atomic_load(&j->n_live) || off >= b->bytes)
		return read_image(j, buf, len, off);
	const struct cf_segment *s = cf_journal_segment(j, off);
	if (!s) /* in front of the volume, or behind: no further than that is sure */
		return read_image(j, buf, cf_min_size(len, CF_SECTOR_BYTES - off % CF_SECTOR_BYTES), off);
	const uint64_t skip = (off - s->data_off) % j->du_bytes;
	len = (size_t)(len < s->data_off + s->bytes - off ? len : s->data_off + s->bytes - off);
	const struct cf_journal_found at = look(j, off, off - skip, &len);
	return at.half ? read_pending(j, &at, buf, len, (size_t)skip) : read_image(j, buf, len, off);
}

/* ---- writes ---- */

/* Wait until the head has a free slot. Under the mutex. */
static int make_room(struct cf_journal *j)
{
	int rc = j->error;
	while (!rc && cf_journal_half(j, j->head)->used == j->n_slots) {
		if (j->tail < j->head)
			rc = cf_journal_round(j);
		else if (j->placing) /* the other half is not empty yet */
			pthread_cond_wait(&j->changed, &j->mutex);
		else
			cf_journal_seal(j);
		pthread_cond_broadcast(&j->changed); /* the thread has work */
		rc = rc ? rc : j->error;
	}
	return rc;
}

/* Slots for up to @n data units, and where each is pending now. Returns how many, or -errno. */
static int claim(struct cf_journal *j, struct cf_journal_hand *h, uint64_t off, uint32_t n)
{
	pthread_mutex_lock(&j->mutex);
	const int rc = make_room(j);
	if (!rc) {
		h->half = cf_journal_half(j, j->head);
		h->slot = h->half->used;
		h->n = n < j->n_slots - h->slot ? n : j->n_slots - h->slot;
		h->half->used += h->n;
		h->half->writers++;
		h->epoch = j->head;
		h->builds = false;
		for (uint32_t i = 0; i < h->n; i++) {
			const uint64_t at = off + (uint64_t)i * j->du_bytes;
			h->found[i] = cf_journal_find(j, at);
			if (h->found[i].half)
				h->found[i].half->readers++;
			if (h->found[i].half && h->found[i].half != h->half)
				h->builds = h->builds || h->found[i].slot >= h->found[i].half->durable;
			h->half->slot[h->slot + i].sector = at / CF_SECTOR_BYTES;
		}
	}
	pthread_mutex_unlock(&j->mutex);
	return rc ? rc : (int)h->n;
}

/* The first @done data units are pending now. The slots behind stay unwritten. */
static void publish(struct cf_journal *j, struct cf_journal_hand *h, uint32_t done)
{
	struct cf_journal_half *half = h->half;
	pthread_mutex_lock(&j->mutex);
	for (uint32_t i = 0; i < done; i++)
		cf_journal_half_put(j, half, h->slot + i);
	for (uint32_t i = 0; i < h->n; i++)
		let_go(j, h->found[i].half);
	if (done < h->n && h->slot + done < half->whole)
		half->whole = h->slot + done;
	h->half = NULL;
	half->writers--;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->mutex);
	atomic_fetch_add_explicit(&j->n_records, done, memory_order_relaxed);
}

/* Zeros may be a hole: it is filled now, so that a full disk is the writer's to hear of, not the round's. */
static int reserve(struct cf_journal *j, const uint8_t *old, uint64_t off)
{
	if (!j->image->ops->allocate || !cf_is_zero(old, j->du_bytes))
		return 0;
	const int rc = j->image->ops->allocate(j->image, off, j->du_bytes);
	return rc == -EOPNOTSUPP ? 0 : rc;
}

/* The old checksums of @n data units that are in the image only. */
static int old_from_image(struct cf_journal *j, struct cf_journal_hand *h, uint32_t first, uint32_t n, uint64_t off)
{
	uint8_t *record = h->records + first * j->record_bytes;
	const uint64_t from = off + (uint64_t)first * j->du_bytes;
	const size_t len = (size_t)n * j->du_bytes;
	struct cf_range range;
	cf_journal_lock_image(j, &range, from, len, CF_RANGE_SHARED);
	int rc = cf_backing_read_full(j->image, h->old, len, from);
	cf_journal_unlock_image(j, &range);
	for (uint32_t i = 0; i < n && !rc; i++, record += j->record_bytes) {
		const uint8_t *old = h->old + (size_t)i * j->du_bytes;
		rc = reserve(j, old, off + (uint64_t)(first + i) * j->du_bytes);
		if (!rc)
			rc = cf_journal_piece_tags(j, h->mac, old, cf_journal_old_tags(record));
	}
	return rc;
}

/* Within an epoch what is old stays: it is what the image has until the round. The next one finds there what this one
 * has as new. */
static int old_from_record(struct cf_journal *j, struct cf_journal_hand *h, uint32_t i)
{
	uint8_t *record = h->records + i * j->record_bytes;
	const int rc = cf_journal_read_head(j, h, &h->found[i]);
	const uint8_t *tags = h->found[i].half == h->half ? cf_journal_old_tags(h->head) : cf_journal_new_tags(j, h->head);
	memcpy(cf_journal_old_tags(record), tags, cf_journal_tags_bytes(j->du_bytes));
	return rc;
}

static int old_tags(struct cf_journal *j, struct cf_journal_hand *h, uint64_t off)
{
	int rc = 0;
	for (uint32_t i = 0, n; i < h->n && !rc; i += n) {
		n = 1;
		if (h->found[i].half) {
			rc = old_from_record(j, h, i);
			continue;
		}
		while (i + n < h->n && !h->found[i + n].half)
			n++;
		rc = old_from_image(j, h, i, n, off);
	}
	return rc;
}

/* All records of the hand into the file. *done: how many are there as a whole. */
static int append(struct cf_journal *j, struct cf_journal_hand *h, const uint8_t *buf, uint64_t off, uint32_t *done)
{
	size_t written = 0;
	/* Its "old" is that one's "new": if only this record survived a crash, the image would be neither. */
	int rc = h->builds ? cf_journal_sync_log(j) : 0;
	if (!rc)
		rc = old_tags(j, h, off);
	for (uint32_t i = 0; i < h->n && !rc; i++) {
		const uint32_t slot = h->slot + i;
		uint8_t *record = h->records + i * j->record_bytes;
		const struct cf_journal_name name = {.epoch = h->epoch, .slot = slot, .sector = h->half->slot[slot].sector};
		rc = cf_journal_record_make(j, h->mac, &name, buf + (size_t)i * j->du_bytes, record);
		memcpy(h->half->slot[slot].tag, record + CF_RECORD_TAG, CF_MAC_TAG);
	}
	if (!rc)
		rc = cf_backing_write_full(j->log, h->records, h->n * j->record_bytes,
								   cf_journal_record_at(j, h->half, h->slot), &written);
	*done = (uint32_t)(written / j->record_bytes);
	return rc;
}

static int take_over(struct cf_journal *j)
{
	if (atomic_load(&j->is_ours))
		return 0;
	pthread_mutex_lock(&j->sync_mutex);
	const int rc = atomic_load(&j->is_ours) ? 0 : cf_journal_adopt(j);
	pthread_mutex_unlock(&j->sync_mutex);
	return rc;
}

ssize_t cf_journal_pwrite(struct cf_backing *b, const void *buf, size_t len, uint64_t off)
{
	struct cf_journal *j = cf_journal_of(b);
	assert(cf_journal_segment(j, off) && (off - cf_journal_segment(j, off)->data_off) % j->du_bytes == 0);
	assert(len % j->du_bytes == 0);
	const size_t n = len / j->du_bytes;
	uint32_t done = 0;
	int rc = take_over(j);
	if (rc)
		return rc;
	struct cf_journal_hand *h = take_hand(j);
	rc = claim(j, h, off, n < j->batch ? (uint32_t)n : j->batch);
	if (rc >= 0) {
		rc = append(j, h, buf, off, &done);
		publish(j, h, done);
	}
	give_hand(j, h);
	return done ? (ssize_t)done * j->du_bytes : rc;
}
