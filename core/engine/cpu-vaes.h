/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* cpu-vaes.h - the code that cpu-vaes256.c and cpu-vaes512.c share but for the width of a vector. Included once by
 * each, after it has defined:
 *
 *   FEATURES            of the CPU, as the compiler names them        vec, VEC_BYTES      a vector
 *   load store xor xor3 shl64 shr64 (by a constant) shlv64 shrv64 sub64 set64 bslli8 clmul_hi_lo broadcast lowest
 * previous enc enclast dec declast                                           KEYS_IN_REGISTERS   1 if all round keys
 * fit there
 */
#define VECTORS 8u /* in flight: hides the latency of a round */
#define LANES (VEC_BYTES / 16u)
#define STEP (LANES * VECTORS) /* blocks */

#if KEYS_IN_REGISTERS
#define KEY(r) keys[r]
#else
#define KEY(r) load(k->round[dir][r])
#endif

INLINE void load_keys(const struct cf_cpu_key *k, unsigned nr, enum cf_dir dir, vec *keys)
{
	UNROLL
	for (unsigned r = 0; KEYS_IN_REGISTERS && r <= nr; r++)
		keys[r] = load(k->round[dir][r]);
}

/* All rounds but the first xor; @nr and @dir are constants of the caller. */
INLINE void rounds(const struct cf_cpu_key *k, const vec *keys, unsigned nr, enum cf_dir dir, vec *x)
{
	(void)k, (void)keys;
	UNROLL
	for (unsigned r = 1; r < nr; r++) {
		vec key = KEY(r);
		UNROLL
		for (unsigned i = 0; i < VECTORS; i++)
			x[i] = dir == CF_ENCRYPT ? enc(x[i], key) : dec(x[i], key);
	}
	vec key = KEY(nr);
	UNROLL
	for (unsigned i = 0; i < VECTORS; i++)
		x[i] = dir == CF_ENCRYPT ? enclast(x[i], key) : declast(x[i], key);
}

/* ---- runs over a multiple of STEP blocks ---- */

INLINE void ecb_run(const struct cf_cpu_key *k, unsigned nr, enum cf_dir dir, const uint8_t *src, uint8_t *dst,
					size_t n)
{
	vec keys[CF_CPU_ROUND_KEYS], x[VECTORS];
	load_keys(k, nr, dir, keys);
	for (; n; n -= STEP, src += 16 * STEP, dst += 16 * STEP) {
		UNROLL
		for (unsigned i = 0; i < VECTORS; i++)
			x[i] = xor(load(src + VEC_BYTES * i), KEY(0));
		rounds(k, keys, nr, dir, x);
		UNROLL
		for (unsigned i = 0; i < VECTORS; i++)
			store(dst + VEC_BYTES * i, x[i]);
	}
}

/* @out is what left each half on the left when @shifted was shifted: the low half's goes into the high one, the high
 * half's is folded back modulo x^128 + x^7 + x^2 + x + 1. */
INLINE vec fold(vec shifted, vec out)
{
	return xor3(shifted, bslli8(out), clmul_hi_lo(out, set64(0x87)));
}

/* T, T·x, … in the lanes of one vector; then the whole vector times x^LANES. */
INLINE vec first_tweaks(__m128i tweak)
{
	vec t = broadcast(tweak), by = lane_numbers();
	return fold(shlv64(t, by), shrv64(t, sub64(set64(64), by)));
}

INLINE vec next_tweaks(vec t)
{
	return fold(shl64(t, LANES), shr64(t, 64 - LANES));
}

/* Returns the tweak after the last block. */
INLINE __m128i xts_run(const struct cf_cpu_key *k, unsigned nr, enum cf_dir dir, const uint8_t *src, uint8_t *dst,
					   size_t n, __m128i tweak)
{
	vec keys[CF_CPU_ROUND_KEYS], x[VECTORS], t[VECTORS], next = first_tweaks(tweak);
	load_keys(k, nr, dir, keys);
	for (; n; n -= STEP, src += 16 * STEP, dst += 16 * STEP) {
		UNROLL
		for (unsigned i = 0; i < VECTORS; i++) {
			t[i] = next;
			x[i] = xor3(load(src + VEC_BYTES * i), next, KEY(0));
			next = next_tweaks(next);
		}
		rounds(k, keys, nr, dir, x);
		UNROLL
		for (unsigned i = 0; i < VECTORS; i++)
			store(dst + VEC_BYTES * i, xor(x[i], t[i]));
	}
	return lowest(next);
}

