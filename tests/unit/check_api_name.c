/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_api_name.c - names of the kernel's crypto API, without a kernel that has it: an engine that plays the kernel
 * says what it knows of a name, and what it calls a cipher is an xor of the IV into the first bytes. So the IV stands
 * in the ciphertext of zeros, and is compared with arithmetic written anew here. The real kernel judges in
 * tests/kernel/part-differential.sh. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/engine.h"
#include "cryptfuse/err.h"
#include "cryptfuse/spec.h"
#include "run.h"

#define DU 1024u
#define N_DU 5u

/* ---- the engine ---- */

static const struct cf_block_cipher known[] = {
	{.name = "wide(aes)", .block_bytes = 16, .key_min = 16, .key_max = 32, .api_iv_bytes = 32},
	{.name = "stream", .block_bytes = 1, .key_min = 32, .key_max = 32, .api_iv_bytes = 16},
	{.name = "cbc(odd)", .block_bytes = 8, .key_min = 8, .key_max = 16, .api_iv_bytes = 8},
	{.name = "noiv", .block_bytes = 1, .key_min = 16, .key_max = 16, .api_iv_bytes = 0},
};

struct cf_engine_mode {
	size_t iv_bytes;
};

static int probe(struct cf_err *err)
{
	(void)err;
	return 0;
}

static bool has(const struct cf_block_cipher *bc, size_t key_len)
{
	(void)bc;
	(void)key_len;
	return false;
}

static bool constant_time(const struct cf_block_cipher *bc)
{
	return strcmp(bc->name, "stream") == 0;
}

static void describe(const char *mode, const struct cf_block_cipher *bc, char *out, size_t size)
{
	snprintf(out, size, "%s of %s", mode, bc->name);
}

static int api_find(const char *name, struct cf_block_cipher *out, struct cf_err *err)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(known); i++)
		if (!strcmp(known[i].name, name)) {
			*out = known[i];
			out->name = name;
			out->key_step = 1;
			out->is_api_name = true;
			return 0;
		}
	return cf_fail(err, -ENODEV, "nobody has %s", name);
}

/* As kernels do, it refuses lengths inside what it said. */
static bool mode_has(const char *mode, const struct cf_block_cipher *bc, size_t key_len)
{
	return bc->is_api_name && !strcmp(mode, "capi") && key_len % 8 == 0;
}

static int mode_new(struct cf_engine_mode **out, const char *mode, const struct cf_block_cipher *bc, const uint8_t *key,
					size_t key_len, unsigned n_workers)
{
	(void)key;
	(void)n_workers;
	if (!mode_has(mode, bc, key_len))
		return -ENOENT;
	*out = malloc(sizeof(**out));
	if (!*out)
		return -ENOMEM;
	(*out)->iv_bytes = bc->api_iv_bytes;
	return 0;
}

static void mode_free(struct cf_engine_mode **mode)
{
	free(*mode);
	*mode = NULL;
}

static int mode_crypt(struct cf_engine_mode *mode, unsigned worker, const struct cf_engine_batch *b)
{
	(void)worker;
	for (size_t i = 0; i < b->n_du; i++) {
		uint8_t *dst = b->dst + i * b->du_bytes;
		memcpy(dst, b->src + i * b->du_bytes, b->du_bytes);
		for (size_t k = 0; k < mode->iv_bytes; k++)
			dst[k] ^= b->ivs[i * mode->iv_bytes + k];
	}
	return 0;
}

static const struct cf_engine kernel = {
	.name = "kernel",
	.probe = probe,
	.has = has,
	.constant_time = constant_time,
	.describe = describe,
	.api_find = api_find,
	.mode_path = "per-du",
	.mode_has = mode_has,
	.mode_new = mode_new,
	.mode_free = mode_free,
	.mode_crypt = mode_crypt,
};

/* ---- ---- */

static const uint8_t key[1024];

static int open_cipher(struct cf_cipher **out, const char *text, uint32_t key_bytes, uint32_t du, enum cf_path path,
					   struct cf_err *err)
{
	struct cf_cipher_spec s = {.keycount = 1};
	struct cf_cipher_opts opts = {.path = path, .n_workers = 1, .use = &kernel};
	ck_assert_msg(cf_spec_parse_cipher(text, &s, err) == 0, "%s: %s", text, err->text);
	s.key_bytes = key_bytes;
	s.du_bytes = du;
	s.iv_offset = 6;
	int rc = cf_cipher_new(out, &s, key, &opts, err);
	memset(&s, 0xa5, sizeof(s)); /* it is the caller's no longer */
	return rc;
}

