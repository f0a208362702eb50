/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_image.c - what opens as an image and what does not, and whom its locks keep out. */
#include "config.h"

#include "cryptfuse/backing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "run.h"
#include "test_image.h"

#define IMAGE_BYTES ((uint64_t)1 << 20)

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

/* ---- opening ---- */

static void make_directory(void)
{
	ck_assert_int_eq(mkdir(img.other, 0700), 0);
}

static void make_fifo(void)
{
	ck_assert_int_eq(mkfifo(img.other, 0600), 0);
}

static void make_socket(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	memcpy(a.sun_path, img.other, sizeof(img.other));
	ck_assert_int_eq(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
	close(s);
}

static void make_null_link(void)
{
	ck_assert_int_eq(symlink("/dev/null", img.other), 0);
}

static void make_loop(void)
{
	ck_assert_int_eq(symlink(img.other, img.other), 0);
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
		ck_assert_int_eq(cf_backing_open_fd(img.other, (enum cf_access)access, CF_LOCK, &fd, &err), -ENODEV);
		ck_assert_ptr_nonnull(strstr(err.text, refused[_i].says));
		ck_assert_ptr_nonnull(strstr(err.text, img.other));
		ck_assert_int_eq(fd, -7);
	}
}
END_TEST

START_TEST(open__follows_a_symlink_to_an_image)
{
	int fd = -1;
	ck_assert_int_eq(symlink(img.path, img.other), 0);
	ck_assert_int_eq(cf_backing_open_fd(img.other, CF_READ_WRITE, CF_LOCK, &fd, &err), 0);
	close(fd);
}
END_TEST

START_TEST(open__flags_follow_the_access)
{
	int fd = test_image_open(&img, _i ? CF_READ_WRITE : CF_READ_ONLY);
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
	ck_assert_int_eq(chmod(img.path, 0000), 0);
	ck_assert_int_eq(chmod(img.dir, 0755), 0);
	pid_t pid = fork();
	if (pid == 0) {
		int fd;
		if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
			_exit(9);
		_exit(cf_backing_open_fd(img.path, CF_READ_ONLY, CF_LOCK, &fd, &err) == -EACCES && err.text[0] ? 0 : 1);
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
	ck_assert_int_eq(cf_backing_open_fd(img.path, locks[_i].first, locks[_i].first_lock, &first, &err), 0);
	int rc = cf_backing_open_fd(img.path, locks[_i].second, locks[_i].second_lock, &second, &err);
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
	struct cf_backing *b = test_image_backing(&img, CF_READ_WRITE);
	ck_assert_int_eq(cf_backing_open_fd(img.path, CF_READ_ONLY, CF_LOCK, &fd, &err), -EBUSY);
	cf_backing_free(&b);
	ck_assert_ptr_null(b);
	ck_assert_int_eq(cf_backing_open_fd(img.path, CF_READ_ONLY, CF_LOCK, &fd, NULL), 0);
	close(fd);
}
END_TEST

/* A file system without locks: the linker sends core's fcntl here. */
static int lock_errno;

int __real_fcntl64(int fd, int cmd, ...);
int __wrap_fcntl64(int fd, int cmd, ...);
int __wrap_fcntl64(int fd, int cmd, ...)
{
	va_list args;
	va_start(args, cmd);
	void *arg = va_arg(args, void *);
	va_end(args);
	if (cmd == F_OFD_SETLK && lock_errno) {
		errno = lock_errno;
		return -1;
	}
	return __real_fcntl64(fd, cmd, arg);
}

START_TEST(open__without_locks_asks_for_shared)
{
	static const int codes[] = {ENOLCK, EOPNOTSUPP, EINVAL};
	int fd = -7;
	lock_errno = codes[_i];
	ck_assert_int_eq(cf_backing_open_fd(img.path, CF_READ_ONLY, CF_LOCK, &fd, &err), -ENOLCK);
	ck_assert_ptr_nonnull(strstr(err.text, "--shared"));
	ck_assert_int_eq(fd, -7);
	ck_assert_int_eq(cf_backing_open_fd(img.path, CF_READ_WRITE, CF_LOCK_NONE, &fd, NULL), 0);
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
		snprintf(path[i], sizeof(path[i]), "%s/%s", img.other, part[i]);
	ck_assert_int_eq(mkdir(img.other, 0700), 0);
	ck_assert_int_eq(mkdir(path[0], 0700), 0);
	ck_assert_int_eq(mkdir(path[1], 0700), 0);
	write_file(path[2], backing_file);
	ck_assert_int_eq(stat(img.path, &st), 0);
	bool found = cf_backing_loop_user(img.other, img.path, &st, name, name_size);
	unlink(path[2]);
	rmdir(path[1]);
	rmdir(path[0]);
	return found;
}

START_TEST(loop_device__is_found_by_the_image_it_has_open)
{
	char name[64], text[128], hard[96];
	snprintf(text, sizeof(text), "%s\n", img.path);
	ck_assert(looped(text, name, sizeof(name)));
	ck_assert_str_eq(name, "/dev/loop7");
	rmdir(img.other);
	snprintf(hard, sizeof(hard), "%s/hard", img.dir);
	snprintf(text, sizeof(text), "%s\n", hard);
	ck_assert_int_eq(link(img.path, hard), 0);
	ck_assert_msg(looped(text, name, sizeof(name)), "another name of the same file was not seen");
	unlink(hard);
}
END_TEST

START_TEST(loop_device__of_another_image_is_no_matter)
{
	char name[64];
	ck_assert(!looped("/dev/zero\n", name, sizeof(name)));
	rmdir(img.other);
	ck_assert(!looped("", name, sizeof(name)));
}
END_TEST

int main(void)
{
	Suite *s = suite_create("image");
	TCase *t = tcase_create("image");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, open__refuses_what_is_no_image_without_blocking, 0, (int)CF_ARRAY_LEN(refused));
	tcase_add_test(t, open__follows_a_symlink_to_an_image);
	tcase_add_loop_test(t, open__flags_follow_the_access, 0, 2);
	tcase_add_test(t, open__without_permission_is_eacces);
	tcase_add_loop_test(t, second_open__is_judged_by_the_locks, 0, (int)CF_ARRAY_LEN(locks));
	tcase_add_test(t, lock__lives_as_long_as_the_backing);
	tcase_add_loop_test(t, open__without_locks_asks_for_shared, 0, 3);
	tcase_add_test(t, loop_device__is_found_by_the_image_it_has_open);
	tcase_add_test(t, loop_device__of_another_image_is_no_matter);
	suite_add_tcase(s, t);
	return test_run(s);
}
