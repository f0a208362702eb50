/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_open_plan.c - where a volume lies, what a plan refuses, says and takes, tables from files and pipes, and the
 * volume that comes of it. Options against the real cryptsetup: check_open.c. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../core/open/plan.h"
#include "cryptfuse/volume.h"
#include "test_open.h"

/* ---- where a volume lies ---- */

#define MAX_SECTORS ((uint64_t)INT64_MAX / 512)
static const struct {
	struct cf_place place;
	int rc;
	uint64_t off, bytes;
	const char *says;
} places[] = {
	{{4096, 0, 0, 512, NULL}, 0, 0, 4096, NULL},
	{{4096 + 511, 0, 0, 512, NULL}, 0, 0, 4096, NULL},
	{{4096 + 511, 0, 0, 4096, NULL}, 0, 0, 4096, NULL},
	{{4096, 7, 0, 512, NULL}, 0, 3584, 512, NULL},
	{{4096, 8, 0, 512, NULL}, -EINVAL, 0, 0, "beyond the image"},
	{{511, 0, 0, 512, NULL}, -EINVAL, 0, 0, "beyond the image"},
	{{0, 0, 0, 512, NULL}, -EINVAL, 0, 0, "beyond the image"},
	{{1 << 20, 3, 0, 4096, NULL}, -EINVAL, 0, 0, "--device-size 1044480 would fit"},
	{{(1 << 20) + 512, 0, 0, 4096, NULL}, -EINVAL, 0, 0, "--device-size 1048576 would fit"},
	{{4096, 1, 0, 4096, NULL}, -EINVAL, 0, 0, "less than --sector-size 4096"},
	{{65536, 0, 0, 65536, NULL}, 0, 0, 65536, NULL},
	{{65535, 0, 0, 65536, NULL}, -EINVAL, 0, 0, "less than --sector-size 65536"},
	{{1 << 20, 3, 2040, 4096, NULL}, 0, 1536, 1044480, NULL},
	{{1 << 20, 3, 8, 4096, NULL}, 0, 1536, 4096, NULL},
	{{1 << 20, 0, 9, 4096, NULL}, -EINVAL, 0, 0, "not a multiple of --sector-size 4096"},
	{{1 << 20, 0, 2048, 512, NULL}, 0, 0, 1 << 20, NULL},
	{{1 << 20, 0, 2049, 512, NULL}, -EINVAL, 0, 0, "2049 sectors is beyond the image, which has 2048"},
	{{1 << 20, 1, 2048, 512, NULL}, -EINVAL, 0, 0, "2048 sectors is beyond the image, which has 2047"},
	{{1 << 20, 8, UINT64_MAX - 7, 512, NULL}, -EINVAL, 0, 0, "beyond the image"},
	{{4096, 8, 0, 512, "partition"}, -EINVAL, 0, 0, "beyond the partition"},
	{{1 << 20, UINT64_MAX, 0, 512, NULL}, -EINVAL, 0, 0, "beyond the image"},
	{{1 << 20, UINT64_C(1) << 55, 0, 512, NULL}, -EINVAL, 0, 0, "beyond the image"},
	{{INT64_MAX, 0, 0, 512, NULL}, 0, 0, MAX_SECTORS * 512, NULL},
	{{INT64_MAX, MAX_SECTORS - 1, 0, 512, NULL}, 0, (MAX_SECTORS - 1) * 512, 512, NULL},
};

START_TEST(place__is_resolved)
{
	struct cf_err err = {0};
	uint64_t off = 0, bytes = 0;
	ck_assert_msg(cf_place_resolve(&places[_i].place, &off, &bytes, &err) == places[_i].rc, "%s", err.text);
	ck_assert_uint_eq(off, places[_i].off);
	ck_assert_uint_eq(bytes, places[_i].bytes);
	if (places[_i].says)
		ck_assert_msg(strstr(err.text, places[_i].says) != NULL, "%s", err.text);
}
END_TEST

/* ---- plans ---- */

