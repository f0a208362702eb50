/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* selftest.c - before the first byte is served: does the engine compute the cipher, and does a batch give what one data
 * unit at a time gives? An engine that fails is never used (DESIGN, section 5). Runs under the volume's own key;
 * allocates and frees its buffers. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "impl.h"

/* One published answer a cipher. Sources: FIPS 197 C.1; RFC 3713 A; NIST SP 800-67 B.1; Schneier's Blowfish vectors;
 * RFC 2144 B.1; RFC 2612 A; the Twofish paper's zero vector; for Serpent, with a short key, Linux
 * crypto/testmgr.h. */
static const struct answer {
	const char *cipher;
	uint8_t key_bytes;
	uint8_t key[32], plain[16], expect[16];
} answers[] = {
	{"aes",
	 16,
	 {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f},
	 {0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff},
	 {0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30, 0xd8, 0xcd, 0xb7, 0x80, 0x70, 0xb4, 0xc5, 0x5a}},
	{"camellia",
	 16,
	 {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10},
	 {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 0xdc, 0xba, 0x98, 0x76, 0x54, 0x32, 0x10},
	 {0x67, 0x67, 0x31, 0x38, 0x54, 0x96, 0x69, 0x73, 0x08, 0x57, 0x06, 0x56, 0x48, 0xea, 0xbe, 0x43}},
	{"des3_ede",
	 24,
	 {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x23, 0x45, 0x67, 0x89,
	  0xab, 0xcd, 0xef, 0x01, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23},
	 {0x54, 0x68, 0x65, 0x20, 0x71, 0x75, 0x66, 0x63},
	 {0xa8, 0x26, 0xfd, 0x8c, 0xe5, 0x3b, 0x85, 0x5f}},
	{"blowfish", 8, {0}, {0}, {0x4e, 0xf9, 0x97, 0x45, 0x61, 0x98, 0xdd, 0x78}},
	{"cast5",
	 16,
	 {0x01, 0x23, 0x45, 0x67, 0x12, 0x34, 0x56, 0x78, 0x23, 0x45, 0x67, 0x89, 0x34, 0x56, 0x78, 0x9a},
	 {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef},
	 {0x23, 0x8b, 0x4f, 0xe5, 0x84, 0x7e, 0x44, 0xb2}},
	{"twofish",
	 16,
	 {0},
	 {0},
	 {0x9f, 0x58, 0x9f, 0x5c, 0xf6, 0x12, 0x2c, 0x32, 0xb6, 0xbf, 0xec, 0x2f, 0x2a, 0xe8, 0xc3, 0x5a}},
	{"serpent",
	 16,
	 {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f},
	 {0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x0e, 0x0f},
	 {0x4c, 0x7d, 0x8a, 0x32, 0x80, 0x72, 0xa2, 0x2c, 0x82, 0x3e, 0x4a, 0x1f, 0x3a, 0xcd, 0xa1, 0x6d}},
	{"cast6",
	 16,
	 {0x23, 0x42, 0xbb, 0x9e, 0xfa, 0x38, 0x54, 0x2c, 0x0a, 0xf7, 0x56, 0x47, 0xf2, 0x9f, 0x61, 0x5d},
	 {0},
	 {0xc8, 0x42, 0xa0, 0x89, 0x72, 0xb4, 0x3d, 0x20, 0x83, 0x6c, 0x91, 0xd1, 0xb7, 0x53, 0x0f, 0x6b}},
};

static int known_answer(const struct cf_cipher_plan *p, const struct answer *a)
{
	struct cf_engine_key *key = NULL;
	uint8_t there[16], back[16];
	if (!p->engine->has(&p->bc, a->key_bytes))
		return 0;
	int rc = p->engine->key_new(&key, &p->bc, a->key, a->key_bytes, 1);
	if (!rc)
		rc = p->engine->crypt(key, 0, CF_ENCRYPT, a->plain, there, 1);
	if (!rc)
		rc = p->engine->crypt(key, 0, CF_DECRYPT, a->expect, back, 1);
	p->engine->key_free(&key);
	if (rc)
		return rc;
	size_t block = p->bc.block_bytes;
	return memcmp(there, a->expect, block) || memcmp(back, a->plain, block) ? -EIO : 0;
}

