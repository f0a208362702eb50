/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_backing.c - what a file can do as a backing, and whole transfers over short ones. */
#include "config.h"

#include "cryptfuse/backing.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "run.h"
#include "test_backing.h"
#include "test_image.h"

#define IMAGE_BYTES ((uint64_t)3 << 20)

static struct test_image img;
static struct cf_err err;

static void setup(void)
{
	test_image_make(&img, IMAGE_BYTES);
}

static void teardown(void)
{
	test_image_remove(&img);
}

/* ---- a file as backing ---- */

START_TEST(file__knows_its_geometry)
{
	struct cf_backing *b = test_image_backing(&img, CF_READ_WRITE);
	uint64_t bytes = 0;
	int fd = open(img.path, O_RDONLY | O_CLOEXEC);
	ck_assert_str_eq(b->ops->name, "file");
	ck_assert_uint_eq(b->bytes, IMAGE_BYTES);
	ck_assert_uint_eq(b->granule, 1);
	ck_assert_int_eq(cf_backing_size_fd(fd, &bytes, &err), 0);
	ck_assert_uint_eq(bytes, IMAGE_BYTES);
	close(fd);
	cf_backing_free(&b);
}
END_TEST

START_TEST(from_fd__refuses_what_is_no_image)
{
	struct cf_backing *b = NULL;
	uint64_t bytes;
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	ck_assert_int_eq(cf_backing_from_fd(&b, fd, CF_READ_WRITE, &err), -ENODEV);
	ck_assert_int_eq(cf_backing_size_fd(fd, &bytes, &err), -ENODEV);
	ck_assert_ptr_null(b);
	close(fd);
	ck_assert_int_eq(cf_backing_from_fd(&b, fd, CF_READ_WRITE, &err), -EIO);
}
END_TEST

START_TEST(from_fd__refuses_another_access_than_the_descriptor_has)
{
	struct cf_backing *b = NULL;
	int fd = test_image_open(&img, _i ? CF_READ_WRITE : CF_READ_ONLY);
	ck_assert_int_eq(cf_backing_from_fd(&b, fd, _i ? CF_READ_ONLY : CF_READ_WRITE, &err), -EINVAL);
	ck_assert_ptr_null(b);
	ck_assert_int_ge(fcntl(fd, F_GETFD), 0); /* still the caller's */
	close(fd);
}
END_TEST

START_TEST(file__keeps_what_is_written)
{
	struct cf_backing *b = test_image_backing(&img, CF_READ_WRITE);
	uint8_t in[5] = {1, 2, 3, 4, 5}, out[5];
	ck_assert_int_eq(b->ops->pwrite(b, in, 5, 4094), 5);
	ck_assert_int_eq(b->ops->sync(b), 0);
	ck_assert_int_eq(b->ops->pread(b, out, 5, 4094), 5);
	ck_assert_mem_eq(in, out, 5);
	ck_assert_int_eq(b->ops->pread(b, out, 5, IMAGE_BYTES), 0);
	ck_assert_int_eq(b->ops->pread(b, out, 5, IMAGE_BYTES - 2), 2);
	cf_backing_free(&b);
}
END_TEST

/* The linker sends core's fdatasync here. */
static int n_fdatasync, sync_errno;

int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
	n_fdatasync++;
	errno = fcntl(fd, F_GETFD) < 0 ? EBADF : sync_errno;
	if (sync_errno == EINTR)
		sync_errno = 0;
	return errno ? -1 : 0;
}

START_TEST(sync__is_fdatasync_and_its_error)
{
	struct cf_backing *b = test_image_backing(&img, CF_READ_WRITE);
	ck_assert_int_eq(b->ops->sync(b), 0);
	ck_assert_int_eq(n_fdatasync, 1);
	sync_errno = EINTR;
	ck_assert_int_eq(b->ops->sync(b), 0);
	ck_assert_int_eq(n_fdatasync, 3);
	sync_errno = EIO;
	ck_assert_int_eq(b->ops->sync(b), -EIO);
	cf_backing_free(&b);
}
END_TEST

START_TEST(read_only_file__cannot_be_written)
{
	struct cf_backing *b = test_image_backing(&img, CF_READ_ONLY);
	ck_assert_int_eq(b->ops->pwrite(b, "x", 1, 0), -EBADF);
	cf_backing_free(&b);
}
END_TEST

START_TEST(punch__gives_space_back_and_reads_as_zeros)
{
	struct stat before, after;
	static uint8_t buf[1 << 20];
	struct cf_backing *b = test_image_backing(&img, CF_READ_WRITE);
	size_t written;
	memset(buf, 0xa5, sizeof(buf));
	ck_assert_int_eq(cf_backing_write_full(b, buf, sizeof(buf), 0, &written), 0);
	ck_assert_int_eq(stat(img.path, &before), 0);
	ck_assert_int_eq(b->ops->punch(b, 512, sizeof(buf) - 1024), 0);
	ck_assert_int_eq(stat(img.path, &after), 0);
	ck_assert_int_lt(after.st_blocks, before.st_blocks);
	ck_assert_int_eq(after.st_size, before.st_size);
	ck_assert_int_eq(cf_backing_read_full(b, buf, sizeof(buf), 0), 0);
	ck_assert_uint_eq(buf[511], 0xa5);
	ck_assert_uint_eq(buf[512], 0);
	ck_assert_uint_eq(buf[sizeof(buf) - 513], 0);
	ck_assert_uint_eq(buf[sizeof(buf) - 512], 0xa5);
	cf_backing_free(&b);
}
END_TEST

