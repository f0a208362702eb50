/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* pcbc.c - PCBC: C(i) = E(P(i) ^ P(i-1) ^ C(i-1)), with the IV for the first P ^ C. Source: Linux crypto/pcbc.c. */
#include "lanes.h"

static inline void carry_both(uint8_t *cipher, const uint8_t *plain, size_t block)
{
	cf_xor(cipher, cipher, plain, block);
}

static int crypt_pcbc(const struct cf_mode_key *k, const struct cf_mode_run *r)
{
	if (r->dir == CF_ENCRYPT)
		return cf_lanes_encrypt(k, r, carry_both);
	size_t block = k->block;
	int rc = cf_mode_crypt_blocks(k, r, r->src, r->dst, r->n_du * r->du_bytes / block);
	for (size_t i = 0; !rc && i < r->n_du; i++) {
		uint8_t carry[CF_BLOCK_MAX];
		memcpy(carry, r->ivs + i * block, block);
		for (size_t at = i * r->du_bytes; at < (i + 1) * r->du_bytes; at += block) {
			cf_xor(r->dst + at, r->dst + at, carry, block);
			cf_xor(carry, r->dst + at, r->src + at, block);
		}
	}
	return rc;
}

extern const struct cf_mode cf_mode_pcbc;
const struct cf_mode cf_mode_pcbc = {.name = "pcbc", .key_parts = 1, .encrypts_in_lanes = true, .crypt = crypt_pcbc};
