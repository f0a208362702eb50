/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* openssl.c - the libcrypto engine: every block cipher of its default and legacy providers, and its own XTS and CBC as
 * whole modes.
 *
 * A key is one EVP context per worker and direction, set up once: contexts keep state between calls and must not be
 * shared. All of them are allocated by libcrypto in the secret arena (secret.h). Nothing is allocated afterwards. */
#include <errno.h>
#include <limits.h>
#include <openssl/evp.h>
#include <string.h>

#include "cryptfuse/digest.h"
#include "cryptfuse/engine.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"

/* An EVP length is an int: longer runs are cut at a multiple of every block. */
#define EVP_RUN_MAX ((size_t)1 << 30)

/* The ciphers by libcrypto's names. @key_bytes: of that entry; 0 any length the cipher takes. */
static const struct evp_name {
	const char *cipher, *mode;
	size_t key_bytes;
	const char *evp;
} evp_names[] = {
	{"aes", "ecb", 16, "AES-128-ECB"},
	{"aes", "ecb", 24, "AES-192-ECB"},
	{"aes", "ecb", 32, "AES-256-ECB"},
	{"aes", "cbc", 16, "AES-128-CBC"},
	{"aes", "cbc", 24, "AES-192-CBC"},
	{"aes", "cbc", 32, "AES-256-CBC"},
	{"aes", "xts", 32, "AES-128-XTS"},
	{"aes", "xts", 64, "AES-256-XTS"},
	{"camellia", "ecb", 16, "CAMELLIA-128-ECB"},
	{"camellia", "ecb", 24, "CAMELLIA-192-ECB"},
	{"camellia", "ecb", 32, "CAMELLIA-256-ECB"},
	{"camellia", "cbc", 16, "CAMELLIA-128-CBC"},
	{"camellia", "cbc", 24, "CAMELLIA-192-CBC"},
	{"camellia", "cbc", 32, "CAMELLIA-256-CBC"},
	{"des3_ede", "ecb", 24, "DES-EDE3-ECB"},
	{"des3_ede", "cbc", 24, "DES-EDE3-CBC"},
	{"blowfish", "ecb", 0, "BF-ECB"},
	{"blowfish", "cbc", 0, "BF-CBC"},
	{"cast5", "ecb", 0, "CAST5-ECB"},
	{"cast5", "cbc", 0, "CAST5-CBC"},
};

/* One key of one EVP cipher: ctx[worker][direction]. */
struct evp_contexts {
	size_t block_bytes, iv_bytes;
	unsigned n_workers;
	EVP_CIPHER_CTX *ctx[][2];
};

static void free_cipher(EVP_CIPHER **c)
{
	EVP_CIPHER_free(*c);
}

static const char *evp_name(const char *mode, const struct cf_block_cipher *bc, size_t key_len)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(evp_names); i++) {
		const struct evp_name *e = &evp_names[i];
		if (!strcmp(e->cipher, bc->name) && !strcmp(e->mode, mode) &&
			(e->key_bytes ? e->key_bytes == key_len : cf_block_cipher_takes_key(bc, key_len)))
			return e->evp;
	}
	return NULL;
}

static EVP_CIPHER *fetch(const char *mode, const struct cf_block_cipher *bc, size_t key_len)
{
	const char *name = evp_name(mode, bc, key_len);
	return name && cf_libcrypto() ? EVP_CIPHER_fetch(cf_libcrypto(), name, NULL) : NULL;
}

static void contexts_free(struct evp_contexts **contexts)
{
	struct evp_contexts *c = *contexts;
	for (unsigned w = 0; c && w < c->n_workers; w++)
		for (unsigned d = 0; d < 2; d++)
			EVP_CIPHER_CTX_free(c->ctx[w][d]);
	cf_secret_freep(contexts);
}

/* Set up one context. Variable key lengths are set before the key. */
static int context_init(EVP_CIPHER_CTX **out, EVP_CIPHER *cipher, const uint8_t *key, size_t key_len, enum cf_dir dir)
{
	int enc = dir == CF_ENCRYPT;
	EVP_CIPHER_CTX *ctx = *out = EVP_CIPHER_CTX_new();
	if (!ctx)
		return -ENOMEM;
	if (!EVP_CipherInit_ex2(ctx, cipher, NULL, NULL, enc, NULL) || !EVP_CIPHER_CTX_set_key_length(ctx, (int)key_len) ||
		!EVP_CipherInit_ex2(ctx, NULL, key, NULL, enc, NULL) || !EVP_CIPHER_CTX_set_padding(ctx, 0))
		return -EINVAL;
	return 0;
}

