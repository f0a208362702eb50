/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_cipher.c - what the vectors cannot show: IV numbers at every wrap, keys at every residue, every mode x IV x
 * data unit against one unit at a time, failing engines, and what is refused. IVs are recovered from ciphertext with
 * libcrypto directly and compared with arithmetic written anew here. */
#include <check.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/engine.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/spec.h"
#include "run.h"
#include "vectors.h"

#define BUF_MAX (140u * 65536u)
static uint8_t *plain, *crypt, *other;

static const uint8_t *test_key(void)
{
	static uint8_t key[CF_KEY_MAX];
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 167 + (i >> 8) * 59 + 13);
	return key;
}

static struct cf_cipher_spec spec_of(const char *text, uint32_t key_bytes, uint32_t du, enum cf_iv_numbering numbering,
									 uint64_t iv_offset)
{
	struct cf_cipher_spec s = {0};
	struct cf_err err = {0};
	ck_assert_msg(cf_spec_parse_cipher(text, &s, &err) == 0, "%s: %s", text, err.text);
	s.key_bytes = key_bytes;
	s.du_bytes = du;
	s.iv_numbering = numbering;
	s.iv_offset = iv_offset;
	return s;
}

static struct cf_cipher *open_with(const struct cf_cipher_spec *s, enum cf_path path, const struct cf_engine *use,
								   const uint8_t *key)
{
	struct cf_cipher *c = NULL;
	struct cf_err err = {0};
	struct cf_cipher_opts opts = {.path = path, .n_workers = 2, .use = use};
	int rc = cf_cipher_new(&c, s, key, &opts, &err);
	ck_assert_msg(rc == 0 || (path == CF_PATH_NATIVE && rc == -ENODEV), "%s-%s-%s: %s", s->cipher, s->mode, s->iv,
				  err.text);
	return c;
}

static void must_crypt(struct cf_cipher *c, enum cf_dir dir, uint64_t du, size_t n, const uint8_t *src, uint8_t *dst)
{
	ck_assert_int_eq(cf_cipher_crypt(c, 1, dir, du, n, src, dst), 0);
}

static void one_by_one(struct cf_cipher *c, enum cf_dir dir, uint64_t du, size_t n, const uint8_t *src, uint8_t *dst)
{
	size_t bytes = cf_cipher_du_bytes(c);
	for (size_t i = 0; i < n; i++)
		must_crypt(c, dir, du + i, 1, src + i * bytes, dst + i * bytes);
}

/* ---- IV numbers ---- */

/* The IV of data unit @du, written anew from the table in the documentation, in 128-bit arithmetic. */
static void expected_iv(const char *kind, uint64_t du, uint32_t du_bytes, enum cf_iv_numbering numbering,
						uint64_t iv_offset, uint8_t out[16])
{
	unsigned __int128 s = ((unsigned __int128)du * du_bytes / 512 + iv_offset) & UINT64_MAX;
	if (numbering == CF_IV_LARGE_SECTORS)
		s = s / (du_bytes / 512);
	memset(out, 0, 16);
	if (!strcmp(kind, "benbi"))
		s = (s * 32 + 1) & UINT64_MAX;
	for (unsigned i = 0; i < 8; i++) {
		uint8_t byte = (uint8_t)(s >> (8 * i));
		if (!strcmp(kind, "plain64") || (!strcmp(kind, "plain") && i < 4))
			out[i] = byte;
		if (!strcmp(kind, "benbi") || !strcmp(kind, "plain64be"))
			out[15 - i] = byte;
	}
}

/* With a zero plaintext, CBC's first ciphertext block is E(IV). */
static void recover_iv(const uint8_t *key, const uint8_t *ciphertext, uint8_t iv[16])
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n;
	ck_assert(EVP_DecryptInit_ex(ctx, EVP_aes_128_ecb(), NULL, key, NULL) && EVP_CIPHER_CTX_set_padding(ctx, 0) &&
			  EVP_DecryptUpdate(ctx, iv, &n, ciphertext, 16));
	EVP_CIPHER_CTX_free(ctx);
}

