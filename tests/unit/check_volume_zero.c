/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_volume_zero.c - zeroing, discards, holes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/secret.h"
#include "run.h"
#include "test_volume.h"

#define ODD_OFF (63u * 512u)
#define BYTES (8u * 65536u)

struct zero_case {
	uint32_t du_bytes, discard_granule;
	uint64_t data_off;
	bool alignable; /* can a whole DU lie on discard granules? */
};

static const struct zero_case cases[] = {
	{512, 512, 0, true},           {512, 512, ODD_OFF, true},   {512, 4096, 0, true},
	{512, 4096, 4096, true},       {512, 4096, ODD_OFF, true},  {4096, 512, ODD_OFF, true},
	{4096, 4096, ODD_OFF, false},  {65536, 512, ODD_OFF, true}, {65536, 4096, 8192, true},
	{65536, 4096, ODD_OFF, false}, {4096, 65536, 8192, true},   {65536, 65536, 65536, true},
};

static struct test_volume tv;
static uint8_t *model, *found, *backing_before;

static void setup(void)
{
	ck_assert_int_eq(cf_secret_init(NULL), 0);
	model = malloc(BYTES);
	found = malloc(BYTES);
	ck_assert(model && found);
}

static void teardown(void)
{
	test_volume_close(&tv);
	free(model);
	free(found);
	free(backing_before);
	cf_secret_fini();
}

static void open_case(const struct zero_case *c, enum cf_discards discards)
{
	const struct test_shape shape = {
		.mode = "cbc",
		.du_bytes = c->du_bytes,
		.data_off = c->data_off,
		.bytes = BYTES,
		.access = CF_READ_WRITE,
		.discards = discards,
	};
	test_volume_open(&tv, &shape);
	tv.t->base.discard_granule = c->discard_granule;
	test_volume_decrypt(&tv, model);
	backing_before = malloc(tv.t->base.bytes);
	memcpy(backing_before, tv.t->data, tv.t->base.bytes);
}

static void check_volume_reads(void)
{
	ck_assert_int_eq(cf_volume_read(tv.v, tv.w, found, BYTES, 0), BYTES);
	ck_assert_mem_eq(found, model, BYTES);
	uint64_t end = tv.shape.data_off + BYTES;
	ck_assert_mem_eq(tv.t->data, backing_before, tv.shape.data_off);
	ck_assert_mem_eq(tv.t->data + end, backing_before + end, tv.t->base.bytes - end);
}

static struct cf_volume_stats stats(void)
{
	struct cf_volume_stats s;
	cf_volume_stats(tv.v, &s);
	return s;
}

static const struct {
	uint64_t off, len;
} ranges[] = {
	{0, 1},
	{0, 512},
	{1, 511},
	{1, 513},
	{511, 2},
	{4095, 8194},
	{0, 65536},
	{65535, 65538},
	{65537, 2 * 65536},
	{1, BYTES - 2},
	{0, BYTES},
	{BYTES - 1, 1},
	{BYTES - 65537, 65537},
	{12345, 300000},
};

START_TEST(zero__writes_encrypted_zeros)
{
	open_case(&cases[_i], CF_DISCARDS_REFUSED);
	for (size_t i = 0; i < CF_ARRAY_LEN(ranges); i++) {
		ck_assert_int_eq(cf_volume_zero(tv.v, tv.w, ranges[i].off, ranges[i].len), 0);
		memset(model + ranges[i].off, 0, ranges[i].len);
		check_volume_reads();
		test_volume_decrypt(&tv, found); /* what dm-crypt would read */
		ck_assert_mem_eq(found, model, BYTES);
	}
	ck_assert_uint_eq(tv.t->n_punches, 0);
}
END_TEST

START_TEST(punch__without_discards_is_refused_before_any_change)
{
	open_case(&cases[_i], CF_DISCARDS_REFUSED);
	for (size_t i = 0; i < CF_ARRAY_LEN(ranges); i++)
		ck_assert_int_eq(cf_volume_punch(tv.v, tv.w, ranges[i].off, ranges[i].len), -EOPNOTSUPP);
	ck_assert_uint_eq(tv.t->n_punches + tv.t->n_writes, 0);
	check_volume_reads();
}
END_TEST

