/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_secret.c - the arena: where it lies, what it forgets, who allocates from it.
 *
 * Every test runs in a forked child (Check's default) and makes an arena of its own there. Those that look at the pages
 * read /proc/self/smaps, since that is what the kernel holds to. */
#include "cryptfuse/secret.h"

#include <errno.h>
#include <inttypes.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "run.h"

/* gcc's sanitizers take mlock over, do nothing, and say that it worked. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MLOCK_IS_REAL 0
#else
#define MLOCK_IS_REAL 1
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

static const size_t lengths[] = {0, 1, 63, 64, 65, 255, 256, 257, 320, 321, 4095, 4096, 4097, 65536, 1048577};

START_TEST(alloc__is_aligned_zeroed_and_in_the_arena)
{
	size_t len = lengths[_i];
	uint8_t *p = cf_secret_alloc(len);
	ck_assert_ptr_nonnull(p);
	ck_assert_uint_eq((uintptr_t)p % 64, 0);
	ck_assert(cf_secret_contains(p));
	ck_assert(all(p, 0, len));
	cf_secret_free(p);
}
END_TEST

/* The arena keeps freed blocks mapped, so what is left in one can be looked at. */
START_TEST(free__wipes)
{
	size_t len = lengths[_i];
	uint8_t *p = cf_secret_alloc(len);
	memset(p, 0xa5, len);
	cf_secret_free(p);
	ck_assert(all(p, 0, len));
}
END_TEST

START_TEST(alloc__of_a_freed_block_is_zeroed)
{
	uint8_t *p = cf_secret_alloc(200);
	memset(p, 0xa5, 200);
	cf_secret_free(p);
	uint8_t *q = cf_secret_alloc(193); /* the same class */
	ck_assert_ptr_eq(p, q);
	ck_assert(all(q, 0, 193));
	cf_secret_free(q);
}
END_TEST

START_TEST(alloc__never_hands_out_the_same_byte_twice)
{
	uint8_t *p[CF_ARRAY_LEN(lengths)];
	for (size_t i = 0; i < CF_ARRAY_LEN(lengths); i++) {
		p[i] = cf_secret_alloc(lengths[i]);
		memset(p[i], (int)i + 1, lengths[i]);
	}
	for (size_t i = 0; i < CF_ARRAY_LEN(lengths); i++)
		ck_assert(all(p[i], (uint8_t)(i + 1), lengths[i]));
	for (size_t i = 0; i < CF_ARRAY_LEN(lengths); i++)
		cf_secret_free(p[i]);
}
END_TEST

START_TEST(alloc__beyond_the_arena_is_null_and_harmless)
{
	size_t before = stats().in_use_bytes;
	ck_assert_ptr_null(cf_secret_alloc(SIZE_MAX));
	ck_assert_ptr_null(cf_secret_alloc(SIZE_MAX / 2));
	ck_assert_ptr_null(cf_secret_alloc((size_t)256 << 20));
	ck_assert_uint_eq(stats().in_use_bytes, before);
	void *p = cf_secret_alloc(1);
	ck_assert_ptr_nonnull(p);
	cf_secret_free(p);
}
END_TEST

START_TEST(stats__follow_alloc_and_free)
{
	struct cf_secret_stats before = stats();
	void *p = cf_secret_alloc(1000);
	ck_assert_uint_ge(stats().in_use_bytes, before.in_use_bytes + 1000);
	ck_assert_uint_eq(stats().n_alloc, before.n_alloc + 1);
	cf_secret_free(p);
	ck_assert_uint_eq(stats().in_use_bytes, before.in_use_bytes);
	cf_secret_free(NULL);
	ck_assert_uint_eq(stats().n_alloc, before.n_alloc + 1);
}
END_TEST

START_TEST(freep__leaves_null)
{
	void *p = cf_secret_alloc(10);
	cf_secret_freep(&p);
	ck_assert_ptr_null(p);
	cf_secret_freep(&p);
}
END_TEST

START_TEST(contains__ends_with_the_arena)
{
	int on_stack = 0;
	void *heap = malloc(1);
	ck_assert(!cf_secret_contains(&on_stack));
	ck_assert(!cf_secret_contains(heap));
	ck_assert(!cf_secret_contains(NULL));
	free(heap);
}
END_TEST

START_TEST(init__again_is_harmless)
{
	uint8_t *p = cf_secret_alloc(1);
	*p = 7;
	ck_assert_int_eq(cf_secret_init(&err), 0);
	ck_assert_uint_eq(*p, 7);
	cf_secret_free(p);
}
END_TEST

START_TEST(wipe__overwrites)
{
	uint8_t buf[100];
	memset(buf, 0xa5, sizeof(buf));
	cf_secret_wipe(buf + 1, 98);
	ck_assert_uint_eq(buf[0], 0xa5);
	ck_assert(all(buf + 1, 0, 98));
	ck_assert_uint_eq(buf[99], 0xa5);
	cf_secret_wipe(NULL, 0);
}
END_TEST

/* ---- libcrypto ---- */

START_TEST(libcrypto__allocates_here)
{
	uint64_t before = stats().n_alloc;
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	ck_assert(cf_secret_contains(ctx));
	ck_assert_int_eq(
		EVP_EncryptInit_ex(ctx, EVP_aes_256_ecb(), NULL, (const uint8_t *)"0123456789abcdef0123456789abcdef", NULL), 1);
	ck_assert_uint_gt(stats().n_alloc, before);
	EVP_CIPHER_CTX_free(ctx);
}
END_TEST

START_TEST(realloc__keeps_what_fits_and_wipes_the_rest)
{
	uint8_t *p = OPENSSL_malloc(100);
	memset(p, 0xa5, 100);
	uint8_t *q = OPENSSL_realloc(p, 50); /* in place */
	ck_assert_ptr_eq(p, q);
	ck_assert(all(q, 0xa5, 50));
	ck_assert(all(q + 50, 0, 50));
	q = OPENSSL_realloc(q, 5000); /* moves */
	ck_assert_ptr_ne(p, q);
	ck_assert(cf_secret_contains(q));
	ck_assert(all(q, 0xa5, 50));
	ck_assert(all(q + 50, 0, 5000 - 50));
	ck_assert(all(p, 0, 100));
	OPENSSL_free(q);
}
END_TEST

START_TEST(realloc__from_null_allocates_and_to_zero_frees)
{
	size_t before = stats().in_use_bytes;
	uint8_t *p = OPENSSL_realloc(NULL, 10);
	ck_assert(cf_secret_contains(p));
	memset(p, 0xa5, 10);
	ck_assert_ptr_null(OPENSSL_realloc(p, 0));
	ck_assert(all(p, 0, 10));
	ck_assert_uint_eq(stats().in_use_bytes, before);
}
END_TEST

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
	if (!stats().locked)
		return; /* RLIMIT_MEMLOCK is too small here; stats say so */
	for (size_t i = 0; i < CF_ARRAY_LEN(want) - !MLOCK_IS_REAL; i++) {
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
	ck_assert(!MLOCK_IS_REAL || !stats().locked);
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

/* ---- threads ---- */

static void *churn(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg;
	for (int i = 0; i < 3000; i++) {
		size_t len = (size_t)rand_r(&seed) % 2000;
		uint8_t *p = cf_secret_alloc(len);
		if (!p || !all(p, 0, len))
			return arg;
		memset(p, (int)(uintptr_t)arg, len);
		if (!all(p, (uint8_t)(uintptr_t)arg, len))
			return arg;
		cf_secret_free(p);
	}
	return NULL;
}

START_TEST(many_threads__get_blocks_of_their_own)
{
	pthread_t t[8];
	size_t before = stats().in_use_bytes;
	for (uintptr_t i = 0; i < CF_ARRAY_LEN(t); i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, churn, (void *)(i + 1)), 0);
	for (size_t i = 0; i < CF_ARRAY_LEN(t); i++) {
		void *failed;
		pthread_join(t[i], &failed);
		ck_assert_ptr_null(failed);
	}
	ck_assert_uint_eq(stats().in_use_bytes, before);
}
END_TEST

static TCase *arena_case(void)
{
	TCase *t = tcase_create("arena");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, alloc__is_aligned_zeroed_and_in_the_arena, 0, (int)CF_ARRAY_LEN(lengths));
	tcase_add_loop_test(t, free__wipes, 0, (int)CF_ARRAY_LEN(lengths));
	tcase_add_test(t, alloc__of_a_freed_block_is_zeroed);
	tcase_add_test(t, alloc__never_hands_out_the_same_byte_twice);
	tcase_add_test(t, alloc__beyond_the_arena_is_null_and_harmless);
	tcase_add_test(t, stats__follow_alloc_and_free);
	tcase_add_test(t, freep__leaves_null);
	tcase_add_test(t, contains__ends_with_the_arena);
	tcase_add_test(t, init__again_is_harmless);
	tcase_add_test(t, wipe__overwrites);
	tcase_add_test(t, libcrypto__allocates_here);
	tcase_add_test(t, realloc__keeps_what_fits_and_wipes_the_rest);
	tcase_add_test(t, realloc__from_null_allocates_and_to_zero_frees);
	tcase_add_test(t, many_threads__get_blocks_of_their_own);
	return t;
}

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
	Suite *s = suite_create("secret");
	suite_add_tcase(s, arena_case());
	suite_add_tcase(s, pages_case());
	suite_add_tcase(s, bare_case());
	return test_run(s);
}
