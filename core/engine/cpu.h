/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* cpu.h - what the engines that drive the CPU's own AES instructions share.
 *
 * One file an instruction set (cpu-aesni.c, cpu-vaes256.c, cpu-vaes512.c, cpu-arm64.c), which ends in its struct
 * cf_cpu_isa and CF_CPU_ENGINE: each is an engine of its own, so that any can be named and auto measures them. cpu.c,
 * which knows no instruction, does the rest. They have AES only: the block primitive, and xts and cbc as whole modes in
 * one pass over a batch. Constant time by construction: instructions, no tables, no branch on data. Round keys lie in
 * the secret arena; registers and the stack below a call are cleared when it ends. */
#ifndef CRYPTFUSE_CPU_H
#define CRYPTFUSE_CPU_H

#include "cryptfuse/engine.h"

#define CF_CPU_ROUND_KEYS 15u

/* Before a loop over vectors or rounds: only unrolled do they stay in registers. */
#define UNROLL _Pragma("GCC unroll 16")

/* Of a file's functions; FEATURES is the file's: what it needs of the CPU, as the compiler names it. */
#define TARGET __attribute__((target(FEATURES)))
#define INLINE static inline __attribute__((always_inline, target(FEATURES)))

/** One key schedule. Each round key stands four times, so that vectors of 16, 32 and 64 bytes load it from the same
 * place. Read-only after setup: shared by all workers. */
struct cf_cpu_key {
	uint8_t round[2][CF_CPU_ROUND_KEYS][64]; /* by enum cf_dir; decryption's for the equivalent inverse cipher */
	unsigned rounds;                         /* 10, 12 or 14 */
};

/** The work of one instruction set. @n blocks of 16 bytes; src and dst do not overlap. */
struct cf_cpu_isa {
	/** The S-box on each byte, for the key schedule. */
	uint32_t (*sub_word)(uint32_t w);
	/** InvMixColumns, which makes decryption's round key of encryption's. */
	void (*inv_mix)(const uint8_t key[16], uint8_t out[16]);
	void (*ecb)(const struct cf_cpu_key *k, enum cf_dir dir, const uint8_t *src, uint8_t *dst, size_t n);
	/** All data units; @tweaks: their encrypted IVs, and 16 bytes more that may be read. */
	void (*xts)(const struct cf_cpu_key *k, const struct cf_engine_batch *b, const uint8_t *tweaks);
	/** One data unit. */
	void (*cbc_decrypt)(const struct cf_cpu_key *k, const uint8_t *src, uint8_t *dst, size_t n, const uint8_t iv[16]);
	/** All data units: serial inside each, so across them. */
	void (*cbc_encrypt)(const struct cf_cpu_key *k, const struct cf_engine_batch *b);
	/** Clear the vector registers. */
	void (*clear)(void);
};

/** The slots of struct cf_engine that are the same for every instruction set. */
bool cf_cpu_has(const struct cf_block_cipher *bc, size_t key_len);
bool cf_cpu_constant_time(const struct cf_block_cipher *bc);
int cf_cpu_key_new(const struct cf_cpu_isa *isa, struct cf_engine_key **out, const struct cf_block_cipher *bc,
				   const uint8_t *key, size_t key_len);
void cf_cpu_key_free(struct cf_engine_key **key);
int cf_cpu_crypt(struct cf_engine_key *key, unsigned worker, enum cf_dir dir, const uint8_t *src, uint8_t *dst,
				 size_t n);
bool cf_cpu_mode_has(const char *mode, const struct cf_block_cipher *bc, size_t key_len);
int cf_cpu_mode_new(const struct cf_cpu_isa *isa, struct cf_engine_mode **out, const char *mode,
					const struct cf_block_cipher *bc, const uint8_t *key, size_t key_len);
void cf_cpu_mode_free(struct cf_engine_mode **mode);
int cf_cpu_mode_crypt(struct cf_engine_mode *mode, unsigned worker, const struct cf_engine_batch *b);

/** CF_CPU_ENGINE - the engine of an instruction set: @id of the C names, its name, one line about it, how to find out
 * whether it is here, whether it competes. */
#define CF_CPU_ENGINE(id, text, line, isa, here, fights)                                                      \
	static int id##_probe(struct cf_err *err)                                                                 \
	{                                                                                                         \
		return here() ? 0 : cf_fail(err, -ENODEV, "engine '%s': this CPU has no such instructions", text);    \
	}                                                                                                         \
	static bool id##_competes(const char *mode, const struct cf_block_cipher *bc, size_t key_len)             \
	{                                                                                                         \
		(void)mode, (void)bc, (void)key_len;                                                                  \
		return fights();                                                                                      \
	}                                                                                                         \
	static int id##_key_new(struct cf_engine_key **out, const struct cf_block_cipher *bc, const uint8_t *key, \
							size_t key_len, unsigned n_workers)                                               \
	{                                                                                                         \
		(void)n_workers;                                                                                      \
		return cf_cpu_key_new(isa, out, bc, key, key_len);                                                    \
	}                                                                                                         \
	static int id##_mode_new(struct cf_engine_mode **out, const char *mode, const struct cf_block_cipher *bc, \
							 const uint8_t *key, size_t key_len, unsigned n_workers)                          \
	{                                                                                                         \
		(void)n_workers;                                                                                      \
		return cf_cpu_mode_new(isa, out, mode, bc, key, key_len);                                             \
	}                                                                                                         \
	extern const struct cf_engine cf_engine_##id;                                                             \
	const struct cf_engine cf_engine_##id = {                                                                 \
		.name = text,                                                                                         \
		.about = line,                                                                                        \
		.probe = id##_probe,                                                                                  \
		.has = cf_cpu_has,                                                                                    \
		.constant_time = cf_cpu_constant_time,                                                                \
		.key_new = id##_key_new,                                                                              \
		.key_free = cf_cpu_key_free,                                                                          \
		.crypt = cf_cpu_crypt,                                                                                \
		.competes = id##_competes,                                                                            \
		.mode_path = "native",                                                                                \
		.mode_has = cf_cpu_mode_has,                                                                          \
		.mode_new = id##_mode_new,                                                                            \
		.mode_free = cf_cpu_mode_free,                                                                        \
		.in_place_mode = "xts",                                                                               \
		.mode_crypt = cf_cpu_mode_crypt,                                                                      \
	}

#endif
