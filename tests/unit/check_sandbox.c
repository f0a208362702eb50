/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_sandbox.c - what can be done inside the daemon's sandbox, and what cannot.
 *
 * The kernel is asked: a forked child enters the box and tries; its exit status is an errno, its signal the filter's
 * answer. What this kernel or build lacks is not tested. */
#include "config.h"

#include "cryptfuse/sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "run.h"

#define NO_BOX 200 /* exit statuses of a child that could not enter, or found a wall missing */
#define LACKING 201

enum walls { ALL, FILES, FILTER };

/* ---- a child in the box ---- */

static struct cf_err err;
static struct cf_sandbox box;

static void enter(enum walls walls)
{
	if (cf_sandbox_drop_rights(&err) < 0)
		_exit(NO_BOX);
	if (walls == ALL && cf_sandbox_enter(&box, CF_TRANSPORT_DEVICE, &err) < 0)
		_exit(NO_BOX);
	if (walls == FILES && cf_sandbox_files() <= 0)
		_exit(LACKING);
	if (walls == FILTER && cf_sandbox_filter(CF_TRANSPORT_DEVICE) <= 0)
		_exit(LACKING);
}

/* How @try ends in the box: what it returns becomes the exit status. */
static int boxed(int (*try)(void), enum walls walls)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGSYS, SIG_DFL);
		enter(walls);
		_exit(try());
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_ne(status, NO_BOX << 8);
	return status;
}

/* An error code that was expected, or none. */
static int code(long r)
{
	return r < 0 ? errno : 0;
}

static int nothing(void)
{
	return 0;
}

static long landlock_version(void)
{
	return syscall(444 /* SYS_landlock_create_ruleset */, NULL, 0, 1);
}

static bool kernel_has_landlock(void)
{
	return landlock_version() > 0;
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

/* It must be, where the kernel says in another way that it has it. */
static bool is_here(enum walls wall)
{
	const bool here = boxed(nothing, wall) == 0;
	ck_assert_int_eq(here, wall == FILES ? kernel_has_landlock() : kernel_has_seccomp());
	return here;
}

/* ---- files ---- */

static int file = -1, listening = -1;

static void make_descriptors(void)
{
	file = memfd_create("check_sandbox", MFD_CLOEXEC);
	ck_assert_int_ge(file, 0);
	ck_assert_int_eq(ftruncate(file, 1), 0);
	listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr any = {.sa_family = AF_UNIX}; /* the kernel chooses an abstract name */
	ck_assert_int_eq(bind(listening, &any, sizeof(any.sa_family)), 0);
	ck_assert_int_eq(listen(listening, 1), 0);
}

static int signal_others(void)
{
	return code(kill(getppid(), 0));
}

static int open_file(void)
{
	return code(open("/dev/null", O_RDONLY));
}

static int open_folder(void)
{
	return code(open("/", O_PATH | O_DIRECTORY));
}

static int make_file(void)
{
	return code(mkdir("/tmp/cryptfuse-check-sandbox", 0700));
}

static int look_up(void)
{
	return code(syscall(SYS_faccessat, AT_FDCWD, "/dev/null", R_OK));
}

START_TEST(filter__files_are_out_of_reach)
{
	static int (*const tries[])(void) = {open_file, open_folder, make_file, look_up};
	if (is_here(FILTER))
		ck_assert_int_eq(boxed(tries[_i], FILTER), EPERM << 8);
}
END_TEST

static int read_open_file(void)
{
	char byte;
	return code(pread(file, &byte, 1, 0)) || code(pwrite(file, &byte, 1, 0)) || code(ftruncate(file, 2));
}

static int connect_tcp(void)
{
	struct sockaddr_in here = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	return code(connect(socket(AF_INET, SOCK_STREAM, 0), (struct sockaddr *)&here, sizeof(here)));
}

static int connect_listener(void)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	if (getsockname(listening, (struct sockaddr *)&name, &len) != 0)
		return NO_BOX;
	return code(connect(socket(AF_UNIX, SOCK_SEQPACKET, 0), (struct sockaddr *)&name, len));
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
	make_descriptors();
	if (!is_here(FILES))
		return;
	ck_assert_int_eq(boxed(read_open_file, FILES), 0);
	if (landlock_version() >= denied[_i].since)
		ck_assert_int_eq(boxed(denied[_i].try, FILES), denied[_i].code << 8);
}
END_TEST

