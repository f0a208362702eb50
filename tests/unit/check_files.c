/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_files.c - the files of a mount: how they are called, what may be shown, and who may open what at once. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "cryptfuse/ops_slots.h"
#include "run.h"
#include "test_volume.h"

#define BYTES ((uint64_t)1 << 20)

static struct test_volume tv;
static struct cf_serve_opts opts;
static struct cf_open_plan plan;
static struct cf_ops ops;

/* 1 and 2 are neighbours, 5 lies inside 2; nothing lies in the last quarter. */
static const struct cf_serve_part parts[] = {
	{.number = 1, .off = 4096, .bytes = 12288},
	{.number = 2, .off = 16384, .bytes = BYTES / 2},
	{.number = 5, .off = 65536, .bytes = 512},
};

static void setup(void)
{
	static const struct test_shape shape = {
		.mode = "xts", .du_bytes = 512, .bytes = BYTES, .access = CF_READ_WRITE, .discards = CF_DISCARDS_ALLOWED};
	test_volume_open(&tv, &shape);
	opts = (struct cf_serve_opts){.name = "volume", .kind = CF_MOUNT_DIRECTORY};
	cf_ops_init(&ops, tv.v, &opts, &plan);
}

static void teardown(void)
{
	cf_ops_fini(&ops);
	test_volume_close(&tv);
}

static void publish(void)
{
	ck_assert_int_eq(cf_ops_publish(&ops, parts, CF_ARRAY_LEN(parts)), 0);
}

/* ---- the list ---- */

START_TEST(files__the_volume_alone_at_first)
{
	ck_assert_uint_eq(cf_ops_n_files(&ops), 1);
	ck_assert_int_eq(cf_ops_named(&ops, "volume"), 0);
	ck_assert_int_eq(cf_ops_named(&ops, "volume.p1"), -ENOENT);
	ck_assert_int_eq(cf_ops_index(&ops, 2), 0);
	ck_assert_int_eq(cf_ops_index(&ops, FUSE_ROOT_ID), -ENOENT);
	ck_assert_int_eq(cf_ops_index(&ops, 3), -ENOENT);
	ck_assert_uint_eq(ops.file[0].bytes, BYTES);
}
END_TEST

START_TEST(files__a_file_as_mount_point_is_the_volume)
{
	opts.kind = CF_MOUNT_FILE;
	ck_assert_int_eq(cf_ops_index(&ops, FUSE_ROOT_ID), 0);
	ck_assert_int_eq(cf_ops_index(&ops, 2), -ENOENT);
	ck_assert_int_eq(cf_ops_publish(&ops, parts, 1), -EINVAL);
}
END_TEST

START_TEST(files__partitions_are_called_by_their_number)
{
	char name[CF_OPS_NAME_MAX];
	publish();
	ck_assert_uint_eq(cf_ops_n_files(&ops), 4);
	ck_assert_int_eq(cf_ops_named(&ops, "volume.p1"), 1);
	ck_assert_int_eq(cf_ops_named(&ops, "volume.p5"), 3);
	ck_assert_int_eq(cf_ops_named(&ops, "volume.p3"), -ENOENT);
	ck_assert_int_eq(cf_ops_named(&ops, "volume.p"), -ENOENT);
	ck_assert_int_eq(cf_ops_named(&ops, "volume.p01"), -ENOENT);
	ck_assert_int_eq(cf_ops_named(&ops, ""), -ENOENT);
	cf_ops_file_name(&ops, 3, name);
	ck_assert_str_eq(name, "volume.p5");
	ck_assert_int_eq(cf_ops_index(&ops, cf_ops_ino(&ops, 3)), 3);
	ck_assert_int_eq(cf_ops_index(&ops, cf_ops_ino(&ops, 3) + 1), -ENOENT);
}
END_TEST

START_TEST(files__a_long_name_has_room_for_the_number)
{
	char name[CF_OPS_NAME_MAX];
	const struct cf_serve_part last = {.number = UINT32_MAX, .bytes = 1};
	memset(opts.name, 'n', NAME_MAX);
	ck_assert_int_eq(cf_ops_publish(&ops, &last, 1), 0);
	cf_ops_file_name(&ops, 1, name);
	ck_assert_uint_eq(strlen(name), NAME_MAX + strlen(".p4294967295"));
	ck_assert_int_eq(cf_ops_named(&ops, name), 1);
}
END_TEST