static void check_ivs(const char *kind, uint32_t du_bytes, enum cf_iv_numbering numbering, uint64_t iv_offset,
					  uint64_t first, size_t n)
{
	char text[64];
	snprintf(text, sizeof(text), "aes-cbc-%s", kind);
	struct cf_cipher_spec s = spec_of(text, 16, du_bytes, numbering, iv_offset);
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = open_with(&s, CF_PATH_BATCH, NULL, test_key());
	memset(plain, 0, n * du_bytes);
	must_crypt(c, CF_ENCRYPT, first, n, plain, crypt);
	for (size_t i = 0; i < n; i++) {
		uint8_t want[16], got[16];
		expected_iv(kind, first + i, du_bytes, numbering, iv_offset, want);
		recover_iv(test_key(), crypt + i * du_bytes, got);
		ck_assert_msg(!memcmp(want, got, 16), "%s DU %u %s offset %llu: wrong IV of data unit %llu", text, du_bytes,
					  numbering ? "large" : "sectors", (unsigned long long)iv_offset, (unsigned long long)(first + i));
	}
}

static const char *const number_kinds[] = {"null", "plain", "plain64", "plain64be", "benbi"};

START_TEST(iv__right_at_a_wrap_at_every_position_of_a_tile)
{
	static const uint64_t wraps[] = {1ULL << 32, 0 /* 2^64 */, 1ULL << 59 /* benbi's product */, 1ULL << 62};
	for (size_t k = 0; k < CF_ARRAY_LEN(number_kinds); k++)
		for (size_t w = 0; w < CF_ARRAY_LEN(wraps); w++)
			for (uint64_t before = 0; before <= 129; before++)
				check_ivs(number_kinds[k], 512, CF_IV_SECTORS, wraps[w] - before, 0, 130);
}
END_TEST

START_TEST(iv__right_for_large_data_units_in_both_numberings)
{
	static const uint32_t sizes[] = {1024, 4096, 65536};
	for (size_t k = 0; k < CF_ARRAY_LEN(number_kinds); k++)
		for (size_t d = 0; d < CF_ARRAY_LEN(sizes); d++)
			for (uint64_t before = 0; before < 4; before++) {
				uint64_t step = sizes[d] / 512, n = 5;
				check_ivs(number_kinds[k], sizes[d], CF_IV_SECTORS, (1ULL << 32) - before * step, 0, n);
				check_ivs(number_kinds[k], sizes[d], CF_IV_LARGE_SECTORS, (1ULL << 32) * step - before * step, 0, n);
				check_ivs(number_kinds[k], sizes[d], CF_IV_LARGE_SECTORS, 0 - before * step, 0, n);
				check_ivs(number_kinds[k], sizes[d], CF_IV_SECTORS, 0 - before * step, (1ULL << 40) + 3, n);
			}
}
END_TEST

/* ---- several keys ---- */

