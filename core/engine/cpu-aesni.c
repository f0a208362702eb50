/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* cpu-aesni.c - AES by the 128-bit AES-NI instructions of x86-64. Also serves the wider instruction sets with the key
 * schedule, with the blocks at the end of a run, and with CBC encryption, where eight lanes of 16 bytes are what is
 * independent. */
#include "cpu-x86.h"

#include <errno.h>
#include <immintrin.h>
#include <string.h>

#include "cryptfuse/err.h"

#define FEATURES "aes,sse4.1"
#define WIDE 8u
typedef __m128i vec;

bool cf_cpu_here_aesni(void)
{
	return __builtin_cpu_supports("aes") && __builtin_cpu_supports("sse4.1");
}

INLINE vec load(const uint8_t *p)
{
	return _mm_loadu_si128((const vec *)p);
}
INLINE void store(uint8_t *p, vec v)
{
	_mm_storeu_si128((vec *)p, v);
}
#define xor _mm_xor_si128

/* @n blocks (a constant) through all rounds. */
INLINE void rounds(const struct cf_cpu_key *k, enum cf_dir dir, vec *x, unsigned n)
{
	vec key = load(k->round[dir][0]);
	UNROLL
	for (unsigned i = 0; i < n; i++)
		x[i] = xor(x[i], key);
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

/* Times x in GF(2^128), little-endian: the sign of the top word and of the low half's top word become the carries. */
INLINE vec times_x(vec t)
{
	vec carry = _mm_shuffle_epi32(_mm_srai_epi32(t, 31), 0x13);
	return xor(_mm_add_epi64(t, t), _mm_and_si128(carry, _mm_set_epi32(0, 1, 0, 0x87)));
}

INLINE void next_tweaks(vec *t)
{
	t[0] = times_x(t[WIDE - 1]);
	UNROLL
	for (unsigned i = 1; i < WIDE; i++)
		t[i] = times_x(t[i - 1]);
}

#include "cpu-128.h"

TARGET uint32_t cf_cpu_aesni_sub_word(uint32_t w)
{
	return (uint32_t)_mm_cvtsi128_si32(_mm_aeskeygenassist_si128(_mm_set1_epi32((int)w), 0));
}

TARGET void cf_cpu_aesni_inv_mix(const uint8_t key[16], uint8_t out[16])
{
	store(out, _mm_aesimc_si128(load(key)));
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
	.sub_word = cf_cpu_aesni_sub_word,
	.inv_mix = cf_cpu_aesni_inv_mix,
	.ecb = ecb,
	.xts = xts,
	.cbc_decrypt = cbc_decrypt,
	.cbc_encrypt = cbc_encrypt,
	.clear = clear,
};

static bool competes(void)
{
	return !cf_cpu_here_vaes256();
}

CF_CPU_ENGINE(cpu_aesni, "cpu-aesni", "aes by AES-NI instructions", &cf_cpu_isa_aesni, cf_cpu_here_aesni, competes);
