/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_backing.c - images on disk: what opens, what locks, what a file can do; and whole transfers over short ones. */
#include "config.h"

#include "cryptfuse/backing.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "run.h"
#include "test_backing.h"

#define IMAGE_BYTES ((uint64_t)3 << 20)

static char dir[] = "/tmp/check_backing.XXXXXX";
static char image[64], other[64];
static struct cf_err err;

static void setup(void)
{
	memcpy(dir + sizeof(dir) - 7, "XXXXXX", 6);
	ck_assert_ptr_nonnull(mkdtemp(dir));
	snprintf(image, sizeof(image), "%s/image", dir);
	snprintf(other, sizeof(other), "%s/other", dir);
	int fd = open(image, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)IMAGE_BYTES), 0);
	close(fd);
	err = (struct cf_err){.code = 0};
}

static void teardown(void)
{
	unlink(image);
	unlink(other);
	rmdir(other);
	rmdir(dir);
}

static int open_image(enum cf_access access)
{
	int fd = -1;
	ck_assert_int_eq(cf_backing_open_fd(image, access, CF_LOCK, &fd, &err), 0);
	return fd;
}

static struct cf_backing *make(enum cf_access access)
{
	struct cf_backing *b = NULL;
	ck_assert_int_eq(cf_backing_from_fd(&b, open_image(access), access, &err), 0);
	return b;
}

/* ---- opening ---- */

static void make_directory(void)
{
	ck_assert_int_eq(mkdir(other, 0700), 0);
}

static void make_fifo(void)
{
	ck_assert_int_eq(mkfifo(other, 0600), 0);
}

