/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* key.h - from what a person or a file gives to a volume key, by cryptsetup's rules for plain volumes (FORMAT.md,
 * "Passphrase to key").
 *
 * Everything secret stays in the secret arena; buffers are given back wiped. No prompting here: the caller brings the
 * passphrase or names the file. */
#ifndef CRYPTFUSE_KEY_H
#define CRYPTFUSE_KEY_H

#include "cryptfuse/base.h"

struct cf_err;

#define CF_KEYFILE_MAX (8u * 1024u * 1024u) /* bytes: cryptsetup's limit */
#define CF_PASSPHRASE_MAX 512u              /* characters from a terminal */

/** Secret bytes in the arena. */
struct cf_secret_buf {
	uint8_t *data; /* from cf_secret_alloc; NULL when empty */
	size_t len;
};

/** cf_secret_buf_fini - wipe and free; CF_CLEANUP helper. */
void cf_secret_buf_fini(struct cf_secret_buf *b);

/** How much of an input is key material. */
enum cf_key_read {
	CF_KEY_READ_LINE,  /* to the first newline, which is stripped: a passphrase on standard input */
	CF_KEY_READ_ALL,   /* to the end: -d - */
	CF_KEY_READ_EXACT, /* @size bytes exactly, newlines and all: -d FILE, and -l */
};

/** cf_key_read_fd - read key material from an open descriptor
 * @skip: bytes dropped first (--keyfile-offset)   @size: bytes, for CF_KEY_READ_EXACT; with CF_KEY_READ_LINE and @size
 * above 0: exactly that many, an earlier newline or end is an error.    @what: names the source in messages ("standard
 * input", the path) Returns 0; -EINVAL too short, too long, or nothing at all to read; -EIO. */
int cf_key_read_fd(int fd, enum cf_key_read how, uint64_t skip, uint64_t size, const char *what,
				   struct cf_secret_buf *out, struct cf_err *err) CF_MUST_CHECK;

/** cf_key_hash_check - is the --hash argument usable for a key of that length? Says so before anybody is asked for a
 * passphrase.
 * @hash: "sha256", "sha512:32", "plain", "plain:32". Returns 0; -EINVAL. */
int cf_key_hash_check(const char *hash, size_t key_len, struct cf_err *err) CF_MUST_CHECK;

/** cf_key_from_passphrase - hash a passphrase into a volume key
 * @key: out, @key_len bytes. Returns 0; -EINVAL unknown hash, bad length, or too short an input for plain:L. Source:
 * cryptsetup lib/crypt_plain.c. */
int cf_key_from_passphrase(const char *hash, const struct cf_secret_buf *pass, uint8_t *key, size_t key_len,
						   struct cf_err *err) CF_MUST_CHECK;

#endif
