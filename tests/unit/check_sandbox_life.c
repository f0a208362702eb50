/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_sandbox_life.c - what must work inside the daemon's sandbox, and what is gone before it is entered. */
#include "config.h"

#include "cryptfuse/sandbox.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "run.h"
#include "test_box.h"

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
			_exit(TEST_NO_BOX);
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
	char *p = mmap(NULL, 8192, PROT_READ, MAP_SHARED, test_box_fds.file, 0);
	if (p == MAP_FAILED || signal(SIGBUS, jump_back) == SIG_ERR)
		return TEST_NO_BOX;
	int sig = sigsetjmp(back, 1);
	if (sig == 0)
		return ((volatile char *)p)[4096] + 1;
	return sig == SIGBUS ? 0 : sig;
}

static int take_caller(void)
{
	return test_code(accept4(test_box_fds.listening, NULL, NULL, SOCK_CLOEXEC));
}

static int no_descriptors(void)
{
	struct rlimit few;
	if (getrlimit(RLIMIT_NOFILE, &few) != 0)
		return TEST_NO_BOX;
	few.rlim_cur = 3;
	return setrlimit(RLIMIT_NOFILE, &few) == 0 ? take_caller() : TEST_NO_BOX;
}

static int fails_as_it_should(void)
{
	return abort(), 0;
}

START_TEST(all__threads_memory_and_cancellation_work)
{
	ck_assert_int_eq(test_boxed(threads, TEST_BOX), 0);
	ck_assert_int_eq(test_boxed(cancel, TEST_BOX), 0);
}
END_TEST

START_TEST(all__sigbus_can_be_handled)
{
	test_box_descriptors();
	ck_assert_int_eq(test_boxed(bus_error, TEST_BOX), 0);
}
END_TEST

START_TEST(all__accept_without_a_descriptor_left_is_emfile)
{
	test_box_descriptors();
	ck_assert_int_eq(test_boxed(take_caller, TEST_BOX), EAGAIN << 8); /* nobody calls */
	int caller = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	ck_assert_int_eq(getsockname(test_box_fds.listening, (struct sockaddr *)&name, &len), 0);
	ck_assert_int_eq(connect(caller, (struct sockaddr *)&name, len), 0);
	ck_assert_int_eq(test_boxed(no_descriptors, TEST_BOX), EMFILE << 8);
}
END_TEST

START_TEST(all__abort_ends_it_by_its_own_signal)
{
	int status = test_boxed(fails_as_it_should, TEST_BOX);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && !WCOREDUMP(status));
}
END_TEST

/* ---- rights ---- */

static int rights(void)
{
	cap_t none = cap_init(), now = cap_get_proc();
	struct rlimit core;
	const int differ = !none || !now || cap_compare(none, now) != 0;
	cap_free(none);
	cap_free(now);
	if (differ)
		return 1;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		return 2;
	return getrlimit(RLIMIT_CORE, &core) != 0 || core.rlim_cur || core.rlim_max ? 3 : 0;
}

START_TEST(rights__are_gone)
{
	struct cf_err err = {0};
	int status;
	pid_t pid = fork();
	if (pid == 0)
		_exit(cf_sandbox_drop_rights(&err) < 0 ? TEST_NO_BOX : rights());
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}
END_TEST

static int what_holds(void)
{
	return (test_box.seccomp ? 1 : 0) | (test_box.landlock ? 2 : 0) | (test_box.use == CF_SANDBOX_ON ? 4 : 0);
}

START_TEST(enter__says_what_holds)
{
	ck_assert_int_eq(test_boxed(what_holds, TEST_BOX), (test_box_has(TEST_FILTER) | test_box_has(TEST_FILES) << 1 | 4)
														   << 8);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("sandbox life");
	TCase *t = tcase_create("sandbox life");
	tcase_add_test(t, all__threads_memory_and_cancellation_work);
	tcase_add_test(t, all__sigbus_can_be_handled);
	tcase_add_test(t, all__accept_without_a_descriptor_left_is_emfile);
	tcase_add_test(t, all__abort_ends_it_by_its_own_signal);
	tcase_add_test(t, rights__are_gone);
	tcase_add_test(t, enter__says_what_holds);
	suite_add_tcase(s, t);
	return test_run(s);
}
