/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_split.c - which files are taken for the parts of one image, and that they are read and written as one.
 *
 * The truth is a plain array of bytes: what the parts hold, one after the other. */
#include "config.h"

#include "cryptfuse/image.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/volume/parts.h"
#include "cryptfuse/err.h"
#include "run.h"
#include "test_backing.h"
#include "test_image.h"

static struct cf_err err;

/* ---- several backings as one ---- */

/* Lengths of the parts: none a multiple of 512 but by chance, one of them empty. */
static const uint64_t lengths[] = {1000, 512, 1, 0, 4096, 700};
#define N_PARTS CF_ARRAY_LEN(lengths)
#define TOTAL (1000u + 512u + 1u + 0u + 4096u + 700u)

static struct test_backing *part[N_PARTS];
static struct cf_backing *whole;
static uint8_t model[TOTAL];

static void setup(void)
{
	struct cf_backing *b[N_PARTS];
	err = (struct cf_err){.code = 0};
	for (unsigned i = 0; i < TOTAL; i++)
		model[i] = (uint8_t)(i * 7 + i / 251);
	for (unsigned i = 0, at = 0; i < N_PARTS; at += (unsigned)lengths[i++]) {
		part[i] = test_backing_new(lengths[i], 1);
		part[i]->base.discard_granule = 1; /* a file zeroes what it cannot punch */
		b[i] = &part[i]->base;
		memcpy(part[i]->data, model + at, lengths[i]);
	}
	ck_assert_int_eq(cf_backing_join(&whole, b, N_PARTS, &err), 0);
}

static void teardown(void)
{
	cf_backing_free(&whole);
}

static void assert_as_model(void)
{
	for (unsigned i = 0, at = 0; i < N_PARTS; at += (unsigned)lengths[i++])
		ck_assert_mem_eq(part[i]->data, model + at, lengths[i]);
}

START_TEST(join__is_as_long_as_its_parts)
{
	ck_assert_uint_eq(whole->bytes, TOTAL);
	ck_assert_uint_eq(whole->granule, 1);
	ck_assert_int_eq(whole->access, part[0]->base.access);
	ck_assert_str_eq(whole->ops->name, "split image");
}
END_TEST

/* Every start, and lengths that end before, on and behind each border. */
/* A sparse file is as long as its maker likes; the sum must not wrap to something short. */
START_TEST(join__of_more_bytes_than_a_file_can_have_is_refused)
{
	static const uint64_t longest[] = {INT64_MAX, INT64_MAX, 2};
	struct cf_backing *b[3], *out = NULL;
	for (unsigned i = 0; i < 3; i++) {
		b[i] = &test_backing_new(1, 1)->base;
		b[i]->bytes = longest[i];
	}
	ck_assert_int_eq(cf_backing_join(&out, b, 3, &err), -EFBIG);
	ck_assert_int_eq(cf_backing_join(&out, b + 1, 2, &err), -EFBIG);
	ck_assert_ptr_null(out);
	b[1]->bytes = INT64_MAX - 2;
	ck_assert_int_eq(cf_backing_join(&out, b + 1, 2, &err), 0);
	ck_assert_uint_eq(out->bytes, INT64_MAX);
	cf_backing_free(&out);
	cf_backing_free(&b[0]);
}
END_TEST

START_TEST(join__reads_over_every_border)
{
	static const size_t len[] = {1, 2, 511, 512, 513, 1513, TOTAL};
	uint8_t got[TOTAL];
	for (size_t i = 0; i < CF_ARRAY_LEN(len); i++)
		for (uint64_t off = 0; off + len[i] <= TOTAL; off++) {
			memset(got, 0xee, sizeof(got));
			ck_assert_int_eq(cf_backing_read_full(whole, got, len[i], off), 0);
			ck_assert_mem_eq(got, model + off, len[i]);
		}
}
END_TEST

