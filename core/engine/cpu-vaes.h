/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* cpu-vaes.h - the code that cpu-vaes256.c and cpu-vaes512.c share but for the width of a vector. Included once by
 * each, after it has defined:
 *
 *   FEATURES                     of the CPU, as the compiler names them
 *   vec, VEC_BYTES               a vector of blocks
 *   load store broadcast lowest  to, from a vector; a block to all lanes; the first lane
 *   xor xor3 set64 sub64 shl64 shr64 (by a constant) shlv64 shrv64 bslli bsrli clmul_hi_lo clmul_lo_lo lane_numbers
 *   previous                     see there
 *   enc enclast dec declast      a round
 */
#define VECTORS 8u /* in flight: hides the latency of a round */
#define LANES (VEC_BYTES / 16u)
#define STEP (LANES * VECTORS) /* blocks */

/* All rounds but the first xor; @dir is a constant of the caller. Round keys come from the schedule: the loads
 * cost less than what would have to leave the registers for them. */
INLINE void rounds(const struct cf_cpu_key *k, enum cf_dir dir, vec *x)
{
	for (unsigned r = 1; r < k->rounds; r++) {
		vec key = load(k->round[dir][r]);
		UNROLL
		for (unsigned i = 0; i < VECTORS; i++)
			x[i] = dir == CF_ENCRYPT ? enc(x[i], key) : dec(x[i], key);
	}
	vec key = load(k->round[dir][k->rounds]);
	UNROLL
	for (unsigned i = 0; i < VECTORS; i++)
		x[i] = dir == CF_ENCRYPT ? enclast(x[i], key) : declast(x[i], key);
}

/* ---- runs over a multiple of STEP blocks ---- */

INLINE void ecb_run(const struct cf_cpu_key *k, enum cf_dir dir, const uint8_t *src, uint8_t *dst, size_t n)
{
	vec x[VECTORS];
	for (; n; n -= STEP, src += 16 * STEP, dst += 16 * STEP) {
		UNROLL
		for (unsigned i = 0; i < VECTORS; i++)
			x[i] = xor(load(src + VEC_BYTES * i), load(k->round[dir][0]));
		rounds(k, dir, x);
		UNROLL
		for (unsigned i = 0; i < VECTORS; i++)
			store(dst + VEC_BYTES * i, x[i]);
	}
}

/* @out is what left each half on the left when @shifted was shifted: the low half's goes into the high one, the high
 * half's is folded back modulo x^128 + x^7 + x^2 + x + 1. */
INLINE vec fold(vec shifted, vec out)
{
	return xor3(shifted, bslli(out, 8), clmul_hi_lo(out, set64(0x87)));
}

/* T, T·x, … in the lanes of one vector; the next vector of them; and each T times x^8. */
INLINE vec tweaks_of(__m128i tweak)
{
	vec t = broadcast(tweak), by = lane_numbers();
	return fold(shlv64(t, by), shrv64(t, sub64(set64(64), by)));
}

INLINE vec times_lanes(vec t)
{
	return fold(shl64(t, LANES), shr64(t, 64 - LANES));
}

INLINE vec times_x8(vec t)
{
	return xor(bslli(t, 1), clmul_lo_lo(bsrli(t, 15), set64(0x87)));
}

/* Chains of tweaks: CHAINS vectors hold eight, and each goes on by itself. */
#define CHAINS (8u / LANES)

INLINE void first_tweaks(const uint8_t *tweak, vec *next)
{
	next[0] = tweaks_of(_mm_loadu_si128((const __m128i *)tweak));
	UNROLL
	for (unsigned i = 1; i < CHAINS; i++)
		next[i] = times_lanes(next[i - 1]);
}

/* @n blocks: any number of data units of @du blocks, if that is a multiple of STEP, or the body of one. Leaves the
 * tweak after the last block in @rest. The tweaks that come next are made before the rounds, so that the CPU does both
 * at once. */
