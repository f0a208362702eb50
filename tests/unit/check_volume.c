/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_volume.c - byte ranges of any shape, and the end of the volume.
 *
 * The truth is a plain array: after every write the backing, decrypted without the volume, must equal it, and nothing
 * before or behind the volume may have changed. */
#include "cryptfuse/volume.h"

#include <errno.h>
#include <string.h>

#include "cryptfuse/secret.h"
#include "run.h"
#include "test_volume.h"

#define CHUNK (128u * 1024u) /* the volume's own transfer size: edges lie there too */
#define ODD_OFF (63u * 512u)

static const struct test_shape shapes[] = {
	{.mode = "xts", .du_bytes = 512, .bytes = 2 * CHUNK, .access = CF_READ_WRITE},
	{.mode = "cbc", .du_bytes = 512, .bytes = CHUNK + 512, .data_off = ODD_OFF, .access = CF_READ_WRITE},
	{.mode = "xts", .du_bytes = 4096, .bytes = 2 * CHUNK, .data_off = ODD_OFF, .access = CF_READ_WRITE},
	{.mode = "cbc", .du_bytes = 4096, .bytes = 2 * CHUNK, .access = CF_READ_WRITE},
	{.mode = "xts", .du_bytes = 65536, .bytes = CF_IO_MAX + 65536, .access = CF_READ_WRITE},
	{.mode = "cbc", .du_bytes = 65536, .bytes = 2 * CHUNK, .data_off = ODD_OFF, .access = CF_READ_WRITE},
	{.mode = "cbc", .du_bytes = 65536, .bytes = 65536, .access = CF_READ_WRITE},
};

static struct test_volume tv;
static uint8_t *model, *found, *data;

static void open_shape(const struct test_shape *shape)
{
	test_volume_open(&tv, shape);
	model = malloc(shape->bytes);
	found = malloc(shape->bytes);
	data = malloc(CF_IO_MAX);
	ck_assert(model && found && data);
	test_volume_decrypt(&tv, model);
	test_fill(data, CF_IO_MAX, 3);
}

static void setup(void)
{
	ck_assert_int_eq(cf_secret_init(NULL), 0);
}

static void teardown(void)
{
	if (tv.v)
		test_volume_close(&tv);
	free(model);
	free(found);
	free(data);
	cf_secret_fini();
}

static void check_backing(void)
{
	uint64_t end = tv.shape.data_off + tv.shape.bytes, all = tv.t->base.bytes;
	uint8_t *before = malloc(all);
	test_fill(before, all, 2);
	test_volume_decrypt(&tv, found);
	ck_assert_mem_eq(found, model, tv.shape.bytes);
	ck_assert_mem_eq(before, tv.t->data, tv.shape.data_off);
	ck_assert_mem_eq(before + end, tv.t->data + end, all - end);
	free(before);
}

/* ---- shapes of requests ---- */

/* Ends of requests: around the first data units, the chunk, and the end of the volume; sorted and inside it. */
static size_t edges(uint64_t out[32])
{
	uint64_t du = tv.shape.du_bytes, bytes = tv.shape.bytes;
	const uint64_t want[] = {0,         1,     du - 1,    du,        du + 1,     2 * du - 1, 2 * du, 3 * du + 1,
							 CHUNK - 1, CHUNK, CHUNK + 1, CF_IO_MAX, bytes - du, bytes - 1,  bytes};
	size_t n = 0;
	for (size_t i = 0; i < CF_ARRAY_LEN(want); i++)
		if (want[i] <= bytes)
			out[n++] = want[i];
	return n;
}

static void each_range(void (*fn)(uint64_t off, size_t len))
{
	uint64_t e[32];
	size_t n = edges(e);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			if (e[i] < e[j] && e[j] - e[i] <= CF_IO_MAX)
				fn(e[i], (size_t)(e[j] - e[i]));
}

static void check_read(uint64_t off, size_t len)
{
	memset(found, 0xee, len);
	ck_assert_int_eq(cf_volume_read(tv.v, tv.w, found, len, off), (ssize_t)len);
	ck_assert_mem_eq(found, model + off, len);
}

START_TEST(read__of_any_shape_is_the_plaintext)
{
	open_shape(&shapes[_i]);
	each_range(check_read);
	ck_assert_uint_eq(tv.t->n_writes, 0);
}
END_TEST

START_TEST(read__into_the_workers_own_buffer)
{
	open_shape(&shapes[_i]);
	ck_assert_int_eq(cf_volume_read(tv.v, tv.w, tv.w->io, 1000, 100), tv.shape.bytes < 1100 ? 0 : 1000);
	ck_assert_mem_eq(tv.w->io, model + 100, 1000);
}
END_TEST

static void check_write(uint64_t off, size_t len)
{
	static uint8_t step;
	data[0] = step++;
	ck_assert_int_eq(cf_volume_write(tv.v, tv.w, data, len, off), (ssize_t)len);
	memcpy(model + off, data, len);
	check_backing();
}

START_TEST(write__of_any_shape_changes_its_range_only)
{
	open_shape(&shapes[_i]);
	each_range(check_write);
}
END_TEST

