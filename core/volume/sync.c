/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* sync.c - making writes durable: one sync of the backing at a time, answered to all who asked before it began.
 *
 * Why one at a time: the kernel tells of a lost write once, to one of the callers that wait at the same time, and the
 * others must hear of it too (HAZARDS 15). Whoever asks while a sync runs may have written since it began, and is
 * served by the next one. sync_error belongs to the thread inside the lane. */
#include "cryptfuse/journal.h"
#include "internal.h"

static void sync_all(void *ctx, struct cf_lane_job *jobs)
{
	struct cf_volume *v = ctx;
	if (!v->sync_error) {
		cf_volume_long_begin(v);
		v->sync_error = v->backing->ops->sync(v->backing);
		cf_volume_long_end(v);
		cf_volume_count(v, v->sync_error ? CF_COUNT_SYNC_ERRORS : CF_COUNT_SYNCS, 1);
	}
	const int rc = v->sync_error;
	for (struct cf_lane_job *next; jobs; jobs = next) {
		struct cf_sync *s = (struct cf_sync *)jobs;
		next = jobs->next;
		s->done(s, rc);
	}
}

void cf_volume_sync_init(struct cf_volume *v)
{
	cf_lane_init(&v->sync_lane, sync_all, v);
	pthread_mutex_init(&v->sync_mutex, NULL);
	pthread_cond_init(&v->sync_done, NULL);
}

void cf_volume_sync_fini(struct cf_volume *v)
{
	cf_lane_fini(&v->sync_lane);
	pthread_mutex_destroy(&v->sync_mutex);
	pthread_cond_destroy(&v->sync_done);
}

void cf_volume_sync_start(struct cf_volume *v, struct cf_sync *s)
{
	if (v->access == CF_READ_ONLY)
		s->done(s, 0);
	else
		cf_lane_submit(&v->sync_lane, &s->job);
}

/* One that is waited for. */
struct waited {
	struct cf_sync sync; /* first */
	struct cf_volume *v;
	bool answered;
	int rc;
};

static void wake(struct cf_sync *s, int rc)
{
	struct waited *w = (struct waited *)s;
	struct cf_volume *v = w->v;
	pthread_mutex_lock(&v->sync_mutex);
	w->rc = rc;
	w->answered = true;
	pthread_cond_broadcast(&v->sync_done);
	pthread_mutex_unlock(&v->sync_mutex);
}

int cf_volume_sync(struct cf_volume *v)
{
	struct waited w = {.sync.done = wake, .v = v};
	cf_volume_sync_start(v, &w.sync);
	pthread_mutex_lock(&v->sync_mutex);
	while (!w.answered)
		pthread_cond_wait(&v->sync_done, &v->sync_mutex);
	pthread_mutex_unlock(&v->sync_mutex);
	return w.rc;
}

int cf_volume_drain(struct cf_volume *v)
{
	const int rc = cf_volume_sync(v);
	return rc || !v->backing->ops->drain ? rc : v->backing->ops->drain(v->backing);
}

int cf_volume_start(struct cf_volume *v)
{
	return v->backing->ops->start ? v->backing->ops->start(v->backing) : 0;
}

bool cf_volume_journal(struct cf_volume *v, struct cf_journal_stats *out)
{
	return cf_journal_stats(v->backing, out);
}