static const struct cf_serve_part refused[] = {
	{.number = 0, .off = 0, .bytes = 512},          {.number = 1, .off = 0, .bytes = 0},
	{.number = 1, .off = 0, .bytes = BYTES + 1},    {.number = 1, .off = BYTES, .bytes = 1},
	{.number = 1, .off = BYTES + 1, .bytes = 1},    {.number = 1, .off = 1, .bytes = BYTES},
	{.number = 1, .off = 512, .bytes = UINT64_MAX}, {.number = 1, .off = UINT64_MAX, .bytes = 512},
	{.number = 9, .off = 0, .bytes = 512}, /* twice: see below */
};

START_TEST(publish__refuses_what_does_not_lie_inside_and_shows_none)
{
	const struct cf_serve_part list[] = {{.number = 9, .off = 0, .bytes = BYTES}, refused[_i]};
	ck_assert_int_eq(cf_ops_publish(&ops, list, 2), -EINVAL);
	ck_assert_uint_eq(cf_ops_n_files(&ops), 1);
	ck_assert_int_eq(cf_ops_index(&ops, 3), -ENOENT);
}
END_TEST

START_TEST(publish__once)
{
	publish();
	ck_assert_int_eq(cf_ops_publish(&ops, parts, 1), -EINVAL);
	ck_assert_uint_eq(cf_ops_n_files(&ops), 4);
}
END_TEST

START_TEST(publish__no_more_than_there_is_room_for)
{
	struct cf_serve_part many[CF_SERVE_PARTS_MAX + 1];
	for (unsigned i = 0; i < CF_ARRAY_LEN(many); i++)
		many[i] = (struct cf_serve_part){.number = i + 1, .off = i * 512, .bytes = 512};
	ck_assert_int_eq(cf_ops_publish(&ops, many, CF_SERVE_PARTS_MAX + 1), -EINVAL);
	ck_assert_int_eq(cf_ops_publish(&ops, many, CF_SERVE_PARTS_MAX), 0);
	ck_assert_uint_eq(cf_ops_n_files(&ops), 1 + CF_SERVE_PARTS_MAX);
}
END_TEST

START_TEST(clip__ends_with_the_file)
{
	const struct cf_ops_file f = {.off = 4096, .bytes = 1000};
	ck_assert_uint_eq(cf_ops_clip(&f, 0, 1000), 1000);
	ck_assert_uint_eq(cf_ops_clip(&f, 0, 1001), 1000);
	ck_assert_uint_eq(cf_ops_clip(&f, 999, 5), 1);
	ck_assert_uint_eq(cf_ops_clip(&f, 1000, 5), 0);
	ck_assert_uint_eq(cf_ops_clip(&f, UINT64_MAX, UINT64_MAX), 0);
	ck_assert_uint_eq(cf_ops_clip(&f, 1, UINT64_MAX), 999);
}
END_TEST

/* ---- who may open what ---- */

enum { ALL, P1, P2, P5 };

/* Handles of one file and access that are open at once have the same in them. */
static struct cf_ops_handle handles[P5 + 1][2];

static int open_truncating(unsigned i, enum cf_access access, int truncates, enum cf_ops_pages *pages)
{
	enum cf_ops_pages any;
	struct cf_ops_handle *h = &handles[i][access];
	h->file = &ops.file[i];
	h->access = access;
	return cf_ops_count_in(&ops, h, truncates, pages ? pages : &any);
}

static int open_file(unsigned i, enum cf_access access, enum cf_ops_pages *pages)
{
	return open_truncating(i, access, 0, pages);
}

static void close_file(unsigned i, enum cf_access access)
{
	cf_ops_count_out(&ops, &handles[i][access]);
}

static const struct {
	unsigned held, wanted;
	int code;
} pairs[] = {
	{ALL, P1, -EBUSY}, {P1, ALL, -EBUSY}, {P5, ALL, -EBUSY}, {P2, P5, -EBUSY}, {P5, P2, -EBUSY},
	{P1, P2, 0},       {P2, P1, 0},       {P1, P5, 0},       {ALL, ALL, 0},    {P5, P5, 0},
};

