/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* lmk.c - loop-AES v2 and v3: the IV of a data unit is the MD5 internal state over most of its plaintext and its
 * number.
 *
 *     state over:  [seed, zero padded to 64 bytes; v3 only]  plaintext bytes 16 … 511  LE32(s)  LE32(s >> 32 …)
 * LE32(4024)  LE32(0)
 *
 * No padding follows, and all of it is whole MD5 blocks. Writing: the state is the CBC IV. Reading: decrypt under a
 * zero IV, which leaves bytes 16 … 511 right, then xor the first block with it. Source: dm-crypt.c, crypt_iv_lmk_one().
 * libcrypto shows the state only through the deprecated MD5_CTX. */
#define OPENSSL_SUPPRESS_DEPRECATED
#include <errno.h>
#include <openssl/md5.h>
#include <string.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/err.h"
#include "cryptfuse/iv.h"
#include "cryptfuse/secret.h"

#define SEED_BYTES 16u

/* v3 when the key does not divide by keycount: one part more, which holds the seed. */
static int layout(const struct cf_cipher_spec *spec, size_t iv_bytes, struct cf_key_layout *out, struct cf_err *err)
{
	(void)iv_bytes;
	uint32_t parts = spec->keycount + 1;
	if (spec->key_bytes % spec->keycount == 0)
		return 0;
	if (spec->key_bytes % parts || spec->key_bytes / parts < SEED_BYTES)
		return cf_fail(err, -ENODEV, "IV mode 'lmk': %u bytes are neither %u nor %u keys of equal length",
					   spec->key_bytes, spec->keycount, parts);
	out->extra_bytes = spec->key_bytes / parts;
	return 0;
}

static bool is_cbc(const struct cf_iv_setup *s)
{
	const char *name = cf_iv_mode_name(s);
	return s->mode->is_api_name ? strncmp(name, "cbc(", 4) == 0 && s->iv_bytes <= CF_BLOCK_MAX : !strcmp(name, "cbc");
}

static int check(const struct cf_iv_setup *s, struct cf_err *err)
{
	if (s->spec->du_bytes != CF_DU_MIN)
		return cf_fail(err, -EINVAL, "IV mode 'lmk' works with 512-byte sectors only, not %u", s->spec->du_bytes);
	if (!is_cbc(s))
		return cf_fail(err, -EINVAL, "IV mode 'lmk' works with cbc only: what '%s' writes under it cannot be read back",
					   cf_iv_mode_name(s));
	return 0;
}

static int init(struct cf_iv *iv, const struct cf_iv_setup *s)
{
	if (!s->layout.extra_bytes)
		return 0;
	iv->secret = cf_secret_alloc(64);
	if (!iv->secret)
		return -ENOMEM;
	memcpy(iv->secret, s->extra, SEED_BYTES);
	return 0;
}

/* The IV of one data unit from its plaintext. */
static void lmk_one(const struct cf_iv *iv, uint64_t s, const uint8_t *plain, uint8_t *out)
{
	uint8_t number[16], state[16];
	MD5_CTX md5;
	MD5_Init(&md5);
	if (iv->secret)
		MD5_Update(&md5, iv->secret, 64);
	MD5_Update(&md5, plain + 16, CF_DU_MIN - 16);
	cf_store_le32(number, (uint32_t)s);
	cf_store_le32(number + 4, ((uint32_t)(s >> 32) & 0xFFFFFFu) | 0x80000000u);
	cf_store_le32(number + 8, 4024);
	cf_store_le32(number + 12, 0);
	MD5_Update(&md5, number, sizeof(number));
	cf_store_le32(state, md5.A);
	cf_store_le32(state + 4, md5.B);
	cf_store_le32(state + 8, md5.C);
	cf_store_le32(state + 12, md5.D);
	memcpy(out, state, iv->iv_bytes);
	explicit_bzero(&md5, sizeof(md5));
}

static int generate(const struct cf_iv *iv, const struct cf_iv_run *r)
{
	memset(r->ivs, 0, r->n_du * iv->iv_bytes);
	for (size_t i = 0; r->dir == CF_ENCRYPT && i < r->n_du; i++)
		lmk_one(iv, r->sectors[i], r->plain + i * CF_DU_MIN, r->ivs + i * iv->iv_bytes);
	return 0;
}

static int after(const struct cf_iv *iv, const struct cf_iv_run *r, uint8_t *data)
{
	for (size_t i = 0; i < r->n_du; i++) {
		uint8_t value[16], *du = data + i * CF_DU_MIN;
		lmk_one(iv, r->sectors[i], du, value);
		cf_xor(du, du, value, iv->iv_bytes);
	}
	return 0;
}

extern const struct cf_iv_kind cf_iv_kind_lmk;
const struct cf_iv_kind cf_iv_kind_lmk = {
	.name = "lmk",
	.layout = layout,
	.check = check,
	.init = init,
	.generate = generate,
	.after = after,
	.after_dirs = 1u << CF_DECRYPT,
	.no_essiv = true,
};