START_TEST(keycount__every_starting_residue_uses_the_key_of_its_sector)
{
	static const uint32_t counts[] = {2, 4, 8, 64}, sizes[] = {512, 1024, 4096};
	static const char *const modes[] = {"xts-plain64", "cbc-essiv:sha256"};
	for (size_t m = 0; m < 2; m++)
		for (size_t k = 0; k < CF_ARRAY_LEN(counts); k++)
			for (size_t d = 0; d < CF_ARRAY_LEN(sizes); d++) {
				uint32_t part = m ? 16 : 32, count = counts[k], step = sizes[d] / 512;
				size_t n = 2 * count + 3;
				char many[64], single[64];
				snprintf(many, sizeof(many), "aes:%u-%s", count, modes[m]);
				snprintf(single, sizeof(single), "aes-%s", modes[m]);
				struct cf_cipher_spec s = spec_of(many, part * count, sizes[d], CF_IV_SECTORS, 3 * step);
				CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = open_with(&s, CF_PATH_AUTO, NULL, test_key());
				struct cf_cipher *one[64] = {0};
				struct cf_cipher_spec s1 = spec_of(single, part, sizes[d], CF_IV_SECTORS, 3 * step);
				for (uint32_t i = 0; i < count; i++)
					one[i] = open_with(&s1, CF_PATH_BATCH, NULL, test_key() + i * part);
				vector_plaintext(plain, n * sizes[d]);
				for (uint64_t first = 0; first < count; first++) {
					must_crypt(c, CF_ENCRYPT, first, n, plain, crypt);
					for (size_t i = 0; i < n; i++) {
						uint64_t key = ((first + i) * step + 3 * step) % count;
						must_crypt(one[key], CF_ENCRYPT, first + i, 1, plain + i * sizes[d], other);
						ck_assert_msg(!memcmp(other, crypt + i * sizes[d], sizes[d]), "%s DU %u: data unit %zu from %u",
									  many, sizes[d], i, (unsigned)first);
					}
					must_crypt(c, CF_DECRYPT, first, n, crypt, other);
					ck_assert(!memcmp(other, plain, n * sizes[d]));
				}
				for (uint32_t i = 0; i < count; i++)
					cf_cipher_free(&one[i]);
			}
}
END_TEST

/* ---- every mode x IV x data unit ---- */

static const struct combination {
	const char *text;
	uint32_t key_bytes;
} combinations[] = {
	{"aes-xts-plain64", 64},
	{"aes-xts-plain64", 48},
	{"camellia-xts-plain", 32},
	{"aes-xts-essiv:sha256", 64},
	{"aes-xts-benbi", 32},
	{"aes-xts-eboiv", 64},
	{"aes-xts-elephant", 64},
	{"aes-cbc-plain64", 32},
	{"aes-cbc-essiv:sha256", 16},
	{"aes-cbc-plain64be", 24},
	{"aes-cbc-benbi", 16},
	{"aes-cbc-null", 32},
	{"aes-cbc-eboiv", 32},
	{"aes-cbc-elephant", 48},
	{"aes-lrw-benbi", 48},
	{"camellia-lrw-plain64", 32},
	{"aes-lrw-essiv:md5", 32},
	{"aes-ecb", 32},
	{"aes-ctr-plain64", 16},
	{"aes-ctr-plain64be", 32},
	{"aes-ctr-essiv:sha256", 32},
	{"aes-pcbc-plain64", 32},
	{"aes-pcbc-essiv:sha256", 32},
	{"capi:cts(cbc(aes))-plain64", 32},
	{"capi:cts(cbc(aes))-eboiv", 16},
	{"blowfish-cbc-plain", 16},
	{"blowfish-cbc-essiv:sha384", 56},
	{"blowfish-ctr-plain64", 20},
	{"cast5-cbc-plain64", 10},
	{"cast5-pcbc-benbi", 16},
	{"des3_ede-cbc-plain64be", 24},
	{"des3_ede-ctr-plain", 24},
	{"aes:4-xts-plain64", 128},
	{"aes:16-cbc-essiv:sha256", 256},
	{"aes:2-lrw-benbi", 64},
	{"aes:4-ctr-eboiv", 64},
};

/* Combinations that need an IV of one block: ctr has blocks of one byte. */
static bool refused(const struct combination *k)
{
	return strstr(k->text, "ctr-eboiv") != NULL;
}

/* On one engine, at one data unit: batches, single units and the engine's own mode agree both ways. Returns 0 if the
 * engine has not the cipher. */