/* The whole DUs inside a range that also begin and end on granules, one by one. */
static void expected_punch(uint64_t off, uint64_t len, uint64_t *from, uint64_t *to)
{
	uint64_t du = tv.shape.du_bytes, granule = tv.t->base.discard_granule, step = du > granule ? du : granule;
	*from = *to = 0;
	for (uint64_t at = 0; at + du <= BYTES; at += du) {
		uint64_t end = at + step;
		if (at < off || end > off + len || (tv.shape.data_off + at) % granule)
			continue;
		*from = *to ? *from : at;
		*to = end;
	}
}

START_TEST(punch__discards_the_middle_and_zeroes_the_edges)
{
	open_case(&cases[_i], CF_DISCARDS_ALLOWED);
	for (size_t i = 0; i < CF_ARRAY_LEN(ranges); i++) {
		uint64_t off = ranges[i].off, len = ranges[i].len, from, to;
		uint64_t punches = tv.t->n_punches, punched = stats().punched_bytes;
		int rc = cf_volume_punch(tv.v, tv.w, off, len);
		expected_punch(off, len, &from, &to);
		if (!cases[_i].alignable) {
			ck_assert_int_eq(rc, -EOPNOTSUPP);
			ck_assert_uint_eq(tv.t->n_writes, 0);
			continue;
		}
		ck_assert_int_eq(rc, 0);
		memset(model + off, 0, len);
		check_volume_reads();
		ck_assert_uint_eq(tv.t->n_punches - punches, to > from);
		ck_assert_uint_eq(stats().punched_bytes - punched, to - from);
		if (to > from) {
			ck_assert_uint_eq(tv.t->punched_off, tv.shape.data_off + from);
			ck_assert_uint_eq(tv.t->punched_len, to - from);
		}
	}
}
END_TEST

START_TEST(punch__the_backing_cannot_is_refused_before_any_change)
{
	open_case(&cases[0], CF_DISCARDS_ALLOWED);
	tv.t->punch_code = -EOPNOTSUPP;
	ck_assert_int_eq(cf_volume_punch(tv.v, tv.w, 1, BYTES - 2), -EOPNOTSUPP);
	ck_assert_uint_eq(tv.t->n_writes, 0);
	check_volume_reads();
}
END_TEST

START_TEST(punch__is_clipped_at_the_end)
{
	open_case(&cases[_i], CF_DISCARDS_ALLOWED);
	if (!cases[_i].alignable)
		return;
	ck_assert_int_eq(cf_volume_punch(tv.v, tv.w, BYTES - 70000, UINT64_MAX), 0);
	memset(model + BYTES - 70000, 0, 70000);
	check_volume_reads();
	const uint64_t behind[] = {BYTES, BYTES + 1, UINT64_C(1) << 32, UINT64_C(1) << 63, UINT64_MAX};
	uint64_t calls = tv.t->n_punches + tv.t->n_writes;
	for (size_t i = 0; i < CF_ARRAY_LEN(behind); i++)
		ck_assert_int_eq(cf_volume_punch(tv.v, tv.w, behind[i], UINT64_MAX), 0);
	ck_assert_uint_eq(tv.t->n_punches + tv.t->n_writes, calls);
}
END_TEST

/* ---- a DU of zero ciphertext ---- */

START_TEST(zero_ciphertext__is_noise_unless_discards_are_allowed)
{
	const uint64_t du = cases[_i].du_bytes;
	open_case(&cases[_i], _i % 2 ? CF_DISCARDS_ALLOWED : CF_DISCARDS_REFUSED);
	memset(tv.t->data + tv.shape.data_off + du, 0, du);
	if (_i % 2)
		memset(model + du, 0, du);
	else
		test_volume_decrypt(&tv, model);
	check_volume_reads();
}
END_TEST