START_TEST(allocate__takes_space_and_changes_nothing)
{
	struct stat st;
	struct cf_backing *b = test_image_backing(&img, CF_READ_WRITE);
	ck_assert_int_eq(b->ops->allocate(b, IMAGE_BYTES - 65536, 65536), 0);
	ck_assert_int_eq(stat(img.path, &st), 0);
	ck_assert_int_ge(st.st_blocks * 512, 65536);
	ck_assert_uint_eq((uint64_t)st.st_size, IMAGE_BYTES);
	cf_backing_free(&b);
}
END_TEST

START_TEST(seek__finds_data_in_a_sparse_file)
{
	struct cf_backing *b = test_image_backing(&img, CF_READ_WRITE);
	ck_assert_int_eq(b->ops->seek(b, 0, CF_SEEK_DATA), -ENXIO);
	ck_assert_int_eq(b->ops->seek(b, 0, CF_SEEK_HOLE), 0);
	ck_assert_int_eq(b->ops->pwrite(b, "x", 1, 1 << 20), 1);
	ck_assert_int_eq(b->ops->seek(b, 0, CF_SEEK_DATA), 1 << 20);
	ck_assert_int_gt(b->ops->seek(b, 1 << 20, CF_SEEK_HOLE), 1 << 20);
	cf_backing_free(&b);
}
END_TEST

/* ---- whole transfers ---- */

#define WHOLE_BYTES 5000u

static struct cf_backing *pattern_backing(size_t piece)
{
	struct test_backing *t = test_backing_new(WHOLE_BYTES, 1);
	t->piece = piece;
	for (size_t i = 0; i < WHOLE_BYTES; i++)
		t->data[i] = (uint8_t)(i * 7 + i / 256);
	return &t->base;
}

static const size_t pieces[] = {1, 7, 512, WHOLE_BYTES - 1, WHOLE_BYTES};

START_TEST(read_full__goes_on_after_a_short_read)
{
	struct cf_backing *b = pattern_backing(pieces[_i]);
	uint8_t buf[WHOLE_BYTES];
	ck_assert_int_eq(cf_backing_read_full(b, buf, WHOLE_BYTES, 0), 0);
	ck_assert_mem_eq(buf, ((struct test_backing *)b)->data, WHOLE_BYTES);
	cf_backing_free(&b);
}
END_TEST

START_TEST(write_full__goes_on_after_a_short_write)
{
	struct cf_backing *b = pattern_backing(pieces[_i]);
	uint8_t buf[WHOLE_BYTES];
	size_t written = 0;
	memset(buf, 0x5a, sizeof(buf));
	ck_assert_int_eq(cf_backing_write_full(b, buf, WHOLE_BYTES, 0, &written), 0);
	ck_assert_uint_eq(written, WHOLE_BYTES);
	ck_assert_mem_eq(buf, ((struct test_backing *)b)->data, WHOLE_BYTES);
	cf_backing_free(&b);
}
END_TEST

START_TEST(read_full__is_eio_where_the_backing_ends_early)
{
	struct cf_backing *b = pattern_backing(0);
	uint8_t buf[2];
	ck_assert_int_eq(cf_backing_read_full(b, buf, 2, WHOLE_BYTES - 2), 0);
	ck_assert_int_eq(cf_backing_read_full(b, buf, 2, WHOLE_BYTES - 1), -EIO);
	ck_assert_int_eq(cf_backing_read_full(b, buf, 2, WHOLE_BYTES), -EIO);
	cf_backing_free(&b);
}
END_TEST

START_TEST(write_full__says_how_far_it_came)
{
	static const int codes[] = {-ENOSPC, -EIO, 0};
	struct cf_backing *b = pattern_backing(0);
	uint8_t buf[1000] = {0};
	size_t written = 0;
	((struct test_backing *)b)->write_fault = (struct test_fault){codes[_i], 600, TEST_FOREVER};
	int rc = cf_backing_write_full(b, buf, sizeof(buf), 0, &written);
	ck_assert_int_eq(rc, codes[_i] ? codes[_i] : -EIO);
	ck_assert_uint_eq(written, 600);
	cf_backing_free(&b);
}
END_TEST

static TCase *file_case(void)
{
	TCase *t = tcase_create("file");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, file__knows_its_geometry);
	tcase_add_test(t, from_fd__refuses_what_is_no_image);
	tcase_add_loop_test(t, from_fd__refuses_another_access_than_the_descriptor_has, 0, 2);
	tcase_add_test(t, file__keeps_what_is_written);
	tcase_add_test(t, sync__is_fdatasync_and_its_error);
	tcase_add_test(t, read_only_file__cannot_be_written);
	tcase_add_test(t, punch__gives_space_back_and_reads_as_zeros);
	tcase_add_test(t, allocate__takes_space_and_changes_nothing);
	tcase_add_test(t, seek__finds_data_in_a_sparse_file);
	return t;
}

static TCase *whole_case(void)
{
	TCase *t = tcase_create("whole transfers");
	tcase_add_loop_test(t, read_full__goes_on_after_a_short_read, 0, (int)CF_ARRAY_LEN(pieces));
	tcase_add_loop_test(t, write_full__goes_on_after_a_short_write, 0, (int)CF_ARRAY_LEN(pieces));
	tcase_add_test(t, read_full__is_eio_where_the_backing_ends_early);
	tcase_add_loop_test(t, write_full__says_how_far_it_came, 0, 3);
	return t;
}

int main(void)
{
	Suite *s = suite_create("backing");
	suite_add_tcase(s, file_case());
	suite_add_tcase(s, whole_case());
	return test_run(s);
}
