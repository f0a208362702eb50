/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* cpu-arm64.c - AES by the cryptographic extension of ARMv8. Its instructions add the round key before the S-box, where
 * x86 adds it at the end: the same round keys, another place. */
#include "cpu.h"

#include <arm_neon.h>
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

#include "cryptfuse/err.h"

#define FEATURES "+crypto"
#define WIDE 8u
typedef uint8x16_t vec;

static bool here(void)
{
	return (getauxval(AT_HWCAP) & HWCAP_AES) != 0;
}

#define load vld1q_u8
#define store vst1q_u8
#define xor veorq_u8

/* @n blocks (a constant) through all rounds. */
INLINE void rounds(const struct cf_cpu_key *k, enum cf_dir dir, vec *x, unsigned n)
{
	vec key;
	UNROLL
	for (unsigned r = 0; r < k->rounds - 1; r++) {
		key = load(k->round[dir][r]);
		UNROLL
		for (unsigned i = 0; i < n; i++)
			x[i] = dir == CF_ENCRYPT ? vaesmcq_u8(vaeseq_u8(x[i], key)) : vaesimcq_u8(vaesdq_u8(x[i], key));
	}
	key = load(k->round[dir][k->rounds - 1]);
	UNROLL
	for (unsigned i = 0; i < n; i++)
		x[i] = dir == CF_ENCRYPT ? vaeseq_u8(x[i], key) : vaesdq_u8(x[i], key);
	key = load(k->round[dir][k->rounds]);
	UNROLL
	for (unsigned i = 0; i < n; i++)
		x[i] = xor(x[i], key);
}

/* Times x in GF(2^128), little-endian: the sign of each half, as a mask, moves to the other and picks what it adds. */
INLINE vec times_x(vec t)
{
	int64x2_t halves = vreinterpretq_s64_u8(t), signs = vshrq_n_s64(halves, 63);
	uint64x2_t adds = vcombine_u64(vcreate_u64(0x87), vcreate_u64(1));
	vec carry = vandq_u8(vreinterpretq_u8_s64(vextq_s64(signs, signs, 1)), vreinterpretq_u8_u64(adds));
	return xor(vreinterpretq_u8_s64(vshlq_n_s64(halves, 1)), carry);
}

/* Times x^8: up by a byte, and what leaves the top comes back modulo x^128 + x^7 + x^2 + x + 1, as 15 bits. */
INLINE vec times_x8(vec t)
{
	const vec zero = vdupq_n_u8(0);
	poly8x8_t top = vreinterpret_p8_u8(vget_low_u8(vextq_u8(t, zero, 15)));
	poly16x8_t back = vmull_p8(top, vdup_n_p8(0x87));
	return xor(vextq_u8(zero, t, 15), vreinterpretq_u8_p16(back));
}

/* Each on its own: a chain through all of them would take longer than the rounds. */
INLINE void next_tweaks(vec *t)
{
	_Static_assert(WIDE == 8, "times_x8 goes WIDE blocks on");
	UNROLL
	for (unsigned i = 0; i < WIDE; i++)
		t[i] = times_x8(t[i]);
}

#include "cpu-128.h"

/* With four equal columns and no key, rows shift into what they were. */
TARGET static uint32_t sub_word(uint32_t w)
{
	vec x = vaeseq_u8(vreinterpretq_u8_u32(vdupq_n_u32(w)), vdupq_n_u8(0));
	return vgetq_lane_u32(vreinterpretq_u32_u8(x), 0);
}

TARGET static void inv_mix(const uint8_t key[16], uint8_t out[16])
{
	store(out, vaesimcq_u8(load(key)));
}

static void clear(void)
{
	__asm__ volatile("movi v0.2d, #0\n movi v1.2d, #0\n movi v2.2d, #0\n movi v3.2d, #0\n"
					 "movi v4.2d, #0\n movi v5.2d, #0\n movi v6.2d, #0\n movi v7.2d, #0\n"
					 "movi v8.2d, #0\n movi v9.2d, #0\n movi v10.2d, #0\n movi v11.2d, #0\n"
					 "movi v12.2d, #0\n movi v13.2d, #0\n movi v14.2d, #0\n movi v15.2d, #0\n"
					 "movi v16.2d, #0\n movi v17.2d, #0\n movi v18.2d, #0\n movi v19.2d, #0\n"
					 "movi v20.2d, #0\n movi v21.2d, #0\n movi v22.2d, #0\n movi v23.2d, #0\n"
					 "movi v24.2d, #0\n movi v25.2d, #0\n movi v26.2d, #0\n movi v27.2d, #0\n"
					 "movi v28.2d, #0\n movi v29.2d, #0\n movi v30.2d, #0\n movi v31.2d, #0"
					 :
					 :
					 : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14",
					   "v15", "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",
					   "v29", "v30", "v31");
}

static const struct cf_cpu_isa isa_arm64 = {
	.sub_word = sub_word,
	.inv_mix = inv_mix,
	.ecb = ecb,
	.xts = xts,
	.cbc_decrypt = cbc_decrypt,
	.cbc_encrypt = cbc_encrypt,
	.clear = clear,
};

CF_CPU_ENGINE(cpu_arm64, "cpu-arm64", "aes by ARMv8 instructions", &isa_arm64, here, here);
