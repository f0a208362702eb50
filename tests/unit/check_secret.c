/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_secret.c - the arena: what it hands out, what it forgets, who allocates from it.
 *
 * Every test runs in a forked child (Check's default) and makes an arena of its own there. */
#include "cryptfuse/secret.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <string.h>

#include "cryptfuse/err.h"
#include "run.h"

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

int main(void)
{
	Suite *s = suite_create("secret");
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
	suite_add_tcase(s, t);
	return test_run(s);
}