INLINE void cbc_decrypt_run(const struct cf_cpu_key *k, unsigned nr, const uint8_t *src, uint8_t *dst, size_t n,
							const uint8_t *iv)
{
	const enum cf_dir dir = CF_DECRYPT;
	vec keys[CF_CPU_ROUND_KEYS], x[VECTORS],
		before = broadcast(_mm_loadu_si128((const __m128i *)iv)); /* its last block counts */
	load_keys(k, nr, dir, keys);
	for (; n; n -= STEP, src += 16 * STEP, dst += 16 * STEP) {
		UNROLL
		for (unsigned i = 0; i < VECTORS; i++)
			x[i] = xor(load(src + VEC_BYTES * i), KEY(0));
		rounds(k, keys, nr, dir, x);
		UNROLL
		for (unsigned i = 0; i < VECTORS; i++) {
			vec c = load(src + VEC_BYTES * i);
			store(dst + VEC_BYTES * i, xor(x[i], previous(c, before)));
			before = c;
		}
	}
}

/* ---- by key length (AES-192 is rare: all of it by AES-NI, as are the blocks at the end) ---- */

TARGET static void ecb(const struct cf_cpu_key *k, enum cf_dir dir, const uint8_t *src, uint8_t *dst, size_t n)
{
	size_t body = k->rounds == 12 ? 0 : n / STEP * STEP;
	if (k->rounds == 14 && dir == CF_ENCRYPT)
		ecb_run(k, 14, CF_ENCRYPT, src, dst, body);
	else if (k->rounds == 14)
		ecb_run(k, 14, CF_DECRYPT, src, dst, body);
	else if (k->rounds == 10 && dir == CF_ENCRYPT)
		ecb_run(k, 10, CF_ENCRYPT, src, dst, body);
	else if (k->rounds == 10)
		ecb_run(k, 10, CF_DECRYPT, src, dst, body);
	cf_cpu_isa_aesni.ecb(k, dir, src + 16 * body, dst + 16 * body, n - body);
}

TARGET static void xts(const struct cf_cpu_key *k, enum cf_dir dir, const uint8_t *src, uint8_t *dst, size_t n,
					   const uint8_t tweak[16])
{
	size_t body = k->rounds == 12 ? 0 : n / STEP * STEP;
	__m128i t = _mm_loadu_si128((const __m128i *)tweak);
	uint8_t rest[16];
	if (k->rounds == 14 && dir == CF_ENCRYPT)
		t = xts_run(k, 14, CF_ENCRYPT, src, dst, body, t);
	else if (k->rounds == 14)
		t = xts_run(k, 14, CF_DECRYPT, src, dst, body, t);
	else if (k->rounds == 10 && dir == CF_ENCRYPT)
		t = xts_run(k, 10, CF_ENCRYPT, src, dst, body, t);
	else if (k->rounds == 10)
		t = xts_run(k, 10, CF_DECRYPT, src, dst, body, t);
	if (n == body)
		return;
	_mm_storeu_si128((__m128i *)rest, t);
	cf_cpu_isa_aesni.xts(k, dir, src + 16 * body, dst + 16 * body, n - body, rest);
}

TARGET static void cbc_decrypt(const struct cf_cpu_key *k, const uint8_t *src, uint8_t *dst, size_t n,
							   const uint8_t iv[16])
{
	size_t body = k->rounds == 12 ? 0 : n / STEP * STEP;
	if (k->rounds == 14)
		cbc_decrypt_run(k, 14, src, dst, body, iv);
	else if (k->rounds == 10)
		cbc_decrypt_run(k, 10, src, dst, body, iv);
	if (n > body)
		cf_cpu_isa_aesni.cbc_decrypt(k, src + 16 * body, dst + 16 * body, n - body, body ? src + 16 * (body - 1) : iv);
}
