/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_volume_big.c - a volume of more than 2 TiB in a sparse file, where `plain` wraps; discards of more than 1 GiB.
 *
 * A file system that cannot hold a file of that length passes: there is nothing to try. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "run.h"
#include "test_image.h"
#include "test_volume.h"

#define TIB (UINT64_C(1) << 40)
#define GIB (UINT64_C(1) << 30)
#define DATA_OFF (63u * 512u)
#define BYTES (2 * TIB + ((uint64_t)1 << 20))

static struct test_image img;
static struct cf_volume *v;
static struct cf_worker *w;
static struct cf_cipher *oracle;
static bool too_big;

static void setup(void)
{
	ck_assert_int_eq(cf_secret_init(NULL), 0);
	test_image_make(&img, 0);
	too_big = truncate(img.path, (off_t)(BYTES + DATA_OFF)) != 0;
}

static void teardown(void)
{
	if (v)
		cf_volume_leave(v, w);
	cf_volume_free(&v);
	cf_cipher_free(&oracle);
	test_image_remove(&img);
	cf_secret_fini();
}

static void open_volume(const char *iv, uint32_t du_bytes, enum cf_discards discards, const struct cf_backing_ops *ops)
{
	struct cf_err err = {.code = 0};
	struct cf_backing *b = test_image_backing(&img, CF_READ_WRITE);
	struct cf_cipher *c = test_cipher("xts", iv, du_bytes, 1);
	struct cf_volume_opts opts = {.data_off = DATA_OFF,
								  .bytes = BYTES,
								  .access = CF_READ_WRITE,
								  .discards = discards,
								  .n_workers = 1,
								  .n_permits = 1};
	b->ops = ops ? ops : b->ops;
	oracle = test_cipher("xts", iv, du_bytes, 1);
	ck_assert_msg(cf_volume_new(&v, &b, &c, &opts, &err) == 0, "%s", err.text);
	w = cf_volume_enter(v);
}

