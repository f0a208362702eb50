/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_lane.c - a lane: one run at a time, every job once, in order, and never in a run that began before it came. */
#include "cryptfuse/lane.h"

#include <check.h>
#include <sched.h>
#include <stdatomic.h>

#include "run.h"

#define THREADS 6u
#define JOBS 3000u /* a thread */

struct job {
	struct cf_lane_job job; /* first */
	unsigned thread, n;
	unsigned runs_begun; /* when it was submitted */
};

static struct cf_lane lane;
static struct job jobs[THREADS][JOBS];
static _Atomic unsigned inside, runs, wrong, done;
static unsigned next_of[THREADS];

static void run(void *ctx, struct cf_lane_job *list)
{
	const unsigned number = atomic_fetch_add(&runs, 1) + 1;
	wrong += ctx != &lane || !list || atomic_fetch_add(&inside, 1) != 0;
	if (number % 7 == 0)
		sched_yield();
	for (struct cf_lane_job *next; list; list = next) {
		struct job *j = (struct job *)list;
		next = list->next;
		wrong += number <= j->runs_begun || j->n != next_of[j->thread]++;
		list->next = list; /* the memory is its owner's again */
		atomic_fetch_add(&done, 1);
	}
	atomic_fetch_sub(&inside, 1);
}

static void *submit_all(void *arg)
{
	struct job *mine = arg;
	for (unsigned i = 0; i < JOBS; i++) {
		mine[i].n = i;
		mine[i].runs_begun = atomic_load(&runs);
		cf_lane_submit(&lane, &mine[i].job);
	}
	return NULL;
}

START_TEST(submit__alone_runs_at_once)
{
	cf_lane_init(&lane, run, &lane);
	for (unsigned i = 0; i < 3; i++) {
		jobs[0][i].n = i;
		cf_lane_submit(&lane, &jobs[0][i].job);
		ck_assert_uint_eq(done, i + 1);
		ck_assert_uint_eq(runs, i + 1);
	}
	ck_assert_uint_eq(wrong, 0);
	cf_lane_fini(&lane);
}
END_TEST

START_TEST(submit__of_many_threads_runs_each_once_and_later)
{
	pthread_t t[THREADS];
	cf_lane_init(&lane, run, &lane);
	for (unsigned i = 0; i < THREADS; i++) {
		for (unsigned n = 0; n < JOBS; n++)
			jobs[i][n].thread = i;
		ck_assert_int_eq(pthread_create(&t[i], NULL, submit_all, jobs[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	ck_assert_uint_eq(done, THREADS * JOBS);
	ck_assert_uint_eq(wrong, 0);
	cf_lane_fini(&lane);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("lane");
	TCase *t = tcase_create("lane");
	tcase_set_timeout(t, 60);
	tcase_add_test(t, submit__alone_runs_at_once);
	tcase_add_test(t, submit__of_many_threads_runs_each_once_and_later);
	suite_add_tcase(s, t);
	return test_run(s);
}
