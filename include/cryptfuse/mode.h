/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* mode.h - chaining modes, written once over whole batches for every cipher and every engine.
 *
 * A mode turns n data units under one key into few calls of the block primitive. Each is one file in core/cipher that
 * ends in one const struct cf_mode, listed in mode.c. A mode never changes its source, allocates nothing and keeps
 * nothing between calls. */
#ifndef CRYPTFUSE_MODE_H
#define CRYPTFUSE_MODE_H

#include <stdbool.h>

#include "cryptfuse/engine.h"

struct cf_mode_key;

#define CF_IV_MAX 32u              /* bytes: adiantum's */
#define CF_PASS_BYTES (4u * 1024u) /* unless the engine says otherwise: a pass and its scratch share the L1 cache */
#define CF_BATCH_DU_MAX 128u       /* data units in one call of a mode */

/** One call: @n_du data units through the mode under one key. */
struct cf_mode_run {
	enum cf_dir dir;
	unsigned worker;
	const uint8_t *src;  /* n_du * du_bytes, never written */
	uint8_t *dst;        /* the same size, no overlap with src */
	const uint8_t *ivs;  /* n_du IVs of the mode's size */
	size_t n_du;         /* 1 to CF_BATCH_DU_MAX */
	size_t du_bytes;     /* a multiple of the block */
	size_t pass_bytes;   /* what to hand to the engine at once where there is scratch between: a power of two */
	uint8_t *scratch[2]; /* pass_bytes each */
	uint8_t *iv_scratch; /* CF_BATCH_DU_MAX * CF_BLOCK_MAX bytes */
};

struct cf_mode {
	const char *name;
	uint8_t key_parts;      /* equal parts that are keys of the cipher: 2 for xts */
	uint8_t key_extra;      /* bytes after them that are not: 16 for lrw */
	uint8_t block_bytes;    /* what the kernel calls the mode's block size: 0 the cipher's, 1 for ctr */
	uint8_t iv_bytes;       /* 0 the cipher's block */
	bool no_iv;             /* ecb */
	bool block16_only;      /* works on 16-byte blocks only */
	bool encrypts_in_lanes; /* a call a block of a data unit, however many data units */
	bool native_only;       /* no way to build it from blocks: an engine must have it whole */
	bool is_api_name;       /* the cipher is a name of the kernel's, which says everything; native_only */
	/** Precompute from @extra (key_extra bytes) into k->extra; NULL if nothing is needed. 0 or -errno. */
	int (*init)(struct cf_mode_key *k, const uint8_t *extra);
	/** NULL only if native_only. */
	int (*crypt)(const struct cf_mode_key *k, const struct cf_mode_run *run);
};

/** One subkey of a volume, set up in one engine. Shared by all workers, read-only after setup. */
struct cf_mode_key {
	const struct cf_mode *mode;
	const struct cf_engine *engine;
	size_t block;                  /* the cipher's, bytes */
	struct cf_engine_key *data;    /* the key that encrypts data; NULL if native_only */
	struct cf_engine_key *tweak;   /* xts: the second half */
	struct cf_engine_mode *native; /* the engine's own mode; NULL if it has none or refused the key */
	void *extra;                   /* the mode's own, in the secret arena */
};

/** cf_mode_find - by name; NULL unknown. */
const struct cf_mode *cf_mode_find(const char *name);

size_t cf_mode_iv_bytes(const struct cf_mode *m, const struct cf_block_cipher *bc);
size_t cf_mode_block_bytes(const struct cf_mode *m, const struct cf_block_cipher *bc);

/** cf_mode_key_lengths - how long the cipher's own key is in a subkey of @subkey_len bytes. 0 and *@part_len; -EINVAL
 * it does not divide. */
int cf_mode_key_part(const struct cf_mode *m, size_t subkey_len, size_t *part_len) CF_MUST_CHECK;

enum cf_native { CF_NATIVE_NONE, CF_NATIVE_IF_ANY };

/** cf_mode_key_init - set up one subkey; cf_mode_key_fini wipes it (also after a failed init).
 * Returns 0; what the engine said; -ENOMEM. */
int cf_mode_key_init(struct cf_mode_key *k, const struct cf_mode *m, const struct cf_engine *engine,
					 const struct cf_block_cipher *bc, const uint8_t *subkey, size_t subkey_len, unsigned n_workers,
					 enum cf_native native) CF_MUST_CHECK;
void cf_mode_key_fini(struct cf_mode_key *k);

/** cf_mode_crypt_blocks - the block primitive under the data key; cf_mode_crypt_native - the engine's whole mode. */
static inline int cf_mode_crypt_blocks(const struct cf_mode_key *k, const struct cf_mode_run *r, const uint8_t *src,
									   uint8_t *dst, size_t n_blocks)
{
	return k->engine->crypt(k->data, r->worker, r->dir, src, dst, n_blocks);
}
int cf_mode_crypt_native(const struct cf_mode_key *k, const struct cf_mode_run *run) CF_MUST_CHECK;

/** cf_mode_crypt_any - the mode, on the path that every mode has. */
int cf_mode_crypt_any(const struct cf_mode_key *k, const struct cf_mode_run *run) CF_MUST_CHECK;

/** Tweaks for cf_mode_whitened: write the next @n 16-byte tweaks, in block order over all data units, to @out. */
typedef void cf_mode_tweaks(void *state, uint8_t *out, size_t n);

/** cf_mode_whitened - dst = E(src ^ tweak) ^ tweak for every block, the frame of xts and lrw. */
int cf_mode_whitened(const struct cf_mode_key *k, const struct cf_mode_run *run, cf_mode_tweaks *tweaks,
					 void *state) CF_MUST_CHECK;

#endif
