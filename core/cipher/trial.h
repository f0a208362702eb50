/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* trial.h - how long does a piece of work take when nobody disturbs it? Inside core/cipher only, for what is timed at
 * open: choose.c and measure.c. */
#ifndef CRYPTFUSE_CIPHER_TRIAL_H
#define CRYPTFUSE_CIPHER_TRIAL_H

#include <stdint.h>

#include "cryptfuse/engine.h"

#define CF_TRIAL_ROUNDS_MIN 3u
#define CF_TRIAL_ROUNDS_MAX 5u

/* Who does the work: the calling thread, or somebody it waits for. */
enum cf_trial_where { CF_TRIAL_HERE, CF_TRIAL_ELSEWHERE };

static inline enum cf_trial_where cf_trial_where(const struct cf_engine *e)
{
	return e->elsewhere ? CF_TRIAL_ELSEWHERE : CF_TRIAL_HERE;
}

struct cf_stopwatch {
	uint64_t wall_ns, cpu_ns; /* CPU time of the calling thread */
};

/** cf_stopwatch_start - what the clocks show. */
struct cf_stopwatch cf_stopwatch_start(void);

/** cf_stopwatch_lap - how far they went since @start, in the same thread. */
struct cf_stopwatch cf_stopwatch_lap(const struct cf_stopwatch *start);

/** cf_trial_took - what a lap says about the work itself
 * Here: the thread's CPU time, so that other processes do not count; wall time where that clock is too coarse to tell,
 * since it has not ticked, or ticked for more than there was. Elsewhere: wall time. At least 1. */
uint64_t cf_trial_took(enum cf_trial_where where, const struct cf_stopwatch *lap);

struct cf_trial {
	uint64_t took_ns; /* cf_trial_took of the best round */
	uint64_t cost_ns; /* of the cheapest: that plus the CPU time */
};

/** cf_trial_run - the best of 3 to 5 rounds of @work
 * More than 3 only within @budget_ns of wall time; fewer only when this thread has computed for that long.
 * Returns 0 and *out; what @work returned if that is not 0. */
int cf_trial_run(int (*work)(void *ctx), void *ctx, enum cf_trial_where where, uint64_t budget_ns,
				 struct cf_trial *out) CF_MUST_CHECK;

#endif
