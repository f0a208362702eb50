/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* rangelock.c - a list of ranges in order of arrival.
 *
 * A range is granted when no earlier one, held or waiting, conflicts with it; that is all of the fairness. It is
 * granted by whoever releases the last obstacle, which wakes that one thread only. The list is as long as there are
 * workers, so a scan beats any tree. */
#include "cryptfuse/rangelock.h"

#include <assert.h>

void cf_rangelock_init(struct cf_rangelock *l)
{
	*l = (struct cf_rangelock){.first = NULL};
	pthread_mutex_init(&l->mutex, NULL);
}

void cf_rangelock_fini(struct cf_rangelock *l)
{
	assert(!l->first);
	pthread_mutex_destroy(&l->mutex);
}

static bool conflict(const struct cf_range *a, const struct cf_range *b)
{
	bool overlap = a->off < b->end && b->off < a->end;
	return overlap && (a->mode == CF_RANGE_EXCLUSIVE || b->mode == CF_RANGE_EXCLUSIVE);
}

static bool may_go(const struct cf_range *r)
{
	for (const struct cf_range *p = r->prev; p; p = p->prev)
		if (conflict(p, r))
			return false;
	return true;
}

static void append(struct cf_rangelock *l, struct cf_range *r)
{
	r->next = NULL;
	r->prev = l->last;
	if (l->last)
		l->last->next = r;
	else
		l->first = r;
	l->last = r;
}

static void unlink_range(struct cf_rangelock *l, struct cf_range *r)
{
	if (r->prev)
		r->prev->next = r->next;
	else
		l->first = r->next;
	if (r->next)
		r->next->prev = r->prev;
	else
		l->last = r->prev;
}

void cf_rangelock_acquire(struct cf_rangelock *l, struct cf_range *r, uint64_t off, uint64_t len,
						  enum cf_range_mode mode)
{
	assert(len && off + len > off);
	r->off = off;
	r->end = off + len;
	r->mode = mode;
	pthread_mutex_lock(&l->mutex);
	append(l, r);
	r->granted = may_go(r);
	if (!r->granted) {
		pthread_cond_init(&r->wake, NULL);
		while (!r->granted)
			pthread_cond_wait(&r->wake, &l->mutex);
		pthread_cond_destroy(&r->wake);
	}
	pthread_mutex_unlock(&l->mutex);
}

void cf_rangelock_release(struct cf_rangelock *l, struct cf_range *r)
{
	pthread_mutex_lock(&l->mutex);
	assert(r->granted);
	struct cf_range *later = r->next;
	unlink_range(l, r);
	for (; later; later = later->next) {
		if (later->granted || !conflict(r, later) || !may_go(later))
			continue;
		later->granted = 1;
		pthread_cond_signal(&later->wake);
	}
	pthread_mutex_unlock(&l->mutex);
}
