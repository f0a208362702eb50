/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* digest.c - libcrypto's context and hashes. The context is made once a process and never changed afterwards; libcrypto
 * has no other place to keep what its providers share. Any thread. */
#include "cryptfuse/digest.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/provider.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* @bytes: cut to this; 0 the digest's own length. Names of libcrypto in the last column. */
static const struct digest_name {
	const char *kernel, *cryptsetup, *libcrypto;
	unsigned bytes;
} digest_names[] = {
	{"md5", "md5", "MD5", 0},
	{"sha1", "sha1", "SHA1", 0},
	{"sha224", "sha224", "SHA2-224", 0},
	{"sha256", "sha256", "SHA2-256", 0},
	{"sha384", "sha384", "SHA2-384", 0},
	{"sha512", "sha512", "SHA2-512", 0},
	{"sha3-224", "sha3-224", "SHA3-224", 0},
	{"sha3-256", "sha3-256", "SHA3-256", 0},
	{"sha3-384", "sha3-384", "SHA3-384", 0},
	{"sha3-512", "sha3-512", "SHA3-512", 0},
	{"rmd160", "ripemd160", "RIPEMD-160", 0},
	{"wp512", "whirlpool", "WHIRLPOOL", 0},
	{"wp384", NULL, "WHIRLPOOL", 48},
	{"wp256", NULL, "WHIRLPOOL", 32},
	{"blake2b-512", "blake2b-512", "BLAKE2B-512", 0},
	{NULL, "blake2s-256", "BLAKE2S-256", 0},
	{"sm3", "sm3", "SM3", 0},
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static OSSL_LIB_CTX *libctx;

static void make_libctx(void)
{
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL);
	libctx = OSSL_LIB_CTX_new();
	if (!libctx)
		return;
	/* Either may be absent (a build without legacy): what it had is then reported as not to be had. */
	OSSL_PROVIDER_load(libctx, "default");
	OSSL_PROVIDER_load(libctx, "legacy");
}

struct ossl_lib_ctx_st *cf_libcrypto(void)
{
	pthread_once(&once, make_libctx);
	return libctx;
}

static const struct digest_name *find(enum cf_digest_names names, const char *name)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(digest_names); i++) {
		const struct digest_name *d = &digest_names[i];
		if (names == CF_DIGEST_KERNEL ? d->kernel && !strcmp(d->kernel, name)
									  : d->cryptsetup && !strcasecmp(d->cryptsetup, name))
			return d;
	}
	return NULL;
}

static void free_md(EVP_MD **md)
{
	EVP_MD_free(*md);
}

static void free_md_ctx(EVP_MD_CTX **ctx)
{
	EVP_MD_CTX_free(*ctx);
}

int cf_digest_bytes(enum cf_digest_names names, const char *name)
{
	const struct digest_name *d = find(names, name);
	CF_CLEANUP(free_md) EVP_MD *md = d ? EVP_MD_fetch(cf_libcrypto(), d->libcrypto, NULL) : NULL;
	if (!md)
		return -ENOENT;
	return d->bytes ? (int)d->bytes : EVP_MD_get_size(md);
}

int cf_digest(enum cf_digest_names names, const char *name, const void *a, size_t a_len, const void *b, size_t b_len,
			  uint8_t *out)
{
	const struct digest_name *d = find(names, name);
	CF_CLEANUP(free_md) EVP_MD *md = d ? EVP_MD_fetch(cf_libcrypto(), d->libcrypto, NULL) : NULL;
	CF_CLEANUP(free_md_ctx) EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	uint8_t full[EVP_MAX_MD_SIZE];
	unsigned len;
	if (!md)
		return -ENOENT;
	if (!ctx || !EVP_DigestInit_ex2(ctx, md, NULL) || !EVP_DigestUpdate(ctx, a, a_len) ||
		!EVP_DigestUpdate(ctx, b, b_len) || !EVP_DigestFinal_ex(ctx, full, &len))
		return -ENOMEM;
	memcpy(out, full, d->bytes ? d->bytes : len);
	OPENSSL_cleanse(full, sizeof(full));
	return 0;
}

static void free_kdf(EVP_KDF **kdf)
{
	EVP_KDF_free(*kdf);
}

static void free_kdf_ctx(EVP_KDF_CTX **ctx)
{
	EVP_KDF_CTX_free(*ctx);
}

int cf_digest_pbkdf2(const char *name, const void *pass, size_t pass_len, const uint8_t *salt, size_t salt_len,
					 uint64_t iterations, uint8_t *out, size_t out_len)
{
	const struct digest_name *d = find(CF_DIGEST_CRYPTSETUP, name);
	CF_CLEANUP(free_kdf) EVP_KDF *kdf = EVP_KDF_fetch(cf_libcrypto(), "PBKDF2", NULL);
	CF_CLEANUP(free_kdf_ctx) EVP_KDF_CTX *ctx = kdf ? EVP_KDF_CTX_new(kdf) : NULL;
	int any_length = 1; /* what exists is opened, whatever is recommended for new ones */
	if (!d || d->bytes || !ctx)
		return -ENOENT;
	const OSSL_PARAM params[] = {
		OSSL_PARAM_construct_utf8_string("digest", (char *)(uintptr_t)d->libcrypto, 0),
		OSSL_PARAM_construct_octet_string("pass", (void *)(uintptr_t)(pass ? pass : ""), pass_len),
		OSSL_PARAM_construct_octet_string("salt", (void *)(uintptr_t)salt, salt_len),
		OSSL_PARAM_construct_uint64("iter", &iterations),
		OSSL_PARAM_construct_int("pkcs5", &any_length),
		OSSL_PARAM_construct_end(),
	};
	return EVP_KDF_derive(ctx, out, out_len, params) == 1 ? 0 : -EINVAL;
}

/* ---- piece by piece ---- */

struct cf_digest_run {
	EVP_MD_CTX *ctx;
	unsigned bytes;
};

int cf_digest_start(struct cf_digest_run **out, enum cf_digest_names names, const char *name)
{
	const struct digest_name *d = find(names, name);
	CF_CLEANUP(free_md) EVP_MD *md = d ? EVP_MD_fetch(cf_libcrypto(), d->libcrypto, NULL) : NULL;
	if (!md)
		return -ENOENT;
	CF_CLEANUP(cf_digest_free) struct cf_digest_run *run = calloc(1, sizeof(*run));
	if (!run || !(run->ctx = EVP_MD_CTX_new()) || !EVP_DigestInit_ex2(run->ctx, md, NULL))
		return -ENOMEM;
	run->bytes = d->bytes ? d->bytes : (unsigned)EVP_MD_get_size(md);
	*out = cf_take(run);
	return 0;
}

int cf_digest_feed(struct cf_digest_run *run, const void *data, size_t len)
{
	return EVP_DigestUpdate(run->ctx, data, len) ? 0 : -EIO;
}

int cf_digest_end(struct cf_digest_run *run, uint8_t out[static CF_DIGEST_MAX])
{
	uint8_t full[EVP_MAX_MD_SIZE];
	unsigned len;
	if (!EVP_DigestFinal_ex(run->ctx, full, &len))
		return -EIO;
	memcpy(out, full, run->bytes);
	return (int)run->bytes;
}

void cf_digest_free(struct cf_digest_run **run)
{
	if (!*run)
		return;
	EVP_MD_CTX_free((*run)->ctx);
	free(*run);
	*run = NULL;
}
