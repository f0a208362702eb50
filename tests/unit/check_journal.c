/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_journal.c - a volume with a journal while file or image fail, and what it promises meanwhile. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/secret.h"
#include "cryptfuse/units.h"
#include "run.h"
#include "test_volume.h"

#define DU 4096u
#define N_DU 16u
#define BYTES (N_DU * DU)
#define LOG_BYTES (256u * 1024u) /* 28 records in each half */
#define RECORD_BYTES (48u + 2 * 8 * 16 + DU)
#define HALF_1 (12288u + 28 * RECORD_BYTES) /* where the first epoch's begin */

static const struct test_shape plain_shape = {.mode = "cbc",
											  .du_bytes = DU,
											  .data_off = 63 * 512,
											  .bytes = BYTES,
											  .access = CF_READ_WRITE,
											  .log_bytes = LOG_BYTES};

static struct test_volume tv;
static uint8_t expected[BYTES], now[BYTES], image_before[BYTES + 63 * 512 + 512];

static void open_volume(const struct test_shape *shape)
{
	ck_assert_int_eq(cf_secret_init(NULL), 0);
	test_volume_open(&tv, shape);
	ck_assert_int_eq(cf_volume_read(tv.v, tv.w, expected, BYTES, 0), BYTES);
	memcpy(image_before, tv.t->data, tv.t->base.bytes);
}

static void setup(void)
{
	open_volume(&plain_shape);
}

static void teardown(void)
{
	test_volume_close(&tv);
	cf_secret_fini();
}

/* New bytes at @off. Returns what the volume says; what it says is written, is expected from now on. */
static ssize_t write_new(uint64_t off, size_t len, uint64_t seed)
{
	uint8_t new[BYTES];
	test_fill(new, len, seed);
	const ssize_t n = cf_volume_write(tv.v, tv.w, new, len, off);
	if (n > 0)
		memcpy(expected + off, new, (size_t)n);
	return n;
}

static void check_reads(void)
{
	ck_assert_int_eq(cf_volume_read(tv.v, tv.w, now, BYTES, 0), BYTES);
	ck_assert_mem_eq(now, expected, BYTES);
}

static void check_image(void)
{
	test_volume_decrypt(&tv, now);
	ck_assert_mem_eq(now, expected, BYTES);
}

static struct cf_journal_stats stats(void)
{
	struct cf_journal_stats s;
	ck_assert(cf_volume_journal(tv.v, &s));
	return s;
}

static uint64_t undo_failures(void)
{
	struct cf_volume_stats s;
	cf_volume_stats(tv.v, &s);
	return s.undo_failures;
}

START_TEST(write__is_seen_and_is_in_the_file_only)
{
	ck_assert_int_eq(write_new(100, 3 * DU, 1), 3 * DU);
	check_reads();
	ck_assert_int_eq(cf_volume_sync(tv.v), 0);
	ck_assert_mem_eq(tv.t->data, image_before, tv.t->base.bytes);
	ck_assert_uint_eq(tv.t->n_syncs, 0);
	ck_assert_uint_eq(stats().pending, 4);
	ck_assert_int_eq(cf_volume_drain(tv.v), 0);
	ck_assert_uint_eq(stats().pending, 0);
	ck_assert_uint_eq(stats().rounds, 1);
	check_image();
	check_reads();
}
END_TEST

START_TEST(write__again_and_again_goes_round_and_round)
{
	for (unsigned i = 0; i < 200; i++) {
		ck_assert_int_eq(write_new(i * 777 % (BYTES - 5000), 5000, i), 5000);
		check_reads();
	}
	ck_assert_uint_gt(stats().rounds, 10);
	check_image();
}
END_TEST

/* The file takes @after bytes and then fails, torn or not: what was not reported as written is what it was, also where
 * it was pending already; and there is never anything that cannot be undone. */
static void refuse_write(uint64_t off, size_t len, uint64_t after, bool torn)
{
	tv.log->write_fault = (struct test_fault){-ENOSPC, after, torn ? 1 : TEST_FOREVER};
	tv.log->tear = torn ? TEST_TORN : TEST_CLEAN;
	const ssize_t n = write_new(off, len, after + 1);
	ck_assert(n == -ENOSPC || (n >= 0 && (size_t)n <= len));
	tv.log->write_fault = (struct test_fault){.n_calls = 0};
	check_reads();
	ck_assert_uint_eq(undo_failures(), 0);
}