static void make_socket(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	memcpy(a.sun_path, other, sizeof(other));
	ck_assert_int_eq(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
	close(s);
}

static void make_null_link(void)
{
	ck_assert_int_eq(symlink("/dev/null", other), 0);
}

static void make_loop(void)
{
	ck_assert_int_eq(symlink(other, other), 0);
}

static void make_nothing(void)
{
}

static const struct {
	void (*make)(void);
	const char *says;
} refused[] = {
	{make_directory, "is a directory"},        {make_fifo, "is a FIFO"},   {make_socket, "is a socket"},
	{make_null_link, "is a character device"}, {make_loop, "cannot open"}, {make_nothing, "No such file"},
};

START_TEST(open__refuses_what_is_no_image_without_blocking)
{
	int fd = -7;
	refused[_i].make();
	for (int access = CF_READ_ONLY; access <= CF_READ_WRITE; access++) {
		err = (struct cf_err){.code = 0};
		ck_assert_int_eq(cf_backing_open_fd(other, (enum cf_access)access, CF_LOCK, &fd, &err), -ENODEV);
		ck_assert_ptr_nonnull(strstr(err.text, refused[_i].says));
		ck_assert_ptr_nonnull(strstr(err.text, other));
		ck_assert_int_eq(fd, -7);
	}
}
END_TEST

START_TEST(open__follows_a_symlink_to_an_image)
{
	int fd = -1;
	ck_assert_int_eq(symlink(image, other), 0);
	ck_assert_int_eq(cf_backing_open_fd(other, CF_READ_WRITE, CF_LOCK, &fd, &err), 0);
	close(fd);
}
END_TEST

START_TEST(open__flags_follow_the_access)
{
	int fd = open_image(_i ? CF_READ_WRITE : CF_READ_ONLY);
	int flags = fcntl(fd, F_GETFL);
	ck_assert_int_eq(flags & O_ACCMODE, _i ? O_RDWR : O_RDONLY);
	ck_assert_int_eq(flags & O_NONBLOCK, 0);
	ck_assert_int_eq(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(fd);
}
END_TEST

/* As an ordinary user; root reads everything. */
START_TEST(open__without_permission_is_eacces)
{
	int status;
	ck_assert_int_eq(chmod(image, 0000), 0);
	ck_assert_int_eq(chmod(dir, 0755), 0);
	pid_t pid = fork();
	if (pid == 0) {
		int fd;
		if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
			_exit(9);
		_exit(cf_backing_open_fd(image, CF_READ_ONLY, CF_LOCK, &fd, &err) == -EACCES && err.text[0] ? 0 : 1);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

/* ---- locks ---- */

static const struct {
	enum cf_access first;
	enum cf_lock first_lock;
	enum cf_access second;
	enum cf_lock second_lock;
	int rc;
} locks[] = {
	{CF_READ_ONLY, CF_LOCK, CF_READ_ONLY, CF_LOCK, 0},        {CF_READ_ONLY, CF_LOCK, CF_READ_WRITE, CF_LOCK, -EBUSY},
	{CF_READ_WRITE, CF_LOCK, CF_READ_ONLY, CF_LOCK, -EBUSY},  {CF_READ_WRITE, CF_LOCK, CF_READ_WRITE, CF_LOCK, -EBUSY},
	{CF_READ_WRITE, CF_LOCK, CF_READ_WRITE, CF_LOCK_NONE, 0}, {CF_READ_WRITE, CF_LOCK_NONE, CF_READ_WRITE, CF_LOCK, 0},
};

START_TEST(second_open__is_judged_by_the_locks)
{
	int first = -1, second = -1;
	ck_assert_int_eq(cf_backing_open_fd(image, locks[_i].first, locks[_i].first_lock, &first, &err), 0);
	int rc = cf_backing_open_fd(image, locks[_i].second, locks[_i].second_lock, &second, &err);
	ck_assert_int_eq(rc, locks[_i].rc);
	if (rc)
		ck_assert_ptr_nonnull(strstr(err.text, "in use by another program"));
	else
		close(second);
	close(first);
}
END_TEST

START_TEST(lock__lives_as_long_as_the_backing)
{
	int fd = -1;
	struct cf_backing *b = make(CF_READ_WRITE);
	ck_assert_int_eq(cf_backing_open_fd(image, CF_READ_ONLY, CF_LOCK, &fd, &err), -EBUSY);
	cf_backing_free(&b);
	ck_assert_ptr_null(b);
	ck_assert_int_eq(cf_backing_open_fd(image, CF_READ_ONLY, CF_LOCK, &fd, NULL), 0);
	close(fd);
}
END_TEST

/* ---- loop devices, in a sysfs of our own: dir/other/loop7/loop/backing_file ---- */

static void write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static bool looped(const char *backing_file, char *name, size_t name_size)
{
	struct stat st;
	char path[3][128];
	static const char *const part[] = {"loop7", "loop7/loop", "loop7/loop/backing_file"};
	for (int i = 0; i < 3; i++)
		snprintf(path[i], sizeof(path[i]), "%s/%s", other, part[i]);
	ck_assert_int_eq(mkdir(other, 0700), 0);
	ck_assert_int_eq(mkdir(path[0], 0700), 0);
	ck_assert_int_eq(mkdir(path[1], 0700), 0);
	write_file(path[2], backing_file);
	ck_assert_int_eq(stat(image, &st), 0);
	bool found = cf_backing_loop_user(other, image, &st, name, name_size);
	unlink(path[2]);
	rmdir(path[1]);
	rmdir(path[0]);
	return found;
}

START_TEST(loop_device__is_found_by_the_image_it_has_open)
{
	char name[64], text[128], hard[96];
	snprintf(text, sizeof(text), "%s\n", image);
	ck_assert(looped(text, name, sizeof(name)));
	ck_assert_str_eq(name, "/dev/loop7");
	rmdir(other);
	snprintf(hard, sizeof(hard), "%s/hard", dir);
	snprintf(text, sizeof(text), "%s\n", hard);
	ck_assert_int_eq(link(image, hard), 0);
	ck_assert_msg(looped(text, name, sizeof(name)), "another name of the same file was not seen");
	unlink(hard);
}
END_TEST

START_TEST(loop_device__of_another_image_is_no_matter)
{
	char name[64];
	ck_assert(!looped("/dev/zero\n", name, sizeof(name)));
	rmdir(other);
	ck_assert(!looped("", name, sizeof(name)));
}
END_TEST

/* ---- a file as backing ---- */

START_TEST(file__knows_its_geometry)
{
	struct cf_backing *b = make(CF_READ_WRITE);
	uint64_t bytes = 0;
	int fd = open(image, O_RDONLY | O_CLOEXEC);
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
	int fd = open_image(_i ? CF_READ_WRITE : CF_READ_ONLY);
	ck_assert_int_eq(cf_backing_from_fd(&b, fd, _i ? CF_READ_ONLY : CF_READ_WRITE, &err), -EINVAL);
	ck_assert_ptr_null(b);
	ck_assert_int_ge(fcntl(fd, F_GETFD), 0); /* still the caller's */
	close(fd);
}
END_TEST

START_TEST(file__keeps_what_is_written)
{
	struct cf_backing *b = make(CF_READ_WRITE);
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

START_TEST(read_only_file__cannot_be_written)
{
	struct cf_backing *b = make(CF_READ_ONLY);
	ck_assert_int_eq(b->ops->pwrite(b, "x", 1, 0), -EBADF);
	cf_backing_free(&b);
}
END_TEST

START_TEST(punch__gives_space_back_and_reads_as_zeros)
{
	struct stat before, after;
	static uint8_t buf[1 << 20];
	struct cf_backing *b = make(CF_READ_WRITE);
	size_t written;
	memset(buf, 0xa5, sizeof(buf));
	ck_assert_int_eq(cf_backing_write_full(b, buf, sizeof(buf), 0, &written), 0);
	ck_assert_int_eq(stat(image, &before), 0);
	ck_assert_int_eq(b->ops->punch(b, 512, sizeof(buf) - 1024), 0);
	ck_assert_int_eq(stat(image, &after), 0);
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
	struct cf_backing *b = make(CF_READ_WRITE);
	ck_assert_int_eq(b->ops->allocate(b, IMAGE_BYTES - 65536, 65536), 0);
	ck_assert_int_eq(stat(image, &st), 0);
	ck_assert_int_ge(st.st_blocks * 512, 65536);
	ck_assert_uint_eq((uint64_t)st.st_size, IMAGE_BYTES);
	cf_backing_free(&b);
}
END_TEST

START_TEST(seek__finds_data_in_a_sparse_file)
{
	struct cf_backing *b = make(CF_READ_WRITE);
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

static TCase *image_case(void)
{
	TCase *t = tcase_create("image");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, open__refuses_what_is_no_image_without_blocking, 0, (int)CF_ARRAY_LEN(refused));
	tcase_add_test(t, open__follows_a_symlink_to_an_image);
	tcase_add_loop_test(t, open__flags_follow_the_access, 0, 2);
	tcase_add_test(t, open__without_permission_is_eacces);
	tcase_add_loop_test(t, second_open__is_judged_by_the_locks, 0, (int)CF_ARRAY_LEN(locks));
	tcase_add_test(t, lock__lives_as_long_as_the_backing);
	tcase_add_test(t, loop_device__is_found_by_the_image_it_has_open);
	tcase_add_test(t, loop_device__of_another_image_is_no_matter);
	return t;
}

static TCase *file_case(void)
{
	TCase *t = tcase_create("file");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, file__knows_its_geometry);
	tcase_add_test(t, from_fd__refuses_what_is_no_image);
	tcase_add_loop_test(t, from_fd__refuses_another_access_than_the_descriptor_has, 0, 2);
	tcase_add_test(t, file__keeps_what_is_written);
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
	suite_add_tcase(s, image_case());
	suite_add_tcase(s, file_case());
	suite_add_tcase(s, whole_case());
	return test_run(s);
}
