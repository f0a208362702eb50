/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* key.c - key material from a descriptor, and from a passphrase to a volume key.
 *
 * Every byte that was read or made sits in the secret arena, the skipped ones too, and nothing is read that was not
 * asked for: what follows a passphrase on standard input belongs to somebody else. No state; any thread. Source:
 * cryptsetup's lib/crypt_plain.c and crypt_keyfile_device_read(). */
#include "config.h"

#include "cryptfuse/key.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "cryptfuse/cipher.h"
#include "cryptfuse/digest.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/units.h"

#define CHUNK ((size_t)4096)
#define DIGEST_MIN 16u /* bytes: md5, the shortest */

void cf_secret_buf_fini(struct cf_secret_buf *b)
{
	cf_secret_free(b->data);
	*b = (struct cf_secret_buf){NULL, 0};
}

/* ---- reading ---- */

/* Up to @len bytes; fewer only at the end of the input. */
static ssize_t read_full(int fd, uint8_t *buf, size_t len)
{
	size_t got = 0;
	while (got < len) {
		ssize_t n = read(fd, buf + got, len - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

static int read_failed(ssize_t rc, const char *what, struct cf_err *err)
{
	return cf_fail(err, rc == -EISDIR ? -EINVAL : -EIO, "cannot read %s: %s", what, strerror((int)-rc));
}

static int too_short(const char *what, uint64_t want, struct cf_err *err)
{
	return cf_fail(err, -EINVAL, "%s has fewer than the %llu bytes that are needed", what, (unsigned long long)want);
}

static int skip_bytes(int fd, uint64_t skip, const char *what, struct cf_err *err)
{
	if (skip == 0)
		return 0;
	if (skip <= INT64_MAX && lseek(fd, (off_t)skip, SEEK_CUR) >= 0)
		return 0;
	CF_CLEANUP(cf_secret_freep) uint8_t *dropped = cf_secret_alloc(CHUNK);
	if (!dropped)
		return cf_fail(err, -ENOMEM, "no memory to read %s", what);
	for (uint64_t left = skip; left;) {
		size_t want = left < CHUNK ? (size_t)left : CHUNK;
		ssize_t n = read_full(fd, dropped, want);
		if (n < 0)
			return read_failed(n, what, err);
		if ((size_t)n < want)
			return too_short(what, skip, err);
		left -= want;
	}
	return 0;
}

/* Room for at least one more byte, by doubling; *room is the capacity. */
static int grow(struct cf_secret_buf *b, size_t *room, const char *what, struct cf_err *err)
{
	if (b->len < *room)
		return 0;
	size_t more = *room ? *room * 2 : CHUNK;
	uint8_t *bigger = cf_secret_alloc(more);
	if (!bigger)
		return cf_fail(err, -ENOMEM, "no memory to read %s", what);
	if (b->len)
		memcpy(bigger, b->data, b->len);
	cf_secret_free(b->data);
	b->data = bigger;
	*room = more;
	return 0;
}

static int too_long(const char *what, struct cf_err *err)
{
	return cf_fail(err, -EINVAL, "%s has more than %u bytes: --keyfile-size says how many to read", what,
				   CF_KEYFILE_MAX);
}

static int nothing(const char *what, struct cf_err *err)
{
	return cf_fail(err, -EINVAL, "nothing to read on %s", what);
}

/* One byte at a time: what follows the newline is not ours. */
static int read_line(int fd, uint64_t exact, const char *what, struct cf_secret_buf *b, struct cf_err *err)
{
	size_t room = 0;
	uint64_t max = exact ? exact : CF_KEYFILE_MAX;
	for (;;) {
		if (exact && b->len == exact)
			return 0;
		int rc = grow(b, &room, what, err);
		if (rc)
			return rc;
		ssize_t n = read_full(fd, b->data + b->len, 1);
		if (n < 0)
			return read_failed(n, what, err);
		bool newline = n && b->data[b->len] == '\n';
		if ((!n || newline) && exact)
			return too_short(newline ? "the passphrase before its newline" : what, exact, err);
		if (newline)
			return 0;
		if (!n)
			return b->len ? 0 : nothing(what, err);
		if (b->len == max)
			return too_long(what, err);
		b->len++;
	}
}

static int read_all(int fd, const char *what, struct cf_secret_buf *b, struct cf_err *err)
{
	size_t room = 0;
	for (;;) {
		int rc = grow(b, &room, what, err);
		if (rc)
			return rc;
		ssize_t n = read_full(fd, b->data + b->len, room - b->len);
		if (n < 0)
			return read_failed(n, what, err);
		if (n == 0)
			return b->len ? 0 : nothing(what, err);
		b->len += (size_t)n;
		if (b->len > CF_KEYFILE_MAX)
			return too_long(what, err);
	}
}

static int read_exact(int fd, uint64_t size, const char *what, struct cf_secret_buf *b, struct cf_err *err)
{
	b->data = size <= SIZE_MAX ? cf_secret_alloc((size_t)size) : NULL;
	if (!b->data)
		return cf_fail(err, -ENOMEM, "no memory for %llu bytes of %s", (unsigned long long)size, what);
	ssize_t n = read_full(fd, b->data, (size_t)size);
	if (n < 0)
		return read_failed(n, what, err);
	if ((uint64_t)n < size)
		return too_short(what, size, err);
	b->len = (size_t)size;
	return 0;
}

int cf_key_read_fd(int fd, enum cf_key_read how, uint64_t skip, uint64_t size, const char *what,
				   struct cf_secret_buf *out, struct cf_err *err)
{
	CF_CLEANUP(cf_secret_buf_fini) struct cf_secret_buf b = {NULL, 0};
	int rc = skip_bytes(fd, skip, what, err);
	if (rc)
		return rc;
	switch (how) {
	case CF_KEY_READ_LINE:
		rc = read_line(fd, size, what, &b, err);
		break;
	case CF_KEY_READ_ALL:
		rc = read_all(fd, what, &b, err);
		break;
	case CF_KEY_READ_EXACT:
		rc = read_exact(fd, size, what, &b, err);
		break;
	}
	if (rc)
		return rc;
	*out = b;
	b = (struct cf_secret_buf){NULL, 0};
	if (!out->len)
		cf_secret_buf_fini(out);
	return 0;
}

/* ---- hashing ---- */

/** "sha512:32": what to hash with, and how many bytes of the key that makes. */
struct hash_spec {
	char name[64]; /* "plain": no hash */
	size_t len;    /* the rest of the key is zeros */
	bool cut;      /* a length was given */
};

static int parse_hash(const char *text, size_t key_len, struct hash_spec *out, struct cf_err *err)
{
	const char *colon = strchr(text, ':');
	size_t name_len = colon ? (size_t)(colon - text) : strlen(text);
	uint64_t len = key_len;
	if (name_len == 0 || name_len >= sizeof(out->name))
		return cf_fail(err, -EINVAL, "unknown hash '%s'", text);
	memcpy(out->name, text, name_len);
	out->name[name_len] = '\0';
	if (colon && (cf_units_parse_number(colon + 1, SIZE_MAX, &len) != 0 || len == 0))
		return cf_fail(err, -EINVAL, "the length in --hash '%s' must be decimal digits, above 0", text);
	if (len > key_len)
		return cf_fail(err, -EINVAL, "the length in --hash '%s' is above the key size of %zu bytes", text, key_len);
	out->len = (size_t)len;
	out->cut = colon != NULL;
	return 0;
}

static bool is_plain(const struct hash_spec *h)
{
	return !strcmp(h->name, "plain");
}

static int check_digest(const char *name, struct cf_err *err)
{
	if (cf_digest_bytes(CF_DIGEST_CRYPTSETUP, name) > 0)
		return 0;
	return cf_fail(err, -EINVAL, "unknown hash '%s': sha256, sha512, sha1, ripemd160, whirlpool … are known", name);
}

int cf_key_hash_check(const char *hash, size_t key_len, struct cf_err *err)
{
	struct hash_spec h;
	int rc = parse_hash(hash, key_len, &h, err);
	return rc || is_plain(&h) ? rc : check_digest(h.name, err);
}

/* The key is the digests of the rounds, one after the other; a round hashes as many "A" as rounds came before it, then
 * the passphrase. */
static int hash_rounds(const char *name, const struct cf_secret_buf *pass, uint8_t *key, size_t len, struct cf_err *err)
{
	char prefix[CF_KEY_MAX / DIGEST_MIN];
	CF_CLEANUP(cf_secret_freep) uint8_t *sum = cf_secret_alloc(CF_DIGEST_MAX);
	int rc = check_digest(name, err);
	if (rc)
		return rc;
	if (!sum)
		return cf_fail(err, -ENOMEM, "no memory to hash the passphrase");
	memset(prefix, 'A', sizeof(prefix));
	size_t step = (size_t)cf_digest_bytes(CF_DIGEST_CRYPTSETUP, name);
	assert(step >= DIGEST_MIN && len <= CF_KEY_MAX);
	for (size_t done = 0, round = 0; done < len; done += step, round++) {
		rc = cf_digest(CF_DIGEST_CRYPTSETUP, name, prefix, round, pass->data, pass->len, sum);
		if (rc)
			return cf_fail(err, rc, "cannot hash the passphrase: %s", strerror(-rc));
		memcpy(key + done, sum, len - done < step ? len - done : step);
	}
	return 0;
}

/* "plain" takes any length and pads with zeros; "plain:32" wants its 32 bytes. */
static int copy_plain(const struct hash_spec *h, const struct cf_secret_buf *pass, uint8_t *key, struct cf_err *err)
{
	if (h->cut && pass->len < h->len)
		return cf_fail(err, -EINVAL, "the passphrase is shorter than the %zu bytes that --hash asks for", h->len);
	if (pass->len)
		memcpy(key, pass->data, pass->len < h->len ? pass->len : h->len);
	return 0;
}

int cf_key_from_passphrase(const char *hash, const struct cf_secret_buf *pass, uint8_t *key, size_t key_len,
						   struct cf_err *err)
{
	struct hash_spec h;
	int rc = parse_hash(hash, key_len, &h, err);
	if (rc)
		return rc;
	memset(key, 0, key_len);
	return is_plain(&h) ? copy_plain(&h, pass, key, err) : hash_rounds(h.name, pass, key, h.len, err);
}
