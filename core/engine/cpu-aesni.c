/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* cpu-aesni.c - AES by the 128-bit AES-NI instructions: eight blocks in flight, which hides the latency of a round.
 * Also serves the wider instruction sets with the blocks at the end of a run, and with CBC encryption, where eight
 * lanes of 16 bytes are what is independent. */
#include "cpu.h"

#if CF_CPU_X86

#include <errno.h>
#include <immintrin.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/err.h"

#define TARGET __attribute__((target("aes,sse4.1")))
#define INLINE static inline __attribute__((always_inline, target("aes,sse4.1")))
#define WIDE 8u

INLINE __m128i load(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)p);
}

INLINE void store(uint8_t *p, __m128i v)
{
	_mm_storeu_si128((__m128i *)p, v);
}

/* @n blocks (a constant) through all rounds. */
INLINE void rounds(const struct cf_cpu_key *k, enum cf_dir dir, __m128i *x, unsigned n)
{
	__m128i key = load(k->round[dir][0]);
	UNROLL
	for (unsigned i = 0; i < n; i++)
		x[i] = _mm_xor_si128(x[i], key);
	UNROLL
	for (unsigned r = 1; r < k->rounds; r++) {
		key = load(k->round[dir][r]);
		UNROLL
		for (unsigned i = 0; i < n; i++)
			x[i] = dir == CF_ENCRYPT ? _mm_aesenc_si128(x[i], key) : _mm_aesdec_si128(x[i], key);
	}
	key = load(k->round[dir][k->rounds]);
	UNROLL
	for (unsigned i = 0; i < n; i++)
		x[i] = dir == CF_ENCRYPT ? _mm_aesenclast_si128(x[i], key) : _mm_aesdeclast_si128(x[i], key);
}

/* ---- ecb ---- */

INLINE void ecb_some(const struct cf_cpu_key *k, enum cf_dir dir, const uint8_t *src, uint8_t *dst, unsigned n)
{
	__m128i x[WIDE];
	UNROLL
	for (unsigned i = 0; i < n; i++)
		x[i] = load(src + 16 * i);
	rounds(k, dir, x, n);
	UNROLL
	for (unsigned i = 0; i < n; i++)
		store(dst + 16 * i, x[i]);
}

INLINE void ecb_dir(const struct cf_cpu_key *k, enum cf_dir dir, const uint8_t *src, uint8_t *dst, size_t n)
{
	for (; n >= WIDE; n -= WIDE, src += 16 * WIDE, dst += 16 * WIDE)
		ecb_some(k, dir, src, dst, WIDE);
	for (; n; n--, src += 16, dst += 16)
		ecb_some(k, dir, src, dst, 1);
}

TARGET static void ecb(const struct cf_cpu_key *k, enum cf_dir dir, const uint8_t *src, uint8_t *dst, size_t n)
{
	if (dir == CF_ENCRYPT)
		ecb_dir(k, CF_ENCRYPT, src, dst, n);
	else
		ecb_dir(k, CF_DECRYPT, src, dst, n);
}

/* ---- xts ---- */

/* Times x in GF(2^128), little-endian: the sign of the top word and of the low half's top word become the carries. */
INLINE __m128i times_x(__m128i t)
{
	__m128i carry = _mm_shuffle_epi32(_mm_srai_epi32(t, 31), 0x13);
	return _mm_xor_si128(_mm_add_epi64(t, t), _mm_and_si128(carry, _mm_set_epi32(0, 1, 0, 0x87)));
}

INLINE __m128i xts_some(const struct cf_cpu_key *k, enum cf_dir dir, const uint8_t *src, uint8_t *dst, __m128i tweak,
						unsigned n)
{
	__m128i x[WIDE], t[WIDE];
	UNROLL
	for (unsigned i = 0; i < n; i++) {
		t[i] = tweak;
		x[i] = _mm_xor_si128(load(src + 16 * i), tweak);
		tweak = times_x(tweak);
	}
	rounds(k, dir, x, n);
	UNROLL
	for (unsigned i = 0; i < n; i++)
		store(dst + 16 * i, _mm_xor_si128(x[i], t[i]));
	return tweak;
}

INLINE void xts_dir(const struct cf_cpu_key *k, enum cf_dir dir, const uint8_t *src, uint8_t *dst, size_t n,
					const uint8_t *tweak)
{
	__m128i t = load(tweak);
	for (; n >= WIDE; n -= WIDE, src += 16 * WIDE, dst += 16 * WIDE)
		t = xts_some(k, dir, src, dst, t, WIDE);
	for (; n; n--, src += 16, dst += 16)
		t = xts_some(k, dir, src, dst, t, 1);
}

TARGET static void xts(const struct cf_cpu_key *k, enum cf_dir dir, const uint8_t *src, uint8_t *dst, size_t n,
					   const uint8_t tweak[16])
{
	if (dir == CF_ENCRYPT)
		xts_dir(k, CF_ENCRYPT, src, dst, n, tweak);
	else
		xts_dir(k, CF_DECRYPT, src, dst, n, tweak);
}