/* What goes into data unit @i, and where: the first data unit is at sector 6. */
static const struct iv_case {
	const char *text;
	uint32_t key_bytes;
	unsigned iv_bytes, at;
	bool big_endian;
	uint64_t factor, plus;
} ivs[] = {
	{"capi:wide(aes)-null", 32, 32, 0, false, 0, 0},
	{"capi:wide(aes)-plain", 32, 32, 0, false, 1, 0},
	{"capi:wide(aes)-plain64", 16, 32, 0, false, 1, 0},
	{"capi:wide(aes)-plain64be", 32, 32, 24, true, 1, 0},
	{"capi:wide(aes)-benbi", 32, 32, 24, true, 32, 1},
	{"capi:stream-plain64", 32, 16, 0, false, 1, 0},
	{"capi:stream-benbi", 32, 16, 8, true, 512, 1}, /* in blocks of one byte */
	{"odd-cbc-plain64", 16, 8, 0, false, 1, 0},
	{"capi:cbc(odd)-benbi", 8, 8, 0, true, 64, 1},
	{"capi:cbc(odd)-eboiv", 8, 8, 0, false, DU, 0}, /* through the same xor, once more */
	{"capi:noiv", 16, 0, 0, false, 0, 0},
	{"capi:noiv-plain64", 16, 0, 0, false, 0, 0}, /* the kernel warns, and ignores it */
};

START_TEST(iv__of_the_size_that_the_kernel_says)
{
	const struct iv_case *v = &ivs[_i];
	static const uint8_t zeros[N_DU * DU];
	uint8_t there[N_DU * DU], back[N_DU * DU], want[DU];
	struct cf_err err = {0};
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = NULL;
	ck_assert_msg(open_cipher(&c, v->text, v->key_bytes, DU, CF_PATH_AUTO, &err) == 0, "%s: %s", v->text, err.text);
	ck_assert_int_eq(cf_cipher_crypt(c, 0, CF_ENCRYPT, 0, N_DU, zeros, there), 0);
	for (uint64_t i = 0; i < N_DU; i++) {
		uint64_t n = (6 + i * (DU / 512)) * v->factor + v->plus;
		memset(want, 0, sizeof(want));
		for (unsigned k = 0; k < 8 && v->iv_bytes; k++)
			want[v->at + k] = (uint8_t)(n >> 8 * (v->big_endian ? 7 - k : k));
		ck_assert_msg(memcmp(there + i * DU, want, DU) == 0, "%s, data unit %u", v->text, (unsigned)i);
	}
	ck_assert_int_eq(cf_cipher_crypt(c, 0, CF_DECRYPT, 0, N_DU, there, back), 0);
	ck_assert_mem_eq(back, zeros, sizeof(back));
}
END_TEST

static const struct {
	const char *text;
	uint32_t key_bytes, du;
	enum cf_path path;
	int code;
	const char *says;
} refused[] = {
	{"capi:nothing(aes)-plain64", 32, DU, CF_PATH_AUTO, -ENODEV, "nobody has nothing(aes)"},
	{"capi:wide(aes)-plain65", 32, DU, CF_PATH_AUTO, -EINVAL, "unknown IV mode 'plain65'"},
	{"capi:stream", 32, DU, CF_PATH_AUTO, -EINVAL, "stream needs an IV mode, such as capi:stream-plain64"},
	{"capi:wide(aes)-plain64", 8, DU, CF_PATH_AUTO, -ENODEV, "a key of 64 bits does not fit wide(aes)"},
	{"capi:wide(aes)-plain64", 40, DU, CF_PATH_AUTO, -ENODEV, "a key of 320 bits does not fit wide(aes)"},
	{"capi:wide(aes)-plain64", 20, DU, CF_PATH_AUTO, -ENODEV, "no engine here has wide(aes) with 160-bit keys"},
	{"capi:wide(aes)-plain64", 32, DU, CF_PATH_BATCH, -ENODEV, "no batch path"},
	{"capi:wide(aes)-eboiv", 32, DU, CF_PATH_AUTO, -EINVAL, "whose IV is one block: not 'wide(aes)'"},
	{"capi:wide(aes)-elephant", 64, DU, CF_PATH_AUTO, -EINVAL, "whose IV is one block: not 'wide(aes)'"},
	{"capi:wide(aes)-tcw", 80, 512, CF_PATH_AUTO, -EINVAL, "8 or 16 bytes: 'wide(aes)' has 32"},
	{"capi:wide(aes)-lmk", 1024, 512, CF_PATH_AUTO, -EINVAL, "cbc only: what 'wide(aes)' writes"},
	{"capi:wide(aes)-random", 32, DU, CF_PATH_AUTO, -EINVAL, "needs dm-integrity"},
	{"capi:wide(aes)-essiv:sha256", 32, DU, CF_PATH_AUTO, -ENODEV, "nobody has essiv(wide(aes),sha256)"},
	{"capi:cbc(odd)-lmk", 512, DU, CF_PATH_AUTO, -EINVAL, "512-byte sectors only"},
	{"capi:gcm(aes)-random", 32, DU, CF_PATH_AUTO, -ENODEV, "gcm(aes) authenticates"},
};

