/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* setup.c - from a spec and a key to a cipher that is ready: subkeys, essiv keys, IV kind, workers' memory, self-test,
 * measured paths. Everything that can be allocated is allocated here. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/digest.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "impl.h"

#define MEASURE_NS 3000000u /* for the threshold between paths, a direction */

static int subkey_init(struct cf_cipher *c, struct cf_subkey *sk, const uint8_t *subkey, enum cf_native native)
{
	const struct cf_cipher_plan *p = &c->plan;
	int rc =
		cf_mode_key_init(&sk->mode, p->mode, p->engine, &p->bc, subkey, p->layout.subkey_bytes, c->n_workers, native);
	if (rc || !p->essiv_bytes)
		return rc;
	uint8_t digest[CF_DIGEST_MAX];
	rc = cf_digest(CF_DIGEST_KERNEL, c->spec.essiv_hash, subkey, p->layout.subkey_bytes, NULL, 0, digest);
	if (!rc)
		rc = p->engine->key_new(&sk->essiv, &p->bc, digest, (size_t)p->essiv_bytes, c->n_workers);
	cf_secret_wipe(digest, sizeof(digest));
	return rc;
}

int cf_cipher_keys_init(struct cf_cipher *c, const uint8_t *key)
{
	static const uint8_t no_key[1];
	const struct cf_cipher_plan *p = &c->plan;
	const enum cf_native native = c->path == CF_PATH_BATCH ? CF_NATIVE_NONE : CF_NATIVE_IF_ANY;
	if (!c->spec.key_bytes)
		key = no_key;
	c->subkeys = calloc(c->spec.keycount, sizeof(*c->subkeys));
	if (!c->subkeys)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->spec.keycount; i++) {
		int rc = subkey_init(c, &c->subkeys[i], key + i * p->layout.subkey_bytes, native);
		if (rc)
			return rc;
	}
	struct cf_iv_setup setup = {
		.spec = &c->spec,
		.mode = p->mode,
		.bc = &p->bc,
		.iv_bytes = p->iv_bytes,
		.layout = p->layout,
		.engine = p->engine,
		.n_workers = c->n_workers,
		.extra = key + p->layout.extra_off,
		.key0 = &c->subkeys[0].mode,
	};
	return p->iv ? cf_iv_init(&c->iv, p->iv, &setup) : 0;
}

/* Data units until a key comes again, and how many are handled at a time. */
static void plan_tiles(struct cf_cipher *c)
{
	uint32_t step = c->spec.du_bytes >> CF_SECTOR_SHIFT;
	c->key_period = step < c->spec.keycount ? c->spec.keycount / step : 1;
	c->tile_du = CF_BATCH_DU_MAX;
	c->pass_bytes = c->plan.engine->pass_bytes ? c->plan.engine->pass_bytes : CF_PASS_BYTES;
	bool staged = c->key_period > 1 || (c->plan.iv && (c->plan.iv->before || c->plan.iv->after));
	if (staged && c->tile_du * c->spec.du_bytes > CF_STAGE_BYTES)
		c->tile_du = CF_STAGE_BYTES / c->spec.du_bytes;
}

static void *stage_new(void)
{
	void *p = NULL;
	return posix_memalign(&p, 4096, CF_STAGE_BYTES) == 0 ? p : NULL;
}

static int work_init(struct cf_cipher *c)
{
	bool before = c->plan.iv && c->plan.iv->before, gather = c->key_period > 1;
	c->work = calloc(c->n_workers, sizeof(struct cf_cipher_work *));
	for (unsigned i = 0; c->work && i < c->n_workers; i++) {
		struct cf_cipher_work *w = NULL;
		if (posix_memalign((void **)&w, 64, sizeof(*w)) != 0)
			return -ENOMEM;
		memset(w, 0, sizeof(*w));
		c->work[i] = w;
		if (posix_memalign((void **)&w->scratch[0], 64, 2 * c->pass_bytes) != 0) {
			w->scratch[0] = NULL;
			return -ENOMEM;
		}
		w->scratch[1] = w->scratch[0] + c->pass_bytes;
		if ((before && !(w->before = stage_new())) || (gather && !(w->gather_src = stage_new())) ||
			(gather && !(w->gather_dst = stage_new())))
			return -ENOMEM;
	}
	return c->work ? 0 : -ENOMEM;
}

void cf_cipher_keys_fini(struct cf_cipher *c)
{
	cf_iv_fini(&c->iv);
	for (uint32_t i = 0; c->subkeys && i < c->spec.keycount; i++) {
		if (c->subkeys[i].essiv)
			c->plan.engine->key_free(&c->subkeys[i].essiv);
		cf_mode_key_fini(&c->subkeys[i].mode);
	}
	free(c->subkeys);
	c->subkeys = NULL;
}

static void wipe(uint8_t *stage, size_t len)
{
	if (stage)
		cf_secret_wipe(stage, len);
}

void cf_cipher_work_wipe(struct cf_cipher *c)
{
	for (unsigned i = 0; c->work && i < c->n_workers && c->work[i]; i++) {
		struct cf_cipher_work *w = c->work[i];
		wipe(w->scratch[0], 2 * c->pass_bytes);
		wipe(w->before, CF_STAGE_BYTES);
		wipe(w->gather_src, CF_STAGE_BYTES);
		wipe(w->gather_dst, CF_STAGE_BYTES);
		cf_secret_wipe(w, offsetof(struct cf_cipher_work, scratch));
	}
}