static int compare_paths(const struct cf_engine *e, const struct combination *k, uint32_t du,
						 enum cf_iv_numbering numbering)
{
	struct cf_cipher_spec s = spec_of(k->text, k->key_bytes, du, numbering, 1ULL << 40);
	size_t n = du <= 1024 ? 141 : du <= 8192 ? 19 : 3, len = n * du;
	if (e->probe(NULL) != 0 || cf_cipher_check(&s, e->name, NULL) != 0)
		return 0;
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *batch = open_with(&s, CF_PATH_BATCH, e, test_key());
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *native = open_with(&s, CF_PATH_NATIVE, e, test_key());
	must_crypt(batch, CF_ENCRYPT, 7, n, plain, crypt);
	one_by_one(batch, CF_ENCRYPT, 7, n, plain, other);
	ck_assert_msg(!memcmp(crypt, other, len), "%s %s DU %u: batch encryption differs", e->name, k->text, du);
	if (native) {
		must_crypt(native, CF_ENCRYPT, 7, n, plain, other);
		ck_assert_msg(!memcmp(crypt, other, len), "%s %s DU %u: native encryption differs", e->name, k->text, du);
		must_crypt(native, CF_DECRYPT, 7, n, crypt, other);
		ck_assert_msg(!memcmp(plain, other, len), "%s %s DU %u: native decryption differs", e->name, k->text, du);
	}
	one_by_one(batch, CF_DECRYPT, 7, n, crypt, other);
	ck_assert_msg(!memcmp(plain, other, len), "%s %s DU %u: decryption differs", e->name, k->text, du);
	must_crypt(batch, CF_DECRYPT, 7, n, crypt, other);
	ck_assert_msg(!memcmp(plain, other, len), "%s %s DU %u: batch decryption differs", e->name, k->text, du);
	return 1;
}

START_TEST(batch__equals_one_data_unit_at_a_time)
{
	const struct combination *k = &combinations[_i];
	int served = 0;
	if (refused(k))
		return;
	vector_plaintext(plain, 3 * 65536);
	for (size_t e = 0; cf_engines[e]; e++) {
		const bool thorough = !strcmp(cf_engines[e]->name, "openssl");
		for (uint32_t du = 512; du <= 65536; du *= thorough ? 2 : 8) {
			served += compare_paths(cf_engines[e], k, du, CF_IV_SECTORS);
			if (thorough)
				served += compare_paths(cf_engines[e], k, du, CF_IV_LARGE_SECTORS);
		}
	}
	ck_assert_int_ge(served, 16);
}
END_TEST

START_TEST(xts__equal_key_halves_are_read_and_written)
{
	uint8_t key[64];
	memset(key, 0x42, sizeof(key));
	for (int zero = 0; zero < 2; zero++) {
		struct cf_cipher_spec s = spec_of("aes-xts-plain64", 64, 512, CF_IV_SECTORS, 0);
		CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = open_with(&s, CF_PATH_AUTO, NULL, key);
		vector_plaintext(plain, 33 * 512);
		must_crypt(c, CF_ENCRYPT, 0, 33, plain, crypt);
		ck_assert(memcmp(plain, crypt, 512) != 0);
		must_crypt(c, CF_DECRYPT, 0, 33, crypt, other);
		ck_assert(!memcmp(plain, other, 33 * 512));
		memset(key, 0, sizeof(key));
	}
}
END_TEST

/* ---- an engine that fails ---- */

static unsigned fail_at, calls; /* 0: never */
static int fail_for_ever;

static const struct cf_engine *real_engine(void)
{
	const struct cf_engine *e = NULL;
	ck_assert_int_eq(cf_engine_find("openssl", &e, NULL), 0);
	return e;
}

static int failing_crypt(struct cf_engine_key *key, unsigned worker, enum cf_dir dir, const uint8_t *src, uint8_t *dst,
						 size_t n)
{
	calls++;
	if (fail_at && (calls == fail_at || (fail_for_ever && calls > fail_at))) {
		memset(dst, 0xee, n); /* an error leaves anything behind */
		return -ENOMEM;
	}
	return real_engine()->crypt(key, worker, dir, src, dst, n);
}

