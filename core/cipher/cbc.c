/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* cbc.c - CBC, and CBC with ciphertext stealing. Decryption is one block-cipher call over the batch and an xor with the
 * ciphertext block before; encryption runs across data units (lanes.h). cts(cbc(x)) on whole blocks is CBC with the
 * last two ciphertext blocks exchanged (NIST SP 800-38A addendum, CBC-CS3). */
#include "lanes.h"

static inline void carry_cipher(uint8_t *cipher, const uint8_t *plain, size_t block)
{
	(void)cipher;
	(void)plain;
	(void)block;
}

/* D(C) of @len bytes at @at was written to dst: finish it to P = D(C) ^ previous C. Previous of the first block of a
 * data unit is its IV. */
static void unchain(const struct cf_mode_run *r, size_t block, size_t at, size_t len)
{
	for (size_t end = at + len; at < end;) {
		size_t in_du = at % r->du_bytes, rest = r->du_bytes - in_du;
		size_t run = rest < end - at ? rest : end - at;
		if (in_du == 0) {
			cf_xor(r->dst + at, r->dst + at, r->ivs + at / r->du_bytes * block, block);
			cf_xor(r->dst + at + block, r->dst + at + block, r->src + at, run - block);
		} else {
			cf_xor(r->dst + at, r->dst + at, r->src + at - block, run);
		}
		at += run;
	}
}

static int decrypt_cbc(const struct cf_mode_key *k, const struct cf_mode_run *r)
{
	size_t total = r->n_du * r->du_bytes;
	for (size_t at = 0; at < total; at += r->pass_bytes) {
		size_t len = total - at < r->pass_bytes ? total - at : r->pass_bytes;
		int rc = cf_mode_crypt_blocks(k, r, r->src + at, r->dst + at, len / k->block);
		if (rc)
			return rc;
		unchain(r, k->block, at, len);
	}
	return 0;
}

static int crypt_cbc(const struct cf_mode_key *k, const struct cf_mode_run *r)
{
	return r->dir == CF_ENCRYPT ? cf_lanes_encrypt(k, r, carry_cipher) : decrypt_cbc(k, r);
}

static void exchange(uint8_t *a, uint8_t *b, size_t block)
{
	uint8_t t[CF_BLOCK_MAX];
	memcpy(t, a, block);
	memcpy(a, b, block);
	memcpy(b, t, block);
}

/* Ciphertext is … C(n-2), C(n), C(n-1). With X = D(C(n)) and Y = D(C(n-1)): P(n-1) = Y ^ C(n-2) and P(n) = X ^ C(n-1).
 * Plain CBC decryption made X ^ C(n-2) and Y ^ C(n) of them: exchange the two and put right what they are xored with.
 */
static void repair_tail(uint8_t *dst, const uint8_t *src, const uint8_t *before, size_t block)
{
	uint8_t *p1 = dst, *p2 = dst + block;
	exchange(p1, p2, block);
	cf_xor(p1, p1, src, block); /* Y ^ C(n) ^ C(n): src holds C(n) first */
	cf_xor(p1, p1, before, block);
	cf_xor(p2, p2, before, block);
	cf_xor(p2, p2, src + block, block);
}

static int crypt_cts(const struct cf_mode_key *k, const struct cf_mode_run *r)
{
	int rc = crypt_cbc(k, r);
	size_t block = k->block;
	if (rc || r->du_bytes < 2 * block)
		return rc;
	for (size_t i = 0; i < r->n_du; i++) {
		size_t tail = (i + 1) * r->du_bytes - 2 * block;
		if (r->dir == CF_ENCRYPT)
			exchange(r->dst + tail, r->dst + tail + block, block);
		else
			repair_tail(r->dst + tail, r->src + tail,
						r->du_bytes == 2 * block ? r->ivs + i * block : r->src + tail - block, block);
	}
	return 0;
}

extern const struct cf_mode cf_mode_cbc, cf_mode_cts;
const struct cf_mode cf_mode_cbc = {.name = "cbc", .key_parts = 1, .encrypts_in_lanes = true, .crypt = crypt_cbc};
const struct cf_mode cf_mode_cts = {.name = "cts", .key_parts = 1, .encrypts_in_lanes = true, .crypt = crypt_cts};
