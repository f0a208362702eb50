/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* trial.c - timing that a busy machine does not mislead: CPU time where the work is done here, the best of several
 * rounds, and so many of them that one which was interrupted does not decide. Any thread. */
#include "trial.h"

#include <time.h>

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* The CPU clock is read within the wall clock's readings: it cannot show more than there was. */
struct cf_stopwatch cf_stopwatch_start(void)
{
	const uint64_t wall = clock_ns(CLOCK_MONOTONIC);
	return (struct cf_stopwatch){.wall_ns = wall, .cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID)};
}

struct cf_stopwatch cf_stopwatch_lap(const struct cf_stopwatch *start)
{
	const uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start->cpu_ns;
	return (struct cf_stopwatch){.wall_ns = clock_ns(CLOCK_MONOTONIC) - start->wall_ns, .cpu_ns = cpu};
}

uint64_t cf_trial_took(enum cf_trial_where where, const struct cf_stopwatch *lap)
{
	const bool cpu_tells = where == CF_TRIAL_HERE && lap->cpu_ns && lap->cpu_ns <= lap->wall_ns;
	const uint64_t ns = cpu_tells ? lap->cpu_ns : lap->wall_ns;
	return ns ? ns : 1;
}

int cf_trial_run(int (*work)(void *ctx), void *ctx, enum cf_trial_where where, uint64_t budget_ns, struct cf_trial *out)
{
	const struct cf_stopwatch start = cf_stopwatch_start();
	struct cf_stopwatch all = {0};
	struct cf_trial best = {.took_ns = UINT64_MAX, .cost_ns = UINT64_MAX};
	for (unsigned i = 0; i < CF_TRIAL_ROUNDS_MAX; i++) {
		if (all.cpu_ns >= budget_ns || (i >= CF_TRIAL_ROUNDS_MIN && all.wall_ns >= budget_ns))
			break;
		const struct cf_stopwatch round = cf_stopwatch_start();
		int rc = work(ctx);
		if (rc)
			return rc;
		const struct cf_stopwatch lap = cf_stopwatch_lap(&round);
		const uint64_t took = cf_trial_took(where, &lap);
		best.took_ns = least(took, best.took_ns);
		best.cost_ns = least(took + (where == CF_TRIAL_HERE ? took : lap.cpu_ns), best.cost_ns);
		all = cf_stopwatch_lap(&start);
	}
	*out = best;
	return 0;
}
