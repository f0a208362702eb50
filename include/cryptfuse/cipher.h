/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* cipher.h - a batch of data units: chaining mode + IVs + keys + engine.
 *
 * cf_cipher is what a volume encrypts with. It owns the volume key (in the secret arena) and everything derived from
 * it, and turns "n_du data units from index du" into as few engine calls as the mode allows. It knows nothing of byte
 * ranges, files or locks. */
#ifndef CRYPTFUSE_CIPHER_H
#define CRYPTFUSE_CIPHER_H

#include "cryptfuse/units.h"

struct cf_err;
struct cf_engine;
struct cf_cipher;

#define CF_NAME_MAX 128u     /* cipher, mode, IV and hash names, NUL included: as long as the kernel's */
#define CF_MODE_API "capi"   /* the mode of a cipher that is a name of the kernel's crypto API, mode and all */
#define CF_KEY_MAX 16384u    /* bytes of volume key, all subkeys together */
#define CF_KEYCOUNT_MAX 256u /* subkeys */
#define CF_WORKERS_MAX 16u

/** What encrypts a volume, without its key: what a dm-crypt table says beside the device. Plain data: may be copied and
 * sent. */
struct cf_cipher_spec {
	char cipher[CF_NAME_MAX];     /* block cipher: "aes"; "cipher_null"; under CF_MODE_API "hctr2(aes)" */
	char mode[CF_NAME_MAX];       /* chaining mode: "xts", "cbc", "cts" for cts(cbc(…)), CF_MODE_API */
	char iv[CF_NAME_MAX];         /* IV generator: "plain64"; "" none. essiv is "plain64" with essiv_hash */
	char essiv_hash[CF_NAME_MAX]; /* kernel hash name; "" no essiv */
	uint32_t keycount;            /* a power of two; 1 as a rule, 64 for lmk */
	uint32_t key_bytes;           /* the whole volume key; 0 for cipher_null */
	uint32_t du_bytes;            /* 512 to 65536, a power of two */
	enum cf_iv_numbering iv_numbering;
	uint64_t iv_offset; /* sectors; a multiple of the DU */
};

/** Which way a batch goes: decided once at open, forced by tests. */
enum cf_path {
	CF_PATH_AUTO,   /* by measurement, a threshold in n_du a direction */
	CF_PATH_BATCH,  /* our chaining mode over the engine's block primitive */
	CF_PATH_NATIVE, /* the engine's own whole mode; opening fails if it has none */
};

struct cf_cipher_opts {
	const char *engine;          /* name, or NULL for auto */
	const struct cf_engine *use; /* tests: this very engine, listed or not; NULL otherwise */
	enum cf_path path;
	unsigned n_workers; /* 1 to CF_WORKERS_MAX: how many threads may crypt at once */
};

#define CF_CANDIDATES_MAX 8u

/** An engine that was tried at open because nobody named one. */
struct cf_cipher_candidate {
	const char *engine;
	bool constant_time;
	uint32_t mb_per_s[2]; /* by enum cf_dir, one thread, on this volume's mode and data unit */
	uint64_t cost_ns;     /* wall and CPU time of one batch each way: what the choice goes by */
};

/** What was decided, for the status; valid while the cipher lives. */
struct cf_cipher_info {
	const char *engine;
	const char *driver; /* who computes behind it: a kernel driver; "" nobody else */
	bool constant_time;
	bool has_native;         /* the engine's own mode is in use for some n_du */
	size_t batch_from[2];    /* by enum cf_dir: from this many DUs the batch path is taken; SIZE_MAX never, 1 always */
	size_t tile_du;          /* DUs handled at a time */
	const char *native_path; /* what the engine's own mode is called: "native", "per-du"; NULL none */
	unsigned n_candidates;   /* 0 when an engine was named or only one has the cipher */
	struct cf_cipher_candidate candidates[CF_CANDIDATES_MAX];
	const char *standby; /* takes over if the engine is lost; NULL none */
	bool lost;           /* it has taken over, if there is one */
	uint64_t fallbacks;  /* batches that were refused and went data unit by data unit */
	const char *warning; /* an engine that was passed over and why; "" none */
};

/** cf_cipher_check - would this open? Everything but the key itself is judged, as dm-crypt judges a table
 * @engine: name or NULL. Returns 0; -EINVAL a wrong combination or number; -ENODEV an unknown cipher, mode, hash, a key
 * length the cipher refuses, or "no engine here has …". Threads: any. Source: dm-crypt.c, crypt_ctr_cipher() and
 * crypt_ctr_ivmode(). */
