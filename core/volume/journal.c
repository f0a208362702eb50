/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* journal.c - the journal as a backing: its life, syncs, discards, holes.
 *
 * Everything is allocated when the journal is made. It has at most one thread of its own, which only spares others the
 * wait: all that it does is done without it too. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/clock.h"
#include "cryptfuse/err.h"
#include "journal_internal.h"

#define BUFFER_ALIGN 4096u
#define BATCH_BYTES (128u * 1024u) /* of data units in one transfer: what a volume writes at once */
#define IDLE_SECONDS 5             /* after which what is pending goes to the image, if there is a thread */

static int journal_sync(struct cf_backing *b)
{
	return cf_journal_sync_log(cf_journal_of(b));
}

/* Does anything lie in the range that a replay would bring back? Also what was given up by a failed write. */
static bool has_any(struct cf_journal *j, uint64_t off, uint64_t len)
{
	bool any = false;
	pthread_mutex_lock(&j->mutex);
	for (uint64_t epoch = j->tail; epoch <= j->head && !any; epoch++) {
		const struct cf_journal_half *half = cf_journal_half(j, epoch);
		for (uint32_t i = 0; i < half->used && !any; i++) {
			const uint64_t at = half->slot[i].sector * CF_SECTOR_BYTES;
			any = at < off + len && at + j->du_bytes > off;
		}
	}
	pthread_mutex_unlock(&j->mutex);
	return any;
}

/* After what was written there before. A round may write back a block of the image that it shares with the range. */
static int journal_punch(struct cf_backing *b, uint64_t off, uint64_t len)
{
	struct cf_journal *j = cf_journal_of(b);
	if (!j->image->ops->punch)
		return -EOPNOTSUPP;
	int rc = has_any(j, off, len) ? cf_journal_drain(j) : 0;
	if (rc)
		return rc;
	pthread_mutex_lock(&j->place_mutex);
	rc = j->image->ops->punch(j->image, off, len);
	/* Before any record says that zeros are what was there. What failed may have changed a part. */
	const int synced = rc == -EOPNOTSUPP ? 0 : cf_journal_sync_image(j);
	pthread_mutex_unlock(&j->place_mutex);
	return rc ? rc : synced;
}

static int journal_allocate(struct cf_backing *b, uint64_t off, uint64_t len)
{
	struct cf_backing *image = cf_journal_of(b)->image;
	return image->ops->allocate ? image->ops->allocate(image, off, len) : -EOPNOTSUPP;
}

/* What is pending may lie in holes: then all is data, until it is in the image. */
static int64_t journal_seek(struct cf_backing *b, uint64_t off, enum cf_seek what)
{
	struct cf_journal *j = cf_journal_of(b);
	if (!atomic_load(&j->n_live) && j->image->ops->seek)
		return j->image->ops->seek(j->image, off, what);
	return off >= b->bytes ? -ENXIO : what == CF_SEEK_DATA ? (int64_t)off : (int64_t)b->bytes;
}

/* ---- life ---- */

/* Until the next tick; earlier if the thread is to end, or if a half was sealed. Under the mutex. */
static void doze(struct cf_journal *j, bool failed)
{
	const struct timespec until = cf_in_seconds(IDLE_SECONDS);
	while (!j->stop && (failed || j->error || j->tail == j->head))
		if (pthread_cond_timedwait(&j->changed, &j->mutex, &until) != 0)
			return;
}

/* A round as soon as there is one to do, and with each tick what there is. What fails is tried again with the next. */
static void *run_thread(void *arg)
{
	struct cf_journal *j = arg;
	bool failed = false;
	pthread_mutex_lock(&j->mutex);
	while (!j->stop) {
		doze(j, failed);
		if (j->tail < j->head && !j->error && !j->stop) {
			failed = cf_journal_round(j) != 0;
			continue;
		}
		pthread_mutex_unlock(&j->mutex);
		failed = cf_journal_drain(j) != 0;
		pthread_mutex_lock(&j->mutex);
	}
	pthread_mutex_unlock(&j->mutex);
	return NULL;
}