START_TEST(write__into_a_punched_unit_leaves_the_rest_of_it_zero)
{
	const uint64_t du = cases[_i].du_bytes;
	open_case(&cases[_i], CF_DISCARDS_ALLOWED);
	memset(tv.t->data + tv.shape.data_off + du, 0, du);
	memset(model + du, 0, du);
	ck_assert_int_eq(cf_volume_write(tv.v, tv.w, (const uint8_t *)"hello", 5, du + 100), 5);
	memcpy(model + du + 100, "hello", 5);
	check_volume_reads();
	test_volume_decrypt(&tv, found);
	ck_assert_mem_eq(found + du, model + du, du); /* dm-crypt would read the same */
}
END_TEST

/* ---- seek ---- */

START_TEST(seek__without_discards_is_all_data)
{
	open_case(&cases[_i], CF_DISCARDS_REFUSED);
	tv.t->holes[0] = (struct test_hole){0, tv.t->base.bytes};
	for (uint64_t off = 0; off < BYTES; off += 32767) {
		ck_assert_int_eq(cf_volume_seek(tv.v, off, CF_SEEK_DATA), (int64_t)off);
		ck_assert_int_eq(cf_volume_seek(tv.v, off, CF_SEEK_HOLE), BYTES);
	}
}
END_TEST

/* Does the DU that holds @off lie in a hole of the backing, all of it? */
static bool is_hole(uint64_t off)
{
	uint64_t from = tv.shape.data_off + off / tv.shape.du_bytes * tv.shape.du_bytes, to = from + tv.shape.du_bytes;
	for (const struct test_hole *h = tv.t->holes; h->to; h++)
		if (from >= h->from && to <= h->to)
			return true;
	return false;
}

static int64_t expected_seek(uint64_t off, enum cf_seek what)
{
	for (; off < BYTES; off = (off / 512 + 1) * 512)
		if (is_hole(off) == (what == CF_SEEK_HOLE))
			return (int64_t)off;
	return what == CF_SEEK_HOLE ? (int64_t)BYTES : -ENXIO;
}

static const struct test_hole holes[][4] = {
	{{0, 0}},
	{{0, 2 * BYTES}},
	{{0, 4096}},
	{{ODD_OFF, ODD_OFF + 65536}},
	{{65536, 131072}, {131584, 200704}, {262144, 2 * BYTES}},
	{{4096, 8192}, {12288, 16384 + 65536}, {BYTES - 4096, BYTES}},
	{{1024, 1536}, {2048, 4096 + 512}, {300000 / 512 * 512, BYTES - 512}},
};

START_TEST(seek__with_discards_sees_whole_units_only)
{
	open_case(&cases[(size_t)_i / CF_ARRAY_LEN(holes)], CF_DISCARDS_ALLOWED);
	memcpy(tv.t->holes, holes[(size_t)_i % CF_ARRAY_LEN(holes)], sizeof(tv.t->holes));
	for (uint64_t off = 0; off < BYTES; off += off % 512 == 511 ? 1 : 510)
		for (int what = CF_SEEK_DATA; what <= CF_SEEK_HOLE; what++)
			ck_assert_int_eq(cf_volume_seek(tv.v, off, (enum cf_seek)what), expected_seek(off, (enum cf_seek)what));
}
END_TEST

int main(void)
{
	const int n = (int)CF_ARRAY_LEN(cases);
	Suite *s = suite_create("zeroing");
	TCase *t = tcase_create("zeroing");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, zero__writes_encrypted_zeros, 0, n);
	tcase_add_loop_test(t, punch__without_discards_is_refused_before_any_change, 0, n);
	tcase_add_loop_test(t, punch__discards_the_middle_and_zeroes_the_edges, 0, n);
	tcase_add_test(t, punch__the_backing_cannot_is_refused_before_any_change);
	tcase_add_loop_test(t, punch__is_clipped_at_the_end, 0, n);
	tcase_add_loop_test(t, zero_ciphertext__is_noise_unless_discards_are_allowed, 0, n);
	tcase_add_loop_test(t, write__into_a_punched_unit_leaves_the_rest_of_it_zero, 0, n);
	tcase_add_loop_test(t, seek__without_discards_is_all_data, 0, n);
	tcase_add_loop_test(t, seek__with_discards_sees_whole_units_only, 0, n * (int)CF_ARRAY_LEN(holes));
	suite_add_tcase(s, t);
	return test_run(s);
}