int cf_cipher_check(const struct cf_cipher_spec *spec, const char *engine, struct cf_err *err) CF_MUST_CHECK;

/** cf_cipher_default_key_bytes - a volume key that fits @spec, whose key_bytes and du_bytes are not looked at
 * Each key of the cipher gets 256 bits where the cipher takes them, else as many as it takes; what mode and IV kind
 * need comes on top. 0 for cipher_null; 32 where nothing fits (cf_cipher_check then says why). Under CF_MODE_API the
 * kernel is asked, as cf_cipher_check asks it. */
uint32_t cf_cipher_default_key_bytes(const struct cf_cipher_spec *spec);

#define CF_REQUEST_MAX (512u * 1024u)

/** cf_cipher_request_bytes - the length of one request to a volume of @spec: what FUSE is asked to cut long ones into,
 * and what engines are timed with. A multiple of the data unit, at most CF_REQUEST_MAX. */
uint32_t cf_cipher_request_bytes(const struct cf_cipher_spec *spec);

/** cf_cipher_new - set up all keys and contexts, self-test, measure paths; the data path allocates nothing afterwards
 * @key: borrowed, spec->key_bytes (NULL when 0); a copy goes to the secret arena.
 * Returns 0 and *out; errors as cf_cipher_check; -EIO the engine failed its self-test; -ENOMEM. */
int cf_cipher_new(struct cf_cipher **out, const struct cf_cipher_spec *spec, const uint8_t *key,
				  const struct cf_cipher_opts *opts, struct cf_err *err) CF_MUST_CHECK;

/** cf_cipher_free - wipe and free; takes NULL, leaves NULL. No crypt call may be running. */
void cf_cipher_free(struct cf_cipher **c);

/** cf_cipher_in_place - may @src be @dst? Where no step of this direction fails, keeps the source, or reads it twice.
 * Settled when the cipher is made. */
bool cf_cipher_in_place(const struct cf_cipher *c, enum cf_dir dir);

/** cf_cipher_crypt - encrypt or decrypt whole data units
 * @worker: 0 … n_workers - 1; one thread at a time each     @du: index of the first in the volume
 * @src: n_du * DU bytes, never written, intact even on error  @dst: the same, no overlap with @src, but
 * see cf_cipher_in_place
 * Shape: any n_du; tiles inside. Threads: any number at once, each with its own worker.
 * Returns 0; -EIO the engine failed (@dst is undefined), or the key is forgotten. */
int cf_cipher_crypt(struct cf_cipher *c, unsigned worker, enum cf_dir dir, uint64_t du, size_t n_du, const uint8_t *src,
					uint8_t *dst) CF_MUST_CHECK;

/** cf_cipher_keep_check - remember by what the key can be told from another, so that it may be forgotten
 * @key: the one the cipher was made with. After cf_cipher_new, once. Returns 0; -EIO; -ENOMEM. */
int cf_cipher_keep_check(struct cf_cipher *c, const uint8_t *key) CF_MUST_CHECK;

/** cf_cipher_can_rekey - whether the two below may be called: a check is kept, and no key lies outside this process. */
bool cf_cipher_can_rekey(const struct cf_cipher *c);

/** cf_cipher_forget - wipe the key, all that was made of it, and what crypt calls left behind. No crypt call may be
 * running; those that come before cf_cipher_rekey fail. */
void cf_cipher_forget(struct cf_cipher *c);

/** cf_cipher_has_key - whether it is not forgotten. */
bool cf_cipher_has_key(const struct cf_cipher *c);

/** cf_cipher_rekey - take the key again, with a self-test; what was decided at open stays decided
 * @key: borrowed, spec->key_bytes. Returns 0; -EPERM it is another key; -EIO the engine failed its self-test; -ENOMEM.
 * On failure it is as before. */
int cf_cipher_rekey(struct cf_cipher *c, const uint8_t *key, struct cf_err *err) CF_MUST_CHECK;

uint32_t cf_cipher_du_bytes(const struct cf_cipher *c);
const struct cf_cipher_spec *cf_cipher_spec(const struct cf_cipher *c);
void cf_cipher_info(const struct cf_cipher *c, struct cf_cipher_info *out);

#endif
