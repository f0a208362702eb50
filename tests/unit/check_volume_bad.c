/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_volume_bad.c - a backing with sectors that cannot be read (HAZARDS 29), against a model: a data unit that
 * touches one is zeros, all others are what they are, and the list says exactly which, whatever was read in what order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/err.h"
#include "run.h"
#include "test_volume.h"

#define N_SECTORS 4096u
#define BYTES (N_SECTORS * 512u)
#define DATA_SECTOR 63u

static struct test_volume tv;
static uint8_t bad[DATA_SECTOR + N_SECTORS + 8];
static uint8_t want[BYTES], got[BYTES];
static struct cf_bad_range list[CF_BAD_MAX];

static void open_bad(uint32_t du_bytes, enum cf_bad_sectors policy)
{
	const struct test_shape shape = {.mode = "xts",
									 .du_bytes = du_bytes,
									 .data_off = DATA_SECTOR * 512,
									 .bytes = BYTES,
									 .access = CF_READ_ONLY,
									 .bad_sectors = policy};
	test_volume_open(&tv, &shape);
	test_volume_decrypt(&tv, want);
	memset(bad, 0, sizeof(bad));
	tv.t->unreadable = bad;
}

static bool du_is_bad(uint64_t off, uint32_t du_bytes)
{
	for (uint32_t s = 0; s < du_bytes / 512; s++)
		if (bad[DATA_SECTOR + off / 512 + s])
			return true;
	return false;
}

static void expect_zeros(uint32_t du_bytes)
{
	for (uint64_t off = 0; off < BYTES; off += du_bytes)
		if (du_is_bad(off, du_bytes))
			memset(want + off, 0, du_bytes);
}

static void read_some(uint64_t off, size_t len)
{
	ck_assert_int_eq(cf_volume_read(tv.v, tv.w, got, len, off), (ssize_t)len);
	ck_assert(memcmp(got, want + off, len) == 0);
}

/* All of it was read: the list is the model's, ascending, with adjoining ranges as one. */
static void check_list(uint32_t du_bytes)
{
	struct cf_bad_total total;
	uint64_t bytes = 0;
	const unsigned n = cf_volume_bad(tv.v, list, CF_BAD_MAX, &total);
	unsigned i = 0;
	for (uint64_t off = 0; off < BYTES; off += du_bytes) {
		if (!du_is_bad(off, du_bytes))
			continue;
		bytes += du_bytes;
		if (i < n && off >= list[i].off + list[i].bytes)
			i++;
		ck_assert_uint_lt(i, n);
		ck_assert(list[i].off <= off && off + du_bytes <= list[i].off + list[i].bytes);
	}
	for (i = 0; i < n; i++) {
		ck_assert_uint_eq(list[i].image_off, list[i].off + DATA_SECTOR * 512);
		ck_assert(i == 0 || list[i - 1].off + list[i - 1].bytes < list[i].off);
	}
	ck_assert_uint_eq(total.ranges, n);
	ck_assert_uint_eq(total.bytes, bytes);
	ck_assert(total.complete);
}

static const uint32_t du_sizes[] = {512, 4096, 65536};

START_TEST(bad__edges)
{
	const uint32_t du = du_sizes[_i];
	open_bad(du, CF_BAD_ZERO);
	bad[DATA_SECTOR - 1] = 1; /* in front of the volume: nothing of it */
	bad[DATA_SECTOR] = 1;
	bad[DATA_SECTOR + N_SECTORS / 2 - 1] = bad[DATA_SECTOR + N_SECTORS / 2] = 1;
	bad[DATA_SECTOR + N_SECTORS - 1] = 1;
	bad[DATA_SECTOR + N_SECTORS] = 1; /* behind it */
	expect_zeros(du);
	for (uint64_t off = 0; off < BYTES; off += 524288)
		read_some(off, 524288);
	check_list(du);
	test_volume_close(&tv);
}
END_TEST

/* Ranges that grow from either side, meet, are read again, in part and across. */
START_TEST(bad__random_reads_agree_with_the_model)
{
	uint64_t seed = (uint64_t)_i + 1;
	const uint32_t du = du_sizes[_i % 3];
	open_bad(du, CF_BAD_ZERO);
	for (unsigned k = 0; k < 300; k++)
		bad[DATA_SECTOR + test_random(&seed) % N_SECTORS] = 1;
	expect_zeros(du);
	for (unsigned k = 0; k < 400; k++) {
		const uint64_t off = test_random(&seed) % BYTES, left = BYTES - off;
		const uint64_t len = 1 + test_random(&seed) % 20000;
		read_some(off, (size_t)(len < left ? len : left));
	}
	for (uint64_t off = BYTES; off > 0; off -= 65536)
		read_some(off - 65536, 65536);
	check_list(du);
	test_volume_close(&tv);
}
END_TEST

