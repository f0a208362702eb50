/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* bench.c - measure every engine and path that serves a cipher.
 *
 * For each DU size all contenders are set up as open would set them up, and race in each direction (race.c); which of
 * them open would take is asked of a cipher that is set up as open does it. One bench a thread. */
#include "cryptfuse/bench.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cryptfuse/engine.h"
#include "cryptfuse/err.h"
#include "cryptfuse/mode.h"
#include "cryptfuse/secret.h"
#include "race.h"

#define NS_PER_S 1e9

struct run {
	const struct cf_bench_opts *opts;
	struct cf_cipher_spec spec; /* of the DU size that is being measured */
	uint8_t *key;
	struct cf_race race;
	struct cf_bench *out;
};

static void run_fini(struct run *r)
{
	cf_race_clear(&r->race);
	cf_secret_freep(&r->key);
	free(r->race.buf);
}

static int fill_random(uint8_t *p, size_t len)
{
	while (len) {
		ssize_t n = getrandom(p, len, 0);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			p += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static int run_init(struct run *r, struct cf_err *err)
{
	const size_t key_bytes = r->opts->cipher.key_bytes, buf_bytes = 2 * CF_REQUEST_MAX;
	r->race.start_ns = cf_race_elapsed_ns(&r->race);
	r->key = cf_secret_alloc(key_bytes);
	r->race.buf = aligned_alloc(4096, buf_bytes);
	if (!r->key || !r->race.buf)
		return cf_fail(err, -ENOMEM, "out of memory");
	int rc = fill_random(r->key, key_bytes);
	if (!rc)
		rc = fill_random(r->race.buf, buf_bytes);
	return rc ? cf_fail(err, rc, "no random bytes to be had: %s", strerror(-rc)) : 0;
}

/* ---- who takes part ---- */

static void note_left_out(const struct run *r, const char *engine, const char *why)
{
	char text[CF_ERR_TEXT + 64];
	snprintf(text, sizeof(text), "engine %s is left out: %s", engine, why);
	r->race.ui->note(r->race.ui->ctx, text);
}

static int add_contender(struct run *r, const char *engine, enum cf_path path, struct cf_err *err)
{
	assert(r->race.n_contenders < CF_BENCH_CONTENDERS_MAX);
	struct cf_contender *c = &r->race.contenders[r->race.n_contenders];
	const struct cf_cipher_opts opts = {.engine = engine, .path = path, .n_workers = 1};
	struct cf_cipher_info info;
	*c = (struct cf_contender){.engine = engine, .path = "batch", .is_batch = path == CF_PATH_BATCH};
	int rc = cf_cipher_new(&c->cipher, &r->spec, r->key, &opts, err);
	if (rc)
		return rc;
	cf_cipher_info(c->cipher, &info);
	if (!c->is_batch)
		c->path = info.native_path;
	r->race.n_contenders++;
	return 0;
}

static int add_engine(struct run *r, const char *engine)
{
	struct cf_err err = {0};
	int rc = cf_cipher_check(&r->spec, engine, &err);
	if (!rc && !cf_mode_find(r->spec.mode)->native_only)
		rc = add_contender(r, engine, CF_PATH_BATCH, &err);
	if (!rc)
		rc = add_contender(r, engine, CF_PATH_NATIVE, &err);
	/* Most have no mode of their own, or not for this cipher. */
	if (rc == -ENODEV && r->race.n_contenders && r->race.contenders[r->race.n_contenders - 1].engine == engine)
		return 0;
	if (rc && (rc != -ENODEV || r->out->n_results == 0)) /* what it lacks is said once, not for each DU size */
		note_left_out(r, engine, err.text);
	return rc;
}

static bool asks_for(const struct cf_bench_opts *o, const char *engine)
{
	return cf_engine_is_any(o->engine) || !strcmp(o->engine, engine);
}

static int add_engines(struct run *r, struct cf_err *err)
{
	for (size_t i = 0; cf_engines[i]; i++)
		if (asks_for(r->opts, cf_engines[i]->name) && add_engine(r, cf_engines[i]->name) == -ENOMEM)
			return cf_fail(err, -ENOMEM, "out of memory");
	return r->race.n_contenders ? 0 : cf_fail(err, -EIO, "no engine works with %s-%s", r->spec.cipher, r->spec.mode);
}

/* ---- results ---- */

static int compare_ns(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* Does a whole request go by the batch path? The cipher decides by the number of DUs in a call: those of a tile that
 * have one key. */
static bool takes_batch(const struct run *r, const struct cf_cipher_info *open, enum cf_dir dir)
{
	const uint32_t step_sectors = r->spec.du_bytes / CF_SECTOR_BYTES;
	const size_t keys = r->spec.keycount > step_sectors ? r->spec.keycount / step_sectors : 1;
	size_t n_du = r->race.batch_bytes / r->spec.du_bytes;
	n_du = n_du < open->tile_du ? n_du : open->tile_du;
	n_du = n_du < keys ? 1 : n_du / keys;
	return n_du >= open->batch_from[dir];
}

static void add_results(struct run *r, enum cf_dir dir, const struct cf_cipher_info *open)
{
	for (size_t i = 0; i < r->race.n_contenders; i++) {
		const struct cf_contender *c = &r->race.contenders[i];
		struct cf_tally t = c->tally;
		const double bytes = (double)t.n_requests * r->race.batch_bytes;
		qsort(t.request_ns, t.n_turns, sizeof(*t.request_ns), compare_ns);
		r->out->results[r->out->n_results++] = (struct cf_bench_result){
			.engine = c->engine,
			.path = c->path,
			.dir = dir,
			.du_bytes = r->spec.du_bytes,
			.batch_bytes = r->race.batch_bytes,
			.mb_per_s = r->race.batch_bytes / 1e6 / ((double)t.request_ns[t.n_turns / 2] / NS_PER_S),
			.cpu_s_per_gib = (double)t.cpu_ns / NS_PER_S / (bytes / (1u << 30)),
			.chosen = !strcmp(c->engine, open->engine) && c->is_batch == takes_batch(r, open, dir),
		};
	}
}

/* What was then measured is slower than the path can be. */
static void note_fallbacks(const struct run *r)
{
	for (size_t i = 0; i < r->race.n_contenders; i++) {
		const struct cf_contender *c = &r->race.contenders[i];
		struct cf_cipher_info info;
		char text[CF_ERR_TEXT];
		cf_cipher_info(c->cipher, &info);
		snprintf(text, sizeof(text),
				 "engine %s, path %s, data units of %u bytes: %llu batches were refused and done unit by unit",
				 c->engine, c->path, r->spec.du_bytes, (unsigned long long)info.fallbacks);
		if (info.fallbacks)
			r->race.ui->note(r->race.ui->ctx, text);
	}
}

/* What open would do, by doing it. */
static int ask_open(const struct run *r, struct cf_cipher_info *out, struct cf_err *err)
{
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = NULL;
	const struct cf_cipher_opts opts = {.engine = r->opts->engine, .path = CF_PATH_AUTO, .n_workers = 1};
	int rc = cf_cipher_new(&c, &r->spec, r->key, &opts, err);
	if (!rc)
		cf_cipher_info(c, out);
	return rc;
}

/* One DU size, in an equal share of the time that is left for it and the @n_more after it. */
static int run_size(struct run *r, uint32_t du_bytes, size_t n_more, struct cf_err *err)
{
	const uint64_t start = cf_race_elapsed_ns(&r->race), budget = r->opts->budget_ns;
	const uint64_t end = start < budget ? start + (budget - start) / (n_more + 1) : start;
	struct cf_cipher_info open;
	r->spec = r->opts->cipher;
	r->spec.du_bytes = r->race.du_bytes = du_bytes;
	r->race.batch_bytes = cf_cipher_request_bytes(&r->spec);
	int rc = ask_open(r, &open, err);
	if (!rc)
		rc = add_engines(r, err);
	for (enum cf_dir dir = CF_ENCRYPT; !rc && dir <= CF_DECRYPT; dir++) {
		const uint64_t now = cf_race_elapsed_ns(&r->race);
		rc = cf_race_run(&r->race, dir, dir == CF_ENCRYPT && now < end ? now + (end - now) / 2 : end, err);
		if (!rc)
			add_results(r, dir, &open);
	}
	note_fallbacks(r);
	cf_race_clear(&r->race);
	return rc;
}

int cf_bench_run(const struct cf_bench_opts *opts, const struct cf_bench_ui *ui, struct cf_bench *out,
				 struct cf_err *err)
{
	struct cf_bench results = {.n_results = 0};
	CF_CLEANUP(run_fini)
	struct run r = {.opts = opts, .race = {.ui = ui, .budget_ns = opts->budget_ns}, .out = &results};
	assert(opts->budget_ns && opts->n_du_sizes <= CF_BENCH_DU_SIZES_MAX);
	int rc = run_init(&r, err);
	for (size_t i = 0; !rc && i < opts->n_du_sizes; i++)
		rc = run_size(&r, opts->du_sizes[i], opts->n_du_sizes - 1 - i, err);
	if (!rc)
		*out = results;
	return rc;
}
