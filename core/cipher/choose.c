/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* choose.c - which engine, when nobody named one: each that has the cipher works on this volume's mode and data unit
 * for a moment, the cheapest is taken.
 *
 * Cost is the time it takes (trial.h) plus CPU time of the calling thread, kernel time included: an engine that is
 * slower and burns more is never chosen, one that is a little slower but leaves the CPU alone may be. A constant-time
 * engine is preferred within a factor of two (HAZARDS 26). Either answer is right; only speed differs. */
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/engine.h"
#include "impl.h"
#include "trial.h"

#define PATH_NS 500000u   /* of a candidate, for its threshold between paths, a direction */
#define TRIAL_NS 2000000u /* of a candidate, for its speed */

/* One batch, again and again. */
struct batch {
	struct cf_cipher *c;
	enum cf_dir dir;
	uint8_t *src, *dst;
};

static int crypt_batch(void *ctx)
{
	const struct batch *b = ctx;
	const uint32_t du = b->c->spec.du_bytes;
	return cf_cipher_crypt(b->c, 0, b->dir, 0, cf_cipher_request_bytes(&b->c->spec) / du, b->src, b->dst);
}

/* Fill in what @plan's engine can do; a cost of UINT64_MAX means that it cannot serve after all, or was not tried. */
static void try_engine(const struct cf_cipher_spec *spec, const uint8_t *key, const struct cf_cipher_plan *plan,
					   uint8_t *buf, struct cf_cipher_candidate *out)
{
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = NULL;
	if (cf_cipher_build(&c, spec, key, plan, 1, CF_PATH_AUTO, PATH_NS, NULL) != 0)
		return;
	const uint32_t bytes = cf_cipher_request_bytes(spec);
	struct batch b = {.c = c, .src = buf, .dst = buf + bytes};
	uint64_t cost_ns = 0;
	for (b.dir = CF_ENCRYPT; b.dir <= CF_DECRYPT; b.dir++) {
		struct cf_trial t;
		if (cf_trial_run(crypt_batch, &b, cf_trial_where(plan->engine), TRIAL_NS / 2, &t) != 0)
			return;
		out->mb_per_s[b.dir] = (uint32_t)((uint64_t)bytes * 1000 / t.took_ns);
		cost_ns += t.cost_ns;
	}
	out->cost_ns = cost_ns;
}

/* Cheapest first; a constant-time engine goes before one that is not and less than twice as fast. */
static bool better(const struct cf_cipher_candidate *a, const struct cf_cipher_candidate *b)
{
	if (a->cost_ns == UINT64_MAX || b->cost_ns == UINT64_MAX || a->constant_time == b->constant_time)
		return a->cost_ns < b->cost_ns;
	return a->constant_time ? a->cost_ns / 2 <= b->cost_ns : b->cost_ns / 2 > a->cost_ns;
}

static void sort(struct cf_cipher_choice *c)
{
	for (unsigned i = 1; i < c->n; i++)
		for (unsigned j = i; j && better(&c->figures[j], &c->figures[j - 1]); j--) {
			struct cf_cipher_candidate f = c->figures[j];
			const struct cf_engine *e = c->engines[j];
			c->figures[j] = c->figures[j - 1];
			c->engines[j] = c->engines[j - 1];
			c->figures[j - 1] = f;
			c->engines[j - 1] = e;
		}
}

static bool competes(const struct cf_engine *e, const struct cf_cipher_spec *spec, const struct cf_cipher_plan *p)
{
	return (!e->competes || e->competes(p->mode->name, &p->bc, p->layout.subkey_bytes)) && e->probe(NULL) == 0 &&
		   cf_cipher_engine_serves(e, spec, p);
}

void cf_cipher_choose(const struct cf_cipher_spec *spec, const uint8_t *key, const struct cf_cipher_opts *opts,
					  const struct cf_cipher_plan *plan, struct cf_cipher_choice *out)
{
	bool any = !opts->use && cf_engine_is_any(opts->engine);
	*out = (struct cf_cipher_choice){.n = 0};
	for (size_t i = 0; any && cf_engines[i] && out->n < CF_CANDIDATES_MAX; i++)
		if (competes(cf_engines[i], spec, plan))
			out->engines[out->n++] = cf_engines[i];
	if (out->n == 0) /* named, or only one that would not have competed */
		out->engines[out->n++] = plan->engine;
	const size_t buf_bytes = 2 * (size_t)cf_cipher_request_bytes(spec);
	uint8_t *buf = out->n > 1 ? malloc(buf_bytes) : NULL;
	if (buf)
		memset(buf, 0xa5, buf_bytes);
	struct cf_cipher_plan p = *plan;
	for (unsigned i = 0; i < out->n; i++) {
		p.engine = out->engines[i];
		out->figures[i] = (struct cf_cipher_candidate){
			.engine = p.engine->name, .constant_time = p.engine->constant_time(&p.bc), .cost_ns = UINT64_MAX};
		if (buf)
			try_engine(spec, key, &p, buf, &out->figures[i]);
	}
	sort(out);
	free(buf);
}