START_TEST(write__that_the_file_refuses_changes_nothing)
{
	const size_t lens[] = {100, DU, 2 * DU + 10};
	ck_assert_int_eq(write_new(0, BYTES / 2, 5), BYTES / 2);
	for (uint64_t after = 0; after <= 4 * (DU + 304); after += 512)
		for (size_t i = 0; i < CF_ARRAY_LEN(lens); i++)
			refuse_write(BYTES / 2 - DU + 50 * i, lens[i], after, (after / 512 + i) % 2);
	ck_assert_int_eq(cf_volume_sync(tv.v), 0);
	check_image();
}
END_TEST

START_TEST(write__into_a_hole_of_a_full_image_is_enospc_at_once)
{
	memset(tv.t->data + tv.shape.data_off + DU, 0, DU);
	ck_assert_int_eq(cf_volume_read(tv.v, tv.w, expected, BYTES, 0), BYTES);
	tv.t->allocate_code = -ENOSPC;
	ck_assert_int_eq(write_new(DU, DU, 3), -ENOSPC);
	ck_assert_int_eq(write_new(2 * DU, DU, 4), DU); /* has its room already */
	check_reads();
	tv.t->allocate_code = -EOPNOTSUPP; /* then it cannot be told */
	ck_assert_int_eq(write_new(DU, DU, 5), DU);
	check_image();
}
END_TEST

START_TEST(write__whose_old_bytes_cannot_be_read_is_an_error)
{
	tv.t->read_fault = (struct test_fault){-EIO, 0, 1};
	ck_assert_int_eq(write_new(DU, DU, 3), -EIO);
	ck_assert_int_eq(write_new(DU, DU, 3), DU);
	check_reads();
	check_image();
}
END_TEST

START_TEST(round__that_fails_is_done_again)
{
	ck_assert_int_eq(write_new(0, BYTES, 1), BYTES);
	tv.t->write_fault = (struct test_fault){-ENOSPC, 3 * DU + 512, TEST_FOREVER};
	ck_assert_int_eq(cf_volume_drain(tv.v), -ENOSPC);
	check_reads();
	ck_assert_int_eq(cf_volume_sync(tv.v), 0); /* it is durable all the same */
	ssize_t n;
	for (unsigned i = 0; (n = write_new(0, BYTES, i)) == BYTES;)
		ck_assert_uint_lt(++i, 20);
	ck_assert(n == -ENOSPC || n > 0);
	check_reads();
	tv.t->write_fault = (struct test_fault){.n_calls = 0};
	ck_assert_int_eq(write_new(DU, BYTES - DU, 77), BYTES - DU);
	check_image();
	ck_assert_int_eq(stats().error, 0);
}
END_TEST

/* HAZARDS 15: one failed sync is for good, whichever it was; and what the file has stays there. */
START_TEST(sync__that_fails_is_for_good)
{
	ck_assert_int_eq(write_new(0, 2 * DU, 1), 2 * DU);
	ck_assert_int_eq(cf_volume_sync(tv.v), 0);
	struct test_backing *which = _i ? tv.t : tv.log;
	which->sync_code = -EIO;
	ck_assert_int_eq(cf_volume_drain(tv.v), -EIO);
	which->sync_code = 0;
	ck_assert_int_eq(cf_volume_drain(tv.v), -EIO);
	ck_assert_int_eq(cf_volume_sync(tv.v), -EIO);
	ck_assert_int_eq(write_new(DU, DU, 2), -EIO);
	ck_assert_int_eq(stats().error, -EIO);
	check_reads();
	ck_assert_uint_eq(stats().pending, 2);
	uint8_t zeros[16] = {0};
	ck_assert_mem_ne(tv.log->data + 56, zeros, sizeof(zeros)); /* the file is still this volume's */
}
END_TEST

START_TEST(record__that_changed_in_the_file_is_never_read)
{
	ck_assert_int_eq(write_new(0, DU, 1), DU);
	for (size_t i = 0; i < RECORD_BYTES; i += 37) {
		const size_t at = HALF_1 + i + (i >= 32 && i < 48 ? 16 : 0); /* its own tag is kept in memory */
		tv.log->data[at] ^= 0x10;
		ck_assert_int_eq(cf_volume_read(tv.v, tv.w, now, 100, 0), -EIO);
		ck_assert_int_eq(cf_volume_drain(tv.v), -EIO);
		tv.log->data[at] ^= 0x10;
	}
	ck_assert_mem_eq(tv.t->data, image_before, tv.t->base.bytes);
	check_reads();
	check_image();
}
END_TEST