START_TEST(join__writes_over_every_border_and_nothing_else)
{
	static const size_t len[] = {1, 3, 513, 1514};
	uint8_t in[TOTAL];
	size_t written;
	for (size_t i = 0; i < CF_ARRAY_LEN(len); i++)
		for (uint64_t off = 0; off + len[i] <= TOTAL; off += 1 + off % 3) {
			memset(in, (int)(off * 3 + i), len[i]);
			ck_assert_int_eq(cf_backing_write_full(whole, in, len[i], off, &written), 0);
			ck_assert_uint_eq(written, len[i]);
			memcpy(model + off, in, len[i]);
			assert_as_model();
		}
}
END_TEST

START_TEST(join__reads_nothing_at_the_end)
{
	uint8_t byte;
	ck_assert_int_eq(whole->ops->pread(whole, &byte, 1, TOTAL - 1), 1);
	ck_assert_int_eq(whole->ops->pread(whole, &byte, 1, TOTAL), 0);
	ck_assert_int_eq(whole->ops->pread(whole, &byte, 1, UINT64_MAX), 0);
}
END_TEST

/* A part that became shorter is an error, not the next part's bytes. */
START_TEST(join__a_part_that_ends_early_is_eio)
{
	uint8_t got[1100];
	part[0]->read_fault = (struct test_fault){.code = 0, .after_bytes = 500, .n_calls = TEST_FOREVER};
	ck_assert_int_eq(cf_backing_read_full(whole, got, sizeof(got), 0), -EIO);
}
END_TEST

START_TEST(join__an_error_of_a_part_is_passed_on)
{
	uint8_t buf[1600] = {0};
	size_t written;
	part[1]->write_fault = (struct test_fault){.code = -ENOSPC, .n_calls = TEST_FOREVER};
	ck_assert_int_eq(cf_backing_write_full(whole, buf, sizeof(buf), 0, &written), -ENOSPC);
	ck_assert_uint_eq(written, lengths[0]);
}
END_TEST

START_TEST(join__syncs_all_parts_though_one_fails)
{
	part[1]->sync_code = -EIO;
	ck_assert_int_eq(whole->ops->sync(whole), -EIO);
	for (unsigned i = 0; i < N_PARTS; i++)
		ck_assert_uint_eq(part[i]->n_syncs, 1);
	part[1]->sync_code = 0;
	ck_assert_int_eq(whole->ops->sync(whole), 0);
}
END_TEST

START_TEST(join__punches_in_every_part_it_touches)
{
	ck_assert_int_eq(whole->ops->punch(whole, 900, 800), 0);
	memset(model + 900, 0, 800);
	assert_as_model();
	ck_assert_uint_eq(part[0]->n_punches, 1);
	ck_assert_uint_eq(part[1]->n_punches, 1);
	ck_assert_uint_eq(part[2]->n_punches, 1);
	ck_assert_uint_eq(part[5]->n_punches, 0);
}
END_TEST

START_TEST(join__a_punch_is_refused_before_any_change_only)
{
	part[0]->punch_code = -EOPNOTSUPP;
	ck_assert_int_eq(whole->ops->punch(whole, 900, 800), -EOPNOTSUPP);
	assert_as_model();
	part[0]->punch_code = 0;
	part[1]->punch_code = -EOPNOTSUPP; /* too late to refuse: zeros are written instead */
	ck_assert_int_eq(whole->ops->punch(whole, 900, 5000), 0);
	memset(model + 900, 0, 5000);
	assert_as_model();
}
END_TEST

START_TEST(join__allocates_in_every_part_it_touches)
{
	ck_assert_int_eq(whole->ops->allocate(whole, 999, 2), 0);
	ck_assert_uint_eq(part[0]->n_allocates, 1);
	ck_assert_uint_eq(part[1]->n_allocates, 1);
	ck_assert_uint_eq(part[2]->n_allocates, 0);
	assert_as_model();
}
END_TEST