START_TEST(open__one_writer_over_the_same_bytes)
{
	publish();
	ck_assert_int_eq(open_file(pairs[_i].held, CF_READ_WRITE, NULL), 0);
	ck_assert_int_eq(open_file(pairs[_i].wanted, CF_READ_ONLY, NULL), 0); /* readers are free */
	close_file(pairs[_i].wanted, CF_READ_ONLY);
	ck_assert_int_eq(open_file(pairs[_i].wanted, CF_READ_WRITE, NULL), pairs[_i].code);
	if (pairs[_i].code == 0)
		close_file(pairs[_i].wanted, CF_READ_WRITE);
	close_file(pairs[_i].held, CF_READ_WRITE);
	ck_assert_int_eq(open_file(pairs[_i].wanted, CF_READ_WRITE, NULL), 0);
	close_file(pairs[_i].wanted, CF_READ_WRITE);
}
END_TEST

START_TEST(open__readers_are_in_nobodys_way)
{
	publish();
	for (unsigned i = ALL; i <= P5; i++)
		ck_assert_int_eq(open_file(i, CF_READ_ONLY, NULL), 0);
	ck_assert_int_eq(open_file(P2, CF_READ_WRITE, NULL), 0);
	close_file(P2, CF_READ_WRITE);
	ck_assert_int_eq(open_file(ALL, CF_READ_WRITE, NULL), 0);
}
END_TEST

/* All of a file's writers must have gone. */
START_TEST(open__counts_writers)
{
	publish();
	ck_assert_int_eq(open_file(P1, CF_READ_WRITE, NULL), 0);
	ck_assert_int_eq(open_file(P1, CF_READ_WRITE, NULL), 0);
	close_file(P1, CF_READ_WRITE);
	ck_assert_int_eq(open_file(ALL, CF_READ_WRITE, NULL), -EBUSY);
	close_file(P1, CF_READ_WRITE);
	ck_assert_int_eq(open_file(ALL, CF_READ_WRITE, NULL), 0);
}
END_TEST

START_TEST(open__truncation_wants_its_own_file_alone)
{
	publish();
	ck_assert_int_eq(open_file(P1, CF_READ_ONLY, NULL), 0);
	ck_assert_int_eq(open_truncating(P1, CF_READ_WRITE, 1, NULL), -EBUSY);
	ck_assert_int_eq(open_truncating(P2, CF_READ_WRITE, 1, NULL), 0);
	close_file(P1, CF_READ_ONLY);
	ck_assert_int_eq(open_truncating(P1, CF_READ_WRITE, 1, NULL), 0);
}
END_TEST

static enum cf_ops_pages pages_of(unsigned i)
{
	enum cf_ops_pages pages;
	ck_assert_int_eq(open_file(i, CF_READ_ONLY, &pages), 0);
	close_file(i, CF_READ_ONLY);
	return pages;
}

static void write_through(unsigned i)
{
	ck_assert_int_eq(open_file(i, CF_READ_WRITE, NULL), 0);
	close_file(i, CF_READ_WRITE);
}

START_TEST(pages__are_dropped_once_after_another_file_was_written)
{
	publish();
	ck_assert_int_eq(pages_of(ALL), CF_OPS_PAGES_GOOD);
	write_through(P1);
	ck_assert_int_eq(pages_of(P1), CF_OPS_PAGES_GOOD); /* its own writes are in its cache */
	ck_assert_int_eq(pages_of(P2), CF_OPS_PAGES_GOOD); /* other bytes */
	ck_assert_int_eq(pages_of(ALL), CF_OPS_PAGES_STALE);
	ck_assert_int_eq(pages_of(ALL), CF_OPS_PAGES_GOOD);
	write_through(ALL);
	ck_assert_int_eq(pages_of(P1), CF_OPS_PAGES_STALE);
	ck_assert_int_eq(pages_of(P5), CF_OPS_PAGES_STALE);
	ck_assert_int_eq(pages_of(ALL), CF_OPS_PAGES_GOOD);
}
END_TEST

/* What is cached while the other still writes is out of date too. */
START_TEST(pages__are_dropped_until_the_writer_has_gone)
{
	publish();
	ck_assert_int_eq(open_file(P1, CF_READ_WRITE, NULL), 0);
	ck_assert_int_eq(pages_of(ALL), CF_OPS_PAGES_STALE);
	ck_assert_int_eq(pages_of(ALL), CF_OPS_PAGES_STALE);
	close_file(P1, CF_READ_WRITE);
	ck_assert_int_eq(pages_of(ALL), CF_OPS_PAGES_STALE);
	ck_assert_int_eq(pages_of(ALL), CF_OPS_PAGES_GOOD);
}
END_TEST

