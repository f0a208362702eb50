/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_rangelock.c - who may hold a range together with whom, and in which order they come. */
#include "cryptfuse/rangelock.h"

#include <check.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "run.h"

static struct cf_rangelock lock;

static void setup(void)
{
	cf_rangelock_init(&lock);
}

static void teardown(void)
{
	cf_rangelock_fini(&lock);
}

/* A thread that takes one range, says so, and gives it back. */
struct taker {
	pthread_t thread;
	uint64_t off, len;
	enum cf_range_mode mode;
	_Atomic int got;
	_Atomic int *order; /* where it takes its number */
};

static void *take(void *arg)
{
	struct taker *t = arg;
	struct cf_range r;
	cf_rangelock_acquire(&lock, &r, t->off, t->len, t->mode);
	atomic_store(&t->got, atomic_fetch_add(t->order, 1) + 1);
	cf_rangelock_release(&lock, &r);
	return NULL;
}

static unsigned n_listed(void)
{
	unsigned n = 0;
	pthread_mutex_lock(&lock.mutex);
	for (const struct cf_range *r = lock.first; r; r = r->next)
		n++;
	pthread_mutex_unlock(&lock.mutex);
	return n;
}

/* Start a taker and wait until it waits (it is listed), so that the order of arrival is known. */
static void start_waiting(struct taker *t)
{
	unsigned before = n_listed();
	ck_assert_int_eq(pthread_create(&t->thread, NULL, take, t), 0);
	while (n_listed() == before)
		sched_yield();
}

static void join(struct taker *t)
{
	ck_assert_int_eq(pthread_join(t->thread, NULL), 0);
	ck_assert_int_gt(t->got, 0);
}

struct pair {
	enum cf_range_mode held, wanted;
	uint64_t off, len; /* wanted; [100, 200) is held */
	int waits;
};

static const struct pair pairs[] = {
	{CF_RANGE_SHARED, CF_RANGE_SHARED, 100, 100, 0},         {CF_RANGE_SHARED, CF_RANGE_EXCLUSIVE, 100, 100, 1},
	{CF_RANGE_EXCLUSIVE, CF_RANGE_SHARED, 100, 100, 1},      {CF_RANGE_EXCLUSIVE, CF_RANGE_EXCLUSIVE, 100, 100, 1},
	{CF_RANGE_EXCLUSIVE, CF_RANGE_EXCLUSIVE, 0, 100, 0},     {CF_RANGE_EXCLUSIVE, CF_RANGE_EXCLUSIVE, 0, 101, 1},
	{CF_RANGE_EXCLUSIVE, CF_RANGE_EXCLUSIVE, 200, 1, 0},     {CF_RANGE_EXCLUSIVE, CF_RANGE_EXCLUSIVE, 199, 1, 1},
	{CF_RANGE_EXCLUSIVE, CF_RANGE_SHARED, 0, 1000, 1},       {CF_RANGE_EXCLUSIVE, CF_RANGE_SHARED, 150, 1, 1},
	{CF_RANGE_SHARED, CF_RANGE_EXCLUSIVE, 0, UINT64_MAX, 1},
};

START_TEST(second_range__waits_only_for_a_conflict)
{
	const struct pair *p = &pairs[_i];
	struct cf_range held;
	_Atomic int order = 0;
	struct taker t = {.off = p->off, .len = p->len, .mode = p->wanted, .order = &order};
	cf_rangelock_acquire(&lock, &held, 100, 100, p->held);
	if (p->waits) {
		start_waiting(&t);
		ck_assert_int_eq(t.got, 0);
		ck_assert_uint_eq(n_listed(), 2);
		cf_rangelock_release(&lock, &held);
		join(&t);
	} else {
		ck_assert_int_eq(pthread_create(&t.thread, NULL, take, &t), 0);
		join(&t); /* would hang */
		cf_rangelock_release(&lock, &held);
	}
}
END_TEST

START_TEST(late_reader__waits_behind_a_waiting_writer)
{
	struct cf_range reader;
	_Atomic int order = 0;
	struct taker writer = {.off = 0, .len = 10, .mode = CF_RANGE_EXCLUSIVE, .order = &order};
	struct taker late = {.off = 5, .len = 10, .mode = CF_RANGE_SHARED, .order = &order};
	cf_rangelock_acquire(&lock, &reader, 0, 10, CF_RANGE_SHARED);
	start_waiting(&writer);
	start_waiting(&late);
	ck_assert_uint_eq(n_listed(), 3);
	ck_assert_int_eq(late.got, 0);
	cf_rangelock_release(&lock, &reader);
	join(&writer);
	join(&late);
	ck_assert_int_lt(writer.got, late.got);
}
END_TEST

START_TEST(late_range__passes_a_waiter_it_does_not_overlap)
{
	struct cf_range reader;
	_Atomic int order = 0;
	struct taker writer = {.off = 0, .len = 10, .mode = CF_RANGE_EXCLUSIVE, .order = &order};
	struct taker other = {.off = 10, .len = 10, .mode = CF_RANGE_EXCLUSIVE, .order = &order};
	cf_rangelock_acquire(&lock, &reader, 0, 10, CF_RANGE_SHARED);
	start_waiting(&writer);
	ck_assert_int_eq(pthread_create(&other.thread, NULL, take, &other), 0);
	join(&other);
	ck_assert_int_eq(writer.got, 0);
	cf_rangelock_release(&lock, &reader);
	join(&writer);
}
END_TEST