static int known_answers(const struct cf_cipher_plan *p)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(answers); i++)
		if (!strcmp(answers[i].cipher, p->bc.name)) {
			int rc = known_answer(p, &answers[i]);
			if (rc)
				return rc;
		}
	return 0;
}

/* Buffers of the comparison: plaintext, and two results. */
struct buffers {
	size_t n_du, len;
	uint8_t *plain, *batch, *single;
};

static void buffers_free(struct buffers *b)
{
	if (b->plain)
		cf_secret_wipe(b->plain, 3 * b->len);
	free(b->plain);
}

static int buffers_init(struct buffers *b, const struct cf_cipher *c)
{
	/* A few data units, an odd number of them where they are small, more than one lane; little work for slow ciphers.
	 */
	b->n_du = c->spec.du_bytes <= 1024 ? 11 : 3;
	b->len = b->n_du * c->spec.du_bytes;
	b->plain = malloc(3 * b->len);
	if (!b->plain)
		return -ENOMEM;
	b->batch = b->plain + b->len;
	b->single = b->batch + b->len;
	uint64_t x = 0x9e3779b97f4a7c15;
	for (size_t i = 0; i < b->len; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		b->plain[i] = (uint8_t)(x >> 56);
	}
	return 0;
}

static int one_by_one(struct cf_cipher *c, enum cf_dir dir, uint64_t du, const struct buffers *b, const uint8_t *src)
{
	for (size_t i = 0; i < b->n_du; i++) {
		size_t at = i * c->spec.du_bytes;
		int rc = cf_cipher_crypt(c, 0, dir, du + i, 1, src + at, b->single + at);
		if (rc)
			return rc;
	}
	return 0;
}

/* Encrypt as a batch and one by one, decrypt both ways: all must agree and come back. @from: the path of the batches.
 */
static int compare(struct cf_cipher *c, size_t from, const struct buffers *b)
{
	uint64_t du = 5;
	c->batch_from[CF_ENCRYPT] = c->never_lanes ? SIZE_MAX : from;
	c->batch_from[CF_DECRYPT] = from;
	int rc = cf_cipher_crypt(c, 0, CF_ENCRYPT, du, b->n_du, b->plain, b->batch);
	if (!rc)
		rc = one_by_one(c, CF_ENCRYPT, du, b, b->plain);
	if (!rc && memcmp(b->batch, b->single, b->len) != 0)
		rc = -EIO;
	if (!rc)
		rc = one_by_one(c, CF_DECRYPT, du, b, b->batch);
	if (!rc && memcmp(b->single, b->plain, b->len) != 0)
		rc = -EIO;
	memcpy(b->single, b->batch, b->len);
	if (!rc)
		rc = cf_cipher_crypt(c, 0, CF_DECRYPT, du, b->n_du, b->single, b->batch);
	if (!rc && memcmp(b->batch, b->plain, b->len) != 0)
		rc = -EIO;
	memcpy(b->batch, b->single, b->len); /* the ciphertext, for the caller */
	return rc;
}

int cf_cipher_selftest(struct cf_cipher *c, enum cf_path path, struct cf_err *err)
{
	CF_CLEANUP(buffers_free) struct buffers b = {0};
	size_t from[2] = {c->batch_from[CF_ENCRYPT], c->batch_from[CF_DECRYPT]};
	int rc = known_answers(&c->plan);
	if (!rc)
		rc = buffers_init(&b, c);
	bool has_native = c->subkeys[0].mode.native != NULL && from[0] != 1;
	bool has_batch = !c->plan.mode->native_only && path != CF_PATH_NATIVE;
	if (!rc && has_batch)
		rc = compare(c, 1, &b);
	if (!rc && has_native) {
		CF_CLEANUP(buffers_free) struct buffers own = {0};
		rc = buffers_init(&own, c);
		if (!rc)
			rc = compare(c, SIZE_MAX, &own);
		if (!rc && has_batch && memcmp(own.batch, b.batch, b.len) != 0)
			rc = -EIO;
	}
	c->batch_from[CF_ENCRYPT] = from[0];
	c->batch_from[CF_DECRYPT] = from[1];
	char label[CF_LABEL];
	cf_cipher_label(&c->spec, label);
	if (rc == -EIO)
		return cf_fail(err, -EIO, "engine '%s' failed its self-test for %s: not used", c->plan.engine->name, label);
	return rc;
}
