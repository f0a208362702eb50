/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* slots.h - a counting semaphore whose units have numbers: who takes one knows which.
 *
 * The volume has two: workers (buffers of threads that may wait) and compute permits (contexts of the cipher, as many
 * as there are CPUs; HAZARDS 17). The lowest free slot is taken, so few busy threads stay on few, warm buffers, and
 * what was never needed at once is never touched. One atomic operation to take and one to give; a mutex only when none
 * is free. Not fair: whoever comes by may be faster than one who waits. Hold a slot for as long as one computes, never
 * for ever. */
#ifndef CRYPTFUSE_SLOTS_H
#define CRYPTFUSE_SLOTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "cryptfuse/base.h"

#define CF_SLOTS_MAX 32u

struct cf_slots {
	_Atomic uint32_t free; /* a bit each */
	_Atomic uint32_t waiting;
	pthread_mutex_t mutex;
	pthread_cond_t given;
};

/** cf_slots_init - @n: 1 to CF_SLOTS_MAX, all free. */
void cf_slots_init(struct cf_slots *s, unsigned n);
void cf_slots_fini(struct cf_slots *s);

/** cf_slots_take - the lowest free slot; waits while there is none. Any thread. Returns its number, from 0. */
unsigned cf_slots_take(struct cf_slots *s) CF_MUST_CHECK;

/** cf_slots_give - give it back; any thread. */
void cf_slots_give(struct cf_slots *s, unsigned slot);

#endif