/* The kernel drops them after it has our answer: whoever opens the file meanwhile must not be told that it did. */
START_TEST(pages__are_dropped_by_all_who_open_until_one_is_done)
{
	enum cf_ops_pages pages;
	publish();
	write_through(P1);
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(open_file(ALL, CF_READ_ONLY, &pages), 0);
		ck_assert_int_eq(pages, CF_OPS_PAGES_STALE);
	}
	close_file(ALL, CF_READ_ONLY);
	ck_assert_int_eq(pages_of(ALL), CF_OPS_PAGES_GOOD);
	close_file(ALL, CF_READ_ONLY);
	close_file(ALL, CF_READ_ONLY);
	ck_assert_int_eq(pages_of(ALL), CF_OPS_PAGES_GOOD);
}
END_TEST

/* What was dropped before the last write says nothing about it. */
START_TEST(pages__are_not_good_for_an_open_of_before_the_write)
{
	enum cf_ops_pages pages;
	publish();
	ck_assert_int_eq(open_file(ALL, CF_READ_ONLY, &pages), 0);
	ck_assert_int_eq(pages, CF_OPS_PAGES_GOOD);
	ck_assert_int_eq(open_file(P1, CF_READ_WRITE, NULL), 0);
	close_file(P1, CF_READ_WRITE);
	close_file(ALL, CF_READ_ONLY);
	ck_assert_int_eq(pages_of(ALL), CF_OPS_PAGES_STALE);
	ck_assert_int_eq(open_file(P1, CF_READ_WRITE, NULL), 0);
	ck_assert_int_eq(open_file(ALL, CF_READ_ONLY, &pages), 0);
	close_file(P1, CF_READ_WRITE);
	close_file(ALL, CF_READ_ONLY);
	ck_assert_int_eq(pages_of(ALL), CF_OPS_PAGES_STALE);
	ck_assert_int_eq(pages_of(ALL), CF_OPS_PAGES_GOOD);
}
END_TEST

START_TEST(pages__are_dropped_at_the_next_open_if_this_one_failed)
{
	enum cf_ops_pages pages;
	publish();
	write_through(P1);
	ck_assert_int_eq(open_file(ALL, CF_READ_ONLY, &pages), 0);
	cf_ops_count_back(&ops, &handles[ALL][CF_READ_ONLY]);
	ck_assert_uint_eq(ops.file[ALL].n_open, 0);
	ck_assert_int_eq(pages_of(ALL), CF_OPS_PAGES_STALE);
	ck_assert_int_eq(pages_of(ALL), CF_OPS_PAGES_GOOD);
}
END_TEST

int main(void)
{
	test_one_arena();
	Suite *s = suite_create("files");
	TCase *c = tcase_create("files");
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, files__the_volume_alone_at_first);
	tcase_add_test(c, files__a_file_as_mount_point_is_the_volume);
	tcase_add_test(c, files__partitions_are_called_by_their_number);
	tcase_add_test(c, files__a_long_name_has_room_for_the_number);
	tcase_add_loop_test(c, publish__refuses_what_does_not_lie_inside_and_shows_none, 0, CF_ARRAY_LEN(refused));
	tcase_add_test(c, publish__once);
	tcase_add_test(c, publish__no_more_than_there_is_room_for);
	tcase_add_test(c, clip__ends_with_the_file);
	tcase_add_loop_test(c, open__one_writer_over_the_same_bytes, 0, CF_ARRAY_LEN(pairs));
	tcase_add_test(c, open__readers_are_in_nobodys_way);
	tcase_add_test(c, open__counts_writers);
	tcase_add_test(c, open__truncation_wants_its_own_file_alone);
	tcase_add_test(c, pages__are_dropped_once_after_another_file_was_written);
	tcase_add_test(c, pages__are_dropped_until_the_writer_has_gone);
	tcase_add_test(c, pages__are_dropped_by_all_who_open_until_one_is_done);
	tcase_add_test(c, pages__are_not_good_for_an_open_of_before_the_write);
	tcase_add_test(c, pages__are_dropped_at_the_next_open_if_this_one_failed);
	suite_add_tcase(s, c);
	return test_run(s);
}
