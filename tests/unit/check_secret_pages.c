/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_secret_pages.c - the arena's pages: locked, not dumped, not inherited, guarded; and its beginning and end.
 *
 * Read from /proc/self/smaps, since that is what the kernel holds to. Every test runs in a forked child (Check's
 * default) and makes an arena of its own there. */
#include "cryptfuse/secret.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "run.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MLOCK_WORKS false /* the sanitizers make it do nothing */
#else
#define MLOCK_WORKS true
#endif

static struct cf_err err;

static void setup(void)
{
	ck_assert_int_eq(cf_secret_init(&err), 0);
}

static void teardown(void)
{
	cf_secret_fini();
}

static bool all(const uint8_t *p, uint8_t value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != value)
			return false;
	return true;
}

static struct cf_secret_stats stats(void)
{
	struct cf_secret_stats s;
	cf_secret_stats(&s);
	return s;
}

START_TEST(init__after_libcrypto_has_allocated_is_refused)
{
	OPENSSL_free(OPENSSL_malloc(1));
	ck_assert_int_eq(cf_secret_init(&err), -EBUSY);
	ck_assert_str_ne(err.text, "");
	ck_assert_ptr_null(cf_secret_alloc(1));
}
END_TEST

/* ---- pages ---- */

/* The VmFlags of the mapping that holds @p, " rd wr … ". */
static void vm_flags(const void *p, char flags[static 256])
{
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[512];
	bool inside = false;
	ck_assert_ptr_nonnull(f);
	flags[0] = '\0';
	while (fgets(line, sizeof(line), f)) {
		uintptr_t from, to;
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2)
			inside = (uintptr_t)p >= from && (uintptr_t)p < to;
		else if (inside && sscanf(line, "VmFlags:%255[^\n]", flags) == 1)
			strcat(flags, " ");
	}
	fclose(f);
}

START_TEST(pages__are_locked_and_stay_out_of_dumps_and_children)
{
	static const char *const want[] = {" dd ", " wf ", " lo "};
	char flags[257];
	uint8_t *p = cf_secret_alloc(_i ? (size_t)1 << 20 : 1); /* the first step, and a later one */
	bool locked = MLOCK_WORKS && stats().locked;            /* if RLIMIT_MEMLOCK is too small here, the stats say so */
	for (size_t i = 0; i < CF_ARRAY_LEN(want) - !locked; i++) {
		vm_flags(p, flags);
		ck_assert_msg(strstr(flags, want[i]) != NULL, "VmFlags:%s", flags);
		vm_flags(p + (_i ? ((size_t)1 << 20) - 1 : 0), flags);
		ck_assert_msg(strstr(flags, want[i]) != NULL, "VmFlags:%s", flags);
	}
	cf_secret_free(p);
}
END_TEST

START_TEST(stats__say_when_memory_could_not_be_locked)
{
	struct rlimit none = {.rlim_cur = 0, .rlim_max = 0};
	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &none), 0);
	if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) /* root is not bound by the limit */
		ck_abort_msg("cannot become an ordinary user");
	ck_assert_int_eq(cf_secret_init(&err), 0);
	uint8_t *p = cf_secret_alloc(100);
	ck_assert_ptr_nonnull(p);
	ck_assert(!MLOCK_WORKS || !stats().locked);
	cf_secret_fini();
}
END_TEST

/* A child of a test's child, as it would run in the daemon: the status it ends with. */
static int in_child(void (*fn)(uint8_t *), uint8_t *arg)
{
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		signal(SIGSEGV, SIG_DFL);
		fn(arg);
		_exit(0);
	}
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

static void touch(uint8_t *p)
{
	*(volatile uint8_t *)p = 1;
}

START_TEST(guards__fault)
{
	uint8_t *first = NULL;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	for (uint8_t *p = cf_secret_alloc(1); !first; p -= 64) /* the arena's first byte */
		if (!cf_secret_contains(p - 64))
			first = p;
	ck_assert_uint_eq((uintptr_t)first % page, 0);
	ck_assert_int_eq(in_child(touch, first), 0);
	int before = in_child(touch, first - 1), behind = in_child(touch, first + stats().committed_bytes);
	ck_assert_int_eq(in_child(touch, first + stats().committed_bytes - 1), 0);
	ck_assert(WIFSIGNALED(before) && WTERMSIG(before) == SIGSEGV);
	ck_assert(WIFSIGNALED(behind) && WTERMSIG(behind) == SIGSEGV);
}
END_TEST

static void expect_zero(uint8_t *p)
{
	if (!all(p, 0, 100))
		_exit(1);
	if (cf_secret_init(NULL) != -EBUSY) /* it would be an arena without its contents, and not locked */
		_exit(2);
}

START_TEST(fork__leaves_the_child_nothing)
{
	uint8_t *p = cf_secret_alloc(100);
	memset(p, 0xa5, 100);
	ck_assert_int_eq(in_child(expect_zero, p), 0);
	ck_assert(all(p, 0xa5, 100));
	cf_secret_free(p);
}
END_TEST

START_TEST(fini__unmaps)
{
	uint8_t *p = cf_secret_alloc(1);
	cf_secret_fini();
	ck_assert(!cf_secret_contains(p));
	ck_assert_ptr_null(cf_secret_alloc(1));
	int status = in_child(touch, p);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	cf_secret_fini();
}
END_TEST

static TCase *pages_case(void)
{
	TCase *t = tcase_create("pages");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, pages__are_locked_and_stay_out_of_dumps_and_children, 0, 2);
	tcase_add_test(t, guards__fault);
	tcase_add_test(t, fork__leaves_the_child_nothing);
	tcase_add_test(t, fini__unmaps);
	return t;
}

static TCase *bare_case(void)
{
	TCase *t = tcase_create("before init");
	tcase_add_test(t, init__after_libcrypto_has_allocated_is_refused);
	tcase_add_test(t, stats__say_when_memory_could_not_be_locked);
	return t;
}

int main(void)
{
	Suite *s = suite_create("secret pages");
	suite_add_tcase(s, pages_case());
	suite_add_tcase(s, bare_case());
	return test_run(s);
}
