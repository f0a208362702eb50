/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* slots.c - a bit mask of free slots, and a place to sleep when it is empty.
 *
 * No wake-up is lost: a sleeper first says that it waits and then looks at the mask; a giver first changes the mask and
 * then looks whether anybody waits. Both orders are sequentially consistent, so one of them sees the other. */
#include "cryptfuse/slots.h"

#include <assert.h>
#include <stdbool.h>

void cf_slots_init(struct cf_slots *s, unsigned n)
{
	assert(n >= 1 && n <= CF_SLOTS_MAX);
	atomic_init(&s->free, UINT32_MAX >> (CF_SLOTS_MAX - n));
	atomic_init(&s->waiting, 0);
	pthread_mutex_init(&s->mutex, NULL);
	pthread_cond_init(&s->given, NULL);
}

void cf_slots_fini(struct cf_slots *s)
{
	pthread_mutex_destroy(&s->mutex);
	pthread_cond_destroy(&s->given);
}

static bool try_take(struct cf_slots *s, unsigned *slot)
{
	uint32_t free = atomic_load(&s->free);
	while (free) {
		*slot = (unsigned)__builtin_ctz(free);
		if (atomic_compare_exchange_weak(&s->free, &free, free & (free - 1)))
			return true;
	}
	return false;
}

unsigned cf_slots_take(struct cf_slots *s)
{
	unsigned slot;
	if (try_take(s, &slot))
		return slot;
	pthread_mutex_lock(&s->mutex);
	atomic_fetch_add(&s->waiting, 1);
	while (!try_take(s, &slot))
		pthread_cond_wait(&s->given, &s->mutex);
	atomic_fetch_sub(&s->waiting, 1);
	pthread_mutex_unlock(&s->mutex);
	return slot;
}

void cf_slots_give(struct cf_slots *s, unsigned slot)
{
	uint32_t was = atomic_fetch_or(&s->free, UINT32_C(1) << slot);
	assert(!(was >> slot & 1));
	(void)was;
	if (!atomic_load(&s->waiting))
		return;
	pthread_mutex_lock(&s->mutex);
	pthread_cond_signal(&s->given);
	pthread_mutex_unlock(&s->mutex);
}
