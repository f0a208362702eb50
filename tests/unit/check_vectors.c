/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_vectors.c - what the real dm-crypt wrote, byte for byte: every row of tests/vectors/crypt.tsv, on every path
 * and at every batch size. Rows whose cipher no engine here has must be refused by name. Counts are asserted, so that a
 * row that silently stops being tested fails. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/engine.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "run.h"
#include "vectors.h"

static struct vector *rows;
static uint8_t plain[2048 * 512], crypt[sizeof(plain)], back[sizeof(plain)];
static size_t n_rows;

/* Ciphers that libcrypto has not, and so no engine of this build. */
static bool libcrypto_lacks(const char *cipher)
{
	static const char *const lacking[] = {"serpent", "twofish", "cast6", "adiantum"};
	for (size_t i = 0; i < CF_ARRAY_LEN(lacking); i++)
		if (strstr(cipher, lacking[i]))
			return true;
	return false;
}

/* Encrypt the plaintext @at_once data units a call, compare; decrypt, compare. */
static void check_row(const struct vector *v, struct cf_cipher *c, size_t at_once, const char *path)
{
	size_t len = v->sectors * 512, du = v->sector_size, total = len / du;
	char digest[65];
	ck_assert_uint_le(len, sizeof(plain));
	for (size_t i = 0; i < total; i += at_once) {
		size_t n = total - i < at_once ? total - i : at_once;
		ck_assert_int_eq(cf_cipher_crypt(c, 0, CF_ENCRYPT, i, n, plain + i * du, crypt + i * du), 0);
	}
	sha256_hex(crypt, len, digest);
	ck_assert_msg(!strcmp(digest, v->sha256), "%s %s, %s, %zu at once: wrong ciphertext", v->set, v->name, path,
				  at_once);
	for (size_t i = 0; i < total; i += at_once) {
		size_t n = total - i < at_once ? total - i : at_once;
		ck_assert_int_eq(cf_cipher_crypt(c, 0, CF_DECRYPT, i, n, crypt + i * du, back + i * du), 0);
	}
	ck_assert_msg(!memcmp(plain, back, len), "%s %s, %s, %zu at once: wrong plaintext", v->set, v->name, path, at_once);
}

static int open_row(const struct vector *v, enum cf_path path, struct cf_cipher **c, struct cf_err *err)
{
	uint8_t key[CF_KEY_MAX];
	struct cf_cipher_spec spec;
	struct cf_cipher_opts opts = {.path = path, .n_workers = 1};
	ck_assert_msg(vector_spec(v, &spec, err) == 0, "%s: %s", v->name, err->text);
	ck_assert_uint_eq(unhex(v->key, key, sizeof(key)), spec.key_bytes);
	return cf_cipher_new(c, &spec, key, &opts, err);
}

/* Open a row on a path and check it at all batch sizes; 0 if the engine has no such path. */
static int check_path(const struct vector *v, enum cf_path path, const char *name)
{
	static const size_t sizes[] = {1, 2, 7, 129, SIZE_MAX};
	struct cf_err err = {0};
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = NULL;
	int rc = open_row(v, path, &c, &err);
	if (rc == -ENODEV && path == CF_PATH_NATIVE)
		return 0;
	ck_assert_msg(rc == 0, "%s %s: %s", v->set, v->name, err.text);
	for (size_t i = path == CF_PATH_AUTO ? 4 : 0; i < CF_ARRAY_LEN(sizes); i++)
		check_row(v, c, sizes[i], name);
	return 1;
}

static void check_set(const char *set, unsigned expect_rows, unsigned expect_lacking, unsigned expect_refused)
{
	unsigned batch = 0, native = 0, lacking = 0, refused = 0;
	for (size_t i = 0; i < n_rows; i++) {
		const struct vector *v = &rows[i];
		struct cf_err err = {0};
		CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = NULL;
		if (strcmp(v->set, set) != 0)
			continue;
		if (!v->accepted || libcrypto_lacks(v->cipher)) {
			ck_assert_msg(open_row(v, CF_PATH_AUTO, &c, &err) == -ENODEV, "%s was taken", v->name);
			refused += !v->accepted;
			lacking += v->accepted;
			ck_assert_msg(!v->accepted || strstr(err.text, "no engine here has"), "%s: %s", v->name, err.text);
			continue;
		}
		batch += (unsigned)check_path(v, CF_PATH_BATCH, "batch");
		native += (unsigned)check_path(v, CF_PATH_NATIVE, "native");
		ck_assert_int_eq(check_path(v, CF_PATH_AUTO, "auto"), 1);
	}
	printf("%s: %u rows right as batch, %u of them natively too; %u need other engines; %u refused as the kernel did\n",
		   set, batch, native, lacking, refused);
	ck_assert_uint_eq(batch, expect_rows);
	ck_assert_uint_eq(lacking, expect_lacking);
	ck_assert_uint_eq(refused, expect_refused);
	ck_assert_uint_gt(native, batch / 3);
}

START_TEST(dmcrypt_4k_pages__every_row_on_every_path)
{
	check_set("k4", 139, 32, 10);
}
END_TEST

START_TEST(dmcrypt_64k_pages__every_row_on_every_path)
{
	check_set("k64", 320, 56, 0);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("vectors");
	TCase *tc = tcase_create("crypt rows");
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, dmcrypt_4k_pages__every_row_on_every_path);
	tcase_add_test(tc, dmcrypt_64k_pages__every_row_on_every_path);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	struct cf_err err = {0};
	setenv("CK_FORK", "no", 0); /* one secret arena for all; it does not survive a fork */
	if (cf_secret_init(&err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		return 99;
	}
	n_rows = vectors_load(&rows);
	vector_plaintext(plain, sizeof(plain));
	int status = test_run(suite());
	vectors_free(&rows, n_rows);
	return status;
}