static int journal_start(struct cf_backing *b)
{
	struct cf_journal *j = cf_journal_of(b);
	if (b->access == CF_READ_ONLY || j->has_thread)
		return 0;
	const int rc = pthread_create(&j->thread, NULL, run_thread, j);
	j->has_thread = rc == 0;
	return -rc;
}

static int journal_drain(struct cf_backing *b)
{
	if (b->access == CF_READ_ONLY)
		return 0;
	const int rc = journal_sync(b);
	return rc ? rc : cf_journal_drain(cf_journal_of(b));
}

static void hand_fini(struct cf_journal_hand *h)
{
	cf_mac_free(&h->mac);
	free(h->records);
	free(h->old);
	free(h->head);
	free(h->found);
}

static void stop_thread(struct cf_journal *j)
{
	if (!j->has_thread)
		return;
	pthread_mutex_lock(&j->mutex);
	j->stop = true;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->mutex);
	pthread_join(j->thread, NULL);
}

/* What cannot be brought to the image stays in the file for the next open. */
static void journal_close(struct cf_backing *b)
{
	struct cf_journal *j = cf_journal_of(b);
	stop_thread(j);
	if (j->opened && b->access == CF_READ_WRITE && cf_journal_drain(j) == 0)
		(void)!cf_journal_disown(j);
	cf_backing_free(&j->log);
	cf_backing_free(&j->image);
	for (unsigned i = 0; i < j->n_hands; i++)
		hand_fini(&j->hand[i]);
	hand_fini(&j->placer);
	cf_mac_free(&j->mac);
	for (unsigned i = 0; i < 2; i++)
		cf_journal_half_fini(&j->half[i]);
	free(j->order);
	cf_slots_fini(&j->hands);
	pthread_mutex_destroy(&j->mutex);
	pthread_mutex_destroy(&j->sync_mutex);
	pthread_mutex_destroy(&j->place_mutex);
	cf_rangelock_fini(&j->granules);
	pthread_cond_destroy(&j->changed);
}

static const struct cf_backing_ops journal_ops = {
	.name = "journal",
	.pread = cf_journal_pread,
	.pwrite = cf_journal_pwrite,
	.sync = journal_sync,
	.punch = journal_punch,
	.allocate = journal_allocate,
	.seek = journal_seek,
	.start = journal_start,
	.drain = journal_drain,
	.close = journal_close,
};

/* ---- making one ---- */

static int hand_init(const struct cf_journal *j, struct cf_journal_hand *h)
{
	h->records = calloc(j->batch, j->record_bytes);
	h->old = aligned_alloc(BUFFER_ALIGN, cf_units_round_up((uint64_t)j->batch * j->du_bytes, BUFFER_ALIGN));
	h->head = calloc(1, j->data_at);
	h->found = calloc(j->batch, sizeof(*h->found));
	return h->records && h->old && h->head && h->found ? 0 : -ENOMEM;
}

static void init_locks(struct cf_journal *j)
{
	cf_cond_init(&j->changed);
	pthread_mutex_init(&j->mutex, NULL);
	pthread_mutex_init(&j->sync_mutex, NULL);
	pthread_mutex_init(&j->place_mutex, NULL);
	cf_rangelock_init(&j->granules);
	cf_slots_init(&j->hands, j->n_hands);
}

