/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_direct.c - any range over a store of whole blocks, against a copy in memory; and O_DIRECT on a real file. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/volume/aligned.h"
#include "cryptfuse/err.h"
#include "run.h"
#include "test_backing.h"
#include "test_image.h"
#include "test_volume.h"

#define BOUNCE 262144u /* of aligned.c: ranges around it are split */
#define BYTES_MAX (1u << 20)

static const uint32_t blocks[] = {512, 4096, 65536};

static uint8_t model[BYTES_MAX + 65536], buf[BYTES_MAX + 1], got[BYTES_MAX + 1];

/* ---- over a backing in memory that refuses what O_DIRECT would ---- */

static struct test_backing *inner;
static struct cf_backing *b;

static void open_aligned(uint32_t block)
{
	struct cf_backing *in, *tail = NULL;
	inner = test_backing_new(BYTES_MAX, 1);
	inner->block = block;
	test_fill(inner->data, BYTES_MAX, 5);
	memcpy(model, inner->data, BYTES_MAX);
	in = &inner->base;
	ck_assert_int_eq(cf_aligned_new(&b, &in, &tail, block, block < 4096 ? block : 4096, NULL), 0);
	ck_assert_ptr_null(in);
}

static void check_model(void)
{
	ck_assert_mem_eq(inner->data, model, BYTES_MAX);
}

static void write_both(const uint8_t *from, size_t len, uint64_t off)
{
	size_t written = 0;
	ck_assert_int_eq(cf_backing_write_full(b, from, len, off, &written), 0);
	ck_assert_uint_eq(written, len);
	memcpy(model + off, from, len);
}

static void read_both(uint8_t *to, size_t len, uint64_t off)
{
	memset(to, 0xee, len);
	ck_assert_int_eq(cf_backing_read_full(b, to, len, off), 0);
	ck_assert_mem_eq(to, model + off, len);
}

START_TEST(aligned__granule_is_the_block)
{
	open_aligned(blocks[_i]);
	ck_assert_uint_eq(b->granule, blocks[_i]);
	ck_assert_uint_eq(b->bytes, BYTES_MAX);
	ck_assert_int_eq(b->ops->pread(b, buf, 1, BYTES_MAX), 0);
	ck_assert_int_eq(b->ops->pread(b, buf, 5, BYTES_MAX - 2), 2);
	cf_backing_free(&b);
}
END_TEST

/* Lengths and places around blocks, around the bounce buffer, and at the end; from memory that suits and that does not.
 */
START_TEST(aligned__any_range_is_read_and_written)
{
	uint32_t block = blocks[_i];
	const size_t lens[] = {1,         511,       512,        513,    block - 1,         block,
						   block + 1, 2 * block, BOUNCE - 1, BOUNCE, BOUNCE + block + 1};
	const uint64_t offs[] = {0, 1, 63 * 512, block - 1, block, 3 * block + 512, BYTES_MAX - 2 * (uint64_t)BOUNCE};
	open_aligned(block);
	uint8_t *page = buf + (4096 - (uintptr_t)buf % 4096);
	for (size_t l = 0; l < CF_ARRAY_LEN(lens); l++)
		for (size_t o = 0; o < CF_ARRAY_LEN(offs); o++) {
			size_t odd = (l + o) % 2;
			test_fill(page, lens[l] + 1, l * 100 + o);
			write_both(page + odd, lens[l], offs[o]);
			read_both(page + 1 - odd, lens[l], offs[o]);
			write_both(page, lens[l], BYTES_MAX - lens[l]);
			read_both(page, lens[l], BYTES_MAX - lens[l]);
		}
	check_model();
	cf_backing_free(&b);
}
END_TEST

/* Short transfers that end on blocks, as of a device; each is gone on with. */
START_TEST(aligned__goes_on_after_short_transfers)
{
	open_aligned(blocks[_i]);
	inner->piece = blocks[_i];
	test_fill(buf, sizeof(buf), 9);
	write_both(buf + 1, 3 * blocks[_i] + 77, 100);
	read_both(got, 3 * blocks[_i] + 99, 90);
	check_model();
	cf_backing_free(&b);
}
END_TEST

START_TEST(aligned__whole_blocks_pass_in_one_call)
{
	void *p = NULL;
	ck_assert_int_eq(posix_memalign(&p, 4096, 131072), 0);
	memset(p, 7, 131072);
	open_aligned(blocks[_i]);
	write_both(p, 131072, 65536);
	ck_assert_uint_eq(inner->n_writes, 1);
	ck_assert_uint_eq(inner->n_reads, 0);
	read_both(p, 131072, 65536);
	ck_assert_uint_eq(inner->n_reads, 1);
	free(p);
	cf_backing_free(&b);
}
END_TEST

