/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_units.c - arithmetic and numbers. What cryptsetup 2.6.1 took and refused for --device-size is the truth for
 * sizes. */
#include "cryptfuse/units.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "run.h"

START_TEST(du_valid__only_powers_of_two_from_512_to_65536)
{
	size_t n = 0;
	for (uint64_t du = 0; du <= 1u << 20; du++)
		n += cf_units_du_valid(du);
	ck_assert_uint_eq(n, 8);
	for (uint64_t du = 512; du <= 65536; du *= 2)
		ck_assert(cf_units_du_valid(du));
	ck_assert(!cf_units_du_valid((UINT64_C(1) << 32) + 512));
	ck_assert(!cf_units_du_valid(UINT64_MAX));
}
END_TEST

START_TEST(s0__counts_sectors_and_wraps_at_2_64)
{
	ck_assert_uint_eq(cf_units_s0(0, 512, 7), 7);
	ck_assert_uint_eq(cf_units_s0(3, 512, 0), 3);
	ck_assert_uint_eq(cf_units_s0(3, 4096, 16), 40);
	ck_assert_uint_eq(cf_units_s0(1, 65536, UINT64_MAX - 127), 0);
	ck_assert_uint_eq(cf_units_s0(2, 512, UINT64_MAX), 1);
}
END_TEST

START_TEST(iv_sector__shifts_only_large_sectors)
{
	ck_assert_uint_eq(cf_units_iv_sector(40, 4096, CF_IV_SECTORS), 40);
	ck_assert_uint_eq(cf_units_iv_sector(40, 4096, CF_IV_LARGE_SECTORS), 5);
	ck_assert_uint_eq(cf_units_iv_sector(40, 512, CF_IV_LARGE_SECTORS), 40);
	ck_assert_uint_eq(cf_units_iv_sector(256, 65536, CF_IV_LARGE_SECTORS), 2);
}
END_TEST

START_TEST(round__to_multiples)
{
	ck_assert_uint_eq(cf_units_round_down(4095, 4096), 0);
	ck_assert_uint_eq(cf_units_round_down(4096, 4096), 4096);
	ck_assert_uint_eq(cf_units_round_down(UINT64_MAX, 512), UINT64_MAX - 511);
	ck_assert_uint_eq(cf_units_round_up(0, 4096), 0);
	ck_assert_uint_eq(cf_units_round_up(1, 4096), 4096);
	ck_assert_uint_eq(cf_units_round_up(4097, 4096), 8192);
}
END_TEST

static const struct {
	const char *text;
	uint64_t max;
	int rc;
	uint64_t value;
} numbers[] = {
	{"0", 10, 0, 0},
	{"10", 10, 0, 10},
	{"11", 10, -ERANGE, 0},
	{"0000000000000000000000000000007", UINT64_MAX, 0, 7},
	{"18446744073709551615", UINT64_MAX, 0, UINT64_MAX},
	{"18446744073709551616", UINT64_MAX, -ERANGE, 0},
	{"184467440737095516150", UINT64_MAX, -ERANGE, 0},
	{"4294967296", UINT32_MAX, -ERANGE, 0},
	{"", 10, -EINVAL, 0},
	{"-1", UINT64_MAX, -EINVAL, 0},
	{"+5", 10, -EINVAL, 0},
	{" 5", 10, -EINVAL, 0},
	{"5 ", 10, -EINVAL, 0},
	{"5x", 10, -EINVAL, 0},
	{"0x10", 100, -EINVAL, 0},
	{"99999999999999999999999x", 10, -EINVAL, 0},
};

START_TEST(parse_number__digits_only)
{
	uint64_t n = 4711;
	ck_assert_int_eq(cf_units_parse_number(numbers[_i].text, numbers[_i].max, &n), numbers[_i].rc);
	ck_assert_uint_eq(n, numbers[_i].rc ? 4711 : numbers[_i].value);
}
END_TEST

static const struct {
	const char *text;
	uint64_t bare_unit;
	int rc;
	uint64_t bytes;
} sizes[] = {
	{"512", 1, 0, 512},
	{"0512", 1, 0, 512},
	{"8", 512, 0, 4096},
	{"0", 1, 0, 0},
	{"2S", 1, 0, 1024},
	{"2s", 512, 0, 1024},
	{"1K", 1, 0, 1024},
	{"1k", 1, 0, 1024},
	{"1KiB", 512, 0, 1024},
	{"1kiB", 1, 0, 1024},
	{"1KB", 1, 0, 1000},
	{"1kB", 1, 0, 1000},
	{"3M", 1, 0, UINT64_C(3) << 20},
	{"3MB", 1, 0, 3000000},
	{"3G", 1, 0, UINT64_C(3) << 30},
	{"3GiB", 1, 0, UINT64_C(3) << 30},
	{"3GB", 1, 0, UINT64_C(3000000000)},
	{"1T", 1, 0, UINT64_C(1) << 40},
	{"1TB", 1, 0, UINT64_C(1000000000000)},
	{"9223372036854775807", 1, 0, INT64_MAX},
	{"9223372036854775808", 1, -ERANGE, 0},
	{"8388607T", 1, 0, UINT64_C(8388607) << 40},
	{"8388608T", 1, -ERANGE, 0},
	{"18014398509481984K", 1, -ERANGE, 0},
	{"18446744073709551616", 1, -ERANGE, 0},
	{"1kib", 1, -EINVAL, 0},
	{"1Kib", 1, -EINVAL, 0},
	{"1kb", 1, -EINVAL, 0},
	{"1Kb", 1, -EINVAL, 0},
	{"1P", 1, -EINVAL, 0},
	{"1PiB", 1, -EINVAL, 0},
	{"1B", 1, -EINVAL, 0},
	{"1e", 1, -EINVAL, 0},
	{"1KiBx", 1, -EINVAL, 0},
	{"1 K", 1, -EINVAL, 0},
	{"K", 1, -EINVAL, 0},
	{"", 1, -EINVAL, 0},
	{"+512", 1, -EINVAL, 0},
	{"-512", 1, -EINVAL, 0},
	{" 512", 1, -EINVAL, 0},
	{"0x200", 1, -EINVAL, 0},
};

START_TEST(parse_size__as_cryptsetup_takes_it)
{
	uint64_t n = 4711;
	ck_assert_int_eq(cf_units_parse_size(sizes[_i].text, sizes[_i].bare_unit, &n), sizes[_i].rc);
	ck_assert_uint_eq(n, sizes[_i].rc ? 4711 : sizes[_i].bytes);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("units");
	TCase *t = tcase_create("units");
	tcase_add_test(t, du_valid__only_powers_of_two_from_512_to_65536);
	tcase_add_test(t, s0__counts_sectors_and_wraps_at_2_64);
	tcase_add_test(t, iv_sector__shifts_only_large_sectors);
	tcase_add_test(t, round__to_multiples);
	tcase_add_loop_test(t, parse_number__digits_only, 0, (int)CF_ARRAY_LEN(numbers));
	tcase_add_loop_test(t, parse_size__as_cryptsetup_takes_it, 0, (int)CF_ARRAY_LEN(sizes));
	suite_add_tcase(s, t);
	return test_run(s);
}