static void setup_discards(void)
{
	struct test_shape shape = plain_shape;
	shape.discards = CF_DISCARDS_ALLOWED;
	shape.data_off = 0;
	open_volume(&shape);
}

START_TEST(punch__comes_after_what_was_written_there)
{
	ck_assert_int_eq(write_new(DU, 2 * DU, 1), 2 * DU);
	ck_assert_int_eq(write_new(8 * DU, DU, 1), DU);
	ck_assert_int_eq(cf_volume_punch(tv.v, tv.w, 10 * DU, DU), 0); /* nothing is pending there */
	ck_assert_uint_eq(stats().pending, 3);
	ck_assert_int_eq(cf_volume_punch(tv.v, tv.w, 2 * DU, DU), 0);
	ck_assert_uint_eq(stats().pending, 0);
	memset(expected + 2 * DU, 0, DU);
	memset(expected + 10 * DU, 0, DU);
	check_reads();
	ck_assert_uint_eq(tv.t->punched_off, 2 * DU);
	ck_assert_int_eq(cf_volume_sync(tv.v), 0);
	ck_assert_uint_ge(tv.t->n_syncs, 2); /* of the round, and after the punch */
}
END_TEST

START_TEST(seek__sees_no_hole_where_something_is_pending)
{
	tv.t->holes[0] = (struct test_hole){4 * DU, 8 * DU};
	ck_assert_int_eq(cf_volume_seek(tv.v, 0, CF_SEEK_HOLE), 4 * DU);
	ck_assert_int_eq(write_new(5 * DU, DU, 1), DU);
	ck_assert_int_eq(cf_volume_seek(tv.v, 0, CF_SEEK_HOLE), BYTES);
	ck_assert_int_eq(cf_volume_seek(tv.v, 5 * DU, CF_SEEK_DATA), 5 * DU);
	ck_assert_int_eq(cf_volume_drain(tv.v), 0);
	ck_assert_int_eq(cf_volume_seek(tv.v, 0, CF_SEEK_HOLE), 4 * DU);
}
END_TEST

/* The backings go with the volume: this is what the file was at its last sync. */
static uint8_t last_super[512];

static void keep_super(struct test_backing *t, enum test_call call)
{
	if (call == TEST_SYNC)
		memcpy(last_super, t->data, sizeof(last_super));
}

START_TEST(close__leaves_a_file_that_is_nobodys)
{
	ck_assert_int_eq(write_new(0, BYTES, 1), BYTES);
	tv.log->hook = keep_super;
	ck_assert_int_eq(cf_volume_sync(tv.v), 0);
	ck_assert_uint_eq(last_super[21], DU >> 8);
}
END_TEST

static void teardown_blank(void)
{
	uint8_t blank[512] = {0};
	test_journal_blank(blank);
	teardown();
	ck_assert_mem_eq(last_super, blank, sizeof(blank));
}

static void setup_none(void)
{
	struct test_shape shape = plain_shape;
	shape.log_bytes = 0;
	open_volume(&shape);
}

START_TEST(volume__without_one_has_no_stats)
{
	struct cf_journal_stats s;
	ck_assert(!cf_volume_journal(tv.v, &s));
	ck_assert_int_eq(cf_volume_start(tv.v), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("journal");
	TCase *t = tcase_create("journal"), *holes = tcase_create("discards"), *none = tcase_create("none"),
		  *closing = tcase_create("closing");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, write__is_seen_and_is_in_the_file_only);
	tcase_add_test(t, write__again_and_again_goes_round_and_round);
	tcase_add_test(t, write__that_the_file_refuses_changes_nothing);
	tcase_add_test(t, write__into_a_hole_of_a_full_image_is_enospc_at_once);
	tcase_add_test(t, write__whose_old_bytes_cannot_be_read_is_an_error);
	tcase_add_test(t, round__that_fails_is_done_again);
	tcase_add_loop_test(t, sync__that_fails_is_for_good, 0, 2);
	tcase_add_test(t, record__that_changed_in_the_file_is_never_read);
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(holes, setup_discards, teardown);
	tcase_add_test(holes, punch__comes_after_what_was_written_there);
	tcase_add_test(holes, seek__sees_no_hole_where_something_is_pending);
	suite_add_tcase(s, holes);
	tcase_add_checked_fixture(none, setup_none, teardown);
	tcase_add_test(none, volume__without_one_has_no_stats);
	suite_add_tcase(s, none);
	tcase_add_checked_fixture(closing, setup, teardown_blank);
	tcase_add_test(closing, close__leaves_a_file_that_is_nobodys);
	suite_add_tcase(s, closing);
	return test_run(s);
}