START_TEST(write__goes_on_after_short_transfers)
{
	open_shape(&shapes[_i]);
	tv.t->piece = 700;
	check_write(1, tv.shape.du_bytes - 1);
	check_read(1, tv.shape.du_bytes - 1);
	check_write(0, 2 * tv.shape.du_bytes <= tv.shape.bytes ? 2 * tv.shape.du_bytes : tv.shape.du_bytes);
}
END_TEST

/* ---- the end ---- */

START_TEST(request__beyond_the_end_touches_nothing)
{
	open_shape(&shapes[_i]);
	uint64_t bytes = tv.shape.bytes;
	const uint64_t offs[] = {
		bytes, bytes + 1, UINT64_C(1) << 32, (UINT64_C(1) << 63) - 1, UINT64_C(1) << 63, UINT64_MAX - 511, UINT64_MAX};
	for (size_t i = 0; i < CF_ARRAY_LEN(offs); i++)
		for (size_t len = 0; len <= 1024; len += 512) {
			uint64_t off = offs[i];
			ck_assert_int_eq(cf_volume_read(tv.v, tv.w, found, len, off), 0);
			ck_assert_int_eq(cf_volume_write(tv.v, tv.w, data, len, off), len ? -ENOSPC : 0);
			ck_assert_int_eq(cf_volume_zero(tv.v, tv.w, off, len), len ? -ENOSPC : 0);
			ck_assert_int_eq(cf_volume_allocate(tv.v, off, len), len ? -ENOSPC : 0);
			ck_assert_int_eq(cf_volume_seek(tv.v, off, CF_SEEK_DATA), -ENXIO);
			ck_assert_int_eq(cf_volume_seek(tv.v, off, CF_SEEK_HOLE), -ENXIO);
		}
	ck_assert_uint_eq(tv.t->n_reads + tv.t->n_writes + tv.t->n_allocates, 0);
}
END_TEST

START_TEST(request__across_the_end_is_short)
{
	open_shape(&shapes[_i]);
	static const size_t inside[] = {1, 511, 512, 513};
	for (size_t i = 0; i < CF_ARRAY_LEN(inside); i++) {
		size_t in = inside[i];
		uint64_t off = tv.shape.bytes - in;
		ck_assert_int_eq(cf_volume_write(tv.v, tv.w, data, in + 1, off), (ssize_t)in);
		memcpy(model + off, data, in);
		ck_assert_int_eq(cf_volume_write(tv.v, tv.w, data + 7, CF_IO_MAX - 7, off), (ssize_t)in);
		memcpy(model + off, data + 7, in);
		check_backing();
		ck_assert_int_eq(cf_volume_read(tv.v, tv.w, data, CF_IO_MAX, off), (ssize_t)in);
		ck_assert_mem_eq(data, model + off, in);
		test_fill(data, CF_IO_MAX, 4 + i);
		ck_assert_int_eq(cf_volume_zero(tv.v, tv.w, off, in + 1), -ENOSPC);
		ck_assert_int_eq(cf_volume_zero(tv.v, tv.w, off, UINT64_MAX - off), -ENOSPC);
		ck_assert_int_eq(cf_volume_zero(tv.v, tv.w, off, UINT64_MAX), -ENOSPC);
		check_backing();
	}
}
END_TEST

START_TEST(allocate__reserves_where_the_volume_lies)
{
	open_shape(&shapes[_i]);
	ck_assert_int_eq(cf_volume_allocate(tv.v, 0, tv.shape.bytes), 0);
	ck_assert_uint_eq(tv.t->n_allocates, 1);
	ck_assert_int_eq(cf_volume_allocate(tv.v, 1, tv.shape.bytes), -ENOSPC);
	check_backing();
}
END_TEST

START_TEST(read_only_volume__changes_nothing)
{
	struct test_shape shape = shapes[_i];
	shape.access = CF_READ_ONLY;
	open_shape(&shape);
	ck_assert_int_eq(cf_volume_write(tv.v, tv.w, data, 1, 0), -EROFS);
	ck_assert_int_eq(cf_volume_zero(tv.v, tv.w, 0, 1), -EROFS);
	ck_assert_int_eq(cf_volume_punch(tv.v, tv.w, 0, tv.shape.bytes), -EROFS);
	ck_assert_int_eq(cf_volume_allocate(tv.v, 0, 1), -EROFS);
	ck_assert_int_eq(cf_volume_sync(tv.v), 0);
	ck_assert_uint_eq(tv.t->n_writes + tv.t->n_punches + tv.t->n_allocates + tv.t->n_syncs, 0);
	each_range(check_read);
}
END_TEST

int main(void)
{
	const int n = (int)CF_ARRAY_LEN(shapes);
	Suite *s = suite_create("volume");
	TCase *t = tcase_create("volume");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, read__of_any_shape_is_the_plaintext, 0, n);
	tcase_add_loop_test(t, read__into_the_workers_own_buffer, 0, n);
	tcase_add_loop_test(t, write__of_any_shape_changes_its_range_only, 0, n);
	tcase_add_loop_test(t, write__goes_on_after_short_transfers, 0, n);
	tcase_add_loop_test(t, request__beyond_the_end_touches_nothing, 0, n);
	tcase_add_loop_test(t, request__across_the_end_is_short, 0, n);
	tcase_add_loop_test(t, allocate__reserves_where_the_volume_lies, 0, n);
	tcase_add_loop_test(t, read_only_volume__changes_nothing, 0, n);
	suite_add_tcase(s, t);
	return test_run(s);
}
