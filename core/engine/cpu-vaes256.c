/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* cpu-vaes256.c - AES by VAES on 256-bit vectors: eight vectors of two blocks in flight. */
#include "cpu-x86.h"

#include <cpuid.h>
#include <errno.h>
#include <immintrin.h>

#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"

#define FEATURES "aes,sse4.1,avx2,vaes,vpclmulqdq"
#define VEC_BYTES 32u
typedef __m256i vec;

/* clang has no names for these two until its release 16. AVX2 says that the system keeps the registers. */
bool cf_cpu_here_vaes256(void)
{
	unsigned a, b, c = 0, d;
	return cf_cpu_here_aesni() && __builtin_cpu_supports("avx2") && __get_cpuid_count(7, 0, &a, &b, &c, &d) &&
		   (c & bit_VAES) && (c & bit_VPCLMULQDQ);
}

INLINE vec load(const uint8_t *p)
{
	return _mm256_loadu_si256((const vec *)p);
}
INLINE void store(uint8_t *p, vec v)
{
	_mm256_storeu_si256((vec *)p, v);
}
INLINE vec set64(long long n)
{
	return _mm256_set1_epi64x(n);
}
INLINE vec lane_numbers(void)
{
	return _mm256_set_epi64x(1, 1, 0, 0);
}
/* Each block's predecessor: the last block of @before, then those of @c but the last. */
INLINE vec previous(vec c, vec before)
{
	return _mm256_permute2x128_si256(before, c, 0x21);
}
#define xor _mm256_xor_si256
#define xor3(a, b, c) _mm256_xor_si256(_mm256_xor_si256(a, b), c)
#define shl64 _mm256_slli_epi64
#define shr64 _mm256_srli_epi64
#define shlv64 _mm256_sllv_epi64
#define shrv64 _mm256_srlv_epi64
#define sub64 _mm256_sub_epi64
#define bslli _mm256_bslli_epi128
#define bsrli _mm256_bsrli_epi128
#define clmul_hi_lo(a, b) _mm256_clmulepi64_epi128(a, b, 0x01)
#define clmul_lo_lo(a, b) _mm256_clmulepi64_epi128(a, b, 0x00)
#define broadcast _mm256_broadcastsi128_si256
#define lowest _mm256_castsi256_si128
#define enc _mm256_aesenc_epi128
#define enclast _mm256_aesenclast_epi128
#define dec _mm256_aesdec_epi128
#define declast _mm256_aesdeclast_epi128

#include "cpu-vaes.h"

static void cbc_encrypt(const struct cf_cpu_key *k, const struct cf_engine_batch *b)
{
	cf_cpu_isa_aesni.cbc_encrypt(k, b);
}

TARGET static void clear(void)
{
	_mm256_zeroall();
}

static const struct cf_cpu_isa isa_vaes256 = {
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
	return !cf_cpu_here_vaes512();
}

CF_CPU_ENGINE(cpu_vaes256, "cpu-vaes256", "aes by VAES instructions on 256-bit vectors", &isa_vaes256,
			  cf_cpu_here_vaes256, competes);