/* Holes at the end of part 0 and the start of part 1 are one hole; the end of a part alone is none. */
START_TEST(join__seeks_over_borders)
{
	static const struct {
		uint64_t off;
		enum cf_seek what;
		int64_t want;
	} seeks[] = {
		{0, CF_SEEK_DATA, 0},          {0, CF_SEEK_HOLE, 600},
		{600, CF_SEEK_HOLE, 600},      {600, CF_SEEK_DATA, 1100},
		{1000, CF_SEEK_HOLE, 1000},    {1100, CF_SEEK_DATA, 1100},
		{1100, CF_SEEK_HOLE, TOTAL},   {TOTAL, CF_SEEK_HOLE, -ENXIO},
		{TOTAL, CF_SEEK_DATA, -ENXIO}, {TOTAL - 1, CF_SEEK_HOLE, TOTAL},
	};
	part[0]->holes[0] = (struct test_hole){600, 1000};
	part[1]->holes[0] = (struct test_hole){0, 100};
	for (size_t i = 0; i < CF_ARRAY_LEN(seeks); i++)
		ck_assert_msg(whole->ops->seek(whole, seeks[i].off, seeks[i].what) == seeks[i].want, "seek %zu gave %lld", i,
					  (long long)whole->ops->seek(whole, seeks[i].off, seeks[i].what));
}
END_TEST

/* ---- the names of parts ---- */

static struct test_image img;

static void setup_dir(void)
{
	test_image_make(&img, 4096);
	err = (struct cf_err){.code = 0};
}

static void path_of(char *path, size_t size, const char *name)
{
	snprintf(path, size, "%s/%s", img.dir, name);
}

/* Files of these names, with blanks between; each is as long as its place says and holds its number. */
static void each_name(const char *names, void (*visit)(const char *path, unsigned i))
{
	char copy[512], path[256], *save = NULL;
	unsigned i = 0;
	snprintf(copy, sizeof(copy), "%s", names);
	for (char *name = strtok_r(copy, " ", &save); name; name = strtok_r(NULL, " ", &save), i++) {
		path_of(path, sizeof(path), name);
		visit(path, i);
	}
}

static void make_part(const char *path, unsigned i)
{
	uint8_t bytes[1000];
	memset(bytes, (int)i + 1, sizeof(bytes));
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ck_assert_int_eq(write(fd, bytes, 100 + i), 100 + i);
	close(fd);
}

static void remove_part(const char *path, unsigned i)
{
	(void)i;
	unlink(path);
}

static const struct {
	const char *files, *open;
	unsigned n;
	uint64_t bytes;
	int code;
	const char *says;
} names[] = {
	{"d.001 d.002 d.003", "d.001", 3, 303, 0, ""},
	{"d.000 d.001", "d.000", 2, 201, 0, ""},
	{"d.00001 d.00002", "d.00001", 2, 201, 0, ""},
	{"d.aa d.ab", "d.aa", 2, 201, 0, ""},
	{"xaa xab", "xaa", 2, 201, 0, ""},
	{"x00 x01", "x00", 2, 201, 0, ""},
	{"d.00 d.01", "d.00", 2, 201, 0, ""},
	{"d.aaa d.aab", "d.aaa", 2, 201, 0, ""},
	{"d.008 d.009 d.010", "d.010", 1, 102, 0, ""},
	{"d.az d.ba", "d.az", 1, 100, 0, ""},
	/* alone, or no part at all */
	{"d.001", "d.001", 1, 100, 0, ""},
	{"d.aa d.dd", "d.dd", 1, 101, 0, ""},
	{"d.01 d.02", "d.01", 1, 100, 0, ""},
	{"d.0 d.1", "d.0", 1, 100, 0, ""},
	{"d001 d002", "d001", 1, 100, 0, ""},
	{".001 .002", ".001", 1, 100, 0, ""},
	{"aa ab", "aa", 1, 100, 0, ""},
	{"d.001 d.2024", "d.2024", 1, 101, 0, ""},
	{"d.0000000001 d.0000000002", "d.0000000001", 1, 100, 0, ""},
	/* not whole */
	{"d.001 d.002 d.004", "d.001", 0, 0, -ENODEV, "d.003 is missing: d.004 is there"},
	{"d.001 d.200", "d.001", 0, 0, -ENODEV, "d.002 is missing: d.200 is there"},
	{"d.002 d.003", "d.001", 0, 0, -ENODEV, "d.001 is missing: d.002 is there"},
	{"d.002 d.003", "d.002", 0, 0, -ENODEV, "d.001 is missing: d.002 is there"},
	{"d.ab d.ac", "d.aa", 0, 0, -ENODEV, "d.aa is missing: d.ab is there"},
	{"d.aa d.ac", "d.aa", 0, 0, -ENODEV, "d.ab is missing: d.ac is there"},
	{"d.001 d.002 d.003", "d.002", 0, 0, -EINVAL, "name its first part"},
	{"d.002", "d.001", 0, 0, -ENODEV, "d.001 is missing: d.002 is there"},
	{"d.007", "d.001", 0, 0, -ENODEV, "d.001 is missing: d.007 is there"},
	{"e", "d.001", 0, 0, -ENODEV, "cannot open"},
};