static struct cf_engine failing_engine(void)
{
	struct cf_engine e = *real_engine();
	e.name = "failing";
	e.crypt = failing_crypt;
	return e;
}

/* Fail the k-th engine call for k = 1, 2, … until nothing fails any more. */
static void check_faults(const struct combination *k, enum cf_dir dir)
{
	const size_t n = 11, len = n * 512;
	struct cf_engine engine = failing_engine();
	struct cf_cipher_spec s = spec_of(k->text, k->key_bytes, 512, CF_IV_SECTORS, 0);
	fail_at = 0;
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = open_with(&s, CF_PATH_BATCH, &engine, test_key());
	uint8_t *src = other + BUF_MAX / 2, *want = other;
	vector_plaintext(src, len);
	one_by_one(c, dir, 0, n, src, want);
	memcpy(plain, src, len);
	for (fail_at = 1, calls = UINT32_MAX; calls >= fail_at; fail_at++) {
		calls = 0;
		int rc = cf_cipher_crypt(c, 1, dir, 0, n, src, crypt);
		ck_assert_msg(!memcmp(src, plain, len), "%s: call %u failed and the source changed", k->text, fail_at);
		ck_assert_msg(rc == 0, "%s: call %u failed alone and was not survived", k->text, fail_at);
		ck_assert_msg(!memcmp(crypt, want, len), "%s: call %u failed, wrong bytes", k->text, fail_at);
	}
	fail_at = 0;
	must_crypt(c, dir, 0, n, src, crypt);
	ck_assert(!memcmp(crypt, want, len));
}

START_TEST(engine__a_failed_call_never_gives_wrong_bytes_nor_harms_the_source)
{
	fail_for_ever = 0;
	if (refused(&combinations[_i]))
		return;
	check_faults(&combinations[_i], CF_ENCRYPT);
	check_faults(&combinations[_i], CF_DECRYPT);
}
END_TEST

START_TEST(engine__failing_for_good_is_eio)
{
	struct cf_engine engine = failing_engine();
	struct cf_cipher_spec s = spec_of("aes-xts-plain64", 64, 512, CF_IV_SECTORS, 0);
	fail_at = 0;
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = open_with(&s, CF_PATH_BATCH, &engine, test_key());
	fail_at = 1;
	fail_for_ever = 1;
	calls = 0;
	ck_assert_int_eq(cf_cipher_crypt(c, 0, CF_ENCRYPT, 0, 8, plain, crypt), -EIO);
	fail_at = 0;
}
END_TEST

/* ---- an engine that works elsewhere and is lost ---- */

static int lost_crypt(struct cf_engine_key *key, unsigned worker, enum cf_dir dir, const uint8_t *src, uint8_t *dst,
					  size_t n)
{
	calls++;
	if (fail_at && calls >= fail_at) {
		memset(dst, 0xee, n);
		return -ENODEV;
	}
	return real_engine()->crypt(key, worker, dir, src, dst, n);
}

START_TEST(engine__lost_for_good_is_replaced_by_the_standby)
{
	const struct combination *k = &combinations[_i];
	const size_t n = 141, len = n * 512;
	struct cf_engine engine = *real_engine();
	struct cf_cipher_info info;
	engine.name = "elsewhere";
	engine.elsewhere = true;
	engine.crypt = lost_crypt;
	if (refused(k))
		return;
	struct cf_cipher_spec s = spec_of(k->text, k->key_bytes, 512, CF_IV_SECTORS, 0);
	vector_plaintext(plain, len);
	for (unsigned at = 1; at < 30; at += 7) {
		fail_at = 0;
		CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = open_with(&s, CF_PATH_BATCH, &engine, test_key());
		must_crypt(c, CF_ENCRYPT, 0, n, plain, other);
		cf_cipher_info(c, &info);
		ck_assert(info.standby && strcmp(info.standby, "elsewhere") != 0);
		ck_assert(!info.lost);
		fail_at = at;
		calls = 0;
		must_crypt(c, CF_ENCRYPT, 0, n, plain, crypt);
		ck_assert_msg(!memcmp(crypt, other, len), "%s: wrong bytes when call %u was the last", k->text, at);
		cf_cipher_info(c, &info);
		ck_assert(info.lost == (calls >= at));
		must_crypt(c, CF_DECRYPT, 0, n, crypt, other);
		ck_assert(!memcmp(plain, other, len));
	}
	fail_at = 0;
}
END_TEST

