/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_flush.c - a handle that is closed has what was written through it made durable, also when a flush comes in the
 * middle of a write: that of a copy of the descriptor, which another process closes.
 *
 * The operations run as they are; what they would tell the kernel is caught. */
#include "config.h"

#include <errno.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "cryptfuse/ops_slots.h"
#include "run.h"
#include "test_volume.h"

#define DU 4096u

static struct test_volume tv;
static struct cf_serve_opts opts;
static struct cf_open_plan plan;
static struct cf_ops ops;
static struct cf_ops_handle handle;
static _Atomic int answer;

/* ---- what libfuse would do ---- */

void *__wrap_fuse_req_userdata(fuse_req_t req);
void *__wrap_fuse_req_userdata(fuse_req_t req)
{
	(void)req;
	return &ops;
}

int __wrap_fuse_reply_err(fuse_req_t req, int code);
int __wrap_fuse_reply_err(fuse_req_t req, int code)
{
	(void)req;
	answer = code;
	return 0;
}

int __wrap_fuse_reply_write(fuse_req_t req, size_t n);
int __wrap_fuse_reply_write(fuse_req_t req, size_t n)
{
	(void)req;
	ck_assert_uint_gt(n, 0);
	answer = 0;
	return 0;
}

/* ---- the handle ---- */

static void setup(void)
{
	static const struct test_shape shape = {
		.mode = "xts", .du_bytes = DU, .bytes = 16 * DU, .access = CF_READ_WRITE, .n_workers = 2};
	test_volume_open(&tv, &shape);
	opts = (struct cf_serve_opts){.name = "volume", .kind = CF_MOUNT_DIRECTORY};
	cf_ops_init(&ops, tv.v, &opts, &plan);
	handle = (struct cf_ops_handle){.file = &ops.file[0], .access = CF_READ_WRITE};
}

static void teardown(void)
{
	cf_ops_fini(&ops);
	test_volume_close(&tv);
}

static const enum change { WRITE, WRITE_PAGE, ZERO } changes[] = {WRITE, WRITE_PAGE, ZERO};

static void *change(void *which)
{
	static const char data[DU];
	struct fuse_file_info fi = {.fh = (uintptr_t)&handle, .writepage = *(const enum change *)which == WRITE_PAGE};
	if (*(const enum change *)which == ZERO)
		cf_op_fallocate(NULL, 2, FALLOC_FL_ZERO_RANGE, 0, DU, &fi);
	else
		cf_op_write(NULL, 2, data, DU, 0, &fi);
	return NULL;
}

static int flush(void)
{
	struct fuse_file_info fi = {.fh = (uintptr_t)&handle, .flush = 1};
	answer = -1;
	cf_op_flush(NULL, 2, &fi);
	return answer;
}

START_TEST(flush__syncs_what_was_written_once)
{
	ck_assert_int_eq(flush(), 0);
	ck_assert_uint_eq(tv.t->n_syncs, 0);
	change((void *)&changes[_i]);
	ck_assert_int_eq(flush(), 0);
	ck_assert_uint_eq(tv.t->n_syncs, 1);
	ck_assert_int_eq(flush(), 0);
	ck_assert_uint_eq(tv.t->n_syncs, 1);
}
END_TEST

START_TEST(flush__in_the_middle_of_a_write_is_not_the_last)
{
	pthread_t writer;
	tv.t->pace = TEST_GATE;
	ck_assert_int_eq(pthread_create(&writer, NULL, change, (void *)&changes[_i]), 0);
	while (!tv.t->at_gate)
		sched_yield();
	ck_assert_int_eq(flush(), 0);
	const uint64_t early = tv.t->n_syncs;
	tv.t->pace = TEST_FAST;
	pthread_join(writer, NULL);
	ck_assert_int_eq(flush(), 0);
	ck_assert_uint_eq(tv.t->n_syncs, early + 1);
	ck_assert_int_eq(flush(), 0);
	ck_assert_uint_eq(tv.t->n_syncs, early + 1);
}
END_TEST

/* A part of it may have reached the image. */
START_TEST(flush__syncs_after_a_write_that_failed)
{
	tv.t->write_fault = (struct test_fault){.code = -EIO, .n_calls = TEST_FOREVER};
	change((void *)&changes[_i]);
	ck_assert_int_eq(answer, EIO);
	ck_assert_int_eq(flush(), 0);
	ck_assert_uint_eq(tv.t->n_syncs, 1);
}
END_TEST

START_TEST(flush__says_eio_for_ever_after_a_failed_sync)
{
	change((void *)&changes[_i]);
	tv.t->sync_code = -EIO;
	ck_assert_int_eq(flush(), EIO);
	tv.t->sync_code = 0;
	ck_assert_int_eq(flush(), EIO);
	ck_assert_int_eq(flush(), EIO);
}
END_TEST

int main(void)
{
	test_one_arena();
	Suite *s = suite_create("flush");
	TCase *c = tcase_create("flush");
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, flush__syncs_what_was_written_once, 0, CF_ARRAY_LEN(changes));
	tcase_add_loop_test(c, flush__in_the_middle_of_a_write_is_not_the_last, 0, CF_ARRAY_LEN(changes));
	tcase_add_loop_test(c, flush__syncs_after_a_write_that_failed, 0, CF_ARRAY_LEN(changes));
	tcase_add_loop_test(c, flush__says_eio_for_ever_after_a_failed_sync, 0, CF_ARRAY_LEN(changes));
	suite_add_tcase(s, c);
	return test_run(s);
}