START_TEST(image__parts_are_found_by_name)
{
	char path[256];
	struct cf_image image;
	each_name(names[_i].files, make_part);
	path_of(path, sizeof(path), names[_i].open);
	int rc = cf_image_open(&image, path, CF_READ_ONLY, CF_LOCK, &err);
	ck_assert_msg(rc == names[_i].code, "%s of %s: %d %s", names[_i].open, names[_i].files, rc, err.text);
	ck_assert_msg(strstr(err.text, names[_i].says), "%s", err.text);
	ck_assert_uint_eq(image.n_parts, names[_i].n);
	if (rc == 0) {
		CF_CLEANUP(cf_backing_free) struct cf_backing *b = NULL;
		ck_assert_int_eq(cf_image_backing(&image, &b, &err), 0);
		ck_assert_uint_eq(b->bytes, names[_i].bytes);
	}
	cf_image_close(&image);
	each_name(names[_i].files, remove_part);
	test_image_remove(&img);
}
END_TEST

static const char three[] = "d.001 d.002 d.003";

START_TEST(image__parts_are_read_in_order)
{
	char path[256];
	uint8_t got[303];
	struct cf_image image;
	struct cf_backing *b = NULL;
	each_name(three, make_part);
	path_of(path, sizeof(path), "d.001");
	ck_assert_int_eq(cf_image_open(&image, path, CF_READ_WRITE, CF_LOCK, &err), 0);
	ck_assert_int_eq(cf_image_backing(&image, &b, &err), 0);
	cf_image_close(&image); /* the backing has descriptors of its own */
	ck_assert_int_eq(cf_backing_read_full(b, got, sizeof(got), 0), 0);
	for (unsigned i = 0; i < sizeof(got); i++)
		ck_assert_uint_eq(got[i], i < 100 ? 1 : i < 201 ? 2 : 3);
	cf_backing_free(&b);
	each_name(three, remove_part);
	test_image_remove(&img);
}
END_TEST

/* Whoever has one part has the image. */
START_TEST(image__every_part_is_locked)
{
	char path[256], last[256];
	struct cf_image image, other;
	int fd = -1;
	each_name(three, make_part);
	path_of(path, sizeof(path), "d.001");
	path_of(last, sizeof(last), "d.003");
	ck_assert_int_eq(cf_backing_open_fd(last, CF_READ_WRITE, CF_LOCK, &fd, &err), 0);
	ck_assert_int_eq(cf_image_open(&image, path, CF_READ_WRITE, CF_LOCK, &err), -EBUSY);
	ck_assert_ptr_nonnull(strstr(err.text, "d.003"));
	ck_assert_uint_eq(image.n_parts, 0);
	close(fd);
	err.code = 0;
	ck_assert_int_eq(cf_image_open(&image, path, CF_READ_WRITE, CF_LOCK, &err), 0); /* nothing stayed open */
	ck_assert_int_eq(cf_image_open(&other, path, CF_READ_ONLY, CF_LOCK, &err), -EBUSY);
	cf_image_close(&image);
	each_name(three, remove_part);
	test_image_remove(&img);
}
END_TEST