START_TEST(engine__refused_even_one_by_one_is_done_by_the_standby_this_time)
{
	struct cf_engine engine = failing_engine();
	struct cf_cipher_info info;
	struct cf_cipher_spec s = spec_of("aes-cbc-essiv:sha256", 32, 512, CF_IV_SECTORS, 0);
	engine.elsewhere = true;
	fail_at = 0;
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = open_with(&s, CF_PATH_BATCH, &engine, test_key());
	vector_plaintext(plain, 8 * 512);
	must_crypt(c, CF_DECRYPT, 0, 8, plain, other);
	fail_at = 1;
	fail_for_ever = 1;
	calls = 0;
	must_crypt(c, CF_DECRYPT, 0, 8, plain, crypt);
	ck_assert(!memcmp(crypt, other, 8 * 512));
	cf_cipher_info(c, &info);
	ck_assert(!info.lost);
	calls = fail_at = 0;
	must_crypt(c, CF_DECRYPT, 0, 8, plain, crypt);
	ck_assert_msg(calls > 0, "the engine was given up");
}
END_TEST

START_TEST(engine__lost_without_a_standby_is_eio)
{
	struct cf_engine engine = *real_engine();
	engine.crypt = lost_crypt; /* not elsewhere: nobody kept a standby */
	fail_at = 0;
	struct cf_cipher_spec s = spec_of("aes-xts-plain64", 64, 512, CF_IV_SECTORS, 0);
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = open_with(&s, CF_PATH_BATCH, &engine, test_key());
	fail_at = 1;
	calls = 0;
	ck_assert_int_eq(cf_cipher_crypt(c, 0, CF_DECRYPT, 0, 8, plain, crypt), -EIO);
	fail_at = 0;
}
END_TEST

START_TEST(engine__a_refused_batch_is_counted)
{
	struct cf_engine engine = failing_engine();
	struct cf_cipher_info info;
	struct cf_cipher_spec s = spec_of("aes-cbc-plain64", 32, 512, CF_IV_SECTORS, 0);
	fail_at = 0;
	fail_for_ever = 0;
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = open_with(&s, CF_PATH_BATCH, &engine, test_key());
	for (unsigned i = 1; i <= 3; i++) {
		fail_at = 1;
		calls = 0;
		must_crypt(c, CF_DECRYPT, 0, 16, plain, crypt);
		cf_cipher_info(c, &info);
		ck_assert_uint_eq(info.fallbacks, i);
	}
	fail_at = 0;
}
END_TEST

static int lying_crypt(struct cf_engine_key *key, unsigned worker, enum cf_dir dir, const uint8_t *src, uint8_t *dst,
					   size_t n)
{
	int rc = real_engine()->crypt(key, worker, dir, src, dst, n);
	if (n > 4)
		dst[16 * (n - 1)] ^= 1;
	return rc;
}

START_TEST(selftest__an_engine_that_errs_in_long_batches_is_never_used)
{
	struct cf_engine engine = *real_engine();
	engine.name = "lying";
	engine.crypt = lying_crypt;
	struct cf_cipher_spec s = spec_of("aes-xts-plain64", 64, 512, CF_IV_SECTORS, 0);
	struct cf_cipher_opts opts = {.path = CF_PATH_BATCH, .n_workers = 1, .use = &engine};
	struct cf_cipher *c = NULL;
	struct cf_err err = {0};
	ck_assert_int_eq(cf_cipher_new(&c, &s, test_key(), &opts, &err), -EIO);
	ck_assert_msg(strstr(err.text, "self-test") != NULL, "%s", err.text);
	ck_assert_ptr_null(c);
}
END_TEST