static void init_shape(struct cf_journal *j, const struct cf_journal_opts *o)
{
	j->du_bytes = o->du_bytes;
	j->data_off = o->data_off;
	j->volume_bytes = o->bytes;
	j->record_bytes = cf_journal_record_bytes(o->du_bytes);
	j->data_at = cf_journal_data_at(o->du_bytes);
	j->batch = BATCH_BYTES > o->du_bytes ? BATCH_BYTES / o->du_bytes : 1;
	j->n_hands = o->n_callers;
	j->tail = j->head = 1;
	snprintf(j->uuid, sizeof(j->uuid), "%s", o->uuid);
	j->n_segments = o->n_segments ? o->n_segments : 1;
	j->segment[0] = (struct cf_segment){.kind = CF_SEGMENT_CRYPT, .bytes = o->bytes, .data_off = o->data_off};
	for (unsigned i = 0; i < o->n_segments; i++)
		j->segment[i] = o->segment[i];
}

/* Room for one record in each half at least; the table takes twice as many. */
static int init_slots(struct cf_journal *j, struct cf_err *err)
{
	const uint64_t bytes = j->log->bytes;
	const uint64_t n = bytes < CF_JOURNAL_SLOTS_AT ? 0 : cf_journal_slots(bytes, j->du_bytes);
	if (!n || bytes > CF_JOURNAL_BYTES_MAX)
		return cf_fail(err, -ENODEV, "a journal of %llu bytes is too %s", (unsigned long long)bytes,
					   n ? "long" : "short");
	j->n_slots = (uint32_t)n;
	for (j->table_shift = 63; (UINT64_C(1) << (64 - j->table_shift)) < 2 * n;)
		j->table_shift--;
	j->order = calloc(j->n_slots, sizeof(*j->order));
	int rc = j->order ? 0 : -ENOMEM;
	for (unsigned i = 0; i < 2 && !rc; i++)
		rc = cf_journal_half_init(j, &j->half[i]);
	for (unsigned i = 0; i < j->n_hands && !rc; i++)
		rc = hand_init(j, &j->hand[i]);
	if (!rc)
		rc = hand_init(j, &j->placer);
	return rc ? cf_fail(err, rc, "no memory for a journal of %llu bytes", (unsigned long long)bytes) : 0;
}

/* What is in the file, and, unless it is only read, its way to the image. */
static int open_log(struct cf_journal *j, const struct cf_journal_opts *o, struct cf_err *err)
{
	int rc = cf_journal_read_super(j, o, err);
	if (rc)
		return rc < 0 ? rc : 0;
	rc = cf_journal_load(j, err);
	if (rc || j->base.access == CF_READ_ONLY)
		return rc;
	rc = cf_journal_drain(j);
	return rc ? cf_fail(err, rc, "the journal cannot be replayed: %s", strerror(-rc)) : 0;
}

int cf_journal_wrap(struct cf_backing **b, struct cf_backing **log, const struct cf_journal_opts *opts,
					struct cf_err *err)
{
	CF_CLEANUP(cf_backing_free) struct cf_backing *made = NULL;
	struct cf_journal *j = calloc(1, sizeof(*j));
	if (!j)
		return cf_fail(err, -ENOMEM, "out of memory");
	j->base = **b;
	j->base.ops = &journal_ops;
	j->image = *b;
	j->log = *log;
	made = &j->base;
	init_shape(j, opts);
	init_locks(j);
	int rc = init_slots(j, err);
	if (!rc)
		rc = open_log(j, opts, err);
	if (rc) {
		j->image = j->log = NULL; /* they stay the caller's */
		return rc;
	}
	j->opened = true;
	*b = cf_take(made);
	*log = NULL;
	return 0;
}

bool cf_journal_stats(struct cf_backing *b, struct cf_journal_stats *out)
{
	if (b->ops != &journal_ops)
		return false;
	struct cf_journal *j = cf_journal_of(b);
	pthread_mutex_lock(&j->mutex);
	*out = (struct cf_journal_stats){.error = j->error};
	pthread_mutex_unlock(&j->mutex);
	out->bytes = j->log->bytes;
	out->replayed = atomic_load(&j->replayed);
	out->pending = atomic_load(&j->n_live);
	out->records = atomic_load(&j->n_records);
	out->commits = atomic_load(&j->n_commits);
	out->rounds = atomic_load(&j->n_rounds);
	return true;
}