START_TEST(check__refuses_with_the_reason)
{
	struct cf_err err = {0};
	struct cf_cipher *c = NULL;
	int rc = open_cipher(&c, refused[_i].text, refused[_i].key_bytes, refused[_i].du, refused[_i].path, &err);
	ck_assert_msg(rc == refused[_i].code && !c, "%s: %d, %s", refused[_i].text, rc, err.text);
	ck_assert_msg(strstr(err.text, refused[_i].says) != NULL, "%s: %s", refused[_i].text, err.text);
}
END_TEST

static const struct {
	const char *text;
	uint32_t key_bytes;
} seeded[] = {{"capi:cbc(odd)-tcw", 8 + 8 + 16}, {"capi:cbc(odd)-lmk", 64 * 8}, {"capi:stream-tcw", 32 + 16 + 16}};

START_TEST(seeds__of_tcw_and_lmk_by_the_iv_of_the_name)
{
	uint8_t plain[8 * 512], there[8 * 512], back[8 * 512];
	struct cf_err err = {0};
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = NULL;
	memset(plain, 0x3c, sizeof(plain));
	ck_assert_msg(open_cipher(&c, seeded[_i].text, seeded[_i].key_bytes, 512, CF_PATH_AUTO, &err) == 0, "%s: %s",
				  seeded[_i].text, err.text);
	ck_assert_int_eq(cf_cipher_crypt(c, 0, CF_ENCRYPT, 1, 8, plain, there), 0);
	ck_assert_mem_ne(there, plain, sizeof(plain));
	ck_assert_int_eq(cf_cipher_crypt(c, 0, CF_DECRYPT, 1, 8, there, back), 0);
	ck_assert_mem_eq(back, plain, sizeof(plain));
}
END_TEST

START_TEST(info__names_the_path_and_who_computes)
{
	struct cf_err err = {0};
	struct cf_cipher_info info;
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = NULL;
	ck_assert_msg(open_cipher(&c, "capi:stream-plain64", 32, DU, CF_PATH_AUTO, &err) == 0, "%s", err.text);
	cf_cipher_info(c, &info);
	ck_assert_str_eq(info.driver, "capi of stream");
	ck_assert_str_eq(info.native_path, "per-du");
	ck_assert(info.constant_time && info.batch_from[CF_ENCRYPT] == SIZE_MAX && info.batch_from[CF_DECRYPT] == SIZE_MAX);
}
END_TEST

START_TEST(engine__named_that_has_no_such_names)
{
	struct cf_err err = {0};
	struct cf_cipher_spec s = {.cipher = "wide(aes)", .mode = "capi", .iv = "plain64", .keycount = 1, .du_bytes = 512};
	s.key_bytes = 32;
	ck_assert_int_eq(cf_cipher_check(&s, "openssl", &err), -ENODEV);
	ck_assert_msg(strstr(err.text, "only afalg may know that name: asked for openssl") != NULL, "%s", err.text);
	err = (struct cf_err){0};
	ck_assert_int_eq(cf_cipher_check(&s, "made-up", &err), -EINVAL);
	ck_assert_msg(strstr(err.text, "unknown engine 'made-up'") != NULL, "%s", err.text);
	err = (struct cf_err){0};
	ck_assert_int_eq(cf_cipher_check(&s, NULL, &err), -ENODEV);
	ck_assert_msg(strstr(err.text, "no engine here has wide(aes): ") != NULL, "%s", err.text);
	ck_assert_uint_eq(cf_cipher_default_key_bytes(&s), 32);
}
END_TEST

int main(void)
{
	test_one_arena();
	Suite *s = suite_create("api_name");
	TCase *t = tcase_create("api_name");
	tcase_add_loop_test(t, iv__of_the_size_that_the_kernel_says, 0, (int)CF_ARRAY_LEN(ivs));
	tcase_add_loop_test(t, check__refuses_with_the_reason, 0, (int)CF_ARRAY_LEN(refused));
	tcase_add_loop_test(t, seeds__of_tcw_and_lmk_by_the_iv_of_the_name, 0, (int)CF_ARRAY_LEN(seeded));
	tcase_add_test(t, info__names_the_path_and_who_computes);
	tcase_add_test(t, engine__named_that_has_no_such_names);
	suite_add_tcase(s, t);
	return test_run(s);
}
