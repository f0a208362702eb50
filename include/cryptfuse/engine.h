/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* engine.h - who computes block ciphers.
 *
 * An engine's one duty is the block primitive: "encrypt or decrypt these N blocks" (ECB) under one key. Chaining modes,
 * IVs and several keys are core/cipher's. An engine may also offer whole modes over a batch where it is better at them.
 * Every engine is one file in core/engine that ends in one const struct cf_engine, listed in engine.c, and passes the
 * one shared test suite (tests/unit/check_engine.c). */
#ifndef CRYPTFUSE_ENGINE_H
#define CRYPTFUSE_ENGINE_H

#include <stdbool.h>

#include "cryptfuse/base.h"

struct cf_err;

#define CF_BLOCK_MAX 16u /* largest cipher block, bytes */

/** A block cipher as the kernel names and limits it (FORMAT.md, "Key lengths in bytes"). Engines need not have all of
 * them. */
struct cf_block_cipher {
	const char *name;                   /* the kernel's name: "aes", "des3_ede" */
	uint8_t block_bytes;                /* 8 or 16; cipher_null: 1, any length will do */
	uint8_t key_min, key_max, key_step; /* bytes; step 0: only key_min */
	/* The name is a whole algorithm of the kernel's, mode and all: "hctr2(aes)". The sizes are what the kernel said,
	 * within which it may yet refuse a key; the block may be 1. */
	bool is_api_name;
	uint8_t api_iv_bytes;
};

/** cf_block_cipher_find - the entry of that exact name, NULL if dm-crypt's users know none. */
const struct cf_block_cipher *cf_block_cipher_find(const char *name);

/** cf_block_cipher_takes_key - whether @key_len bytes are a key of the cipher. */
bool cf_block_cipher_takes_key(const struct cf_block_cipher *bc, size_t key_len);

/** One key of one block cipher in one engine. Each engine defines its own, in the secret arena. */
struct cf_engine_key;
/** One key of one whole mode in one engine. */
struct cf_engine_mode;

/** What a whole-mode call works on: @n_du data units, each under its own IV. IVs are a list because kernel IVs are not
 * a counter of step 1 (HAZARDS 20). */
struct cf_engine_batch {
	enum cf_dir dir;
	const uint8_t *src; /* n_du * du_bytes, never written */
	uint8_t *dst;       /* the same size; no overlap with src */
	const uint8_t *ivs; /* n_du * one IV of the mode's size */
	size_t n_du;
	uint32_t du_bytes; /* a multiple of the block */
};

struct cf_engine {
	const char *name;  /* as --engine takes it */
	const char *about; /* one line for help and status */

	/** Usable in this process at all? 0, or -errno with the reason in @err. Called before any other slot; may create
	 * contexts. */
	int (*probe)(struct cf_err *err);

	/** Does it have the cipher with keys of this length? No key needed. */
	bool (*has)(const struct cf_block_cipher *bc, size_t key_len);

	/** Is it constant-time for this cipher here (HAZARDS 26)? May open files: ask at open, not later. */
	bool (*constant_time)(const struct cf_block_cipher *bc);

	/** Set up one key, both directions, for workers 0 … @n_workers - 1. Takes any key that dm-crypt takes, weak ones
	 * too.
	 * @out set only on success. Returns 0; -ENOENT no such cipher; -EINVAL refuses this key; -ENOMEM. */
	int (*key_new)(struct cf_engine_key **out, const struct cf_block_cipher *bc, const uint8_t *key, size_t key_len,
				   unsigned n_workers);
	/** Wipes, frees, leaves NULL; takes NULL. */
	void (*key_free)(struct cf_engine_key **key);

	/** The block primitive: @n_blocks whole blocks, each on its own. @src and @dst do not overlap; @src is left intact
	 * whatever happens. Any number of threads at once, each with its own @worker. Allocates nothing. Returns 0 or
	 * -errno (then @dst is undefined): -ENODEV the engine is lost for good, anything else may pass. */
	int (*crypt)(struct cf_engine_key *key, unsigned worker, enum cf_dir dir, const uint8_t *src, uint8_t *dst,
				 size_t n_blocks);

	/** Its work is done elsewhere (in the kernel, on a device) and may be refused for want of resources or be lost for
	 * good: a standby engine is kept ready. */
	bool elsewhere;

	/** Optional: should it be tried when nobody named an engine? NULL: yes. AF_ALG says no where its driver is plain
	 * software: that is slower than the same instructions called directly. @mode: the chaining mode. Asked before
	 * probe, which may make a kernel load modules. */
	bool (*competes)(const char *mode, const struct cf_block_cipher *bc, size_t key_len);

	/** Optional: who computes @mode of the cipher behind this engine, for the status: "kernel driver ecb(aes-generic),
	 * software". One line to @out, always NUL-terminated. May open files: ask at open, not later. */
	void (*describe)(const char *mode, const struct cf_block_cipher *bc, char *out, size_t size);

	/** Optional: what the kernel says of one of its own names, for those that are nothing but that: @out with
	 * is_api_name, its name the borrowed @name. May make the kernel load modules and open files. Returns 0; -ENODEV
	 * with the reason. */
	int (*api_find)(const char *name, struct cf_block_cipher *out, struct cf_err *err);

	/** Optional: how many bytes crypt likes to be given at once, a power of two; 0: what shares the L1 cache with its
	 * scratch will do. Large where a call is dear. */
	size_t pass_bytes;

	/** What the status calls its whole modes: "native", or "per-du" where each data unit is a request of its own. */
	const char *mode_path;

	/** Optional, all four or none: a whole chaining mode ("xts", "cbc") over a batch. @key is the mode's whole key
	 * (both halves for xts). mode_has: does the engine have the mode natively for keys of this length? mode_new:
	 * -ENOENT if not, -EINVAL when it refuses this key (equal halves …): the batch path then serves. */
	bool (*mode_has)(const char *mode, const struct cf_block_cipher *bc, size_t key_len);
	int (*mode_new)(struct cf_engine_mode **out, const char *mode, const struct cf_block_cipher *bc, const uint8_t *key,
					size_t key_len, unsigned n_workers);
	void (*mode_free)(struct cf_engine_mode **mode);
	/** Optional: the one of these modes whose mode_crypt never fails and may be given the same memory as source and
	 * destination (HAZARDS 19). */
	const char *in_place_mode;
	/** Same thread and overlap rules as crypt, but for in_place_mode. */
	int (*mode_crypt)(struct cf_engine_mode *mode, unsigned worker, const struct cf_engine_batch *batch);
};

/** cf_engines - every engine in this build, best guess first; ends with NULL. */
extern const struct cf_engine *const cf_engines[];

/** cf_engine_is_any - is it nobody's name: NULL, "" or "auto"? */
bool cf_engine_is_any(const char *name);

/** cf_engine_find - by name: 0 and *out; -ENOENT with the list of names in @err; or what its probe said. */
int cf_engine_find(const char *name, const struct cf_engine **out, struct cf_err *err) CF_MUST_CHECK;

#endif
