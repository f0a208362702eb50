/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_trial.c - what is timed at open is the work, not what else the machine does: under clocks that the test moves.
 * clock_gettime is wrapped. */
#include "core/cipher/trial.h"

#include <check.h>
#include <errno.h>
#include <time.h>

#include "run.h"

#define US 1000u
#define BUDGET_NS (1000u * US)

int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

static struct {
	uint64_t wall_ns, cpu_ns;
} now;

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	const uint64_t ns = clock == CLOCK_THREAD_CPUTIME_ID ? now.cpu_ns : now.wall_ns;
	*t = (struct timespec){.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
	return 0;
}

/* Work that computes for cpu_us a round, while others take away_us[round] from it. */
struct work {
	unsigned cpu_us, away_us[CF_TRIAL_ROUNDS_MAX], rounds, fails_at; /* fails_at: 0 never */
};

static int do_round(void *ctx)
{
	struct work *w = ctx;
	now.cpu_ns += (uint64_t)w->cpu_us * US;
	now.wall_ns += (uint64_t)(w->cpu_us + w->away_us[w->rounds]) * US;
	return ++w->rounds == w->fails_at ? -EIO : 0;
}

static const struct {
	enum cf_trial_where where;
	struct cf_stopwatch lap;
	uint64_t took_ns;
} laps[] = {
	{CF_TRIAL_HERE, {.wall_ns = 100, .cpu_ns = 100}, 100},
	{CF_TRIAL_HERE, {.wall_ns = 4000100, .cpu_ns = 100}, 100},
	{CF_TRIAL_HERE, {.wall_ns = 100, .cpu_ns = 0}, 100},        /* a CPU clock that did not tick */
	{CF_TRIAL_HERE, {.wall_ns = 100, .cpu_ns = 10000000}, 100}, /* and one that did at last */
	{CF_TRIAL_HERE, {0}, 1},
	{CF_TRIAL_ELSEWHERE, {.wall_ns = 4000100, .cpu_ns = 100}, 4000100},
	{CF_TRIAL_ELSEWHERE, {0}, 1},
};

START_TEST(took__is_the_work_itself)
{
	ck_assert_uint_eq(cf_trial_took(laps[_i].where, &laps[_i].lap), laps[_i].took_ns);
}
END_TEST

static const struct {
	enum cf_trial_where where;
	struct work work;
	unsigned rounds, took_us, cost_us;
} runs[] = {
	/* nobody disturbs: as many rounds as there are */
	{CF_TRIAL_HERE, {.cpu_us = 50}, 5, 50, 100},
	{CF_TRIAL_ELSEWHERE, {.cpu_us = 20, .away_us = {30, 30, 30, 30, 30}}, 5, 50, 70},
	/* interrupted in the first round, which takes all of the budget; in every one */
	{CF_TRIAL_HERE, {.cpu_us = 50, .away_us = {4000}}, 3, 50, 100},
	{CF_TRIAL_HERE, {.cpu_us = 50, .away_us = {4000, 8000, 4000}}, 3, 50, 100},
	/* waiting for somebody else: two of three rounds may be spoilt */
	{CF_TRIAL_ELSEWHERE, {.cpu_us = 20, .away_us = {4000, 30, 4000}}, 3, 50, 70},
	{CF_TRIAL_ELSEWHERE, {.cpu_us = 20, .away_us = {4000, 4000, 30}}, 3, 50, 70},
	/* the budget is spent in the middle */
	{CF_TRIAL_HERE, {.cpu_us = 250}, 4, 250, 500},
	{CF_TRIAL_HERE, {.cpu_us = 500}, 2, 500, 1000},
	/* slow by itself, here and in the kernel: once */
	{CF_TRIAL_HERE, {.cpu_us = 5000}, 1, 5000, 10000},
	{CF_TRIAL_ELSEWHERE, {.cpu_us = 5000}, 1, 5000, 10000},
};

START_TEST(run__keeps_the_best_and_its_budget)
{
	struct work w = runs[_i].work;
	struct cf_trial t;
	ck_assert_int_eq(cf_trial_run(do_round, &w, runs[_i].where, BUDGET_NS, &t), 0);
	ck_assert_uint_eq(w.rounds, runs[_i].rounds);
	ck_assert_uint_eq(t.took_ns, (uint64_t)runs[_i].took_us * US);
	ck_assert_uint_eq(t.cost_ns, (uint64_t)runs[_i].cost_us * US);
}
END_TEST

START_TEST(run__ends_with_the_work_s_error)
{
	struct work w = {.cpu_us = 50, .fails_at = (unsigned)_i};
	struct cf_trial t = {.took_ns = 7, .cost_ns = 8};
	ck_assert_int_eq(cf_trial_run(do_round, &w, CF_TRIAL_HERE, BUDGET_NS, &t), -EIO);
	ck_assert_uint_eq(w.rounds, (unsigned)_i);
	ck_assert_uint_eq(t.took_ns, 7);
	ck_assert_uint_eq(t.cost_ns, 8);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("trial");
	TCase *t = tcase_create("trial");
	suite_add_tcase(s, t);
	tcase_add_loop_test(t, took__is_the_work_itself, 0, (int)CF_ARRAY_LEN(laps));
	tcase_add_loop_test(t, run__keeps_the_best_and_its_budget, 0, (int)CF_ARRAY_LEN(runs));
	tcase_add_loop_test(t, run__ends_with_the_work_s_error, 1, 1 + (int)CF_TRIAL_ROUNDS_MAX);
	return test_run(s);
}
