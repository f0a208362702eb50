/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* iv.h - IV generators: from a list of IV sectors to a list of IVs, and what some of them do around the mode.
 *
 * A kind is one file in core/cipher (or a function in iv.c, where the simple ones live) that ends in one const struct
 * cf_iv_kind, listed in iv.c. IV sectors are a list because they are not a counter of step 1 and may wrap anywhere
 * (HAZARDS 20). After setup everything is read-only and shared by all workers; nothing is allocated on the data path.
 * Source of all of them: Linux drivers/md/dm-crypt.c. */
#ifndef CRYPTFUSE_IV_H
#define CRYPTFUSE_IV_H

#include "cryptfuse/cipher.h"
#include "cryptfuse/mode.h"

/** How a volume key divides: keycount equal subkeys, then what belongs to the IV kind. */
struct cf_key_layout {
	size_t subkey_bytes;
	size_t extra_off, extra_bytes;
};

/** What a kind may look at while it is judged and set up. */
struct cf_iv_setup {
	const struct cf_cipher_spec *spec;
	const struct cf_mode *mode;
	const struct cf_block_cipher *bc;
	size_t iv_bytes; /* of the mode; not 0 */
	struct cf_key_layout layout;
	/* only for init: */
	const struct cf_engine *engine;
	unsigned n_workers;
	const uint8_t *extra;           /* layout.extra_bytes of the volume key */
	const struct cf_mode_key *key0; /* the first subkey, set up */
};

/** cf_iv_mode_name - of the mode, for messages. */
static inline const char *cf_iv_mode_name(const struct cf_iv_setup *s)
{
	return s->mode->is_api_name ? s->bc->name : s->mode->name;
}

struct cf_iv_kind;

/** A kind that has been set up. */
struct cf_iv {
	const struct cf_iv_kind *kind;
	size_t iv_bytes;
	uint32_t du_bytes;
	unsigned shift;                   /* benbi */
	const struct cf_mode_key *key0;   /* eboiv, elephant */
	void *secret;                     /* lmk's and tcw's seeds: in the secret arena */
	struct cf_engine_key *sector_key; /* elephant */
	const struct cf_engine *engine;
};

/** One call: n_du data units. */
struct cf_iv_run {
	enum cf_dir dir;
	unsigned worker;
	const uint64_t *sectors; /* IV sectors, n_du of them */
	size_t n_du;             /* 1 to CF_BATCH_DU_MAX */
	uint8_t *ivs;            /* out: n_du * iv_bytes, each zeroed first */
	const uint8_t *plain;    /* when encrypting: the plaintext, for lmk */
	struct cf_mode_run *via; /* scratch to run the mode with, for eboiv */
};

struct cf_iv_kind {
	const char *name;
	/** How the key divides; NULL: no extra, keycount equal parts. 0, or -EINVAL if this length does not divide. */
	int (*layout)(const struct cf_cipher_spec *spec, size_t iv_bytes, struct cf_key_layout *out, struct cf_err *err);
	/** Judge the combination; NULL: any will do. */
	int (*check)(const struct cf_iv_setup *s, struct cf_err *err);
	/** Does the kind need a block cipher beside the volume's own? name and key length, or NULL. */
	const char *(*needs_cipher)(const struct cf_iv_setup *s, size_t *key_len);
	int (*init)(struct cf_iv *iv, const struct cf_iv_setup *s);
	/** Fill run->ivs. NULL never. 0 or -errno. */
	int (*generate)(const struct cf_iv *iv, const struct cf_iv_run *run);
	/** Optional. Before the mode: from @src to @dst, no overlap; called for the directions in which before_dirs has the
	 * bit 1 << dir. */
	int (*before)(const struct cf_iv *iv, const struct cf_iv_run *run, const uint8_t *src, uint8_t *dst);
	unsigned before_dirs;
	/** Optional. After the mode, in place; likewise after_dirs. */
	int (*after)(const struct cf_iv *iv, const struct cf_iv_run *run, uint8_t *data);
	unsigned after_dirs;
	/** Its value is more than a number: an essiv cannot be put over it (capi:essiv(…)-lmk). */
	bool no_essiv;
};

/** cf_iv_find - by name; NULL unknown. */
const struct cf_iv_kind *cf_iv_find(const char *name);

/** cf_iv_layout - how the volume key divides under @kind (NULL: no IV). Returns 0; -EINVAL. */
int cf_iv_layout(const struct cf_iv_kind *kind, const struct cf_cipher_spec *spec, size_t iv_bytes,
				 struct cf_key_layout *out, struct cf_err *err) CF_MUST_CHECK;

int cf_iv_init(struct cf_iv *iv, const struct cf_iv_kind *kind, const struct cf_iv_setup *s) CF_MUST_CHECK;
void cf_iv_fini(struct cf_iv *iv);

/** cf_iv_eboiv, cf_iv_eboiv_check - eboiv's value and its condition, which elephant shares. */
int cf_iv_eboiv(const struct cf_iv *iv, const struct cf_iv_run *run);
int cf_iv_eboiv_check(const struct cf_iv_setup *s, struct cf_err *err);

#endif