/* ---- killed ---- */

static int new_socket(void)
{
	return code(socket(AF_UNIX, SOCK_DGRAM, 0));
}

static int new_pair(void)
{
	int fds[2];
	return code(socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
}

static int start_program(void)
{
	char *argv[] = {(char *)"true", NULL};
	return code(execv("/bin/true", argv));
}

static int start_open_program(void)
{
	char *none[] = {NULL};
	return code(syscall(SYS_execveat, 0, "", none, none, AT_EMPTY_PATH));
}

static int trace_parent(void)
{
	return code(ptrace(PTRACE_ATTACH, getppid(), NULL, NULL));
}

START_TEST(filter__kills_programs_tracing_and_new_sockets)
{
	static int (*const tries[])(void) = {new_socket, new_pair, start_program, start_open_program, trace_parent};
	if (!is_here(FILTER))
		return;
	int status = boxed(tries[_i], FILTER);
	ck_assert_msg(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "%x", (unsigned)status);
}
END_TEST

/* ---- refused, and life goes on ---- */

static int new_process(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0)
		_exit(0);
	return code(pid);
}

static int executable_map(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? errno : 0;
}

static int executable_later(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p == MAP_FAILED ? NO_BOX : code(mprotect(p, 4096, PROT_READ | PROT_EXEC));
}

static int signal_other_thread(void)
{
	return code(syscall(SYS_tgkill, getppid(), getppid(), 0));
}

static int shorten(void)
{
	return code(ftruncate(0, 0));
}

static int be_dumpable(void)
{
	return code(prctl(PR_SET_DUMPABLE, 1));
}

static int read_others(void)
{
	return code(syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0));
}

START_TEST(filter__refuses_what_nobody_needs)
{
	static int (*const tries[])(void) = {new_process,         executable_map, executable_later, signal_others,
										 signal_other_thread, shorten,        be_dumpable,      read_others};
	if (is_here(FILTER))
		ck_assert_int_eq(boxed(tries[_i], FILTER), EPERM << 8);
}
END_TEST

static int clone3(void)
{
	return code(syscall(SYS_clone3, NULL, 0));
}

START_TEST(filter__clone3_is_as_if_it_were_not_there)
{
	if (is_here(FILTER))
		ck_assert_int_eq(boxed(clone3, FILTER), ENOSYS << 8);
}
END_TEST

/* ---- what must work ---- */

#define N_THREADS 16
#define MUCH ((size_t)64 << 20)

static void *grow(void *arg)
{
	volatile char *p = malloc(MUCH);
	for (size_t i = 0; p && i < MUCH; i += MUCH / 16)
		p[i] = 1;
	free((void *)p);
	pthread_barrier_wait(arg);
	return p ? arg : NULL;
}

/* All there at once, each with 64 MiB before, and again. */
static int threads(void)
{
	pthread_t t[N_THREADS];
	pthread_barrier_t all;
	pthread_barrier_init(&all, NULL, N_THREADS);
	int bad = 0;
	for (int i = 0; i < N_THREADS; i++)
		if (pthread_create(&t[i], NULL, grow, &all) != 0)
			_exit(NO_BOX);
	for (int i = 0; i < N_THREADS; i++) {
		void *result;
		bad += pthread_join(t[i], &result) != 0 || !result;
	}
	return bad;
}

static void *sleep_on(void *arg)
{
	pthread_barrier_wait(arg);
	while (pause() < 0)
		;
	return NULL;
}

