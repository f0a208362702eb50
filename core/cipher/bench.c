/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* bench.c - measure every engine and path that serves a cipher, side by side.
 *
 * For each DU size all contenders are set up as open would set them up; then, for each direction, they take turns of a
 * few milliseconds. Speed is the median of the turns: what else runs on the machine disturbs single turns. CPU time is
 * the sum of all turns, since its clock may tick as coarsely as 10 ms, and that of the process, since an engine may
 * have threads. One bench a thread; the engines allocate nothing while the clock runs. */
#include "cryptfuse/bench.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "cryptfuse/engine.h"
#include "cryptfuse/err.h"
#include "cryptfuse/mode.h"
#include "cryptfuse/secret.h"

#define ROUNDS 9u
#define TURN_MIN_NS 1000000u
#define NS_PER_S 1e9

/* An engine on one of its paths. */
struct contender {
	struct cf_cipher *cipher;
	const char *engine, *path;
	bool is_batch;
	/* of the direction that is being measured */
	uint64_t request_ns[ROUNDS]; /* mean of each turn */
	uint64_t cpu_ns, n_requests;
};

struct run {
	const struct cf_bench_opts *opts;
	const struct cf_bench_ui *ui;
	struct cf_cipher_spec spec; /* of the DU size that is being measured */
	uint8_t *key;
	uint8_t *buf; /* source and destination, a request each */
	uint64_t start_ns;
	struct contender contenders[CF_BENCH_CONTENDERS_MAX];
	size_t n_contenders;
	struct cf_bench *out;
};

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t elapsed_ns(const struct run *r)
{
	return clock_ns(CLOCK_MONOTONIC) - r->start_ns;
}

static void drop_contenders(struct run *r)
{
	for (size_t i = 0; i < r->n_contenders; i++)
		cf_cipher_free(&r->contenders[i].cipher);
	r->n_contenders = 0;
}

static void run_fini(struct run *r)
{
	drop_contenders(r);
	cf_secret_freep(&r->key);
	free(r->buf);
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
	const size_t key_bytes = r->opts->cipher.key_bytes, buf_bytes = 2 * CF_BENCH_REQUEST_BYTES;
	r->start_ns = clock_ns(CLOCK_MONOTONIC);
	r->key = cf_secret_alloc(key_bytes);
	r->buf = aligned_alloc(4096, buf_bytes);
	if (!r->key || !r->buf)
		return cf_fail(err, -ENOMEM, "out of memory");
	int rc = fill_random(r->key, key_bytes);
	if (!rc)
		rc = fill_random(r->buf, buf_bytes);
	return rc ? cf_fail(err, rc, "no random bytes to be had: %s", strerror(-rc)) : 0;
}

/* ---- who takes part ---- */

static void note_left_out(const struct run *r, const char *engine, const char *why)
{
	char text[CF_ERR_TEXT + 64];
	snprintf(text, sizeof(text), "engine %s is left out: %s", engine, why);
	r->ui->note(r->ui->ctx, text);
}

static int add_contender(struct run *r, const char *engine, enum cf_path path, struct cf_err *err)
{
	assert(r->n_contenders < CF_BENCH_CONTENDERS_MAX);
	struct contender *c = &r->contenders[r->n_contenders];
	const struct cf_cipher_opts opts = {.engine = engine, .path = path, .n_workers = 1};
	struct cf_cipher_info info;
	*c = (struct contender){.engine = engine, .path = "batch", .is_batch = path == CF_PATH_BATCH};
	int rc = cf_cipher_new(&c->cipher, &r->spec, r->key, &opts, err);
	if (rc)
		return rc;
	cf_cipher_info(c->cipher, &info);
	if (!c->is_batch)
		c->path = info.native_path;
	r->n_contenders++;
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
	if (rc == -ENODEV && r->n_contenders && r->contenders[r->n_contenders - 1].engine == engine)
		return 0;
	if (rc && (rc != -ENODEV || r->out->n_results == 0)) /* what it lacks is said once, not for each DU size */
		note_left_out(r, engine, err.text);
	return rc;
}