#define XTS .cipher = "aes-xts-plain64", .hash = "sha256", .key_bits = 512
static const struct {
	struct cf_open_opts opts;
	int rc;
	const char *says;
} refused[] = {
	{{XTS, .sector_size_bytes = 1000}, -EINVAL, "512 to 65536, a power of two"},
	{{XTS, .sector_size_bytes = 256}, -EINVAL, "512 to 65536, a power of two"},
	{{XTS, .sector_size_bytes = 131072}, -EINVAL, "512 to 65536, a power of two"},
	{{XTS, .sector_size_bytes = (UINT64_C(1) << 32) + 4096}, -EINVAL, "512 to 65536, a power of two"},
	{{XTS, .iv_large_sectors = true}, -EINVAL, "--iv-large-sectors"},
	{{XTS, .sector_size_bytes = 512, .iv_large_sectors = true}, -EINVAL, "--iv-large-sectors"},
	{{XTS, .sector_size_bytes = 4096, .skip_sectors = 4}, -EINVAL, "--skip 4"},
	{{.cipher = "aes-xts-plain64", .key_bits = 260}, -EINVAL, "multiple of 8"},
	{{.cipher = "aes-xts-plain64", .key_bits = CF_KEY_MAX * 8 + 8}, -EINVAL, "above 131072 bits"},
	{{.cipher = "aes-xts-plain64", .key_bits = (UINT64_C(1) << 32) + 512}, -EINVAL, "above 131072 bits"},
	{{XTS, .size_sectors = 8, .device_size_bytes = 4096}, -EINVAL, "together"},
	{{XTS, .device_size_bytes = 4097}, -EINVAL, "multiple of 512"},
	{{XTS, .device_size_bytes = UINT64_C(1) << 40}, -EINVAL, "beyond the image"},
	{{XTS, .offset_sectors = 8191, .size_sectors = 2}, -EINVAL, "beyond the image"},
	{{XTS, .sector_size_bytes = 4096, .offset_sectors = 3}, -EINVAL, "--device-size 4190208 would fit"},
	{{.cipher = "aes-xts-plain64", .hash = "nosuch"}, -EINVAL, "nosuch"},
	{{.cipher = "aes-xts-plain64", .hash = "sha256:0x10"}, -EINVAL, "decimal digits"},
	{{.cipher = "aes-xts", .hash = "sha256"}, -EINVAL, "IV mode"},
	{{.cipher = "nope-xts-plain64", .hash = "sha256"}, -ENODEV, "nope"},
	{{.cipher = "aes-xts-plain64", .key_bits = 128}, -ENODEV, "aes"},
	{{XTS, .engine = "0123456789012345678901234567890123456789012345678901234567890123"}, -EINVAL, "engine"},
};

START_TEST(plan__refuses_before_anybody_is_asked)
{
	struct cf_open_opts opts = refused[_i].opts;
	struct outcome o;
	opts.image = image;
	opts.access = CF_READ_WRITE;
	ck_assert_msg(run_plan(&opts, &o) == refused[_i].rc, "%d %s", o.err.code, o.err.text);
	ck_assert_msg(strstr(o.err.text, refused[_i].says) != NULL, "%s", o.err.text);
	ck_assert_str_eq(o.said.text, "");
}
END_TEST

START_TEST(plan__takes_any_offset_with_an_aligned_size)
{
	struct cf_open_opts opts = {.image = image, XTS, .sector_size_bytes = 4096, .offset_sectors = 3};
	for (int by_bytes = 0; by_bytes <= 1; by_bytes++) {
		CF_CLEANUP(outcome_fini) struct outcome o;
		opts.size_sectors = by_bytes ? 0 : 8184;
		opts.device_size_bytes = by_bytes ? 8184 * 512 : 0;
		ck_assert_msg(run_plan(&opts, &o) == 0, "%s", o.err.text);
		ck_assert_uint_eq(o.opening.plan.data_off, 1536);
		ck_assert_uint_eq(o.opening.plan.bytes, 8184 * 512);
		ck_assert_ptr_nonnull(strstr(o.said.text, "the last 2560 bytes of "));
	}
}
END_TEST

START_TEST(plan__reports_bytes_short_of_a_sector)
{
	const struct cf_open_opts opts = {.image = image, XTS};
	CF_CLEANUP(outcome_fini) struct outcome o;
	ck_assert_int_eq(truncate(image, IMAGE_BYTES + 100), 0);
	ck_assert_msg(run_plan(&opts, &o) == 0, "%s", o.err.text);
	ck_assert_uint_eq(o.opening.plan.bytes, IMAGE_BYTES);
	ck_assert_ptr_nonnull(strstr(o.said.text, "the last 100 bytes of "));
}
END_TEST

