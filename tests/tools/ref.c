/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ref.c - see ref.h. */
#include "ref.h"

#include <err.h>
#include <stdio.h>
#include <string.h>

size_t ref_parse_hex(const char *hex, uint8_t *out, size_t max)
{
	size_t n = strlen(hex) / 2;
	if (n > max || strlen(hex) % 2)
		errx(2, "bad key length");
	for (size_t i = 0; i < n; i++)
		if (sscanf(hex + 2 * i, "%2hhx", &out[i]) != 1)
			errx(2, "bad key digit");
	return n;
}

static const EVP_CIPHER *cipher_of(const char *mode, size_t key_len)
{
	if (strcmp(mode, "xts") == 0)
		return key_len == 32 ? EVP_aes_128_xts() : key_len == 64 ? EVP_aes_256_xts() : NULL;
	if (strcmp(mode, "ctr") == 0)
		return key_len == 32 ? EVP_aes_256_ctr() : NULL;
	if (strcmp(mode, "cbc") == 0)
		return key_len == 16 ? EVP_aes_128_cbc() : key_len == 32 ? EVP_aes_256_cbc() : NULL;
	return NULL;
}

void ref_set_cipher(struct ref *r, const char *mode, const uint8_t *key, size_t key_len)
{
	r->cipher = cipher_of(mode, key_len);
	if (!r->cipher || key_len > REF_KEY_MAX)
		errx(2, "no such cipher here: %s with %zu bytes of key", mode, key_len);
	memcpy(r->key, key, key_len);
	if (!EVP_Digest(r->key, key_len, r->salt, NULL, EVP_sha256(), NULL))
		errx(2, "no sha256");
}

/* One call of a cipher without padding. */
static void evp(const EVP_CIPHER *c, const uint8_t *key, const uint8_t *iv, int enc, const uint8_t *in, uint8_t *out,
				size_t len)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n = 0;
	if (!ctx || !EVP_CipherInit_ex(ctx, c, NULL, key, iv, enc) || !EVP_CIPHER_CTX_set_padding(ctx, 0) ||
		!EVP_CipherUpdate(ctx, out, &n, in, (int)len) || (size_t)n != len)
		errx(2, "libcrypto refused");
	EVP_CIPHER_CTX_free(ctx);
}

static void make_iv(const struct ref *r, uint64_t vol_off, uint8_t iv[16])
{
	uint64_t s = vol_off / 512 + r->iv_offset;
	if (r->large)
		s /= r->du_bytes / 512;
	if (strcmp(r->iv_mode, "plain") == 0)
		s &= 0xffffffff;
	memset(iv, 0, 16);
	for (int i = 0; i < 8; i++)
		iv[i] = (uint8_t)(s >> (8 * i));
	if (strcmp(r->iv_mode, "essiv") == 0) {
		uint8_t plain[16];
		memcpy(plain, iv, 16);
		evp(EVP_aes_256_ecb(), r->salt, NULL, 1, plain, iv, 16);
	}
}

void ref_convert(const struct ref *r, int encrypt, uint64_t vol_off, const uint8_t *in, uint8_t *out)
{
	uint8_t iv[16];
	make_iv(r, vol_off, iv);
	evp(r->cipher, r->key, iv, encrypt, in, out, r->du_bytes);
}
