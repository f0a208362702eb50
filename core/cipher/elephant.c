/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* elephant.c - BitLocker's CBC with the Elephant diffuser: eboiv for the IV, and around the mode, per data unit,
 *
 *     encrypting:  plaintext -> xor sector key every 32 bytes -> diffuser A -> diffuser B -> mode
 *     decrypting:  mode -> diffuser B -> diffuser A -> xor sector key every 32 bytes
 *
 * The volume key is two halves, cipher key then sector key; the sector key's cipher is AES whatever the volume's is.
 * Source: Microsoft, "AES-CBC + Elephant diffuser", 2006; dm-crypt.c, crypt_iv_elephant(). */
#include <errno.h>
#include <string.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/err.h"
#include "cryptfuse/iv.h"

#define SECTOR_KEY_BYTES 32u

static int layout(const struct cf_cipher_spec *spec, size_t iv_bytes, struct cf_key_layout *out, struct cf_err *err)
{
	(void)iv_bytes;
	if (spec->key_bytes % 2)
		return cf_fail(err, -ENODEV, "IV mode 'elephant' needs a key of two halves, not %u bytes", spec->key_bytes);
	out->extra_bytes = spec->key_bytes / 2;
	return 0;
}

static const char *needs_cipher(const struct cf_iv_setup *s, size_t *key_len)
{
	*key_len = s->layout.extra_bytes;
	return "aes";
}

static int check(const struct cf_iv_setup *s, struct cf_err *err)
{
	if (!cf_block_cipher_takes_key(cf_block_cipher_find("aes"), s->layout.extra_bytes))
		return cf_fail(err, -ENODEV, "IV mode 'elephant': the second half of the key, %zu bytes, is not an AES key",
					   s->layout.extra_bytes);
	return cf_iv_eboiv_check(s, err);
}

static int init(struct cf_iv *iv, const struct cf_iv_setup *s)
{
	return s->engine->key_new(&iv->sector_key, cf_block_cipher_find("aes"), s->extra, s->layout.extra_bytes,
							  s->n_workers);
}

/* The sector keys of all data units in one call. */
static int sector_keys(const struct cf_iv *iv, const struct cf_iv_run *r, uint8_t *out)
{
	uint8_t number[CF_BATCH_DU_MAX * SECTOR_KEY_BYTES] = {0};
	for (size_t i = 0; i < r->n_du; i++) {
		uint8_t *n = number + i * SECTOR_KEY_BYTES;
		cf_store_le64(n, r->sectors[i] * iv->du_bytes);
		cf_store_le64(n + 16, r->sectors[i] * iv->du_bytes);
		n[31] = 0x80;
	}
	return iv->engine->crypt(iv->sector_key, r->worker, CF_ENCRYPT, number, out, 2 * r->n_du);
}

static void xor_sector_key(uint8_t *dst, const uint8_t *src, size_t len, const uint8_t *key)
{
	for (size_t at = 0; at < len; at += SECTOR_KEY_BYTES)
		cf_xor(dst + at, src + at, key, SECTOR_KEY_BYTES);
}

static uint32_t rotl(uint32_t v, unsigned n)
{
	return n ? v << n | v >> (32 - n) : v;
}

/* One pass of a diffuser over the data unit's n words (a power of two): word i takes words i + near and i + far,
 * indices modulo n. Encrypting undoes it backwards. */
struct diffuser {
	unsigned passes;
	int near, far;
	uint8_t rot[4];
};
static const struct diffuser diffuser_a = {5, -2, -5, {9, 0, 13, 0}}, diffuser_b = {3, 2, 5, {0, 10, 0, 25}};

static void diffuse(uint32_t *d, size_t n, const struct diffuser *f, enum cf_dir dir)
{
	size_t mask = n - 1;
	for (unsigned pass = 0; pass < f->passes; pass++)
		for (size_t step = 0; step < n; step++) {
			size_t i = dir == CF_DECRYPT ? step : mask - step;
			uint32_t mix = d[(i + (size_t)f->near) & mask] ^ rotl(d[(i + (size_t)f->far) & mask], f->rot[i & 3]);
			d[i] = dir == CF_DECRYPT ? d[i] + mix : d[i] - mix;
		}
}

/* Both diffusers over one data unit, in place. */
static void diffuse_du(uint8_t *data, size_t du_bytes, enum cf_dir dir)
{
	uint32_t words[CF_DU_MAX / 4];
	size_t n = du_bytes / 4;
	for (size_t i = 0; i < n; i++)
		words[i] = cf_load_le32(data + 4 * i);
	diffuse(words, n, dir == CF_ENCRYPT ? &diffuser_a : &diffuser_b, dir);
	diffuse(words, n, dir == CF_ENCRYPT ? &diffuser_b : &diffuser_a, dir);
	for (size_t i = 0; i < n; i++)
		cf_store_le32(data + 4 * i, words[i]);
}

static int before(const struct cf_iv *iv, const struct cf_iv_run *r, const uint8_t *src, uint8_t *dst)
{
	uint8_t keys[CF_BATCH_DU_MAX * SECTOR_KEY_BYTES];
	int rc = sector_keys(iv, r, keys);
	for (size_t i = 0; !rc && i < r->n_du; i++) {
		size_t at = i * iv->du_bytes;
		xor_sector_key(dst + at, src + at, iv->du_bytes, keys + i * SECTOR_KEY_BYTES);
		diffuse_du(dst + at, iv->du_bytes, CF_ENCRYPT);
	}
	explicit_bzero(keys, sizeof(keys));
	return rc;
}

static int after(const struct cf_iv *iv, const struct cf_iv_run *r, uint8_t *data)
{
	uint8_t keys[CF_BATCH_DU_MAX * SECTOR_KEY_BYTES];
	int rc = sector_keys(iv, r, keys);
	for (size_t i = 0; !rc && i < r->n_du; i++) {
		uint8_t *du = data + i * iv->du_bytes;
		diffuse_du(du, iv->du_bytes, CF_DECRYPT);
		xor_sector_key(du, du, iv->du_bytes, keys + i * SECTOR_KEY_BYTES);
	}
	explicit_bzero(keys, sizeof(keys));
	return rc;
}

extern const struct cf_iv_kind cf_iv_kind_elephant;
const struct cf_iv_kind cf_iv_kind_elephant = {
	.name = "elephant",
	.layout = layout,
	.check = check,
	.needs_cipher = needs_cipher,
	.init = init,
	.generate = cf_iv_eboiv,
	.before = before,
	.before_dirs = 1u << CF_ENCRYPT,
	.after = after,
	.after_dirs = 1u << CF_DECRYPT,
	.no_essiv = true,
};