START_TEST(overlapping_writers__come_in_order_of_arrival)
{
	struct cf_range held;
	_Atomic int order = 0;
	struct taker w[8];
	cf_rangelock_acquire(&lock, &held, 0, 100, CF_RANGE_EXCLUSIVE);
	for (unsigned i = 0; i < CF_ARRAY_LEN(w); i++) {
		w[i] = (struct taker){.off = i, .len = 20, .mode = CF_RANGE_EXCLUSIVE, .order = &order};
		start_waiting(&w[i]);
	}
	cf_rangelock_release(&lock, &held);
	for (unsigned i = 0; i < CF_ARRAY_LEN(w); i++) {
		join(&w[i]);
		ck_assert_int_eq(w[i].got, (int)i + 1);
	}
}
END_TEST

START_TEST(waiting_readers__go_together)
{
	struct cf_range held, first;
	_Atomic int order = 0;
	struct taker r[4];
	cf_rangelock_acquire(&lock, &held, 0, 100, CF_RANGE_EXCLUSIVE);
	for (unsigned i = 0; i < CF_ARRAY_LEN(r); i++) {
		r[i] = (struct taker){.off = 0, .len = 100, .mode = CF_RANGE_SHARED, .order = &order};
		start_waiting(&r[i]);
	}
	cf_rangelock_release(&lock, &held);
	cf_rangelock_acquire(&lock, &first, 0, 100, CF_RANGE_SHARED); /* held while the others pass */
	for (unsigned i = 0; i < CF_ARRAY_LEN(r); i++)
		join(&r[i]);
	cf_rangelock_release(&lock, &first);
}
END_TEST

/* ---- stress: every byte knows its holders ---- */

#define CELLS 64u
#define STRESS_THREADS 8u
#define STRESS_ROUNDS 3000u

static _Atomic int readers[CELLS], writers[CELLS];
static _Atomic unsigned violations;

static void hold_cells(uint64_t off, uint64_t len, enum cf_range_mode mode)
{
	_Atomic int *mine = mode == CF_RANGE_SHARED ? readers : writers;
	for (uint64_t c = off; c < off + len; c++)
		atomic_fetch_add(&mine[c], 1);
	sched_yield();
	for (uint64_t c = off; c < off + len; c++)
		if (atomic_load(&writers[c]) != (mode == CF_RANGE_EXCLUSIVE) ||
			(mode == CF_RANGE_EXCLUSIVE && atomic_load(&readers[c])))
			atomic_fetch_add(&violations, 1);
	for (uint64_t c = off; c < off + len; c++)
		atomic_fetch_sub(&mine[c], 1);
}

static void *stress(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	for (unsigned i = 0; i < STRESS_ROUNDS; i++) {
		struct cf_range r;
		uint64_t off = (uint64_t)rand_r(&seed) % CELLS, len = 1 + (uint64_t)rand_r(&seed) % (CELLS - off);
		enum cf_range_mode mode = rand_r(&seed) % 3 ? CF_RANGE_SHARED : CF_RANGE_EXCLUSIVE;
		cf_rangelock_acquire(&lock, &r, off, len, mode);
		hold_cells(off, len, mode);
		cf_rangelock_release(&lock, &r);
	}
	return NULL;
}

START_TEST(many_threads__never_share_with_a_writer)
{
	pthread_t t[STRESS_THREADS];
	for (uintptr_t i = 0; i < STRESS_THREADS; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, stress, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < STRESS_THREADS; i++)
		pthread_join(t[i], NULL);
	ck_assert_uint_eq(violations, 0);
	ck_assert_ptr_null(lock.first);
}
END_TEST

/* ---- starvation: readers never leave the range empty, a writer gets through all the same ---- */

static _Atomic int stop;

static void *read_forever(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		struct cf_range r;
		cf_rangelock_acquire(&lock, &r, 0, 10, CF_RANGE_SHARED);
		nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
		cf_rangelock_release(&lock, &r);
	}
	return NULL;
}

START_TEST(writer__is_not_starved_by_readers)
{
	pthread_t t[6];
	for (unsigned i = 0; i < CF_ARRAY_LEN(t); i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, read_forever, NULL), 0);
	for (unsigned i = 0; i < 200; i++) {
		struct cf_range r;
		cf_rangelock_acquire(&lock, &r, 3, 1, CF_RANGE_EXCLUSIVE);
		cf_rangelock_release(&lock, &r);
	}
	atomic_store(&stop, 1);
	for (unsigned i = 0; i < CF_ARRAY_LEN(t); i++)
		pthread_join(t[i], NULL);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("rangelock");
	TCase *t = tcase_create("rangelock");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, second_range__waits_only_for_a_conflict, 0, (int)CF_ARRAY_LEN(pairs));
	tcase_add_test(t, late_reader__waits_behind_a_waiting_writer);
	tcase_add_test(t, late_range__passes_a_waiter_it_does_not_overlap);
	tcase_add_test(t, overlapping_writers__come_in_order_of_arrival);
	tcase_add_test(t, waiting_readers__go_together);
	tcase_add_test(t, many_threads__never_share_with_a_writer);
	tcase_add_test(t, writer__is_not_starved_by_readers);
	suite_add_tcase(s, t);
	return test_run(s);
}
