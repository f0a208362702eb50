/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* impl.h - struct cf_cipher, shared by the files that set it up (setup.c), judge it (check.c), test it (selftest.c),
 * time it (measure.c), run it (cipher.c) and let it forget its key (rekey.c). */
#ifndef CRYPTFUSE_CIPHER_IMPL_H
#define CRYPTFUSE_CIPHER_IMPL_H

#include <stdatomic.h>

#include "cryptfuse/cipher.h"
#include "cryptfuse/iv.h"
#include "cryptfuse/mode.h"

/* Staging is for what needs a changed or gathered copy of the source: at most one data unit of the largest size, or a
 * tile of small ones. */
#define CF_STAGE_BYTES CF_DU_MAX

#define CF_LABEL (2 * CF_NAME_MAX) /* bytes of cipher and mode as text, NUL included */

struct cf_subkey {
	struct cf_mode_key mode;
	struct cf_engine_key *essiv; /* encrypts IVs; NULL without essiv */
};

#define CF_CHECK_BYTES 32u

/* What another key is told by. */
struct cf_key_check {
	bool kept;
	uint8_t salt[CF_CHECK_BYTES], value[CF_CHECK_BYTES];
};

/* One worker's memory; reserved at open, wiped at the end. */
struct cf_cipher_work {
	uint64_t sectors[CF_BATCH_DU_MAX];
	uint8_t ivs[CF_BATCH_DU_MAX * CF_IV_MAX];
	uint8_t gathered_ivs[CF_BATCH_DU_MAX * CF_IV_MAX];
	uint8_t iv_scratch[CF_BATCH_DU_MAX * CF_BLOCK_MAX];
	uint8_t *scratch[2]; /* pass_bytes each */
	/* CF_STAGE_BYTES each, only where the volume needs them */
	uint8_t *before;     /* what an IV kind made of the source */
	uint8_t *gather_src; /* the data units of one key */
	uint8_t *gather_dst;
};

/* What a spec means, before there is a key. */
struct cf_cipher_plan {
	struct cf_block_cipher bc; /* its name: a constant, or the spec's own text */
	const struct cf_mode *mode;
	const struct cf_iv_kind *iv; /* NULL: no IV */
	const struct cf_engine *engine;
	size_t iv_bytes;
	size_t part_bytes; /* the cipher's own key in a subkey */
	int essiv_bytes;   /* digest length; 0 no essiv */
	struct cf_key_layout layout;
};

/* The engines to try, best first, and what they were measured at. */
struct cf_cipher_choice {
	unsigned n;
	const struct cf_engine *engines[CF_CANDIDATES_MAX];
	struct cf_cipher_candidate figures[CF_CANDIDATES_MAX];
};

struct cf_cipher {
	struct cf_cipher_spec spec;
	struct cf_cipher_plan plan;
	enum cf_path path;         /* that was asked for */
	struct cf_subkey *subkeys; /* spec.keycount; NULL while the key is forgotten */
	struct cf_key_check check;
	struct cf_iv iv;
	unsigned n_workers;
	struct cf_cipher_work **work; /* n_workers */
	size_t tile_du;               /* data units handled at a time */
	size_t pass_bytes;            /* what the engine likes to be given at once */
	size_t key_period;            /* data units until a key comes again: 1 when one key serves a whole tile */
	size_t batch_from[2];         /* by direction */
	bool never_lanes;             /* encryption is always left to the engine's own mode */
	_Atomic uint64_t fallbacks;   /* batches that were done again one by one */
	struct cf_cipher *standby;    /* another engine's; NULL unless the engine works elsewhere */
	_Atomic bool lost;            /* the engine is gone for good: standby serves, if there is one */
	struct cf_cipher_choice choice;
	char warning[256];
	char driver[128]; /* who computes behind the engine, "" the engine itself: asked at open */
	bool constant_time;
};

/** cf_cipher_plan - resolve and judge a spec; the whole of cf_cipher_check. @use: NULL, or the engine to take. */
int cf_cipher_plan(const struct cf_cipher_spec *spec, const char *engine, const struct cf_engine *use,
				   struct cf_cipher_plan *out, struct cf_err *err) CF_MUST_CHECK;

/** cf_cipher_selftest - known answers, and batches against one data unit at a time, on the paths that @path leaves. 0
 * or -EIO. Worker 0. */
int cf_cipher_selftest(struct cf_cipher *c, enum cf_path path, struct cf_err *err) CF_MUST_CHECK;

/** cf_cipher_measure - find batch_from by timing worker 0, at most @budget_ns a direction. 0 or -ENOMEM, -EIO. */
int cf_cipher_measure(struct cf_cipher *c, uint64_t budget_ns) CF_MUST_CHECK;

/** cf_cipher_keys_init, cf_cipher_keys_fini - all that is made of the key. 0 or -errno: the caller still calls fini. */
int cf_cipher_keys_init(struct cf_cipher *c, const uint8_t *key) CF_MUST_CHECK;
void cf_cipher_keys_fini(struct cf_cipher *c);

/** cf_cipher_work_wipe - what crypt calls left in the workers' memory. */
void cf_cipher_work_wipe(struct cf_cipher *c);

/** cf_cipher_find_block - the block cipher that @spec names; under CF_MODE_API the kernel is asked
 * @engine, @use: as for cf_cipher_plan. @out's name may be spec's own text. Returns 0; -ENODEV and why. */
int cf_cipher_find_block(const struct cf_cipher_spec *spec, const char *engine, const struct cf_engine *use,
						 struct cf_block_cipher *out, struct cf_err *err) CF_MUST_CHECK;

/** cf_cipher_label - cipher and mode for messages: "aes-xts", "hctr2(aes)". */
void cf_cipher_label(const struct cf_cipher_spec *spec, char out[static CF_LABEL]);

/** cf_cipher_engine_serves - does it have all that the plan needs? */
bool cf_cipher_engine_serves(const struct cf_engine *e, const struct cf_cipher_spec *spec,
							 const struct cf_cipher_plan *p);

/** cf_cipher_choose - the engines that serve the plan, the fastest first; at most 15 ms. A named or only one is not
 * measured. */
void cf_cipher_choose(const struct cf_cipher_spec *spec, const uint8_t *key, const struct cf_cipher_opts *opts,
					  const struct cf_cipher_plan *plan, struct cf_cipher_choice *out);

/** cf_cipher_build - a cipher on exactly plan->engine; cf_cipher_new without the choice. */
int cf_cipher_build(struct cf_cipher **out, const struct cf_cipher_spec *spec, const uint8_t *key,
					const struct cf_cipher_plan *plan, unsigned n_workers, enum cf_path path, uint64_t budget_ns,
					struct cf_err *err) CF_MUST_CHECK;

#endif
