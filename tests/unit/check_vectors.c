/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_vectors.c - what the real dm-crypt wrote, byte for byte: every row of tests/vectors/crypt.tsv, on every engine
 * that has the cipher, on every path and at many batch sizes. Rows whose cipher no engine here has must be refused by
 * name. Counts are asserted engine by engine, so that a row that silently stops being tested fails. */
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

static int open_row(const struct vector *v, const char *engine, enum cf_path path, struct cf_cipher **c,
					struct cf_err *err)
{
	uint8_t key[CF_KEY_MAX];
	struct cf_cipher_spec spec;
	struct cf_cipher_opts opts = {.engine = engine, .path = path, .n_workers = 1};
	ck_assert_msg(vector_spec(v, &spec, err) == 0, "%s: %s", v->name, err->text);
	ck_assert_uint_eq(unhex(v->key, key, sizeof(key)), spec.key_bytes);
	return cf_cipher_new(c, &spec, key, &opts, err);
}

/* Which batch sizes: all for the short rows; for the long ones one, that changes from row to row, among the larger
 * where every call is one of the system. */
enum sizes { SIZES_ALL, SIZES_IN_TURN, SIZES_LARGE_IN_TURN };

/* Open a row on a path of an engine and check it; 0 if the engine does not have the cipher, or no such path. */
static unsigned check_path(const struct vector *v, const char *engine, enum cf_path path, const char *name,
						   enum sizes which)
{
	static const size_t sizes[] = {1, 2, 7, 129, SIZE_MAX};
	struct cf_err err = {0};
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = NULL;
	char where[64];
	int rc = open_row(v, engine, path, &c, &err);
	if (rc == -ENODEV &&
		(path == CF_PATH_NATIVE || strstr(err.text, "no engine here has") || strstr(err.text, "no batch path")))
		return 0;
	ck_assert_msg(rc == 0, "%s %s, %s: %s", v->set, v->name, engine, err.text);
	snprintf(where, sizeof(where), "%s, %s", engine, name);
	size_t least = which == SIZES_LARGE_IN_TURN ? 3 : 0;
	for (size_t i = 0; i < CF_ARRAY_LEN(sizes); i++)
		if (which == SIZES_ALL || i == least + (size_t)(v - rows) % (CF_ARRAY_LEN(sizes) - least))
			check_row(v, c, sizes[i], where);
	return 1;
}

/* CHECK_ENGINE names the one engine to test, which must be here: of use inside a kernel that has AF_ALG. There each
 * call is dear, so of the large rows those are tested that no other engine has, and every eighth; CHECK_ALL tests them
 * all. */
static bool is_selected(const struct vector *v)
{
	bool others_lack_it = strstr(v->cipher, "cast6") || strstr(v->cipher, "adiantum");
	return !getenv("CHECK_ENGINE") || getenv("CHECK_ALL") || strcmp(v->set, "k64") != 0 || others_lack_it ||
		   (v - rows) % 8 == 0;
}

/* One engine over one set; @n_served counts engines by row. Returns how many rows it served, on whatever path. */
static unsigned check_engine(const char *set, const char *engine, enum sizes which, unsigned *n_served)
{
	unsigned batch = 0, native = 0, served = 0;
	for (size_t i = 0; i < n_rows; i++) {
		const struct vector *v = &rows[i];
		if (strcmp(v->set, set) != 0 || !v->accepted || !is_selected(v))
			continue;
		unsigned as_batch = check_path(v, engine, CF_PATH_BATCH, "batch", which);
		unsigned as_whole = check_path(v, engine, CF_PATH_NATIVE, "native", which);
		batch += as_batch;
		native += as_whole;
		served += as_batch || as_whole;
		n_served[i] += as_batch || as_whole;
	}
	printf("%s, %s: %u rows right; %u as batch, %u by the engine's own mode\n", set, engine, served, batch, native);
	if (strcmp(engine, "null") != 0)
		ck_assert_uint_gt(native, batch / 3);
	return served;
}

/* Nobody names an engine: what any of them served is served, the rest is refused and says so. Each engine is timed when
 * one is to be chosen, so of the rows that open only every fourth is opened. Returns how many rows any engine serves.
 */