/* ---- cbc ---- */

INLINE __m128i cbc_decrypt_some(const struct cf_cpu_key *k, const uint8_t *src, uint8_t *dst, __m128i before,
								unsigned n)
{
	__m128i x[WIDE];
	UNROLL
	for (unsigned i = 0; i < n; i++)
		x[i] = load(src + 16 * i);
	rounds(k, CF_DECRYPT, x, n);
	store(dst, _mm_xor_si128(x[0], before));
	UNROLL
	for (unsigned i = 1; i < n; i++)
		store(dst + 16 * i, _mm_xor_si128(x[i], load(src + 16 * (i - 1))));
	return load(src + 16 * (n - 1));
}

TARGET static void cbc_decrypt(const struct cf_cpu_key *k, const uint8_t *src, uint8_t *dst, size_t n,
							   const uint8_t iv[16])
{
	__m128i before = load(iv);
	for (; n >= WIDE; n -= WIDE, src += 16 * WIDE, dst += 16 * WIDE)
		before = cbc_decrypt_some(k, src, dst, before, WIDE);
	for (; n; n--, src += 16, dst += 16)
		before = cbc_decrypt_some(k, src, dst, before, 1);
}

/* A line of @lanes data units from staging to staging: lanes lie a power of two apart in memory, and going through them
 * there block by block would have sixteen cache lines fight for the eight places of one set. */
#define LINE 64u
struct stage {
	uint8_t plain[WIDE][LINE], cipher[WIDE][LINE];
};

INLINE void cbc_encrypt_line(const struct cf_cpu_key *k, struct stage *s, __m128i *chain, unsigned lanes, size_t line)
{
	for (size_t at = 0; at < line; at += 16) {
		UNROLL
		for (unsigned l = 0; l < lanes; l++)
			chain[l] = _mm_xor_si128(chain[l], load(s->plain[l] + at));
		rounds(k, CF_ENCRYPT, chain, lanes);
		UNROLL
		for (unsigned l = 0; l < lanes; l++)
			store(s->cipher[l] + at, chain[l]);
	}
}

INLINE void cbc_encrypt_lanes(const struct cf_cpu_key *k, const struct cf_engine_batch *b, size_t first, unsigned lanes)
{
	struct stage s;
	__m128i chain[WIDE];
	size_t du = b->du_bytes;
	UNROLL
	for (unsigned l = 0; l < lanes; l++)
		chain[l] = load(b->ivs + 16 * (first + l));
	for (size_t at = 0; at < du; at += LINE) {
		size_t line = du - at < LINE ? du - at : LINE, from = first * du + at;
		UNROLL
		for (unsigned l = 0; l < lanes; l++)
			memcpy(s.plain[l], b->src + from + l * du, line);
		cbc_encrypt_line(k, &s, chain, lanes, line);
		UNROLL
		for (unsigned l = 0; l < lanes; l++)
			memcpy(b->dst + from + l * du, s.cipher[l], line);
	}
}

TARGET static void cbc_encrypt(const struct cf_cpu_key *k, const struct cf_engine_batch *b)
{
	size_t first = 0;
	for (; b->n_du - first >= WIDE; first += WIDE)
		cbc_encrypt_lanes(k, b, first, WIDE);
	if ((b->n_du - first) & 4) {
		cbc_encrypt_lanes(k, b, first, 4);
		first += 4;
	}
	if ((b->n_du - first) & 2) {
		cbc_encrypt_lanes(k, b, first, 2);
		first += 2;
	}
	if (b->n_du - first)
		cbc_encrypt_lanes(k, b, first, 1);
}

static void clear(void)
{
	__asm__ volatile("pxor %%xmm0, %%xmm0\n pxor %%xmm1, %%xmm1\n pxor %%xmm2, %%xmm2\n pxor %%xmm3, %%xmm3\n"
					 "pxor %%xmm4, %%xmm4\n pxor %%xmm5, %%xmm5\n pxor %%xmm6, %%xmm6\n pxor %%xmm7, %%xmm7\n"
					 "pxor %%xmm8, %%xmm8\n pxor %%xmm9, %%xmm9\n pxor %%xmm10, %%xmm10\n pxor %%xmm11, %%xmm11\n"
					 "pxor %%xmm12, %%xmm12\n pxor %%xmm13, %%xmm13\n pxor %%xmm14, %%xmm14\n pxor %%xmm15, %%xmm15"
					 :
					 :
					 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
					   "xmm12", "xmm13", "xmm14", "xmm15");
}

const struct cf_cpu_isa cf_cpu_isa_aesni = {
	.ecb = ecb, .xts = xts, .cbc_decrypt = cbc_decrypt, .cbc_encrypt = cbc_encrypt, .clear = clear};

static bool competes(void)
{
	return !cf_cpu_here_vaes256();
}

CF_CPU_ENGINE(cpu_aesni, "cpu-aesni", "aes by AES-NI instructions", &cf_cpu_isa_aesni, cf_cpu_here_aesni, competes);

#else
typedef int cf_cpu_aesni_is_empty_here;
#endif