static bool claims_mode(const char *mode, const struct cf_block_cipher *bc, size_t key_len)
{
	(void)bc;
	(void)key_len;
	return strcmp(mode, "adiantum") == 0;
}

/* Adiantum cannot be built from blocks, whoever has it. */
START_TEST(path__no_batches_of_a_mode_that_is_only_whole)
{
	struct cf_engine engine = *real_engine();
	engine.mode_has = claims_mode;
	struct cf_cipher_spec s = spec_of("xchacha12,aes-adiantum-plain64", 32, 512, CF_IV_SECTORS, 0);
	struct cf_cipher_opts opts = {.path = CF_PATH_BATCH, .n_workers = 1, .use = &engine};
	struct cf_cipher *c = NULL;
	struct cf_err err = {0};
	ck_assert_int_eq(cf_cipher_new(&c, &s, test_key(), &opts, &err), -ENODEV);
	ck_assert_msg(strstr(err.text, "no batch path") != NULL, "%s", err.text);
	ck_assert_ptr_null(c);
}
END_TEST

/* ---- what is refused ---- */

static const struct refusal {
	const char *text;
	uint32_t key_bytes, du;
	uint64_t iv_offset;
	int code;
	const char *says;
} refusals[] = {
	{"aes-xts-plain64", 64, 0, 0, -EINVAL, "data units of 0 bytes"},
	{"aes-xts-plain64", 64, 768, 0, -EINVAL, "power of two"},
	{"aes-xts-plain64", 64, 131072, 0, -EINVAL, "65536"},
	{"aes-xts-plain64", 64, 4096, 4, -EINVAL, "IV offset 4"},
	{"aes-xts-plain64", 40, 512, 0, -ENODEV, "320 bits"},
	{"aes-xts-plain64", 65, 512, 0, -ENODEV, "does not fit"},
	{"aes-lrw-benbi", 8, 512, 0, -ENODEV, "does not fit"},
	{"aes:4-xts-plain64", 130, 512, 0, -ENODEV, "does not divide"},
	{"cast6-xts-plain64", 64, 512, 0, -ENODEV, "no engine here has cast6-xts"},
	{"xchacha12,aes-adiantum-plain64", 32, 512, 0, -ENODEV, "no engine here has xchacha12,aes-adiantum"},
	{"nope-xts-plain64", 64, 512, 0, -ENODEV, "no engine here has xts(nope): "},
	{"aes-gcm-plain64", 32, 512, 0, -ENODEV, "gcm(aes) authenticates: its tags need dm-integrity"},
	{"capi:authenc(hmac(sha256),cbc(aes))-plain64", 64, 512, 0, -ENODEV, "need dm-integrity"},
	{"capi:aegis128-random", 16, 512, 0, -ENODEV, "need dm-integrity"},
	{"aes:2-ofb-plain64", 64, 512, 0, -ENODEV, "no engine here has the mode 'ofb'"},
	{"blowfish-xts-plain64", 32, 512, 0, -ENODEV, "16-byte blocks"},
	{"aes-cbc-random", 32, 512, 0, -EINVAL, "dm-integrity"},
	{"aes-cbc-essiv:sha1", 32, 512, 0, -ENODEV, "no key of 'aes'"},
	{"aes-cbc-essiv:nohash", 32, 512, 0, -ENODEV, "nohash"},
	{"aes:64-cbc-lmk", 1024, 4096, 0, -EINVAL, "512-byte sectors only"},
	{"aes:64-xts-lmk", 2048, 512, 0, -EINVAL, "cannot be read back"},
	{"aes:64-cbc-lmk", 1000, 512, 0, -ENODEV, "lmk"},
	{"aes-cbc-tcw", 64, 1024, 0, -EINVAL, "512-byte sectors only"},
	{"aes-cbc-tcw", 32, 512, 0, -ENODEV, "seeds"},
	{"aes-ctr-eboiv", 32, 512, 0, -EINVAL, "one block"},
	{"aes-xts-elephant", 96, 512, 0, -ENODEV, "is not an AES key"},
	{"cipher_null-ecb", 16, 512, 0, -ENODEV, "does not fit"},
};

