/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* digest.h - hashes by the names that the kernel and cryptsetup use, computed by libcrypto.
 *
 * libcrypto runs in a library context of our own, with its default and legacy providers and without the system's
 * openssl.cnf, so that neither a FIPS setting nor a policy decides which volumes open (HAZARDS 24). */
#ifndef CRYPTFUSE_DIGEST_H
#define CRYPTFUSE_DIGEST_H

#include "cryptfuse/base.h"

struct ossl_lib_ctx_st; /* OSSL_LIB_CTX */

#define CF_DIGEST_MAX 64u /* bytes */

/** Which program's names: the kernel says rmd160 and wp512 and is case sensitive, cryptsetup ripemd160 and whirlpool.
 */
enum cf_digest_names { CF_DIGEST_KERNEL, CF_DIGEST_CRYPTSETUP };

/** cf_libcrypto - our library context, made at the first call and kept; NULL when out of memory. Any thread. */
struct ossl_lib_ctx_st *cf_libcrypto(void);

/** cf_digest_bytes - length of the digest; -ENOENT for a name that is not known or not to be had here. */
int cf_digest_bytes(enum cf_digest_names names, const char *name) CF_MUST_CHECK;

/** cf_digest - hash the concatenation of two buffers
 * @a, @b: borrowed, either may be empty      @out: cf_digest_bytes() bytes. Returns 0; -ENOENT; -ENOMEM. */
int cf_digest(enum cf_digest_names names, const char *name, const void *a, size_t a_len, const void *b, size_t b_len,
			  uint8_t *out) CF_MUST_CHECK;

/** cf_digest_pbkdf2 - PBKDF2 with HMAC of a hash, by cryptsetup's name
 * @pass: may be NULL when @pass_len is 0     @out: @out_len bytes. Returns 0; -ENOENT no such hash; -EINVAL. */
int cf_digest_pbkdf2(const char *name, const void *pass, size_t pass_len, const uint8_t *salt, size_t salt_len,
					 uint64_t iterations, uint8_t *out, size_t out_len) CF_MUST_CHECK;

/** A digest in the making, fed piece by piece by one thread at a time. */
struct cf_digest_run;

/** cf_digest_start - 0 and *out, owned; -ENOENT; -ENOMEM. */
int cf_digest_start(struct cf_digest_run **out, enum cf_digest_names names, const char *name) CF_MUST_CHECK;

/** cf_digest_feed - 0; -EIO libcrypto failed. */
int cf_digest_feed(struct cf_digest_run *run, const void *data, size_t len) CF_MUST_CHECK;

/** cf_digest_end - the digest of all that was fed; nothing may be fed afterwards
 * Returns its length in bytes; -EIO. */
int cf_digest_end(struct cf_digest_run *run, uint8_t out[static CF_DIGEST_MAX]) CF_MUST_CHECK;

/** cf_digest_free - takes NULL, leaves NULL. */
void cf_digest_free(struct cf_digest_run **run);

#endif