INLINE void xts_run(const struct cf_cpu_key *k, enum cf_dir dir, const uint8_t *src, uint8_t *dst, size_t n, size_t du,
					const uint8_t *tweaks, uint8_t *rest)
{
	vec x[VECTORS], t[VECTORS], next[CHAINS];
	size_t left = du;
	first_tweaks(tweaks, next);
	for (; n; n -= STEP, src += 16 * STEP, dst += 16 * STEP) {
		UNROLL
		for (unsigned i = 0; i < VECTORS; i++) {
			t[i] = next[i % CHAINS];
			x[i] = xor3(load(src + VEC_BYTES * i), t[i], load(k->round[dir][0]));
			next[i % CHAINS] = times_x8(t[i]);
		}
		left = left == STEP ? du : left - STEP;
		if (left == du)
			first_tweaks(tweaks += 16, next);
		rounds(k, dir, x);
		UNROLL
		for (unsigned i = 0; i < VECTORS; i++)
			store(dst + VEC_BYTES * i, xor(x[i], t[i]));
	}
	_mm_storeu_si128((__m128i *)rest, lowest(next[0]));
}

INLINE void cbc_decrypt_run(const struct cf_cpu_key *k, const uint8_t *src, uint8_t *dst, size_t n, const uint8_t *iv)
{
	const enum cf_dir dir = CF_DECRYPT;
	vec x[VECTORS], before = broadcast(_mm_loadu_si128((const __m128i *)iv)); /* its last block counts */
	for (; n; n -= STEP, src += 16 * STEP, dst += 16 * STEP) {
		UNROLL
		for (unsigned i = 0; i < VECTORS; i++)
			x[i] = xor(load(src + VEC_BYTES * i), load(k->round[dir][0]));
		rounds(k, dir, x);
		UNROLL
		for (unsigned i = 0; i < VECTORS; i++) {
			vec c = load(src + VEC_BYTES * i);
			store(dst + VEC_BYTES * i, xor(x[i], previous(c, before)));
			before = c;
		}
	}
}

/* ---- the slots: what the wide vectors leave at the end is for AES-NI ---- */

TARGET static void ecb(const struct cf_cpu_key *k, enum cf_dir dir, const uint8_t *src, uint8_t *dst, size_t n)
{
	size_t body = n / STEP * STEP;
	if (dir == CF_ENCRYPT)
		ecb_run(k, CF_ENCRYPT, src, dst, body);
	else
		ecb_run(k, CF_DECRYPT, src, dst, body);
	cf_cpu_isa_aesni.ecb(k, dir, src + 16 * body, dst + 16 * body, n - body);
}

/* A data unit that is no multiple of STEP: its body, and what is left as a data unit of its own. */
INLINE void xts_odd(const struct cf_cpu_key *k, enum cf_dir dir, const struct cf_engine_batch *b, const uint8_t *tweaks)
{
	size_t du = b->du_bytes, body = du / 16 / STEP * STEP;
	uint8_t tweak[32] = {0};
	struct cf_engine_batch rest = {.dir = dir, .n_du = 1, .du_bytes = (uint32_t)(du - 16 * body)};
	for (size_t i = 0; i < b->n_du; i++) {
		xts_run(k, dir, b->src + i * du, b->dst + i * du, body, SIZE_MAX, tweaks + 16 * i, tweak);
		rest.src = b->src + i * du + 16 * body;
		rest.dst = b->dst + i * du + 16 * body;
		cf_cpu_isa_aesni.xts(k, &rest, tweak);
	}
	cf_secret_wipe(tweak, sizeof(tweak));
}

INLINE void xts_dir(const struct cf_cpu_key *k, enum cf_dir dir, const struct cf_engine_batch *b, const uint8_t *tweaks)
{
	size_t du = b->du_bytes / 16;
	uint8_t unused[16];
	if (du % STEP)
		xts_odd(k, dir, b, tweaks);
	else
		xts_run(k, dir, b->src, b->dst, b->n_du * du, du, tweaks, unused);
}

TARGET static void xts(const struct cf_cpu_key *k, const struct cf_engine_batch *b, const uint8_t *tweaks)
{
	if (b->dir == CF_ENCRYPT)
		xts_dir(k, CF_ENCRYPT, b, tweaks);
	else
		xts_dir(k, CF_DECRYPT, b, tweaks);
}

TARGET static void cbc_decrypt(const struct cf_cpu_key *k, const uint8_t *src, uint8_t *dst, size_t n,
							   const uint8_t iv[16])
{
	size_t body = n / STEP * STEP;
	cbc_decrypt_run(k, src, dst, body, iv);
	if (n > body)
		cf_cpu_isa_aesni.cbc_decrypt(k, src + 16 * body, dst + 16 * body, n - body, body ? src + 16 * (body - 1) : iv);
}
