/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_volume_life.c - what makes a volume, its workers, its counters, and sync. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "run.h"
#include "test_volume.h"

static struct test_volume tv;
static uint8_t data[16384];

static void open_volume(enum cf_access access, unsigned n_workers)
{
	const struct test_shape shape = {
		.mode = "xts", .du_bytes = 4096, .bytes = 1 << 20, .access = access, .n_workers = n_workers};
	test_volume_open(&tv, &shape);
}

static void setup(void)
{
	ck_assert_int_eq(cf_secret_init(NULL), 0);
}

static void teardown(void)
{
	if (tv.v)
		test_volume_close(&tv);
	cf_secret_fini();
}

/* ---- making a volume ---- */

static const struct {
	uint64_t data_off, bytes;
	enum cf_access of_backing;
	unsigned n_workers, n_permits;
	int rc;
} geometries[] = {
	{0, 65536, CF_READ_WRITE, 1, 0, 0},
	{0, 65536, CF_READ_WRITE, CF_WORKERS_MAX, 0, 0},
	{61440, 4096, CF_READ_WRITE, 1, 0, 0},
	{0, 0, CF_READ_WRITE, 1, 0, -EINVAL},
	{0, 512, CF_READ_WRITE, 1, 0, -EINVAL},
	{0, 65536 - 512, CF_READ_WRITE, 1, 0, -EINVAL},
	{0, 65536 + 4096, CF_READ_WRITE, 1, 0, -EINVAL},
	{61441, 4096, CF_READ_WRITE, 1, 0, -EINVAL},
	{65536, 4096, CF_READ_WRITE, 1, 0, -EINVAL},
	{UINT64_MAX - 4095, 4096, CF_READ_WRITE, 1, 0, -EINVAL},
	{4096, UINT64_MAX - 4095, CF_READ_WRITE, 1, 0, -EINVAL},
	{0, 65536, CF_READ_ONLY, 1, 0, -EINVAL},
	{0, 65536, CF_READ_WRITE, 0, 0, -EINVAL},
	{0, 65536, CF_READ_WRITE, CF_WORKERS_MAX + 1, 0, -EINVAL},
	{0, 65536, CF_READ_WRITE, 4, 1, 0},
	{0, 65536, CF_READ_WRITE, 4, 4, 0},
	{0, 65536, CF_READ_WRITE, 4, 5, -EINVAL},
};

START_TEST(new__judges_the_geometry)
{
	struct cf_volume *v = NULL;
	struct cf_err err = {.code = 0};
	struct cf_cipher *c = test_cipher("xts", "plain64", 4096, CF_WORKERS_MAX), *was = c;
	struct cf_backing *b = &test_backing_new(65536, 1)->base;
	const struct cf_volume_opts opts = {.data_off = geometries[_i].data_off,
										.bytes = geometries[_i].bytes,
										.access = CF_READ_WRITE,
										.n_workers = geometries[_i].n_workers,
										.n_permits = geometries[_i].n_permits};
	b->access = geometries[_i].of_backing;
	int rc = cf_volume_new(&v, &b, &c, &opts, &err);
	ck_assert_int_eq(rc, geometries[_i].rc);
	ck_assert((v != NULL) == (rc == 0) && (b == NULL) == (rc == 0) && c == (rc ? was : NULL));
	ck_assert_int_eq(err.text[0] != '\0', rc != 0);
	cf_volume_free(&v);
	if (rc) {
		cf_backing_free(&b);
		cf_cipher_free(&c);
	}
}
END_TEST

START_TEST(accessors__say_what_was_opened)
{
	open_volume(_i ? CF_READ_ONLY : CF_READ_WRITE, 1);
	ck_assert_uint_eq(cf_volume_bytes(tv.v), tv.shape.bytes);
	ck_assert_uint_eq(cf_volume_du_bytes(tv.v), tv.shape.du_bytes);
	ck_assert_int_eq(cf_volume_access(tv.v), tv.shape.access);
	ck_assert_uint_eq(cf_cipher_du_bytes(cf_volume_cipher(tv.v)), tv.shape.du_bytes);
}
END_TEST

