/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* cipher.c - the data path of a batch: tile by tile, IV sectors -> IVs -> what the IV kind does before -> mode, one
 * call a key -> what it does after.
 *
 * A failed call of several data units is done again one by one from the source, which no call ever writes (HAZARDS 19).
 * Nothing is allocated; a worker's memory is touched by the thread that owns the worker only. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "impl.h"

struct tile {
	struct cf_cipher *c;
	struct cf_cipher_work *w;
	unsigned worker;
	enum cf_dir dir;
	uint64_t s0; /* of its first data unit: selects the key */
	size_t n_du;
};

/* A run of data units under one key, on the path that the number of them decides. */
static int run_once(const struct cf_subkey *sk, const struct cf_cipher *c, const struct cf_mode_run *run)
{
	if (sk->mode.native && run->n_du < c->batch_from[run->dir])
		return cf_mode_crypt_native(&sk->mode, run);
	return sk->mode.mode->crypt(&sk->mode, run);
}

/* @ivs are overwritten by essiv's. */
static int run_key(const struct tile *t, size_t key, const uint8_t *src, uint8_t *dst, uint8_t *ivs, size_t n_du)
{
	const struct cf_cipher *c = t->c;
	const struct cf_subkey *sk = &c->subkeys[key];
	struct cf_mode_run run = {
		.dir = t->dir,
		.worker = t->worker,
		.src = src,
		.dst = dst,
		.ivs = ivs,
		.n_du = n_du,
		.du_bytes = c->spec.du_bytes,
		.pass_bytes = c->pass_bytes,
		.scratch = {t->w->scratch[0], t->w->scratch[1]},
		.iv_scratch = t->w->iv_scratch,
	};
	if (sk->essiv) {
		memcpy(t->w->iv_scratch, ivs, n_du * c->plan.iv_bytes);
		int rc = c->plan.engine->crypt(sk->essiv, t->worker, CF_ENCRYPT, t->w->iv_scratch, ivs, n_du);
		if (rc)
			return rc;
	}
	return run_once(sk, c, &run);
}

/* Several keys in the tile: gather the data units of each, so that an engine never sees two keys in one call (HAZARDS
 * 21). */
static int run_gathered(const struct tile *t, const uint8_t *src, uint8_t *dst)
{
	struct cf_cipher *c = t->c;
	size_t du = c->spec.du_bytes, iv = c->plan.iv_bytes, step = du >> CF_SECTOR_SHIFT;
	for (size_t first = 0; first < c->key_period && first < t->n_du; first++) {
		size_t n = 0;
		for (size_t i = first; i < t->n_du; i += c->key_period, n++) {
			memcpy(t->w->gather_src + n * du, src + i * du, du);
			memcpy(t->w->gathered_ivs + n * iv, t->w->ivs + i * iv, iv);
		}
		size_t key = (t->s0 + first * step) & (c->spec.keycount - 1);
		int rc = run_key(t, key, t->w->gather_src, t->w->gather_dst, t->w->gathered_ivs, n);
		if (rc)
			return rc;
		n = 0;
		for (size_t i = first; i < t->n_du; i += c->key_period, n++)
			memcpy(dst + i * du, t->w->gather_dst + n * du, du);
	}
	return 0;
}

static int run_tile(struct tile *t, const uint8_t *src, uint8_t *dst)
{
	struct cf_cipher *c = t->c;
	const struct cf_iv_kind *kind = c->plan.iv;
	struct cf_mode_run via = {
		.pass_bytes = c->pass_bytes, .scratch = {t->w->scratch[0], t->w->scratch[1]}, .iv_scratch = t->w->iv_scratch};
	struct cf_iv_run iv_run = {
		.dir = t->dir,
		.worker = t->worker,
		.sectors = t->w->sectors,
		.n_du = t->n_du,
		.ivs = t->w->ivs,
		.plain = src,
		.via = &via,
	};
	uint32_t step = c->spec.du_bytes >> CF_SECTOR_SHIFT;
	int rc = 0;
	for (size_t i = 0; i < t->n_du; i++)
		t->w->sectors[i] = cf_units_iv_sector(t->s0 + i * step, c->spec.du_bytes, c->spec.iv_numbering);
	if (kind)
		rc = kind->generate(&c->iv, &iv_run);
	if (!rc && kind && kind->before && kind->before_dirs >> t->dir & 1) {
		rc = kind->before(&c->iv, &iv_run, src, t->w->before);
		src = t->w->before;
	}
	if (!rc)
		rc = c->key_period > 1 ? run_gathered(t, src, dst)
							   : run_key(t, t->s0 & (c->spec.keycount - 1), src, dst, t->w->ivs, t->n_du);
	if (!rc && kind && kind->after && kind->after_dirs >> t->dir & 1)
		rc = kind->after(&c->iv, &iv_run, dst);
	return rc;
}

