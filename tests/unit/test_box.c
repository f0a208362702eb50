/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* test_box.c - test_box.h has the contract. */
#include "config.h"

#include "test_box.h"

#include <check.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cryptfuse/err.h"

struct cf_sandbox test_box;
struct test_box_fds test_box_fds = {-1, -1};

static void enter(enum test_walls walls)
{
	struct cf_err err = {0};
	if (cf_sandbox_drop_rights(&err) < 0)
		_exit(TEST_NO_BOX);
	if (walls == TEST_BOX && cf_sandbox_enter(&test_box, CF_TRANSPORT_DEVICE, &err) < 0)
		_exit(TEST_NO_BOX);
	if (walls == TEST_FILES && cf_sandbox_files() <= 0)
		_exit(TEST_LACKING);
	if (walls == TEST_FILTER && cf_sandbox_filter(CF_TRANSPORT_DEVICE) <= 0)
		_exit(TEST_LACKING);
}

int test_boxed(int (*try)(void), enum test_walls walls)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGSYS, SIG_DFL);
		enter(walls);
		_exit(try());
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_ne(status, TEST_NO_BOX << 8);
	return status;
}

int test_code(long r)
{
	return r < 0 ? errno : 0;
}

static int nothing(void)
{
	return 0;
}

long test_landlock_version(void)
{
	return syscall(444 /* SYS_landlock_create_ruleset */, NULL, 0, 1);
}

static bool kernel_has_landlock(void)
{
	return test_landlock_version() > 0;
}

static bool kernel_has_seccomp(void)
{
#ifdef HAVE_SECCOMP
	uint32_t allow = 0x7fff0000; /* SECCOMP_RET_ALLOW */
	return syscall(SYS_seccomp, 2 /* SECCOMP_GET_ACTION_AVAIL */, 0, &allow) == 0;
#else
	return false;
#endif
}

bool test_box_has(enum test_walls wall)
{
	const bool here = test_boxed(nothing, wall) == 0;
	ck_assert_int_eq(here, wall == TEST_FILES ? kernel_has_landlock() : kernel_has_seccomp());
	return here;
}

void test_box_descriptors(void)
{
	test_box_fds.file = memfd_create("check_sandbox", MFD_CLOEXEC);
	ck_assert_int_ge(test_box_fds.file, 0);
	ck_assert_int_eq(ftruncate(test_box_fds.file, 1), 0);
	test_box_fds.listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr any = {.sa_family = AF_UNIX}; /* the kernel chooses an abstract name */
	ck_assert_int_eq(bind(test_box_fds.listening, &any, sizeof(any.sa_family)), 0);
	ck_assert_int_eq(listen(test_box_fds.listening, 1), 0);
}