static unsigned check_auto(const char *set, const unsigned *n_served, unsigned *refused)
{
	unsigned served = 0;
	for (size_t i = 0; i < n_rows; i++) {
		const struct vector *v = &rows[i];
		struct cf_err err = {0};
		CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = NULL;
		if (strcmp(v->set, set) != 0)
			continue;
		*refused += !v->accepted;
		served += n_served[i] > 0;
		if (n_served[i] && i % 4)
			continue;
		int rc = open_row(v, NULL, CF_PATH_AUTO, &c, &err);
		ck_assert_msg(rc == (n_served[i] ? 0 : -ENODEV), "%s: %s", v->name, err.text);
		if (n_served[i])
			check_row(v, c, SIZE_MAX, "auto");
		else if (v->accepted)
			ck_assert_msg(strstr(err.text, "no engine here has") != NULL, "%s: %s", v->name, err.text);
	}
	return served;
}

/* What each engine must serve, if it is built and works here. */
static const struct expected {
	const char *engine;
	unsigned k4, k64;
} expected[] = {
	{"cpu-vaes512", 127, 320},
	{"cpu-vaes256", 127, 320},
	{"cpu-aesni", 127, 320},
	{"cpu-arm64", 127, 320}, /* aes */
	{"openssl", 139, 320},   /* and camellia, cast5 … */
	{"gcrypt", 157, 352},    /* and serpent, twofish */
	{"afalg", 171, 376},     /* all */
	{"null", 0, 0},
};

static unsigned n_left_out(const char *set)
{
	unsigned n = 0;
	for (size_t i = 0; i < n_rows; i++)
		n += !strcmp(rows[i].set, set) && rows[i].accepted && !is_selected(&rows[i]);
	return n;
}

static unsigned expected_rows(const char *engine, const char *set)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(expected); i++)
		if (!strcmp(expected[i].engine, engine))
			return (strcmp(set, "k4") ? expected[i].k64 : expected[i].k4) - n_left_out(set);
	ck_abort_msg("engine '%s' is in no table here: how many rows should it serve?", engine);
	return 0;
}

static bool is_asked_for(const struct cf_engine *e)
{
	const char *only = getenv("CHECK_ENGINE");
	return only ? strcmp(only, e->name) == 0 : e->probe(NULL) == 0;
}

static void check_set(const char *set, enum sizes which, unsigned expect_accepted, unsigned expect_refused)
{
	unsigned refused = 0, accepted = 0, *n_served = calloc(n_rows, sizeof(*n_served));
	ck_assert_ptr_nonnull(n_served);
	for (size_t e = 0; cf_engines[e]; e++) {
		bool dear = cf_engines[e]->elsewhere && which == SIZES_IN_TURN;
		if (is_asked_for(cf_engines[e]))
			ck_assert_uint_eq(check_engine(set, cf_engines[e]->name, dear ? SIZES_LARGE_IN_TURN : which, n_served),
							  expected_rows(cf_engines[e]->name, set));
	}
	unsigned served = getenv("CHECK_ENGINE") ? 0 : check_auto(set, n_served, &refused);
	for (size_t i = 0; i < n_rows; i++)
		accepted += !strcmp(rows[i].set, set) && rows[i].accepted;
	free(n_served);
	ck_assert_uint_eq(accepted, expect_accepted);
	if (getenv("CHECK_ENGINE"))
		return;
	printf("%s: %u of %u rows served; %u refused as the kernel did\n", set, served, accepted, refused);
	ck_assert_uint_eq(refused, expect_refused);
}

START_TEST(dmcrypt_4k_pages__every_row_on_every_path)
{
	check_set("k4", SIZES_ALL, 171, 10);
}
END_TEST

START_TEST(dmcrypt_64k_pages__every_row_on_every_path)
{
	check_set("k64", SIZES_IN_TURN, 376, 0);
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
	test_one_arena();
	n_rows = vectors_load(&rows);
	vector_plaintext(plain, sizeof(plain));
	int status = test_run(suite());
	vectors_free(&rows, n_rows);
	return status;
}