static int contexts_new(struct evp_contexts **out, const char *mode, const struct cf_block_cipher *bc,
						const uint8_t *key, size_t key_len, unsigned n_workers)
{
	CF_CLEANUP(free_cipher) EVP_CIPHER *cipher = fetch(mode, bc, key_len);
	if (!cipher)
		return -ENOENT;
	CF_CLEANUP(contexts_free)
	struct evp_contexts *c = cf_secret_alloc(sizeof(*c) + n_workers * sizeof(c->ctx[0]));
	if (!c)
		return -ENOMEM;
	c->n_workers = n_workers;
	c->block_bytes = bc->block_bytes;
	c->iv_bytes = (size_t)EVP_CIPHER_get_iv_length(cipher);
	for (unsigned w = 0; w < n_workers; w++)
		for (enum cf_dir d = CF_ENCRYPT; d <= CF_DECRYPT; d++) {
			int rc = context_init(&c->ctx[w][d], cipher, key, key_len, d);
			if (rc)
				return rc;
		}
	*out = cf_take(c);
	return 0;
}

/* ---- the block primitive ---- */

static int probe(struct cf_err *err)
{
	CF_CLEANUP(free_cipher) EVP_CIPHER *cipher = fetch("ecb", cf_block_cipher_find("aes"), 32);
	return cipher ? 0 : cf_fail(err, -ENODEV, "libcrypto has no AES here: is its default provider installed?");
}

static bool has(const struct cf_block_cipher *bc, size_t key_len)
{
	CF_CLEANUP(free_cipher) EVP_CIPHER *cipher = fetch("ecb", bc, key_len);
	return cipher != NULL;
}

/* libcrypto picks AES-NI, or bit-sliced code, wherever this runs as a rule; the others are table-driven everywhere but
 * Camellia under some SPARC and none of them is safe to call constant-time. */
static bool constant_time(const struct cf_block_cipher *bc)
{
#if defined(__x86_64__)
	return !strcmp(bc->name, "aes") && __builtin_cpu_supports("ssse3");
#else
	(void)bc;
	return false;
#endif
}

static int key_new(struct cf_engine_key **out, const struct cf_block_cipher *bc, const uint8_t *key, size_t key_len,
				   unsigned n_workers)
{
	struct evp_contexts *c;
	int rc = contexts_new(&c, "ecb", bc, key, key_len, n_workers);
	if (!rc)
		*out = (struct cf_engine_key *)c;
	return rc;
}

static void key_free(struct cf_engine_key **key)
{
	struct evp_contexts *c = (struct evp_contexts *)*key;
	contexts_free(&c);
	*key = NULL;
}

static int update(EVP_CIPHER_CTX *ctx, const uint8_t *src, uint8_t *dst, size_t len)
{
	while (len) {
		size_t run = len < EVP_RUN_MAX ? len : EVP_RUN_MAX;
		int done;
		if (!EVP_CipherUpdate(ctx, dst, &done, src, (int)run) || (size_t)done != run)
			return -EIO;
		src += run;
		dst += run;
		len -= run;
	}
	return 0;
}

static int crypt_blocks(struct cf_engine_key *key, unsigned worker, enum cf_dir dir, const uint8_t *src, uint8_t *dst,
						size_t n_blocks)
{
	struct evp_contexts *c = (struct evp_contexts *)key;
	return update(c->ctx[worker][dir], src, dst, n_blocks * c->block_bytes);
}

/* ---- whole modes ---- */

static bool mode_has(const char *mode, const struct cf_block_cipher *bc, size_t key_len)
{
	CF_CLEANUP(free_cipher) EVP_CIPHER *cipher = strcmp(mode, "ecb") ? fetch(mode, bc, key_len) : NULL;
	return cipher != NULL;
}

static int mode_new(struct cf_engine_mode **out, const char *mode, const struct cf_block_cipher *bc, const uint8_t *key,
					size_t key_len, unsigned n_workers)
{
	if (!strcmp(mode, "ecb"))
		return -ENOENT; /* the block primitive is that */
	struct evp_contexts *c;
	int rc = contexts_new(&c, mode, bc, key, key_len, n_workers);
	if (!rc)
		*out = (struct cf_engine_mode *)c;
	return rc;
}

static void mode_free(struct cf_engine_mode **mode)
{
	struct evp_contexts *c = (struct evp_contexts *)*mode;
	contexts_free(&c);
	*mode = NULL;
}

static int mode_crypt(struct cf_engine_mode *mode, unsigned worker, const struct cf_engine_batch *b)
{
	struct evp_contexts *c = (struct evp_contexts *)mode;
	EVP_CIPHER_CTX *ctx = c->ctx[worker][b->dir];
	for (size_t i = 0; i < b->n_du; i++) {
		size_t at = i * b->du_bytes;
		if (!EVP_CipherInit_ex2(ctx, NULL, NULL, b->ivs + i * c->iv_bytes, -1, NULL))
			return -EIO;
		int rc = update(ctx, b->src + at, b->dst + at, b->du_bytes);
		if (rc)
			return rc;
	}
	return 0;
}

extern const struct cf_engine cf_engine_openssl;
const struct cf_engine cf_engine_openssl = {
	.name = "openssl",
	.about = "libcrypto: aes, camellia, des3_ede, blowfish, cast5",
	.probe = probe,
	.has = has,
	.constant_time = constant_time,
	.key_new = key_new,
	.key_free = key_free,
	.crypt = crypt_blocks,
	.mode_path = "native",
	.mode_has = mode_has,
	.mode_new = mode_new,
	.mode_free = mode_free,
	.mode_crypt = mode_crypt,
};
