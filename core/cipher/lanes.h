/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* lanes.h - the frame of modes that are serial inside a data unit (CBC and PCBC encryption): run across data units
 * instead.
 *
 *            DU 0   DU 1   DU 2   …           block k of up to CF_LANES data units makes one call; what a lane
 *     k = 0   [ ]    [ ]    [ ]   -> 1 call    carries to its next block stays where the call put it
 *     k = 1   [ ]    [ ]    [ ]   -> 1 call
 */
#ifndef CRYPTFUSE_LANES_H
#define CRYPTFUSE_LANES_H

#include "cryptfuse/bytes.h"
#include "cryptfuse/mode.h"

/* Eight 16-byte blocks fill the AES pipeline; twice that halves what a call costs beside. */
#define CF_LANES 16u

/** What the next block of a lane is xored with, from this block's plaintext and ciphertext, in place of the latter: the
 * mode's whole difference. A step waits for the one before it: a copy more on the way would be felt. */
typedef void cf_lane_carry(uint8_t *cipher, const uint8_t *plain, size_t block);

/* Some cache lines of each lane are fetched and stored at a time: lanes lie a power of two apart, so that going through
 * sources and results block by block would have more lines fight for one set of the cache than it has places. */
#define CF_LANE_LINE 256u

/** The state of one group of lanes. */
struct cf_lanes {
	uint8_t in[CF_LANES * CF_BLOCK_MAX];
	uint8_t carry[CF_LANES * CF_BLOCK_MAX]; /* the IVs, then what each call gave */
	uint8_t plain[CF_LANES * CF_LANE_LINE], cipher[CF_LANES * CF_LANE_LINE];
};

/* @line bytes of each lane, from s->plain to s->cipher. @block and @next are constants of the caller: copies and xors
 * of a block become single instructions; and @lanes where it is all or half of them: there is no loop around those. */
static inline __attribute__((always_inline)) int cf_lanes_line(const struct cf_mode_key *key,
															   const struct cf_mode_run *r, cf_lane_carry *next,
															   struct cf_lanes *s, size_t lanes, size_t line,
															   size_t block)
{
	for (size_t at = 0; at < line; at += block) {
		const uint8_t *plain = s->plain + at;
		uint8_t *cipher = s->cipher + at;
#pragma GCC unroll 8
		for (size_t l = 0; l < lanes; l++)
			cf_xor(s->in + l * block, plain + l * CF_LANE_LINE, s->carry + l * block, block);
		int rc = cf_mode_crypt_blocks(key, r, s->in, s->carry, lanes);
		if (rc)
			return rc;
#pragma GCC unroll 8
		for (size_t l = 0; l < lanes; l++) {
			memcpy(cipher + l * CF_LANE_LINE, s->carry + l * block, block);
			next(s->carry + l * block, plain + l * CF_LANE_LINE, block);
		}
	}
	return 0;
}

/* Up to CF_LANES data units from @first on. */
static inline __attribute__((always_inline)) int cf_lanes_group(const struct cf_mode_key *key,
																const struct cf_mode_run *r, cf_lane_carry *next,
																size_t first, size_t lanes, size_t line, size_t block)
{
	struct cf_lanes s;
	size_t du = r->du_bytes;
	memcpy(s.carry, r->ivs + first * block, lanes * block);
	for (size_t at = first * du; at < (first + 1) * du; at += line) {
		for (size_t l = 0; l < lanes; l++)
			memcpy(s.plain + l * CF_LANE_LINE, r->src + at + l * du, line);
		int rc = cf_lanes_line(key, r, next, &s, lanes, line, block);
		if (rc)
			return rc;
		for (size_t l = 0; l < lanes; l++)
			memcpy(r->dst + at + l * du, s.cipher + l * CF_LANE_LINE, line);
	}
	return 0;
}

/* All data units at once, for an engine whose calls are dear: as few of them as there are blocks in one. */
static inline __attribute__((always_inline)) int cf_lanes_wide(const struct cf_mode_key *key,
															   const struct cf_mode_run *r, cf_lane_carry *next)
{
	size_t du = r->du_bytes, block = key->block;
	uint8_t *in = r->scratch[0], *carry = r->scratch[1];
	memcpy(carry, r->ivs, r->n_du * block);
	for (size_t at = 0; at < du; at += block) {
		for (size_t l = 0; l < r->n_du; l++)
			cf_xor(in + l * block, r->src + l * du + at, carry + l * block, block);
		int rc = cf_mode_crypt_blocks(key, r, in, carry, r->n_du);
		if (rc)
			return rc;
		for (size_t l = 0; l < r->n_du; l++) {
			memcpy(r->dst + l * du + at, carry + l * block, block);
			next(carry + l * block, r->src + l * du + at, block);
		}
	}
	return 0;
}

/** cf_lanes_encrypt - C(k) = E(P(k) ^ carry), over all data units of @r. */
static inline __attribute__((always_inline)) int cf_lanes_encrypt(const struct cf_mode_key *key,
																  const struct cf_mode_run *r, cf_lane_carry *next)
{
	if (r->pass_bytes > CF_PASS_BYTES)
		return cf_lanes_wide(key, r, next);
	for (size_t first = 0; first < r->n_du; first += CF_LANES) {
		size_t lanes = r->n_du - first < CF_LANES ? r->n_du - first : CF_LANES;
		int rc;
		if (r->du_bytes < CF_LANE_LINE) /* one block: an IV being made */
			rc = cf_lanes_group(key, r, next, first, lanes, r->du_bytes, key->block);
		else if (key->block == 16 && lanes == CF_LANES)
			rc = cf_lanes_group(key, r, next, first, CF_LANES, CF_LANE_LINE, 16);
		else if (key->block == 16 && lanes == CF_LANES / 2) /* what a request of large data units comes to */
			rc = cf_lanes_group(key, r, next, first, CF_LANES / 2, CF_LANE_LINE, 16);
		else if (key->block == 16)
			rc = cf_lanes_group(key, r, next, first, lanes, CF_LANE_LINE, 16);
		else
			rc = cf_lanes_group(key, r, next, first, lanes, CF_LANE_LINE, 8);
		if (rc)
			return rc;
	}
	return 0;
}

#endif
