/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* tcw.c - TrueCrypt's old CBC: the IV is a seed xored with the sector number, and the ciphertext is whitened with 8
 * bytes a data unit.
 *
 *     volume key = cipher key | IV seed (IV size) | whitening seed (16)
 *
 * Source: dm-crypt.c, crypt_iv_tcw_gen(), crypt_iv_tcw_whitening(). */
#include <errno.h>
#include <string.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/err.h"
#include "cryptfuse/iv.h"
#include "cryptfuse/secret.h"

#define WHITENING_BYTES 16u

static int layout(const struct cf_cipher_spec *spec, size_t iv_bytes, struct cf_key_layout *out, struct cf_err *err)
{
	out->extra_bytes = iv_bytes + WHITENING_BYTES;
	if (spec->key_bytes <= out->extra_bytes)
		return cf_fail(err, -ENODEV, "IV mode 'tcw' needs a key longer than its %zu bytes of seeds, not %u",
					   out->extra_bytes, spec->key_bytes);
	return 0;
}

static int check(const struct cf_iv_setup *s, struct cf_err *err)
{
	if (s->spec->du_bytes != CF_DU_MIN)
		return cf_fail(err, -EINVAL, "IV mode 'tcw' works with 512-byte sectors only, not %u", s->spec->du_bytes);
	if (s->iv_bytes != 8 && s->iv_bytes != 16)
		return cf_fail(err, -EINVAL, "IV mode 'tcw' needs an IV of 8 or 16 bytes: '%s' has %zu", cf_iv_mode_name(s),
					   s->iv_bytes);
	return 0;
}

static int init(struct cf_iv *iv, const struct cf_iv_setup *s)
{
	iv->secret = cf_secret_alloc(s->layout.extra_bytes);
	if (!iv->secret)
		return -ENOMEM;
	memcpy(iv->secret, s->extra, s->layout.extra_bytes);
	return 0;
}

static int generate(const struct cf_iv *iv, const struct cf_iv_run *r)
{
	for (size_t i = 0; i < r->n_du; i++) {
		uint8_t number[16];
		cf_store_le64(number, r->sectors[i]);
		cf_store_le64(number + 8, r->sectors[i]);
		cf_xor(r->ivs + i * iv->iv_bytes, iv->secret, number, iv->iv_bytes);
	}
	return 0;
}

/* CRC-32 of 4 bytes, reflected, without the inversions: those cancel out when words are xored. */
static uint32_t crc32_word(uint32_t v)
{
	for (unsigned bit = 0; bit < 32; bit++)
		v = v >> 1 ^ (UINT32_C(0xEDB88320) & (0 - (v & 1)));
	return v;
}

/* Xor every 8 bytes of each data unit with what its number and the whitening seed make. @dst may be @src. */
static void whiten(const struct cf_iv *iv, const struct cf_iv_run *r, const uint8_t *src, uint8_t *dst)
{
	const uint8_t *seed = (const uint8_t *)iv->secret + iv->iv_bytes;
	for (size_t i = 0; i < r->n_du; i++) {
		uint32_t w[4];
		for (unsigned j = 0; j < 4; j++)
			w[j] = crc32_word(cf_load_le32(seed + 4 * j) ^ (uint32_t)(r->sectors[i] >> (j & 1 ? 32 : 0)));
		uint8_t mask[8];
		cf_store_le32(mask, w[0] ^ w[3]);
		cf_store_le32(mask + 4, w[1] ^ w[2]);
		for (size_t at = i * CF_DU_MIN; at < (i + 1) * CF_DU_MIN; at += 8)
			cf_xor(dst + at, src + at, mask, 8);
	}
}

static int before(const struct cf_iv *iv, const struct cf_iv_run *r, const uint8_t *src, uint8_t *dst)
{
	whiten(iv, r, src, dst);
	return 0;
}

static int after(const struct cf_iv *iv, const struct cf_iv_run *r, uint8_t *data)
{
	whiten(iv, r, data, data);
	return 0;
}

extern const struct cf_iv_kind cf_iv_kind_tcw;
const struct cf_iv_kind cf_iv_kind_tcw = {
	.name = "tcw",
	.layout = layout,
	.check = check,
	.init = init,
	.generate = generate,
	.before = before,
	.before_dirs = 1u << CF_DECRYPT,
	.after = after,
	.after_dirs = 1u << CF_ENCRYPT,
	.no_essiv = true,
};
