/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_sandbox.c - what the daemon's sandbox keeps out.
 *
 * The kernel is asked: a forked child enters the box and tries; its exit status is an errno, its signal the filter's
 * answer. What this kernel or build lacks is not tested. */
#include "config.h"

#include "cryptfuse/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "run.h"
#include "test_box.h"

/* ---- files ---- */

static int signal_others(void)
{
	return test_code(kill(getppid(), 0));
}

static int open_file(void)
{
	return test_code(open("/dev/null", O_RDONLY));
}

static int open_folder(void)
{
	return test_code(open("/", O_PATH | O_DIRECTORY));
}

static int make_file(void)
{
	char path[64];
	snprintf(path, sizeof(path), "/tmp/cryptfuse-check-sandbox.%d", (int)getpid());
	const int rc = test_code(mkdir(path, 0700));
	return rc || rmdir(path) != 0 ? rc : 0;
}

static int look_up(void)
{
	return test_code(syscall(SYS_faccessat, AT_FDCWD, "/dev/null", R_OK));
}

START_TEST(filter__files_are_out_of_reach)
{
	static int (*const tries[])(void) = {open_file, open_folder, make_file, look_up};
	if (test_box_has(TEST_FILTER))
		ck_assert_int_eq(test_boxed(tries[_i], TEST_FILTER), EPERM << 8);
}
END_TEST

static int read_open_file(void)
{
	char byte;
	return test_code(pread(test_box_fds.file, &byte, 1, 0)) || test_code(pwrite(test_box_fds.file, &byte, 1, 0)) ||
		   test_code(ftruncate(test_box_fds.file, 2));
}

static int connect_tcp(void)
{
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	return test_code(connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&here, sizeof(here)));
}

static int connect_listener(void)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	if (getsockname(test_box_fds.listening, (struct sockaddr *)&name, &len) != 0)
		return TEST_NO_BOX;
	return test_code(connect(socket(AF_UNIX, SOCK_SEQPACKET, 0), (struct sockaddr *)&name, len));
}

/** What each version of Landlock takes away. (What is mounted read-only, and the socket that nobody listens to, would
 * give another error.) */
static const struct {
	int since, code;
	int (*try)(void);
} denied[] = {
	{1, EACCES, open_file},       {1, EACCES, make_file},    {4, EACCES, connect_tcp},
	{6, EPERM, connect_listener}, {6, EPERM, signal_others},
};

START_TEST(files__only_what_is_open_can_be_used)
{
	test_box_descriptors();
	if (!test_box_has(TEST_FILES))
		return;
	ck_assert_int_eq(test_boxed(read_open_file, TEST_FILES), 0);
	if (test_landlock_version() >= denied[_i].since)
		ck_assert_int_eq(test_boxed(denied[_i].try, TEST_FILES), denied[_i].code << 8);
}
END_TEST

/* ---- killed ---- */

static int new_socket(void)
{
	return test_code(socket(AF_UNIX, SOCK_DGRAM, 0));
}

static int new_pair(void)
{
	int fds[2];
	return test_code(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
}

static int start_program(void)
{
	char *argv[] = {(char *)"true", NULL};
	return test_code(execv("/bin/true", argv));
}

static int start_open_program(void)
{
	char *none[] = {NULL};
	return test_code(syscall(SYS_execveat, 0, "", none, none, AT_EMPTY_PATH));
}

static int trace_parent(void)
{
	return test_code(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
}

START_TEST(filter__kills_programs_tracing_and_new_sockets)
{
	static int (*const tries[])(void) = {new_socket, new_pair, start_program, start_open_program, trace_parent};
	if (!test_box_has(TEST_FILTER))
		return;
	int status = test_boxed(tries[_i], TEST_FILTER);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "%x", (unsigned)status);
}
END_TEST

/* ---- refused, and life goes on ---- */

static int new_process(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(0);
	return test_code(pid);
}

static int executable_map(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? errno : 0;
}

static int executable_later(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? TEST_NO_BOX : test_code(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

static int signal_other_thread(void)
{
	return test_code(syscall(SYS_tgkill, getppid(), getppid(), 0));
}

static int shorten(void)
{
	return test_code(ftruncate(0, 0));
}

static int be_dumpable(void)
{
	return test_code(prctl(PR_SET_DUMPABLE, 1));
}

static int read_others(void)
{
	return test_code(syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0));
}

START_TEST(filter__refuses_what_nobody_needs)
{
	static int (*const tries[])(void) = {new_process,         executable_map, executable_later, signal_others,
										 signal_other_thread, shorten,        be_dumpable,      read_others};
	if (test_box_has(TEST_FILTER))
		ck_assert_int_eq(test_boxed(tries[_i], TEST_FILTER), EPERM << 8);
}
END_TEST

static int clone3(void)
{
	return test_code(syscall(SYS_clone3, NULL, 0));
}

START_TEST(filter__clone3_is_as_if_it_were_not_there)
{
	if (test_box_has(TEST_FILTER))
		ck_assert_int_eq(test_boxed(clone3, TEST_FILTER), ENOSYS << 8);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sandbox");
	TCase *t = tcase_create("sandbox");
	tcase_add_loop_test(t, filter__files_are_out_of_reach, 0, 4);
	tcase_add_loop_test(t, files__only_what_is_open_can_be_used, 0, (int)CF_ARRAY_LEN(denied));
	tcase_add_loop_test(t, filter__kills_programs_tracing_and_new_sockets, 0, 5);
	tcase_add_loop_test(t, filter__refuses_what_nobody_needs, 0, 8);
	tcase_add_test(t, filter__clone3_is_as_if_it_were_not_there);
	suite_add_tcase(s, t);
	return test_run(s);
}