/* The store fails after so many bytes: what is reported as written is, what lies outside the range is as it was. */
START_TEST(aligned__a_failed_write_says_how_far_it_came)
{
	const uint64_t off = 63 * 512;
	const size_t len = 20000;
	for (uint64_t after = 0; after <= 28672; after += 512) {
		size_t written = 77;
		open_aligned(4096);
		inner->write_fault = (struct test_fault){-ENOSPC, after, TEST_FOREVER};
		test_fill(buf, len, after + 1);
		int rc = cf_backing_write_full(b, buf, len, off, &written);
		size_t reached = off - off % 4096 + after > off ? (size_t)(after - off % 4096) : 0;
		ck_assert_int_eq(rc, reached >= len ? 0 : -ENOSPC);
		ck_assert_uint_le(written, reached);
		ck_assert_uint_ge(written + 4096, reached < len ? reached : len);
		ck_assert_mem_eq(inner->data + off, buf, written);
		memcpy(model + off, inner->data + off, len);
		check_model();
		cf_backing_free(&b);
	}
}
END_TEST

/* With blocks that cannot be read nothing is written: their other bytes would be lost. */
START_TEST(aligned__an_unreadable_edge_stops_the_write)
{
	static const struct {
		uint64_t off;
		size_t len;
		uint64_t after; /* the first edge can be read, the last cannot */
	} cases[] = {{1, 10, 0}, {4096, 10, 0}, {512, 4096 * 3, 4096}, {0, 4097, 0}};
	open_aligned(4096);
	inner->read_fault = (struct test_fault){-EIO, cases[_i].after, TEST_FOREVER};
	ck_assert_int_eq(b->ops->pwrite(b, buf, cases[_i].len, cases[_i].off), -EIO);
	check_model();
	cf_backing_free(&b);
}
END_TEST

START_TEST(aligned__a_read_that_fails_is_its_error)
{
	open_aligned(4096);
	inner->read_fault = (struct test_fault){-EIO, 0, 1};
	ck_assert_int_eq(b->ops->pread(b, buf, 10, 5), -EIO);
	inner->read_fault = (struct test_fault){0, 4096, TEST_FOREVER}; /* the store ends early */
	ck_assert_int_eq(b->ops->pread(b, buf, 9000, 5), 4091);
	ck_assert_int_eq(cf_backing_read_full(b, buf, 10, 5000), -EIO);
	cf_backing_free(&b);
}
END_TEST

START_TEST(tail_off__begins_on_a_page)
{
	ck_assert_uint_eq(cf_aligned_tail_off(8192, 512), 8192);
	ck_assert_uint_eq(cf_aligned_tail_off(8192 + 512, 512), 8192 + 512);
	ck_assert_uint_eq(cf_aligned_tail_off(8192 + 513, 512), 8192);
	ck_assert_uint_eq(cf_aligned_tail_off(8192 + 4095, 4096), 8192);
	ck_assert_uint_eq(cf_aligned_tail_off(4095, 4096), 0);
	ck_assert_uint_eq(cf_aligned_tail_off(131071, 65536), 65536);
}
END_TEST

START_TEST(tail__is_reached_by_the_other_backing)
{
	struct test_backing *rest = test_backing_new(10000, 1);
	struct cf_backing *in, *tail = &rest->base;
	inner = test_backing_new(10000, 4096);
	inner->block = 4096;
	in = &inner->base;
	ck_assert_int_eq(cf_aligned_new(&b, &in, &tail, 4096, 4096, NULL), 0);
	test_fill(buf, 10000, 3);
	size_t written = 0;
	ck_assert_int_eq(cf_backing_write_full(b, buf, 10000, 0, &written), 0);
	ck_assert_mem_eq(inner->data, buf, 8192);
	ck_assert_mem_eq(rest->data + 8192, buf + 8192, 10000 - 8192);
	ck_assert_int_eq(cf_backing_read_full(b, got, 4001, 5999), 0);
	ck_assert_mem_eq(got, buf + 5999, 4001);
	ck_assert_int_eq(b->ops->pread(b, got, 10, 10000), 0);
	cf_backing_free(&b);
}
END_TEST

/* ---- a real file ---- */

static struct test_image img;
static struct cf_err err;
static int refuse_direct;

/* The linker sends core's fcntl here: a file system without O_DIRECT. */
int __real_fcntl64(int fd, int cmd, ...);
int __wrap_fcntl64(int fd, int cmd, ...);
int __wrap_fcntl64(int fd, int cmd, ...)
{
	va_list args;
	va_start(args, cmd);
	long arg = va_arg(args, long);
	va_end(args);
	if (refuse_direct && cmd == F_SETFL && (arg & O_DIRECT)) {
		errno = EINVAL;
		return -1;
	}
	return __real_fcntl64(fd, cmd, arg);
}

