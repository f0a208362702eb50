/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* lane.c - one thread at a time inside, jobs of the others on a list.
 *
 * The mutex is a leaf and never held while jobs run. A job is not looked at after its run: its answer may free it. */
#include "cryptfuse/lane.h"

#include <assert.h>
#include <stddef.h>

void cf_lane_init(struct cf_lane *l, void (*run)(void *ctx, struct cf_lane_job *jobs), void *ctx)
{
	*l = (struct cf_lane){.run = run, .ctx = ctx};
	l->end = &l->first;
	pthread_mutex_init(&l->mutex, NULL);
}

void cf_lane_fini(struct cf_lane *l)
{
	assert(!l->first && !l->busy);
	pthread_mutex_destroy(&l->mutex);
}

/* All that wait; NULL when none does. */
static struct cf_lane_job *take_all(struct cf_lane *l)
{
	struct cf_lane_job *jobs = l->first;
	l->first = NULL;
	l->end = &l->first;
	return jobs;
}

void cf_lane_submit(struct cf_lane *l, struct cf_lane_job *job)
{
	struct cf_lane_job *jobs = NULL;
	job->next = NULL;
	pthread_mutex_lock(&l->mutex);
	*l->end = job;
	l->end = &job->next;
	if (!l->busy)
		jobs = take_all(l);
	l->busy = l->busy || jobs;
	while (jobs) {
		pthread_mutex_unlock(&l->mutex);
		l->run(l->ctx, jobs);
		pthread_mutex_lock(&l->mutex);
		jobs = take_all(l);
		l->busy = jobs != NULL;
	}
	pthread_mutex_unlock(&l->mutex);
}
