/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* lanes.h - the frame of modes that are serial inside a data unit (CBC and PCBC encryption): run across data units
 * instead.
 *
 *            DU 0   DU 1   DU 2   …           block k of up to CF_LANES data units makes one call; what a lane
 *     k = 0   [ ]    [ ]    [ ]   -> 1 call    carries to its next block is kept in one row
 *     k = 1   [ ]    [ ]    [ ]   -> 1 call
 */
#ifndef CRYPTFUSE_LANES_H
#define CRYPTFUSE_LANES_H

#include "cryptfuse/bytes.h"
#include "cryptfuse/mode.h"

/* Eight 16-byte blocks fill the AES pipeline; more lanes read from addresses a power of two apart that fight for the
 * same L1 cache sets (PERF.md). */
#define CF_LANES 8u

/** What the next block of a lane is xored with, from this block's plaintext and ciphertext: the mode's whole
 * difference. */
typedef void cf_lane_carry(uint8_t *carry, const uint8_t *plain, const uint8_t *cipher, size_t block);

/** cf_lanes_encrypt - C(k) = E(P(k) ^ carry), over all data units of @r. */
static inline int cf_lanes_encrypt(const struct cf_mode_key *key, const struct cf_mode_run *r, cf_lane_carry *next)
{
	size_t block = key->block, du = r->du_bytes;
	uint8_t carry[CF_LANES * CF_BLOCK_MAX], in[CF_LANES * CF_BLOCK_MAX], out[CF_LANES * CF_BLOCK_MAX];
	for (size_t first = 0; first < r->n_du; first += CF_LANES) {
		size_t lanes = r->n_du - first < CF_LANES ? r->n_du - first : CF_LANES;
		memcpy(carry, r->ivs + first * block, lanes * block);
		for (size_t at = 0; at < du; at += block) {
			const uint8_t *src = r->src + first * du + at;
			uint8_t *dst = r->dst + first * du + at;
			for (size_t l = 0; l < lanes; l++)
				cf_xor(in + l * block, src + l * du, carry + l * block, block);
			int rc = cf_mode_crypt_blocks(key, r, in, out, lanes);
			if (rc)
				return rc;
			for (size_t l = 0; l < lanes; l++) {
				memcpy(dst + l * du, out + l * block, block);
				next(carry + l * block, src + l * du, out + l * block, block);
			}
		}
	}
	return 0;
}

#endif