static void setup(void)
{
	test_image_make(&img, BYTES_MAX + 700 - 512); /* its last page is reached by the page cache only */
}

static void teardown(void)
{
	test_image_remove(&img);
}

static struct cf_backing *open_direct(enum cf_access access)
{
	struct cf_backing *d = NULL;
	int fd = test_image_open(&img, access);
	if (cf_backing_set_direct(fd, img.path, &err) != 0) {
		close(fd); /* the test's folder is on such a file system: nothing to see here */
		return NULL;
	}
	ck_assert_msg(cf_backing_from_direct_fd(&d, fd, access, &err) == 0, "%s", err.text);
	ck_assert_int_ne(fcntl(fd, F_GETFD), 0); /* taken */
	return d;
}

START_TEST(file__holds_what_is_written_past_the_cache)
{
	struct cf_backing *d = open_direct(CF_READ_WRITE);
	struct stat st;
	uint64_t random = 42;
	const uint64_t bytes = BYTES_MAX + 700 - 512;
	if (!d)
		return;
	ck_assert_str_eq(d->ops->name, "direct");
	ck_assert_uint_eq(d->bytes, bytes);
	for (int i = 0; i < 60; i++) {
		uint64_t off = i % 3 ? test_random(&random) % bytes : bytes - 1 - test_random(&random) % 9000;
		size_t len = 1 + (size_t)(test_random(&random) % (i % 2 ? 3000 : 70000)), written;
		len = len < bytes - off ? len : (size_t)(bytes - off);
		test_fill(buf, len, (uint64_t)i);
		ck_assert_int_eq(cf_backing_write_full(d, buf, len, off, &written), 0);
		memcpy(model + off, buf, len);
		ck_assert_int_eq(cf_backing_read_full(d, got, len, off), 0);
		ck_assert_mem_eq(got, buf, len);
	}
	ck_assert_int_eq(d->ops->sync(d), 0);
	cf_backing_free(&d);
	ck_assert_int_eq(stat(img.path, &st), 0);
	ck_assert_uint_eq((uint64_t)st.st_size, bytes); /* never longer */
	struct cf_backing *plain = test_image_backing(&img, CF_READ_ONLY);
	for (uint64_t off = 0; off < bytes; off += 65536) {
		size_t len = bytes - off < 65536 ? (size_t)(bytes - off) : 65536;
		ck_assert_int_eq(cf_backing_read_full(plain, got, len, off), 0);
		ck_assert_mem_eq(got, model + off, len);
	}
	cf_backing_free(&plain);
}
END_TEST

START_TEST(read_only_file__cannot_be_written)
{
	struct cf_backing *d = open_direct(CF_READ_ONLY);
	if (!d)
		return;
	ck_assert_int_eq(d->ops->pwrite(d, buf, 700, 100), -EBADF);
	ck_assert_int_eq(d->ops->pwrite(d, buf, 1, BYTES_MAX + 100), -EBADF);
	ck_assert_int_eq(d->ops->pread(d, buf, 700, 100), 700);
	cf_backing_free(&d);
}
END_TEST

START_TEST(set_direct__is_refused_where_there_is_none)
{
	int fd = test_image_open(&img, CF_READ_WRITE);
	refuse_direct = 1;
	ck_assert_int_eq(cf_backing_set_direct(fd, img.path, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, img.path));
	ck_assert_ptr_nonnull(strstr(err.text, "--direct"));
	refuse_direct = 0;
	close(fd);
}
END_TEST

static TCase *aligned_case(void)
{
	TCase *t = tcase_create("aligned");
	int n = (int)CF_ARRAY_LEN(blocks);
	tcase_add_loop_test(t, aligned__granule_is_the_block, 0, n);
	tcase_add_loop_test(t, aligned__any_range_is_read_and_written, 0, n);
	tcase_add_loop_test(t, aligned__goes_on_after_short_transfers, 0, n);
	tcase_add_loop_test(t, aligned__whole_blocks_pass_in_one_call, 0, n);
	tcase_add_test(t, aligned__a_failed_write_says_how_far_it_came);
	tcase_add_loop_test(t, aligned__an_unreadable_edge_stops_the_write, 0, 4);
	tcase_add_test(t, aligned__a_read_that_fails_is_its_error);
	tcase_add_test(t, tail_off__begins_on_a_page);
	tcase_add_test(t, tail__is_reached_by_the_other_backing);
	return t;
}

static TCase *file_case(void)
{
	TCase *t = tcase_create("file");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, file__holds_what_is_written_past_the_cache);
	tcase_add_test(t, read_only_file__cannot_be_written);
	tcase_add_test(t, set_direct__is_refused_where_there_is_none);
	return t;
}

int main(void)
{
	Suite *s = suite_create("direct");
	suite_add_tcase(s, aligned_case());
	suite_add_tcase(s, file_case());
	return test_run(s);
}
