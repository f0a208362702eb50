/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_volume_lock.c - while a write is half way through its backing, who waits for it and who does not.
 *
 * The first thread is stopped in the middle of its pwrite; the second must not end before it goes on, or must. */
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "cryptfuse/secret.h"
#include "run.h"
#include "test_volume.h"

#define DU 4096u
#define ODD_OFF (63u * 512u)

enum action { READ, WRITE, ZERO };

/* The first writes in part of data unit 1: bytes [DU + 100, DU + 200). */
static const struct {
	enum action second;
	uint64_t off;
	size_t len;
	uint32_t granule;
	bool waits;
} cases[] = {
	{READ, DU + 100, 100, 1, true},
	{READ, DU, 1, 1, true}, /* another byte of the same data unit */
	{READ, 2 * DU - 1, 1, 1, true},
	{READ, 0, 3 * DU, 1, true},
	{READ, DU - 1, 1, 1, false},
	{READ, 2 * DU, 1, 1, false},
	{WRITE, DU, 1, 1, true},
	{WRITE, 2 * DU - 1, 1, 1, true},
	{WRITE, 2 * DU, DU, 1, false},
	{WRITE, DU - 1, 1, 1, false},
	{WRITE, 2 * DU, 1, 4096, true}, /* at sector 63 data units 1 and 2 share a block of 4096 */
	{WRITE, 0, 1, 4096, true},
	{WRITE, 3 * DU, DU, 4096, false},
	{WRITE, 8 * DU, 1, 65536, true},
	/* from 65024: a part of it shares the first 65536 */ {WRITE, 9 * DU, 1, 65536, false},
	{ZERO, 2 * DU - 1, 5000, 1, true},
	{ZERO, 2 * DU, 5000, 1, false},
};

static struct test_volume tv;
static uint8_t before[16 * DU], after[16 * DU];
static _Atomic bool second_done;

static void setup(void)
{
	ck_assert_int_eq(cf_secret_init(NULL), 0);
}

static void teardown(void)
{
	test_volume_close(&tv);
	cf_secret_fini();
}

static void *first(void *arg)
{
	static const uint8_t ones[100] = {1};
	struct cf_worker *w = cf_volume_enter(tv.v);
	ssize_t n = cf_volume_write(tv.v, w, ones, sizeof(ones), DU + 100);
	cf_volume_leave(tv.v, w);
	return n == (ssize_t)sizeof(ones) ? NULL : arg;
}

static void *second(void *arg)
{
	const int i = *(const int *)arg;
	struct cf_worker *w = cf_volume_enter(tv.v);
	uint64_t off = cases[i].off;
	size_t len = cases[i].len;
	bool ok;
	memset(w->io, 7, len);
	if (cases[i].second == READ)
		ok = cf_volume_read(tv.v, w, w->io, len, off) == (ssize_t)len;
	else if (cases[i].second == WRITE)
		ok = cf_volume_write(tv.v, w, w->io, len, off) == (ssize_t)len;
	else
		ok = cf_volume_zero(tv.v, w, off, len) == 0;
	cf_volume_leave(tv.v, w);
	atomic_store(&second_done, true);
	return ok ? NULL : arg;
}

static void run_both(int i)
{
	pthread_t a, b;
	void *a_failed, *b_failed;
	tv.t->pace = TEST_GATE;
	ck_assert_int_eq(pthread_create(&a, NULL, first, &i), 0);
	while (!tv.t->at_gate)
		sched_yield();
	ck_assert_int_eq(pthread_create(&b, NULL, second, &i), 0);
	if (cases[i].waits) /* without the lock it would end at once; with it, never */
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	else
		while (!second_done) /* would hang */
			sched_yield();
	ck_assert(second_done != cases[i].waits);
	tv.t->pace = TEST_FAST;
	pthread_join(a, &a_failed);
	pthread_join(b, &b_failed);
	ck_assert(!a_failed && !b_failed);
}

START_TEST(second_request__waits_only_for_what_it_shares)
{
	const struct test_shape shape = {.mode = "cbc",
									 .du_bytes = DU,
									 .data_off = ODD_OFF,
									 .bytes = sizeof(before),
									 .granule = cases[_i].granule,
									 .access = CF_READ_WRITE,
									 .n_workers = 2};
	test_volume_open(&tv, &shape);
	test_volume_decrypt(&tv, before);
	run_both(_i);
	memset(before + DU + 100, 0, 100);
	before[DU + 100] = 1;
	if (cases[_i].second != READ)
		memset(before + cases[_i].off, cases[_i].second == WRITE ? 7 : 0, cases[_i].len);
	test_volume_decrypt(&tv, after);
	ck_assert_mem_eq(before, after, sizeof(before));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("volume locks");
	TCase *t = tcase_create("locks");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 30);
	tcase_add_loop_test(t, second_request__waits_only_for_what_it_shares, 0, (int)CF_ARRAY_LEN(cases));
	suite_add_tcase(s, t);
	return test_run(s);
}