/* The C library opens a file for that, the first time. */
static int cancel(void)
{
	pthread_t t;
	pthread_barrier_t both;
	void *result;
	pthread_barrier_init(&both, NULL, 2);
	if (pthread_create(&t, NULL, sleep_on, &both) != 0)
		return 1;
	pthread_barrier_wait(&both);
	return pthread_cancel(t) != 0 || pthread_join(t, &result) != 0 || result != PTHREAD_CANCELED;
}

static sigjmp_buf back;

static void jump_back(int sig)
{
	siglongjmp(back, sig);
}

/* A mapping whose file ends before it. */
static int bus_error(void)
{
	char *p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, file, 0);
	if (p == MAP_FAILED || signal(SIGBUS, jump_back) == SIG_ERR)
		return NO_BOX;
	int sig = sigsetjmp(back, 1);
	if (sig == 0)
		return ((volatile char *)p)[4096] + 1;
	return sig == SIGBUS ? 0 : sig;
}

static int take_caller(void)
{
	return code(accept4(listening, NULL, NULL, SOCK_CLOEXEC));
}

static int no_descriptors(void)
{
	struct rlimit few = {.rlim_cur = 3, .rlim_max = 3};
	return setrlimit(RLIMIT_NOFILE, &few) == 0 ? take_caller() : NO_BOX;
}

static int fails_as_it_should(void)
{
	return abort(), 0;
}

START_TEST(all__threads_memory_and_cancellation_work)
{
	ck_assert_int_eq(boxed(threads, ALL), 0);
	ck_assert_int_eq(boxed(cancel, ALL), 0);
}
END_TEST

START_TEST(all__sigbus_can_be_handled)
{
	make_descriptors();
	ck_assert_int_eq(boxed(bus_error, ALL), 0);
}
END_TEST

START_TEST(all__accept_without_a_descriptor_left_is_emfile)
{
	make_descriptors();
	ck_assert_int_eq(boxed(take_caller, ALL), EAGAIN << 8); /* nobody calls */
	int caller = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	ck_assert_int_eq(getsockname(listening, (struct sockaddr *)&name, &len), 0);
	ck_assert_int_eq(connect(caller, (struct sockaddr *)&name, len), 0);
	ck_assert_int_eq(boxed(no_descriptors, ALL), EMFILE << 8);
}
END_TEST

START_TEST(all__abort_ends_it_by_its_own_signal)
{
	int status = boxed(fails_as_it_should, ALL);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && !WCOREDUMP(status));
}
END_TEST

/* ---- rights ---- */

static int rights(void)
{
	cap_t none = cap_init(), now = cap_get_proc();
	struct rlimit core;
	if (!none || !now || cap_compare(none, now) != 0)
		return 1;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 2;
	return getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_cur || core.rlim_max ? 3 : 0;
}

START_TEST(rights__are_gone)
{
	int status;
	pid_t pid = fork();
	if (pid == 0)
		_exit(cf_sandbox_drop_rights(&err) < 0 ? NO_BOX : rights());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

static int what_holds(void)
{
	return (box.seccomp ? 1 : 0) | (box.landlock ? 2 : 0) | (box.use == CF_SANDBOX_ON ? 4 : 0);
}

START_TEST(enter__says_what_holds)
{
	ck_assert_int_eq(boxed(what_holds, ALL), (is_here(FILTER) | is_here(FILES) << 1 | 4) << 8);
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
	tcase_add_test(t, all__threads_memory_and_cancellation_work);
	tcase_add_test(t, all__sigbus_can_be_handled);
	tcase_add_test(t, all__accept_without_a_descriptor_left_is_emfile);
	tcase_add_test(t, all__abort_ends_it_by_its_own_signal);
	tcase_add_test(t, rights__are_gone);
	tcase_add_test(t, enter__says_what_holds);
	suite_add_tcase(s, t);
	return test_run(s);
}