static bool asks_for(const struct cf_bench_opts *o, const char *engine)
{
	return !o->engine || !strcmp(o->engine, "auto") || !strcmp(o->engine, engine);
}

static int add_engines(struct run *r, struct cf_err *err)
{
	for (size_t i = 0; cf_engines[i]; i++)
		if (asks_for(r->opts, cf_engines[i]->name) && add_engine(r, cf_engines[i]->name) == -ENOMEM)
			return cf_fail(err, -ENOMEM, "out of memory");
	return r->n_contenders ? 0 : cf_fail(err, -EIO, "no engine works with %s-%s", r->spec.cipher, r->spec.mode);
}

/* ---- one direction of one DU size ---- */

static int step(const struct run *r, const struct contender *c, enum cf_dir dir)
{
	const struct cf_bench_result next = {
		.engine = c->engine, .path = c->path, .dir = dir, .du_bytes = r->spec.du_bytes};
	uint64_t percent = elapsed_ns(r) * 100 / r->opts->budget_ns;
	return r->ui->step(r->ui->ctx, percent < 99 ? (unsigned)percent : 99, &next);
}

static int one_request(const struct run *r, struct contender *c, enum cf_dir dir)
{
	return cf_cipher_crypt(c->cipher, 0, dir, 0, CF_BENCH_REQUEST_BYTES / r->spec.du_bytes, r->buf,
						   r->buf + CF_BENCH_REQUEST_BYTES);
}

/* At least one request, and on until @turn_ns are over. */
static int take_turn(const struct run *r, struct contender *c, enum cf_dir dir, uint64_t turn_ns, unsigned round)
{
	uint64_t n = 0, took, cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), start = clock_ns(CLOCK_MONOTONIC);
	do {
		int rc = one_request(r, c, dir);
		if (rc)
			return rc;
		n++;
		took = clock_ns(CLOCK_MONOTONIC) - start;
	} while (took < turn_ns);
	c->cpu_ns += clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	c->n_requests += n;
	c->request_ns[round] = took / n ? took / n : 1;
	return 0;
}

/* A standby that has taken over must not be measured in the engine's name. */
static int check_contender(const struct run *r, const struct contender *c, int rc, struct cf_err *err)
{
	struct cf_cipher_info info;
	cf_cipher_info(c->cipher, &info);
	if (rc || info.lost)
		return cf_fail(err, -EIO, "engine '%s' %s while it was measured, path %s, sector size %u", c->engine,
					   rc ? "failed" : "was lost", c->path, r->spec.du_bytes);
	return 0;
}

static int warm_up(struct run *r, enum cf_dir dir, struct cf_err *err)
{
	for (size_t i = 0; i < r->n_contenders; i++) {
		struct contender *c = &r->contenders[i];
		c->cpu_ns = c->n_requests = 0;
		int rc = step(r, c, dir);
		if (rc || (rc = check_contender(r, c, one_request(r, c, dir), err)))
			return rc;
	}
	return 0;
}

static int one_round(struct run *r, enum cf_dir dir, uint64_t turn_ns, unsigned round, struct cf_err *err)
{
	for (size_t i = 0; i < r->n_contenders; i++) {
		struct contender *c = &r->contenders[i];
		int rc = step(r, c, dir);
		if (rc || (rc = check_contender(r, c, take_turn(r, c, dir, turn_ns, round), err)))
			return rc;
	}
	return 0;
}