static void raw(uint64_t off, void *buf, size_t len)
{
	int fd = open(img.path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_eq(pread(fd, buf, len, (off_t)(DATA_OFF + off)), (ssize_t)len);
	close(fd);
}

static const uint32_t du_sizes[] = {512, 4096, 65536};

START_TEST(write__across_a_tebibyte_is_under_the_right_ivs)
{
	static uint8_t in[4 * 65536], out[4 * 65536], cipher[4 * 65536], want[4 * 65536];
	uint32_t du = du_sizes[_i / 3];
	const uint64_t at[] = {TIB, 2 * TIB, BYTES - 2 * du};
	uint64_t from = at[_i % 3] - 2 * du;
	if (too_big)
		return;
	open_volume("plain64", du, CF_DISCARDS_REFUSED, NULL);
	test_fill(in, sizeof(in), 5);
	ck_assert_int_eq(cf_volume_write(v, w, in, du, from), du);
	ck_assert_int_eq(cf_volume_write(v, w, in + du, 3 * du - 77, from + du), 3 * du - 77);
	ck_assert_int_eq(cf_volume_write(v, w, in + 4 * du - 77, 77, from + 4 * du - 77), 77);
	raw(from, cipher, 4 * du);
	ck_assert_int_eq(cf_cipher_crypt(oracle, 0, CF_ENCRYPT, from / du, 4, in, want), 0);
	ck_assert_mem_eq(cipher, want, 4 * du);
	ck_assert_int_eq(cf_volume_read(v, w, out, 4 * du - 2, from + 1), 4 * du - 2);
	ck_assert_mem_eq(out, in + 1, 4 * du - 2);
}
END_TEST

START_TEST(plain__begins_again_at_two_tebibytes)
{
	static uint8_t in[4 * 4096], low[4 * 4096], high[4 * 4096];
	if (too_big)
		return;
	open_volume(_i ? "plain64" : "plain", 4096, CF_DISCARDS_REFUSED, NULL);
	test_fill(in, sizeof(in), 6);
	ck_assert_int_eq(cf_volume_write(v, w, in, 2 * 4096, 0), 2 * 4096);
	ck_assert_int_eq(cf_volume_write(v, w, in, 2 * 4096, 2 * TIB), 2 * 4096);
	raw(0, low, 2 * 4096);
	raw(2 * TIB, high, 2 * 4096);
	ck_assert_int_eq(memcmp(low, high, 2 * 4096) == 0, _i == 0);
}
END_TEST

/* ---- discards ---- */

static unsigned n_punches, punches_that_work;
static uint64_t longest_punch;

static int punch_some(struct cf_backing *b, uint64_t off, uint64_t len)
{
	(void)off;
	ck_assert_uint_eq(b->bytes, BYTES + DATA_OFF);
	longest_punch = len > longest_punch ? len : longest_punch;
	return n_punches++ < punches_that_work ? 0 : -EOPNOTSUPP;
}

static void open_punching(unsigned works)
{
	static struct cf_backing_ops ops;
	struct cf_backing *b = test_image_backing(&img, CF_READ_WRITE);
	ops = *b->ops;
	ops.punch = punch_some;
	cf_backing_free(&b);
	punches_that_work = works;
	open_volume("plain64", 4096, CF_DISCARDS_ALLOWED, &ops);
}

START_TEST(punch__of_terabytes_goes_in_pieces)
{
	if (too_big)
		return;
	open_punching(UINT32_MAX);
	ck_assert_int_eq(cf_volume_punch(v, w, 100, 2 * TIB), 0);
	ck_assert_uint_le(longest_punch, GIB);
	ck_assert_uint_ge(n_punches, 2048);
	struct cf_volume_stats s;
	cf_volume_stats(v, &s);
	ck_assert_uint_eq(s.punched_bytes, 2 * TIB - 4096);
	ck_assert_uint_eq(s.zeroed_bytes, 4096);
}
END_TEST

START_TEST(punch__that_ends_half_way_is_finished_with_zeros)
{
	static uint8_t cipher[4096], zeros[4096], plain[4096];
	if (too_big)
		return;
	open_punching(1);
	ck_assert_int_eq(cf_volume_punch(v, w, 4096, GIB + 3 * 4096 + 5), 0);
	ck_assert_uint_eq(n_punches, 2);
	raw(GIB, cipher, 4096); /* the last unit that was punched */
	ck_assert_mem_eq(cipher, zeros, 4096);
	for (uint64_t off = GIB + 4096; off < GIB + 4 * 4096; off += 4096) {
		raw(off, cipher, 4096);
		ck_assert_mem_ne(cipher, zeros, 4096);
		ck_assert_int_eq(cf_volume_read(v, w, plain, 4096, off), 4096);
		ck_assert_mem_eq(plain, zeros, 4096);
	}
}
END_TEST

START_TEST(punch__of_a_file_gives_the_space_back)
{
	static uint8_t data[1 << 20];
	struct stat before, after;
	if (too_big)
		return;
	open_volume("plain64", 4096, CF_DISCARDS_ALLOWED, NULL);
	test_fill(data, sizeof(data), 7);
	ck_assert_int_eq(cf_volume_write(v, w, data, sizeof(data), TIB), sizeof(data));
	ck_assert_int_eq(stat(img.path, &before), 0);
	ck_assert_int_eq(cf_volume_punch(v, w, TIB + 1, sizeof(data) - 2), 0);
	ck_assert_int_eq(stat(img.path, &after), 0);
	ck_assert_int_lt(after.st_blocks, before.st_blocks);
	ck_assert_int_eq(cf_volume_read(v, w, data + 1, sizeof(data) - 2, TIB + 1), sizeof(data) - 2);
	for (size_t i = 1; i < sizeof(data) - 1; i++)
		ck_assert_uint_eq(data[i], 0);
	int64_t data_at = cf_volume_seek(v, 0, CF_SEEK_DATA), hole_at = cf_volume_seek(v, TIB, CF_SEEK_HOLE);
	ck_assert_int_le(data_at,
					 (int64_t)TIB); /* the first unit was covered in part; a block of the file may begin before */
	ck_assert_int_ge(data_at, (int64_t)TIB - 65536);
	ck_assert_int_gt(hole_at, (int64_t)TIB);
	ck_assert_int_lt(hole_at, (int64_t)(TIB + sizeof(data)));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("big volumes");
	TCase *t = tcase_create("big volumes");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, write__across_a_tebibyte_is_under_the_right_ivs, 0, 3 * (int)CF_ARRAY_LEN(du_sizes));
	tcase_add_loop_test(t, plain__begins_again_at_two_tebibytes, 0, 2);
	tcase_add_test(t, punch__of_terabytes_goes_in_pieces);
	tcase_add_test(t, punch__that_ends_half_way_is_finished_with_zeros);
	tcase_add_test(t, punch__of_a_file_gives_the_space_back);
	suite_add_tcase(s, t);
	return test_run(s);
}