void cf_cipher_free(struct cf_cipher **cipher)
{
	struct cf_cipher *c = *cipher;
	if (!c)
		return;
	cf_cipher_free(&c->standby);
	cf_cipher_keys_fini(c);
	cf_cipher_work_wipe(c);
	for (unsigned i = 0; c->work && i < c->n_workers && c->work[i]; i++) {
		free(c->work[i]->scratch[0]);
		free(c->work[i]->before);
		free(c->work[i]->gather_src);
		free(c->work[i]->gather_dst);
		free(c->work[i]);
	}
	free(c->work);
	free(c);
	*cipher = NULL;
}

/* The engine's own mode is of use only if every subkey has it. */
static bool all_native(const struct cf_cipher *c)
{
	for (uint32_t i = 0; i < c->spec.keycount; i++)
		if (!c->subkeys[i].mode.native)
			return false;
	return true;
}

/* Encryption in lanes takes as many calls as a data unit has blocks. Where calls are dear and no batch has more data
 * units than that, the engine's own mode needs fewer. */
static bool lanes_are_hopeless(const struct cf_cipher *c)
{
	return c->plan.mode->encrypts_in_lanes && c->pass_bytes > CF_PASS_BYTES &&
		   c->spec.du_bytes / c->plan.bc.block_bytes >= c->tile_du;
}

static int choose_path(struct cf_cipher *c, enum cf_path path, uint64_t budget_ns, struct cf_err *err)
{
	bool native = all_native(c);
	size_t from = !native || path == CF_PATH_BATCH ? 1 : SIZE_MAX;
	c->batch_from[CF_ENCRYPT] = c->batch_from[CF_DECRYPT] = from;
	if (path == CF_PATH_BATCH && c->plan.mode->native_only)
		return cf_fail(err, -ENODEV, "mode '%s' has no batch path: only an engine's own mode can serve it",
					   c->spec.mode);
	if (path == CF_PATH_NATIVE && !native)
		return cf_fail(err, -ENODEV, "engine '%s' has no %s of its own for this key", c->plan.engine->name,
					   c->spec.mode);
	c->never_lanes = native && path == CF_PATH_AUTO && lanes_are_hopeless(c);
	int rc = cf_cipher_selftest(c, path, err);
	if (!rc && native && path == CF_PATH_AUTO && !c->plan.mode->native_only)
		rc = cf_cipher_measure(c, budget_ns);
	return rc;
}

int cf_cipher_build(struct cf_cipher **out, const struct cf_cipher_spec *spec, const uint8_t *key,
					const struct cf_cipher_plan *plan, unsigned n_workers, enum cf_path path, uint64_t budget_ns,
					struct cf_err *err)
{
	char label[CF_LABEL];
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = calloc(1, sizeof(*c));
	if (!c)
		return cf_fail(err, -ENOMEM, "out of memory");
	c->spec = *spec;
	c->plan = *plan;
	c->plan.bc.name = c->spec.cipher; /* the same text, which lives as long as this */
	c->n_workers = n_workers;
	c->path = path;
	plan_tiles(c);
	int rc = work_init(c);
	if (!rc)
		rc = cf_cipher_keys_init(c, key);
	if (!rc)
		rc = choose_path(c, path, budget_ns, err);
	cf_cipher_label(spec, label);
	if (rc)
		return cf_fail(err, rc, "engine '%s' could not set up %s: %s", plan->engine->name, label, strerror(-rc));
	*out = cf_take(c);
	return 0;
}

/* An engine elsewhere can be lost while the volume is open: have another one ready, if any has the cipher. Without one
 * a loss is EIO, never wrong bytes. */
static void add_standby(struct cf_cipher *c, const uint8_t *key)
{
	struct cf_cipher_plan plan = c->plan;
	for (size_t i = 0; c->plan.engine->elsewhere && !c->standby && cf_engines[i]; i++) {
		plan.engine = cf_engines[i];
		if (!plan.engine->elsewhere && plan.engine->probe(NULL) == 0 &&
			cf_cipher_engine_serves(plan.engine, &c->spec, &plan))
			(void)!cf_cipher_build(&c->standby, &c->spec, key, &plan, c->n_workers, CF_PATH_AUTO, MEASURE_NS, NULL);
	}
}

/* What may open files to find out is asked now: the daemon that serves has no business with any. */
static void ask_engine(struct cf_cipher *c)
{
	const struct cf_engine *e = c->plan.engine;
	c->constant_time = e->constant_time(&c->plan.bc);
	if (e->describe)
		e->describe(c->plan.mode->name, &c->plan.bc, c->driver, sizeof(c->driver));
}

int cf_cipher_new(struct cf_cipher **out, const struct cf_cipher_spec *spec, const uint8_t *key,
				  const struct cf_cipher_opts *opts, struct cf_err *err)
{
	struct cf_cipher_plan plan;
	struct cf_cipher_choice choice = {0};
	struct cf_err why = {0};
	char warning[sizeof((*out)->warning)] = "";
	assert(opts->n_workers >= 1 && opts->n_workers <= CF_WORKERS_MAX);
	int rc = cf_cipher_plan(spec, opts->engine, opts->use, &plan, err);
	if (rc)
		return rc;
	cf_cipher_choose(spec, key, opts, &plan, &choice);
	for (unsigned i = 0; i < choice.n; i++) {
		CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = NULL;
		plan.engine = choice.engines[i];
		why = (struct cf_err){0};
		rc = cf_cipher_build(&c, spec, key, &plan, opts->n_workers, opts->path, MEASURE_NS, &why);
		if (rc == 0) {
			add_standby(c, key);
			ask_engine(c);
			c->choice = choice;
			memcpy(c->warning, warning, sizeof(warning));
			*out = cf_take(c);
			return 0;
		}
		snprintf(warning, sizeof(warning), "%.*s", (int)sizeof(warning) - 1, why.text);
	}
	return cf_fail(err, rc, "%s", why.text);
}