/* All contenders in turns, until the rounds are done or @until_ns (since the start) is past. Returns the rounds. */
static int measure(struct run *r, enum cf_dir dir, uint64_t until_ns, struct cf_err *err)
{
	int rc = warm_up(r, dir, err);
	const uint64_t now = elapsed_ns(r), left = until_ns > now ? until_ns - now : 0;
	const uint64_t share = left / (ROUNDS * r->n_contenders), turn_ns = share > TURN_MIN_NS ? share : TURN_MIN_NS;
	unsigned round = 0;
	for (; !rc && round < ROUNDS && (round == 0 || elapsed_ns(r) < until_ns); round++)
		rc = one_round(r, dir, turn_ns, round, err);
	return rc ? rc : (int)round;
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
	size_t n_du = CF_BENCH_REQUEST_BYTES / r->spec.du_bytes;
	n_du = n_du < open->tile_du ? n_du : open->tile_du;
	n_du = n_du < keys ? 1 : n_du / keys;
	return n_du >= open->batch_from[dir];
}

static void add_results(struct run *r, enum cf_dir dir, unsigned rounds, const struct cf_cipher_info *open)
{
	for (size_t i = 0; i < r->n_contenders; i++) {
		struct contender *c = &r->contenders[i];
		const double bytes = (double)c->n_requests * CF_BENCH_REQUEST_BYTES;
		qsort(c->request_ns, rounds, sizeof(*c->request_ns), compare_ns);
		r->out->results[r->out->n_results++] = (struct cf_bench_result){
			.engine = c->engine,
			.path = c->path,
			.dir = dir,
			.du_bytes = r->spec.du_bytes,
			.mb_per_s = CF_BENCH_REQUEST_BYTES / 1e6 / ((double)c->request_ns[rounds / 2] / NS_PER_S),
			.cpu_s_per_gib = (double)c->cpu_ns / NS_PER_S / (bytes / (1u << 30)),
			.chosen = !strcmp(c->engine, open->engine) && c->is_batch == takes_batch(r, open, dir),
		};
	}
}

/* What was then measured is slower than the path can be. */
static void note_fallbacks(const struct run *r)
{
	for (size_t i = 0; i < r->n_contenders; i++) {
		const struct contender *c = &r->contenders[i];
		struct cf_cipher_info info;
		char text[CF_ERR_TEXT];
		cf_cipher_info(c->cipher, &info);
		snprintf(text, sizeof(text),
				 "engine %s, path %s, sector size %u: %llu batches were refused and done unit by unit", c->engine,
				 c->path, r->spec.du_bytes, (unsigned long long)info.fallbacks);
		if (info.fallbacks)
			r->ui->note(r->ui->ctx, text);
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
	const uint64_t start = elapsed_ns(r), budget = r->opts->budget_ns;
	const uint64_t end = start < budget ? start + (budget - start) / (n_more + 1) : start;
	struct cf_cipher_info open;
	r->spec = r->opts->cipher;
	r->spec.du_bytes = du_bytes;
	int rc = ask_open(r, &open, err);
	if (!rc)
		rc = add_engines(r, err);
	for (enum cf_dir dir = CF_ENCRYPT; !rc && dir <= CF_DECRYPT; dir++) {
		const uint64_t now = elapsed_ns(r);
		const int rounds = measure(r, dir, dir == CF_ENCRYPT && now < end ? now + (end - now) / 2 : end, err);
		if (rounds > 0)
			add_results(r, dir, (unsigned)rounds, &open);
		rc = rounds < 0 ? rounds : 0;
	}
	note_fallbacks(r);
	drop_contenders(r);
	return rc;
}

int cf_bench_run(const struct cf_bench_opts *opts, const struct cf_bench_ui *ui, struct cf_bench *out,
				 struct cf_err *err)
{
	struct cf_bench results = {.n_results = 0};
	CF_CLEANUP(run_fini) struct run r = {.opts = opts, .ui = ui, .out = &results};
	assert(opts->budget_ns && opts->n_du_sizes <= CF_BENCH_DU_SIZES_MAX);
	int rc = run_init(&r, err);
	for (size_t i = 0; !rc && i < opts->n_du_sizes; i++)
		rc = run_size(&r, opts->du_sizes[i], opts->n_du_sizes - 1 - i, err);
	if (!rc)
		*out = results;
	return rc;
}
