/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* loopaes.c - volumes of loop-AES: a key file of 1, 64 or 65 lines says which of its three versions it is.
 *
 *     1 line    cbc-plain, the line hashed        64 lines  cbc-lmk        65 lines  cbc-lmk with a seed, the last
 *
 * A line is hashed as it stands; the first byte of every key of versions 2 and 3 gets a mark. Key file and keys stay in
 * the secret arena. Runs before the daemon, in one thread. Source: cryptsetup(8), loopaesOpen, and what it loads. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cryptfuse/digest.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/spec.h"
#include "plan.h"

#define KEYS_MAX 65u
#define KEY_BITS 256u /* cryptsetup's default */
#define CIPHER "aes"

struct lines {
	unsigned n;
	size_t len; /* of each */
	const uint8_t *at[KEYS_MAX];
};

static bool ends_line(uint8_t c)
{
	return c == '\n' || c == '\r' || c == '\0';
}

static int incompatible(const char *what, struct cf_err *err)
{
	return cf_fail(err, -EINVAL, "%s is no loop-AES key file: it needs 1, 64 or 65 lines of the same length", what);
}

static int split(const struct cf_secret_buf *text, const char *what, struct lines *out, struct cf_err *err)
{
	static const char gpg[] = "BEGIN PGP MESSAGE";
	if (memmem(text->data, text->len, gpg, sizeof(gpg) - 1))
		return cf_fail(err, -EINVAL, "%s is encrypted by GPG: use gpg --decrypt %s | cryptfuse … --key-file -", what,
					   what);
	*out = (struct lines){.n = 0};
	for (size_t at = 0; at < text->len;) {
		size_t len = 0;
		while (at + len < text->len && !ends_line(text->data[at + len]))
			len++;
		if (out->n == KEYS_MAX || !len || (out->n && len != out->len))
			return incompatible(what, err);
		out->len = len;
		out->at[out->n++] = text->data + at;
		at += len;
		while (at < text->len && ends_line(text->data[at]))
			at++;
	}
	return out->n == 1 || out->n == 64 || out->n == KEYS_MAX ? 0 : incompatible(what, err);
}

static const char *hash_for(const struct cf_open_opts *opts, size_t key_bytes)
{
	if (opts->hash)
		return opts->hash;
	return key_bytes == 16 ? "sha256" : key_bytes == 24 ? "sha384" : "sha512";
}

static int make_key(const struct lines *lines, const char *hash, uint8_t *key, size_t key_bytes, struct cf_err *err)
{
	const uint8_t mark = lines->n == 64 ? 0x55 : lines->n == KEYS_MAX ? 0xf4 : 0;
	CF_CLEANUP(cf_secret_freep) uint8_t *sum = cf_secret_alloc(CF_DIGEST_MAX);
	if (!sum)
		return cf_fail(err, -ENOMEM, "no memory for the key");
	if (cf_digest_bytes(CF_DIGEST_CRYPTSETUP, hash) < (int)key_bytes)
		return cf_fail(err, -EINVAL, "the hash '%s' is not known, or shorter than the %zu bytes of a key", hash,
					   key_bytes);
	for (unsigned i = 0; i < lines->n; i++) {
		int rc = cf_digest(CF_DIGEST_CRYPTSETUP, hash, lines->at[i], lines->len, NULL, 0, sum);
		if (rc)
			return cf_fail(err, rc, "cannot hash the key: %s", strerror(-rc));
		memcpy(key + i * key_bytes, sum, key_bytes);
		key[i * key_bytes] ^= mark;
	}
	return 0;
}

static int read_lines(const struct cf_open_opts *opts, struct cf_secret_buf *out, struct cf_err *err)
{
	CF_CLEANUP(cf_close_fd) int fd = -1;
	if (!opts->key_file)
		return cf_fail(err, -EINVAL,
					   "--type loopaes needs --key-file: the keys are in a file, or come from gpg --decrypt");
	int rc = cf_open_input(opts->key_file, "key file", &fd, err);
	return rc ? rc
			  : cf_key_read_fd(fd, opts->keyfile_size_bytes ? CF_KEY_READ_EXACT : CF_KEY_READ_ALL,
							   opts->keyfile_offset_bytes, opts->keyfile_size_bytes, opts->key_file, out, err);
}

int cf_plan_loopaes(const struct cf_open_opts *opts, struct cf_cipher_spec *spec, uint8_t **key, struct cf_err *err)
{
	CF_CLEANUP(cf_secret_buf_fini) struct cf_secret_buf text = {NULL, 0};
	size_t key_bytes = (size_t)(opts->key_bits ? opts->key_bits : KEY_BITS) / 8;
	const char *cipher = opts->cipher ? opts->cipher : CIPHER;
	char name[2 * CF_NAME_MAX];
	struct lines lines = {.n = 0};
	if (strlen(cipher) >= CF_NAME_MAX || strchr(cipher, '-') || strchr(cipher, ':'))
		return cf_fail(err, -EINVAL, "--cipher %s: loop-AES takes a cipher alone, such as aes; its mode is known",
					   cipher);
	int rc = read_lines(opts, &text, err);
	if (!rc)
		rc = split(&text, opts->key_file, &lines, err);
	if (rc)
		return rc;
	snprintf(name, sizeof(name), "%s%s", cipher, lines.n == 1 ? "-cbc-plain" : ":64-cbc-lmk");
	rc = cf_spec_parse_cipher(name, spec, err);
	if (rc)
		return rc;
	spec->key_bytes = (uint32_t)(lines.n * key_bytes);
	CF_CLEANUP(cf_secret_freep) uint8_t *bytes = cf_secret_alloc(spec->key_bytes);
	if (!bytes)
		return cf_fail(err, -ENOMEM, "no memory for the key");
	rc = make_key(&lines, hash_for(opts, key_bytes), bytes, key_bytes, err);
	if (!rc)
		*key = cf_take(bytes);
	return rc;
}