START_TEST(plan__counts_workers)
{
	const struct cf_open_opts opts = {.image = image, XTS};
	CF_CLEANUP(outcome_fini) struct outcome o;
	ck_assert_int_eq(run_plan(&opts, &o), 0);
	ck_assert_uint_eq(o.opening.plan.n_workers, CF_WORKERS_MAX);
	ck_assert_uint_ge(o.opening.plan.n_permits, 1);
	ck_assert_uint_le(o.opening.plan.n_permits, CF_WORKERS_MAX);
}
END_TEST

/* No more permits than CPUs that this process may use, and no more than threads. */
START_TEST(plan__counts_permits)
{
	cpu_set_t before, one;
	CPU_ZERO(&one);
	ck_assert_int_eq(sched_getaffinity(0, sizeof(before), &before), 0);
	for (unsigned cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
		if (CPU_ISSET(cpu, &before))
			CPU_SET(cpu, &one);
	for (unsigned threads = 1; threads <= CF_WORKERS_MAX; threads++) {
		const struct cf_open_opts opts = {.image = image, XTS, .threads = threads};
		CF_CLEANUP(outcome_fini) struct outcome all;
		ck_assert_int_eq(run_plan(&opts, &all), 0);
		const unsigned cpus = (unsigned)CPU_COUNT(&before);
		ck_assert_uint_eq(all.opening.plan.n_workers, threads);
		ck_assert_uint_eq(all.opening.plan.n_permits, threads < cpus ? threads : cpus);
		ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
		CF_CLEANUP(outcome_fini) struct outcome pinned;
		ck_assert_int_eq(run_plan(&opts, &pinned), 0);
		ck_assert_uint_eq(pinned.opening.plan.n_permits, 1);
		ck_assert_int_eq(sched_setaffinity(0, sizeof(before), &before), 0);
	}
}
END_TEST

static const struct {
	struct cf_open_opts opts;
	const char *says[2]; /* NULL: nothing */
} notes[] = {
	{{XTS}, {NULL}},
	{{.cipher = "aes-xts-plain64", .key_bits = 512}, {"2.7 were used: --hash sha256;", "--compat 2.6"}},
	{{.hash = "sha512"}, {"2.7 were used: --cipher aes-xts-plain64 --key-size 256;", "--compat 2.6"}},
	{{.compat = CF_COMPAT_2_6},
	 {"2.6 were used: --cipher aes-cbc-essiv:sha256 --key-size 256 --hash ripemd160;", "--compat 2.7"}},
	{{.cipher = "aes-xts-plain64", .key_bits = 512, .key_file = file}, {NULL}},
	{{XTS, .key_file = file}, {"--hash sha256 has no effect"}},
	{{.cipher = "aes-xts-plain64", .key_bits = 512, .hash = "nosuch", .key_file = file},
	 {"--hash nosuch has no effect"}},
	{{.cipher = "aes-xts-plain64", .key_bits = 512, .key_file = file, .keyfile_size_bytes = 9},
	 {"--keyfile-size has no effect", "64 bytes"}},
	{{.cipher = "aes-xts-plain64", .key_bits = 512, .hash = "plain", .key_file = "-", .keyfile_size_bytes = 9},
	 {"--keyfile-size has no effect", "64 bytes"}},
	{{XTS, .key_file = "-", .keyfile_size_bytes = 9}, {NULL}},
};

START_TEST(plan__says_what_was_assumed_or_ignored)
{
	struct cf_open_opts opts = notes[_i].opts;
	CF_CLEANUP(outcome_fini) struct outcome o;
	feed_stdin("", 0);
	opts.image = image;
	ck_assert_msg(run_plan(&opts, &o) == 0, "%s", o.err.text);
	ck_assert_msg(notes[_i].says[0] || !o.said.text[0], "%s", o.said.text);
	for (size_t i = 0; i < 2 && notes[_i].says[i]; i++)
		ck_assert_msg(strstr(o.said.text, notes[_i].says[i]) != NULL, "%s", o.said.text);
}
END_TEST

START_TEST(plan__of_a_missing_image_is_exit_4)
{
	const struct cf_open_opts opts = {.image = file, XTS};
	struct outcome o;
	ck_assert_int_eq(cf_err_exit_code(run_plan(&opts, &o)), 4);
	ck_assert_ptr_nonnull(strstr(o.err.text, file));
}
END_TEST

START_TEST(plan__of_an_open_image_is_busy_and_gives_the_lock_back_on_failure)
{
	const struct cf_open_opts opts = {.image = image, XTS, .access = CF_READ_WRITE};
	struct cf_open_opts bad = opts;
	bad.offset_sectors = 8192;
	struct outcome first, second, failed;
	ck_assert_int_eq(run_plan(&bad, &failed), -EINVAL);
	ck_assert_int_eq(run_plan(&opts, &first), 0);
	ck_assert_int_eq(run_plan(&opts, &second), -EBUSY);
	outcome_fini(&first);
	ck_assert_int_eq(run_plan(&opts, &second), 0);
	outcome_fini(&second);
}
END_TEST

/* ---- tables ---- */

#define KEY32 "0123456789abcdeffedcba98765432100123456789abcdeffedcba9876543210"
#define TABLE \
	"v: 0 64 crypt aes-cbc-essiv:sha256 " KEY32 " 16 7:0 3 3 sector_size:4096 iv_large_sectors allow_discards\n"

static void check_table_plan(const char *path)
{
	const struct cf_open_opts opts = {.image = image, .table_file = path, .access = CF_READ_WRITE};
	CF_CLEANUP(outcome_fini) struct outcome o;
	ck_assert_msg(run_plan(&opts, &o) == 0, "%s", o.err.text);
	ck_assert_uint_eq(o.opening.plan.data_off, 3 * 512);
	ck_assert_uint_eq(o.opening.plan.bytes, 64 * 512);
	ck_assert_uint_eq(o.opening.plan.cipher.iv_offset, 16);
	ck_assert_uint_eq(o.opening.plan.cipher.du_bytes, 4096);
	ck_assert_int_eq(o.opening.plan.cipher.iv_numbering, CF_IV_LARGE_SECTORS);
	ck_assert_int_eq(o.opening.plan.discards, CF_DISCARDS_ALLOWED);
	ck_assert_uint_eq(o.opening.plan.cipher.key_bytes, 32);
	ck_assert(cf_secret_contains(o.opening.key) && o.opening.key[0] == 0x01 && o.opening.key[31] == 0x10);
	ck_assert_ptr_nonnull(strstr(o.said.text, "the last 4160000 bytes of "));
	ck_assert_ptr_null(strstr(o.said.text, "default"));
}

START_TEST(table__from_a_file)
{
	put_file(file, TABLE, strlen(TABLE));
	check_table_plan(file);
}
END_TEST

START_TEST(table__from_standard_input)
{
	feed_stdin(TABLE, strlen(TABLE));
	check_table_plan("-");
}
END_TEST

START_TEST(table__from_a_pipe_by_name)
{
	feed_stdin(TABLE, strlen(TABLE));
	check_table_plan("/dev/stdin");
}
END_TEST

static const struct {
	const char *table;
	struct cf_open_opts opts;
	int rc;
	const char *says;
} bad_tables[] = {
	{TABLE, {.cipher = "aes"}, -EINVAL, "--cipher"},
	{TABLE, {.hash = "sha256"}, -EINVAL, "--hash"},
	{TABLE, {.key_bits = 256}, -EINVAL, "--key-size"},
	{TABLE, {.compat = CF_COMPAT_2_6}, -EINVAL, "--compat"},
	{TABLE, {.offset_sectors = 1}, -EINVAL, "--offset"},
	{TABLE, {.skip_sectors = 1}, -EINVAL, "--skip"},
	{TABLE, {.size_sectors = 1}, -EINVAL, "--size"},
	{TABLE, {.device_size_bytes = 1}, -EINVAL, "--device-size"},
	{TABLE, {.sector_size_bytes = 512}, -EINVAL, "--sector-size"},
	{TABLE, {.iv_large_sectors = true}, -EINVAL, "--iv-large-sectors"},
	{TABLE, {.key_file = "-"}, -EINVAL, "--key-file"},
	{TABLE, {.keyfile_size_bytes = 1}, -EINVAL, "--keyfile-size"},
	{TABLE, {.keyfile_offset_bytes = 1}, -EINVAL, "--keyfile-offset"},
	{"0 8193 crypt aes-cbc-plain " KEY32 " 0 7:0 0", {.cipher = NULL}, -EINVAL, "beyond the image"},
	{"0 8 crypt aes-cbc-plain " KEY32 " 0 7:0 8192", {.cipher = NULL}, -EINVAL, "beyond the image"},
	{"0 8 crypt aes-cbc-plain " KEY32 "00 0 7:0 0", {.cipher = NULL}, -ENODEV, "aes"},
	{"0 8 crypt cipher_null-ecb 00 0 7:0 0", {.cipher = NULL}, 0, "cipher_null"},
	{"", {.cipher = NULL}, -EINVAL, "nothing to read"},
};

START_TEST(table__refused_and_why)
{
	struct cf_open_opts opts = bad_tables[_i].opts;
	struct outcome o;
	opts.image = image;
	opts.table_file = file;
	put_file(file, bad_tables[_i].table, strlen(bad_tables[_i].table));
	int rc = run_plan(&opts, &o);
	ck_assert_msg(bad_tables[_i].rc ? rc == bad_tables[_i].rc : rc < 0, "%d %s", rc, o.err.text);
	ck_assert_msg(strstr(o.err.text, bad_tables[_i].says) != NULL, "%s", o.err.text);
}
END_TEST

START_TEST(table__that_is_too_long_is_refused)
{
	const struct cf_open_opts opts = {.image = image, .table_file = file};
	static char text[200000];
	struct outcome o;
	memset(text, ' ', sizeof(text));
	memcpy(text, TABLE, strlen(TABLE) - 1);
	put_file(file, text, sizeof(text));
	ck_assert_int_eq(run_plan(&opts, &o), -EINVAL);
	ck_assert_ptr_nonnull(strstr(o.err.text, "too long"));
}
END_TEST

/* ---- volumes ---- */

START_TEST(volume__is_made_and_keeps_the_lock)
{
	const struct cf_open_opts opts = {.image = image, XTS, .access = CF_READ_WRITE, .offset_sectors = 8};
	struct outcome o, other;
	CF_CLEANUP(cf_volume_free) struct cf_volume *v = NULL;
	feed_stdin("correct horse", 13);
	ck_assert_int_eq(run(&opts, &o), 0);
	ck_assert_msg(cf_open_volume(&o.opening.plan, o.opening.key, &o.opening.image, &v, &o.err) == 0, "%s", o.err.text);
	outcome_fini(&o);
	ck_assert_uint_eq(cf_volume_bytes(v), IMAGE_BYTES - 4096);
	ck_assert_int_eq(run_plan(&opts, &other), -EBUSY);
	cf_volume_free(&v);
	ck_assert_int_eq(run_plan(&opts, &other), 0);
	outcome_fini(&other);
}
END_TEST

START_TEST(volume__that_fails_leaves_descriptor_and_lock)
{
	const struct cf_open_opts opts = {.image = image, XTS, .access = CF_READ_WRITE};
	struct outcome o, other;
	struct cf_volume *v = NULL;
	feed_stdin("correct horse", 13);
	ck_assert_int_eq(run(&opts, &o), 0);
	o.opening.plan.bytes = (uint64_t)IMAGE_BYTES + 512;
	ck_assert_int_eq(cf_open_volume(&o.opening.plan, o.opening.key, &o.opening.image, &v, &o.err), -EINVAL);
	ck_assert_ptr_null(v);
	ck_assert_int_ge(fcntl(o.opening.image.fd[0], F_GETFD), 0);
	ck_assert_int_eq(run_plan(&opts, &other), -EBUSY);
	outcome_fini(&o);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("open_plan");
	TCase *t = tcase_create("open_plan");
	tcase_add_loop_test(t, place__is_resolved, 0, (int)CF_ARRAY_LEN(places));
	tcase_add_loop_test(t, plan__refuses_before_anybody_is_asked, 0, (int)CF_ARRAY_LEN(refused));
	tcase_add_test(t, plan__takes_any_offset_with_an_aligned_size);
	tcase_add_test(t, plan__reports_bytes_short_of_a_sector);
	tcase_add_test(t, plan__counts_workers);
	tcase_add_test(t, plan__counts_permits);
	tcase_add_loop_test(t, plan__says_what_was_assumed_or_ignored, 0, (int)CF_ARRAY_LEN(notes));
	tcase_add_test(t, plan__of_a_missing_image_is_exit_4);
	tcase_add_test(t, plan__of_an_open_image_is_busy_and_gives_the_lock_back_on_failure);
	tcase_add_test(t, table__from_a_file);
	tcase_add_test(t, table__from_standard_input);
	tcase_add_test(t, table__from_a_pipe_by_name);
	tcase_add_loop_test(t, table__refused_and_why, 0, (int)CF_ARRAY_LEN(bad_tables));
	tcase_add_test(t, table__that_is_too_long_is_refused);
	tcase_add_test(t, volume__is_made_and_keeps_the_lock);
	tcase_add_test(t, volume__that_fails_leaves_descriptor_and_lock);
	return test_open_run(s, t);
}