/* ---- sync ---- */

static struct cf_volume_stats stats(void)
{
	struct cf_volume_stats s;
	cf_volume_stats(tv.v, &s);
	return s;
}

START_TEST(sync__reaches_the_backing_every_time)
{
	open_volume(CF_READ_WRITE, 1);
	for (unsigned i = 1; i <= 3; i++) {
		ck_assert_int_eq(cf_volume_sync(tv.v), 0);
		ck_assert_uint_eq(tv.t->n_syncs, i);
	}
	ck_assert_uint_eq(stats().syncs, 3);
	ck_assert_uint_eq(stats().sync_errors, 0);
}
END_TEST

START_TEST(sync__once_failed_fails_for_good)
{
	open_volume(CF_READ_WRITE, 1);
	tv.t->sync_code = -ENOSPC;
	ck_assert_int_eq(cf_volume_sync(tv.v), -ENOSPC);
	tv.t->sync_code = 0; /* the kernel tells only once */
	ck_assert_int_eq(cf_volume_sync(tv.v), -ENOSPC);
	ck_assert_int_eq(cf_volume_sync(tv.v), -ENOSPC);
	ck_assert_uint_eq(stats().syncs, 0);
	ck_assert_uint_eq(stats().sync_errors, 1);
}
END_TEST

/* ---- counters and workers ---- */

START_TEST(stats__count_what_was_done)
{
	open_volume(CF_READ_WRITE, 1);
	ck_assert_int_eq(cf_volume_write(tv.v, tv.w, data, 8192 + 2, 4095), 8194); /* a byte, two DUs, a byte */
	ck_assert_int_eq(cf_volume_read(tv.v, tv.w, data, 100, 0), 100);
	ck_assert_int_eq(cf_volume_zero(tv.v, tv.w, 10, 20), 0);
	struct cf_volume_stats s = stats();
	ck_assert_uint_eq(s.writes, 1);
	ck_assert_uint_eq(s.write_bytes, 8194);
	ck_assert_uint_eq(s.rmw, 3);
	ck_assert_uint_eq(s.reads, 1);
	ck_assert_uint_eq(s.read_bytes, 100);
	ck_assert_uint_eq(s.zeroed_bytes, 20);
	ck_assert_uint_eq(s.read_errors + s.write_errors + s.undo_failures + s.punched_bytes, 0);
}
END_TEST

static _Atomic int entered;

static void *enter(void *arg)
{
	struct cf_worker *w = cf_volume_enter(tv.v);
	atomic_store(&entered, 1);
	cf_volume_leave(tv.v, w);
	return arg;
}

START_TEST(enter__waits_while_all_workers_are_out)
{
	struct cf_worker *w[3];
	bool seen[3] = {false};
	pthread_t thread;
	open_volume(CF_READ_WRITE, 3);
	for (int i = 0; i < 3; i++) {
		w[i] = cf_volume_enter(tv.v);
		ck_assert_uint_lt(w[i]->index, 3);
		ck_assert(!seen[w[i]->index]);
		seen[w[i]->index] = true;
	}
	ck_assert_int_eq(pthread_create(&thread, NULL, enter, NULL), 0);
	for (int i = 0; i < 1000; i++)
		sched_yield();
	ck_assert_int_eq(entered, 0);
	cf_volume_leave(tv.v, w[1]);
	pthread_join(thread, NULL);
	ck_assert_int_eq(entered, 1);
	cf_volume_leave(tv.v, w[0]);
	cf_volume_leave(tv.v, w[2]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("volume life");
	TCase *t = tcase_create("life");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, accessors__say_what_was_opened, 0, 2);
	tcase_add_loop_test(t, new__judges_the_geometry, 0, (int)CF_ARRAY_LEN(geometries));
	tcase_add_test(t, sync__reaches_the_backing_every_time);
	tcase_add_test(t, sync__once_failed_fails_for_good);
	tcase_add_test(t, stats__count_what_was_done);
	tcase_add_test(t, enter__waits_while_all_workers_are_out);
	suite_add_tcase(s, t);
	return test_run(s);
}
