/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_slots.c - slots: the lowest first, never one twice, nobody forgotten. */
#include "cryptfuse/slots.h"

#include <check.h>
#include <sched.h>

#include "run.h"

#define THREADS 8u
#define ROUNDS 20000u

static struct cf_slots slots;
static _Atomic int owned[CF_SLOTS_MAX];
static _Atomic unsigned twice, highest;

START_TEST(take__gives_the_lowest_free)
{
	cf_slots_init(&slots, (unsigned)_i);
	for (unsigned i = 0; i < (unsigned)_i; i++)
		ck_assert_uint_eq(cf_slots_take(&slots), i);
	for (unsigned i = (unsigned)_i; i-- > 0;) { /* each one alone, then all below it */
		cf_slots_give(&slots, i);
		ck_assert_uint_eq(cf_slots_take(&slots), i);
		cf_slots_give(&slots, i);
	}
	ck_assert_uint_eq(cf_slots_take(&slots), 0);
	cf_slots_give(&slots, 0);
	cf_slots_fini(&slots);
}
END_TEST

static void *take_and_give(void *arg)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		unsigned s = cf_slots_take(&slots), seen = atomic_load(&highest);
		if (atomic_fetch_add(&owned[s], 1) != 0)
			atomic_fetch_add(&twice, 1);
		while (s > seen && !atomic_compare_exchange_weak(&highest, &seen, s))
			;
		if (i % 16 == 0)
			sched_yield();
		atomic_fetch_sub(&owned[s], 1);
		cf_slots_give(&slots, s);
	}
	return arg;
}

/* Ends only if no wake-up is lost. */
START_TEST(threads__have_one_each_and_all_get_theirs)
{
	pthread_t t[THREADS];
	cf_slots_init(&slots, (unsigned)_i);
	for (unsigned i = 0; i < THREADS; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, take_and_give, NULL), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	ck_assert_uint_eq(twice, 0);
	ck_assert_uint_lt(highest, (unsigned)_i);
	for (unsigned i = 0; i < (unsigned)_i; i++)
		ck_assert_uint_eq(cf_slots_take(&slots), i);
	cf_slots_fini(&slots);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("slots");
	TCase *t = tcase_create("slots");
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, take__gives_the_lowest_free, 1, CF_SLOTS_MAX + 1);
	tcase_add_loop_test(t, threads__have_one_each_and_all_get_theirs, 1, 5);
	suite_add_tcase(s, t);
	return test_run(s);
}
