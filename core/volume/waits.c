/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* waits.c - does the backing make its callers wait?
 *
 * A page cache or memory answers by copying: more threads than CPUs would only compete. A disk or a network lets its
 * caller sleep: then more requests are wanted at once. Every eighth transfer of a worker is asked whether the thread
 * slept in it, of its own accord, not for want of a CPU. The level rises by 4 when it did and falls by 1 when not: with
 * more than one in five it climbs. Sloppy on purpose: two threads may overwrite each other's step. */
#include "config.h"

#include <sys/resource.h>

#include "internal.h"

#define EVERY 8u
#define UP 4u
#define TOP 64u
#define WAITS 16u

static long n_sleeps(void)
{
	struct rusage u;
	return getrusage(RUSAGE_THREAD, &u) == 0 ? u.ru_nvcsw : 0;
}

long cf_volume_watch(struct cf_worker *w)
{
	return w->n_transfers++ % EVERY ? CF_UNWATCHED : n_sleeps();
}

void cf_volume_watched(struct cf_volume *v, long before)
{
	if (before == CF_UNWATCHED)
		return;
	const unsigned level = atomic_load_explicit(&v->wait_level, memory_order_relaxed);
	unsigned next = level ? level - 1 : 0;
	if (n_sleeps() != before)
		next = level + UP < TOP ? level + UP : TOP;
	if (next != level)
		atomic_store_explicit(&v->wait_level, next, memory_order_relaxed);
}

unsigned cf_volume_waiting(struct cf_volume *v)
{
	if (atomic_load_explicit(&v->wait_level, memory_order_relaxed) >= WAITS)
		return CF_WORKERS_MAX;
	return atomic_load_explicit(&v->n_long, memory_order_relaxed);
}