START_TEST(image__a_part_must_be_a_file)
{
	char path[256], second[256];
	struct cf_image image;
	each_name("d.001", make_part);
	path_of(path, sizeof(path), "d.001");
	path_of(second, sizeof(second), "d.002");
	ck_assert_int_eq(mkdir(second, 0700), 0);
	ck_assert_int_eq(cf_image_open(&image, path, CF_READ_ONLY, CF_LOCK, &err), -ENODEV);
	ck_assert_ptr_nonnull(strstr(err.text, "d.002"));
	rmdir(second);
	each_name("d.001", remove_part);
	test_image_remove(&img);
}
END_TEST

static void make_many(unsigned n)
{
	char name[16], path[256];
	for (unsigned i = 1; i <= n; i++) {
		snprintf(name, sizeof(name), "d.%03u", i);
		path_of(path, sizeof(path), name);
		make_part(path, 0);
	}
}

START_TEST(image__has_a_limit_to_its_parts)
{
	char path[256], name[16];
	struct cf_image image;
	make_many(CF_IMAGE_PARTS_MAX);
	path_of(path, sizeof(path), "d.001");
	ck_assert_int_eq(cf_image_open(&image, path, CF_READ_ONLY, CF_LOCK, &err), 0);
	ck_assert_uint_eq(image.n_parts, CF_IMAGE_PARTS_MAX);
	cf_image_close(&image);
	make_many(CF_IMAGE_PARTS_MAX + 1);
	ck_assert_int_eq(cf_image_open(&image, path, CF_READ_ONLY, CF_LOCK, &err), -E2BIG);
	for (unsigned i = 1; i <= CF_IMAGE_PARTS_MAX + 1; i++) {
		snprintf(name, sizeof(name), "d.%03u", i);
		path_of(path, sizeof(path), name);
		unlink(path);
	}
	test_image_remove(&img);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("split");
	TCase *join = tcase_create("join"), *image = tcase_create("image");
	tcase_add_checked_fixture(join, setup, teardown);
	tcase_add_test(join, join__is_as_long_as_its_parts);
	tcase_add_test(join, join__of_more_bytes_than_a_file_can_have_is_refused);
	tcase_add_test(join, join__reads_over_every_border);
	tcase_add_test(join, join__writes_over_every_border_and_nothing_else);
	tcase_add_test(join, join__reads_nothing_at_the_end);
	tcase_add_test(join, join__a_part_that_ends_early_is_eio);
	tcase_add_test(join, join__an_error_of_a_part_is_passed_on);
	tcase_add_test(join, join__syncs_all_parts_though_one_fails);
	tcase_add_test(join, join__punches_in_every_part_it_touches);
	tcase_add_test(join, join__a_punch_is_refused_before_any_change_only);
	tcase_add_test(join, join__allocates_in_every_part_it_touches);
	tcase_add_test(join, join__seeks_over_borders);
	suite_add_tcase(s, join);
	tcase_add_checked_fixture(image, setup_dir, NULL);
	tcase_add_loop_test(image, image__parts_are_found_by_name, 0, CF_ARRAY_LEN(names));
	tcase_add_test(image, image__parts_are_read_in_order);
	tcase_add_test(image, image__every_part_is_locked);
	tcase_add_test(image, image__a_part_must_be_a_file);
	tcase_add_test(image, image__has_a_limit_to_its_parts);
	suite_add_tcase(s, image);
	return test_run(s);
}
