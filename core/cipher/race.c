/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* race.c - time ciphers side by side: they take turns of a few milliseconds.
 *
 * Speed is the median of the turns: what else runs on the machine disturbs single turns. CPU time is the sum of all
 * turns, since its clock may tick as coarsely as 10 ms, and that of the process, since an engine may have threads.
 * Nothing is allocated while the clock runs. */
#include "race.h"

#include <errno.h>
#include <time.h>

#include "cryptfuse/err.h"

#define SHARE_MIN_NS 5000000u  /* enough for a few turns of all but very slow ones */
#define SLICE_MAX_NS 50000000u /* so soon is a Ctrl-C noticed */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint64_t cf_race_elapsed_ns(const struct cf_race *r)
{
	return clock_ns(CLOCK_MONOTONIC) - r->start_ns;
}

void cf_race_clear(struct cf_race *r)
{
	for (size_t i = 0; i < r->n_contenders; i++)
		cf_cipher_free(&r->contenders[i].cipher);
	r->n_contenders = 0;
}

static int step(const struct cf_race *r, const struct cf_contender *c, enum cf_dir dir)
{
	const struct cf_bench_result next = {.engine = c->engine, .path = c->path, .dir = dir, .du_bytes = r->du_bytes};
	uint64_t percent = cf_race_elapsed_ns(r) * 100 / r->budget_ns;
	return r->ui->step(r->ui->ctx, percent < 99 ? (unsigned)percent : 99, &next);
}

static int one_request(const struct cf_race *r, struct cf_contender *c, enum cf_dir dir)
{
	return cf_cipher_crypt(c->cipher, 0, dir, 0, r->batch_bytes / r->du_bytes, r->buf, r->buf + CF_REQUEST_MAX);
}

/* At least one request, and on until @ns are over. */
static int take_slice(const struct cf_race *r, struct cf_contender *c, enum cf_dir dir, uint64_t ns)
{
	uint64_t n = 0, took, cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), start = clock_ns(CLOCK_MONOTONIC);
	do {
		int rc = one_request(r, c, dir);
		if (rc)
			return rc;
		n++;
		took = clock_ns(CLOCK_MONOTONIC) - start;
	} while (took < ns);
	c->tally.cpu_ns += clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	c->tally.wall_ns += took;
	c->tally.n_requests += n;
	return 0;
}

/* A standby that has taken over must not be measured in the engine's name. */
static int check_contender(const struct cf_race *r, const struct cf_contender *c, int rc, struct cf_err *err)
{
	struct cf_cipher_info info;
	cf_cipher_info(c->cipher, &info);
	if (rc || info.lost)
		return cf_fail(err, -EIO, "engine '%s' %s while it was measured, path %s, data units of %u bytes", c->engine,
					   rc ? "failed" : "was lost", c->path, r->du_bytes);
	return 0;
}

/* A turn goes in slices, between which the bench can be stopped. */
static int take_turn(const struct cf_race *r, struct cf_contender *c, enum cf_dir dir, uint64_t turn_ns,
					 struct cf_err *err)
{
	struct cf_tally *t = &c->tally;
	const uint64_t wall_before = t->wall_ns, requests_before = t->n_requests,
				   slice_ns = turn_ns < SLICE_MAX_NS ? turn_ns : SLICE_MAX_NS;
	do {
		int rc = step(r, c, dir);
		if (rc || (rc = check_contender(r, c, take_slice(r, c, dir, slice_ns), err)))
			return rc;
	} while (t->wall_ns - wall_before < turn_ns);
	t->request_ns[t->n_turns++] = (t->wall_ns - wall_before) / (t->n_requests - requests_before);
	return 0;
}

/* A turn each, but for those that have had their share. */
static int one_round(struct cf_race *r, enum cf_dir dir, uint64_t turn_ns, uint64_t share_ns, struct cf_err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < r->n_contenders; i++) {
		struct cf_contender *c = &r->contenders[i];
		if (c->tally.n_turns == 0 || c->tally.wall_ns < share_ns)
			rc = take_turn(r, c, dir, turn_ns, err);
	}
	return rc;
}

/* The first request finds cold caches: it counts only for one that is so slow that there is no time for many more. */
static void forget_first(struct cf_race *r, uint64_t share_ns)
{
	for (size_t i = 0; i < r->n_contenders; i++)
		if (r->contenders[i].tally.wall_ns < share_ns / 2)
			r->contenders[i].tally = (struct cf_tally){.n_turns = 0};
}

/* All contenders in turns until @until_ns since the start. Each has the same share, so that a slow one does not take
 * the time of the others. */
int cf_race_run(struct cf_race *r, enum cf_dir dir, uint64_t until_ns, struct cf_err *err)
{
	for (size_t i = 0; i < r->n_contenders; i++)
		r->contenders[i].tally = (struct cf_tally){.n_turns = 0};
	int rc = one_round(r, dir, 0, 0, err);
	const uint64_t now = cf_race_elapsed_ns(r), left = until_ns > now ? until_ns - now : 0;
	const uint64_t part = left / r->n_contenders, share = part > SHARE_MIN_NS ? part : SHARE_MIN_NS;
	forget_first(r, share);
	for (unsigned round = 0; !rc && round < CF_RACE_ROUNDS - 1; round++)
		rc = one_round(r, dir, share / (CF_RACE_ROUNDS - 1), share, err);
	return rc;
}