START_TEST(bad__is_an_error_unless_asked_for)
{
	struct cf_bad_total total;
	open_bad(4096, CF_BAD_EIO);
	bad[DATA_SECTOR + 16] = 1;
	ck_assert_int_eq(cf_volume_read(tv.v, tv.w, got, 65536, 0), -EIO);
	ck_assert_int_eq(cf_volume_read(tv.v, tv.w, got, 4096, 8192), -EIO);
	read_some(0, 8192);
	ck_assert_uint_eq(cf_volume_bad(tv.v, list, CF_BAD_MAX, &total), 0);
	ck_assert_uint_eq(total.bytes, 0);
	test_volume_close(&tv);
}
END_TEST

/* Every other sector: as many ranges as can be remembered would be exceeded by a longer volume; half of them fit here.
 */
START_TEST(bad__list_is_cut_where_the_caller_has_no_more_room)
{
	struct cf_bad_total total;
	open_bad(512, CF_BAD_ZERO);
	for (unsigned s = 0; s < N_SECTORS; s += 2)
		bad[DATA_SECTOR + s] = 1;
	expect_zeros(512);
	for (uint64_t off = 0; off < BYTES; off += 65536)
		read_some(off, 65536);
	check_list(512);
	ck_assert_uint_eq(cf_volume_bad(tv.v, list, 10, &total), 10);
	ck_assert_uint_eq(total.ranges, N_SECTORS / 2);
	ck_assert_uint_eq(list[9].off, 18 * 512);
	test_volume_close(&tv);
}
END_TEST

/* More ranges than are remembered: all the same zeros, the first ones listed, and said to be incomplete. */
START_TEST(bad__too_many_ranges)
{
	enum { MANY = 2 * CF_BAD_MAX + 4 };
	static uint8_t flags[MANY];
	uint8_t buf[512];
	struct cf_bad_total total;
	const struct test_shape shape = {.mode = "xts",
									 .du_bytes = 512,
									 .bytes = (uint64_t)MANY * 512,
									 .access = CF_READ_ONLY,
									 .bad_sectors = CF_BAD_ZERO};
	test_volume_open(&tv, &shape);
	memset(flags, 0, sizeof(flags));
	for (unsigned s = 0; s < MANY; s += 2)
		flags[s] = 1;
	tv.t->unreadable = flags;
	for (unsigned s = 0; s < MANY; s++) {
		ck_assert_int_eq(cf_volume_read(tv.v, tv.w, buf, 512, (uint64_t)s * 512), 512);
		ck_assert((buf[0] == 0 && memcmp(buf, buf + 1, 511) == 0) == (s % 2 == 0));
	}
	ck_assert_uint_eq(cf_volume_bad(tv.v, list, CF_BAD_MAX, &total), CF_BAD_MAX);
	ck_assert(!total.complete);
	ck_assert_uint_eq(total.bytes, (uint64_t)CF_BAD_MAX * 512);
	test_volume_close(&tv);
}
END_TEST

START_TEST(bad__zeros_are_for_reading_only)
{
	struct cf_volume *v = NULL;
	struct cf_err err = {0};
	struct cf_cipher *c = test_cipher("xts", "plain64", 512, 1);
	struct cf_backing *b = &test_backing_new(65536, 1)->base;
	const struct cf_volume_opts o = {
		.bytes = 65536, .access = CF_READ_WRITE, .bad_sectors = CF_BAD_ZERO, .n_workers = 1};
	ck_assert_int_eq(cf_volume_new(&v, &b, &c, &o, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "only for reading"));
	cf_cipher_free(&c);
	cf_backing_free(&b);
}
END_TEST

int main(void)
{
	test_one_arena();
	Suite *s = suite_create("volume_bad");
	TCase *t = tcase_create("bad");
	suite_add_tcase(s, t);
	tcase_add_loop_test(t, bad__edges, 0, (int)CF_ARRAY_LEN(du_sizes));
	tcase_add_loop_test(t, bad__random_reads_agree_with_the_model, 0, 12);
	tcase_add_test(t, bad__is_an_error_unless_asked_for);
	tcase_add_test(t, bad__list_is_cut_where_the_caller_has_no_more_room);
	tcase_add_test(t, bad__too_many_ranges);
	tcase_add_test(t, bad__zeros_are_for_reading_only);
	return test_run(s);
}
