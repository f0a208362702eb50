/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* cpu-vaes512.c - AES by VAES on 512-bit vectors: eight vectors of four blocks, 512 bytes, in flight. */
#include "cpu-x86.h"

#include <errno.h>
#include <immintrin.h>

#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"

#define FEATURES "aes,sse4.1,avx512f,avx512bw,avx512dq,avx512vl,vaes,vpclmulqdq"
#define VEC_BYTES 64u
typedef __m512i vec;

bool cf_cpu_here_vaes512(void)
{
	return cf_cpu_here_vaes256() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
		   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

INLINE vec load(const uint8_t *p)
{
	return _mm512_loadu_si512(p);
}
INLINE void store(uint8_t *p, vec v)
{
	_mm512_storeu_si512(p, v);
}
INLINE vec set64(long long n)
{
	return _mm512_set1_epi64(n);
}
INLINE vec lane_numbers(void)
{
	return _mm512_set_epi64(3, 3, 2, 2, 1, 1, 0, 0);
}
/* Each block's predecessor: the last block of @before, then those of @c but the last. */
INLINE vec previous(vec c, vec before)
{
	return _mm512_alignr_epi64(c, before, 6);
}
#define xor _mm512_xor_si512
#define xor3(a, b, c) _mm512_ternarylogic_epi64(a, b, c, 0x96)
#define shl64 _mm512_slli_epi64
#define shr64 _mm512_srli_epi64
#define shlv64 _mm512_sllv_epi64
#define shrv64 _mm512_srlv_epi64
#define sub64 _mm512_sub_epi64
#define bslli _mm512_bslli_epi128
#define bsrli _mm512_bsrli_epi128
#define clmul_hi_lo(a, b) _mm512_clmulepi64_epi128(a, b, 0x01)
#define clmul_lo_lo(a, b) _mm512_clmulepi64_epi128(a, b, 0x00)
#define broadcast _mm512_broadcast_i64x2
#define lowest _mm512_castsi512_si128
#define enc _mm512_aesenc_epi128
#define enclast _mm512_aesenclast_epi128
#define dec _mm512_aesdec_epi128
#define declast _mm512_aesdeclast_epi128

#include "cpu-vaes.h"

/* ---- cbc encryption: sixteen data units at a time, four vectors of four lanes ---- */

#define GROUPS 4u
#define CBC_LANES (4u * GROUPS)

/* Four rows of four blocks into four columns, and back. */
INLINE void transpose(vec *r)
{
	vec a = _mm512_shuffle_i64x2(r[0], r[1], 0x44), b = _mm512_shuffle_i64x2(r[0], r[1], 0xee);
	vec c = _mm512_shuffle_i64x2(r[2], r[3], 0x44), d = _mm512_shuffle_i64x2(r[2], r[3], 0xee);
	r[0] = _mm512_shuffle_i64x2(a, c, 0x88);
	r[1] = _mm512_shuffle_i64x2(a, c, 0xdd);
	r[2] = _mm512_shuffle_i64x2(b, d, 0x88);
	r[3] = _mm512_shuffle_i64x2(b, d, 0xdd);
}

/* The next block of every lane through all rounds: chain becomes the ciphertext. */
INLINE void cbc_step(const struct cf_cpu_key *k, vec *chain, vec plain[GROUPS][4], unsigned block)
{
	vec key = load(k->round[CF_ENCRYPT][0]);
	UNROLL
	for (unsigned g = 0; g < GROUPS; g++)
		chain[g] = xor3(chain[g], plain[g][block], key);
	for (unsigned r = 1; r < k->rounds; r++) {
		key = load(k->round[CF_ENCRYPT][r]);
		UNROLL
		for (unsigned g = 0; g < GROUPS; g++)
			chain[g] = enc(chain[g], key);
	}
	key = load(k->round[CF_ENCRYPT][k->rounds]);
	UNROLL
	for (unsigned g = 0; g < GROUPS; g++)
		plain[g][block] = chain[g] = enclast(chain[g], key);
}

/* A cache line of each lane is four blocks: loaded, transposed so that a vector holds one block of four lanes, and
 * back. */
INLINE void cbc_encrypt_lanes(const struct cf_cpu_key *k, const struct cf_engine_batch *b, size_t first)
{
	vec chain[GROUPS], line[GROUPS][4];
	size_t du = b->du_bytes;
	UNROLL
	for (unsigned g = 0; g < GROUPS; g++)
		chain[g] = load(b->ivs + 16 * (first + 4 * g));
	for (size_t at = first * du; at < (first + 1) * du; at += 64) {
		UNROLL
		for (unsigned g = 0; g < GROUPS; g++) {
			UNROLL
			for (unsigned l = 0; l < 4; l++)
				line[g][l] = load(b->src + at + (4 * g + l) * du);
			transpose(line[g]);
		}
		UNROLL
		for (unsigned block = 0; block < 4; block++)
			cbc_step(k, chain, line, block);
		UNROLL
		for (unsigned g = 0; g < GROUPS; g++) {
			transpose(line[g]);
			UNROLL
			for (unsigned l = 0; l < 4; l++)
				store(b->dst + at + (4 * g + l) * du, line[g][l]);
		}
	}
}

TARGET static void cbc_encrypt(const struct cf_cpu_key *k, const struct cf_engine_batch *b)
{
	struct cf_engine_batch rest = *b;
	size_t done = 0;
	for (; b->du_bytes % 64 == 0 && b->n_du - done >= CBC_LANES; done += CBC_LANES)
		cbc_encrypt_lanes(k, b, done);
	rest.src += done * b->du_bytes;
	rest.dst += done * b->du_bytes;
	rest.ivs += done * 16;
	rest.n_du -= done;
	cf_cpu_isa_aesni.cbc_encrypt(k, &rest);
}

TARGET static void clear(void)
{
	__asm__ volatile("vzeroall\n"
					 "vpxorq %%zmm16, %%zmm16, %%zmm16\n vpxorq %%zmm17, %%zmm17, %%zmm17\n"
					 "vpxorq %%zmm18, %%zmm18, %%zmm18\n vpxorq %%zmm19, %%zmm19, %%zmm19\n"
					 "vpxorq %%zmm20, %%zmm20, %%zmm20\n vpxorq %%zmm21, %%zmm21, %%zmm21\n"
					 "vpxorq %%zmm22, %%zmm22, %%zmm22\n vpxorq %%zmm23, %%zmm23, %%zmm23\n"
					 "vpxorq %%zmm24, %%zmm24, %%zmm24\n vpxorq %%zmm25, %%zmm25, %%zmm25\n"
					 "vpxorq %%zmm26, %%zmm26, %%zmm26\n vpxorq %%zmm27, %%zmm27, %%zmm27\n"
					 "vpxorq %%zmm28, %%zmm28, %%zmm28\n vpxorq %%zmm29, %%zmm29, %%zmm29\n"
					 "vpxorq %%zmm30, %%zmm30, %%zmm30\n vpxorq %%zmm31, %%zmm31, %%zmm31"
					 :
					 :
					 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",
					   "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21",
					   "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29", "xmm30", "xmm31");
}

static const struct cf_cpu_isa isa_vaes512 = {
	.sub_word = cf_cpu_aesni_sub_word,
	.inv_mix = cf_cpu_aesni_inv_mix,
	.ecb = ecb,
	.xts = xts,
	.cbc_decrypt = cbc_decrypt,
	.cbc_encrypt = cbc_encrypt,
	.clear = clear,
};

CF_CPU_ENGINE(cpu_vaes512, "cpu-vaes512", "aes by VAES instructions on 512-bit vectors", &isa_vaes512,
			  cf_cpu_here_vaes512, cf_cpu_here_vaes512);