START_TEST(check__refuses_with_the_reason)
{
	const struct refusal *r = &refusals[_i];
	struct cf_err err = {0};
	struct cf_cipher_spec s = spec_of(r->text, r->key_bytes, r->du, CF_IV_SECTORS, r->iv_offset);
	ck_assert_msg(cf_cipher_check(&s, NULL, &err) == r->code, "%s: %d, %s", r->text, err.code, err.text);
	ck_assert_msg(strstr(err.text, r->says) != NULL, "%s: %s", r->text, err.text);
}
END_TEST

START_TEST(check__a_named_engine_is_the_only_one_asked)
{
	struct cf_err err = {0};
	struct cf_cipher_spec s = spec_of("aes-xts-plain64", 64, 512, CF_IV_SECTORS, 0);
	ck_assert_int_eq(cf_cipher_check(&s, "openssl", &err), 0);
	ck_assert_int_eq(cf_cipher_check(&s, "auto", &err), 0);
	ck_assert_int_eq(cf_cipher_check(&s, "null", &err), -ENODEV);
	ck_assert_msg(strstr(err.text, "null") != NULL, "%s", err.text);
	err = (struct cf_err){0};
	ck_assert_int_eq(cf_cipher_check(&s, "made-up", &err), -EINVAL);
	ck_assert_msg(strstr(err.text, "openssl") != NULL, "%s", err.text);
	err = (struct cf_err){0};
	s = spec_of("serpent-xts-plain64", 64, 512, CF_IV_SECTORS, 0);
	ck_assert_int_eq(cf_cipher_check(&s, "openssl", &err), -ENODEV);
	ck_assert_msg(strstr(err.text, "no engine here has serpent-xts") != NULL, "%s", err.text);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("cipher");
	TCase *tc = tcase_create("cipher");
	int n = (int)CF_ARRAY_LEN(combinations);
	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, iv__right_at_a_wrap_at_every_position_of_a_tile);
	tcase_add_test(tc, iv__right_for_large_data_units_in_both_numberings);
	tcase_add_test(tc, keycount__every_starting_residue_uses_the_key_of_its_sector);
	tcase_add_loop_test(tc, batch__equals_one_data_unit_at_a_time, 0, n);
	tcase_add_test(tc, xts__equal_key_halves_are_read_and_written);
	tcase_add_loop_test(tc, engine__a_failed_call_never_gives_wrong_bytes_nor_harms_the_source, 0, n);
	tcase_add_test(tc, engine__failing_for_good_is_eio);
	tcase_add_loop_test(tc, engine__lost_for_good_is_replaced_by_the_standby, 0, n);
	tcase_add_test(tc, engine__refused_even_one_by_one_is_done_by_the_standby_this_time);
	tcase_add_test(tc, engine__lost_without_a_standby_is_eio);
	tcase_add_test(tc, engine__a_refused_batch_is_counted);
	tcase_add_test(tc, selftest__an_engine_that_errs_in_long_batches_is_never_used);
	tcase_add_test(tc, path__no_batches_of_a_mode_that_is_only_whole);
	tcase_add_loop_test(tc, check__refuses_with_the_reason, 0, (int)CF_ARRAY_LEN(refusals));
	tcase_add_test(tc, check__a_named_engine_is_the_only_one_asked);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	test_one_arena();
	plain = calloc(3, BUF_MAX);
	if (!plain)
		return 99;
	crypt = plain + BUF_MAX;
	other = crypt + BUF_MAX;
	int status = test_run(suite());
	free(plain);
	return status;
}