/* A tile was refused: its data units one by one, from the untouched source. The next tile is tried as a batch again. */
static int run_one_by_one(const struct tile *t, const uint8_t *src, uint8_t *dst)
{
	struct tile one = *t;
	one.n_du = 1;
	atomic_fetch_add_explicit(&t->c->fallbacks, 1, memory_order_relaxed);
	for (size_t i = 0; i < t->n_du; i++) {
		size_t du = t->c->spec.du_bytes;
		int rc = run_tile(&one, src + i * du, dst + i * du);
		if (rc)
			return rc;
		one.s0 += du >> CF_SECTOR_SHIFT;
	}
	return 0;
}

/* The engine cannot do this tile, for @why: the standby does it, from the untouched source, and if the engine is lost
 * for good everything from now on. */
static int take_over(const struct tile *t, int why, uint64_t du, const uint8_t *src, uint8_t *dst)
{
	if (why == -ENODEV)
		atomic_store(&t->c->lost, true);
	if (!t->c->standby)
		return -EIO;
	return cf_cipher_crypt(t->c->standby, t->worker, t->dir, du, t->n_du, src, dst);
}

int cf_cipher_crypt(struct cf_cipher *c, unsigned worker, enum cf_dir dir, uint64_t du, size_t n_du, const uint8_t *src,
					uint8_t *dst)
{
	assert(worker < c->n_workers);
	if (!c->subkeys)
		return -EIO;
	if (atomic_load_explicit(&c->lost, memory_order_relaxed) && c->standby)
		return cf_cipher_crypt(c->standby, worker, dir, du, n_du, src, dst);
	struct tile t = {.c = c, .w = c->work[worker], .worker = worker, .dir = dir};
	for (; n_du; n_du -= t.n_du, du += t.n_du) {
		t.n_du = n_du < c->tile_du ? n_du : c->tile_du;
		t.s0 = cf_units_s0(du, c->spec.du_bytes, c->spec.iv_offset);
		int rc = run_tile(&t, src, dst);
		if (rc && rc != -ENODEV)
			rc = run_one_by_one(&t, src, dst);
		if (rc)
			rc = take_over(&t, rc, du, src, dst);
		if (rc)
			return -EIO;
		src += t.n_du * c->spec.du_bytes;
		dst += t.n_du * c->spec.du_bytes;
	}
	return 0;
}

/* Always by a mode of the engine's own that can do that, with one key a tile, and nothing before or after it. */
bool cf_cipher_in_place(const struct cf_cipher *c, enum cf_dir dir)
{
	const char *mode = c->plan.engine->in_place_mode;
	const struct cf_iv_kind *kind = c->plan.iv;
	const unsigned whitened = !kind ? 0 : (kind->before ? kind->before_dirs : 0) | (kind->after ? kind->after_dirs : 0);
	if (!mode || strcmp(mode, c->plan.mode->name) != 0 || c->batch_from[dir] <= c->tile_du || c->key_period > 1)
		return false;
	for (unsigned i = 0; i < c->spec.keycount; i++)
		if (!c->subkeys[i].mode.native)
			return false;
	return !(whitened >> dir & 1);
}

uint32_t cf_cipher_du_bytes(const struct cf_cipher *c)
{
	return c->spec.du_bytes;
}

const struct cf_cipher_spec *cf_cipher_spec(const struct cf_cipher *c)
{
	return &c->spec;
}

void cf_cipher_info(const struct cf_cipher *c, struct cf_cipher_info *out)
{
	const struct cf_engine *engine = c->plan.engine;
	bool has_native = c->batch_from[CF_ENCRYPT] > 1 || c->batch_from[CF_DECRYPT] > 1;
	*out = (struct cf_cipher_info){
		.engine = engine->name,
		.constant_time = c->constant_time,
		.driver = c->driver,
		.has_native = has_native,
		.native_path = has_native ? engine->mode_path : NULL,
		.batch_from = {c->batch_from[CF_ENCRYPT], c->batch_from[CF_DECRYPT]},
		.tile_du = c->tile_du,
		.n_candidates = c->choice.n > 1 ? c->choice.n : 0,
		.standby = c->standby ? c->standby->plan.engine->name : NULL,
		.lost = atomic_load(&c->lost),
		.fallbacks = atomic_load(&c->fallbacks),
		.warning = c->warning,
	};
	memcpy(out->candidates, c->choice.figures, sizeof(out->candidates));
}
