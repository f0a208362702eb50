/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* measure.c - from how many data units on is the batch path faster than the engine's own mode? Neither wins always:
 * lanes need many data units, a lone large one takes the native mode (HAZARDS 22). Timed at open, with the volume's own
 * cipher; a few milliseconds a direction. Either answer is right, only the speed differs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "impl.h"
#include "trial.h"

#define LARGEST_BYTES ((size_t)CF_REQUEST_MAX)

struct bench {
	struct cf_cipher *c;
	enum cf_dir dir;
	uint8_t *src, *dst;
	struct cf_stopwatch start;
	uint64_t budget_ns;
};

static bool has_time(const struct bench *b)
{
	return cf_stopwatch_lap(&b->start).wall_ns < b->budget_ns;
}

/* Nanoseconds for @n_du data units on one path; 0 on failure. */
static uint64_t time_path(const struct bench *b, size_t from, size_t n_du)
{
	b->c->batch_from[b->dir] = from;
	const struct cf_stopwatch start = cf_stopwatch_start();
	if (cf_cipher_crypt(b->c, 0, b->dir, 0, n_du, b->src, b->dst) != 0)
		return 0;
	const struct cf_stopwatch lap = cf_stopwatch_lap(&start);
	return cf_trial_took(cf_trial_where(b->c->plan.engine), &lap);
}

/* Best of a few interleaved rounds, two where they agree by far. Returns whether the batch path won by more than noise;
 * -EIO a path failed. */
static int batch_wins(const struct bench *b, size_t n_du)
{
	uint64_t batch = UINT64_MAX, native = UINT64_MAX;
	for (unsigned round = 0; round < 5 && (round < 2 || has_time(b)); round++) {
		uint64_t t1 = time_path(b, 1, n_du), t2 = time_path(b, SIZE_MAX, n_du);
		if (!t1 || !t2)
			return -EIO;
		batch = t1 < batch ? t1 : batch;
		native = t2 < native ? t2 : native;
		if (round && (batch < native - native / 4 || native < batch - batch / 4))
			break;
	}
	return batch < native - native / 8; /* where it pays it pays more than that; less is noise */
}

/* The smallest n from which the batch path wins, found from above: if it does not pay with many data units it never
 * does, and when time runs out what is known of the large ones stands. */
static int find_threshold(struct bench *b, uint64_t budget_ns, size_t *out)
{
	size_t n = LARGEST_BYTES / b->c->spec.du_bytes;
	if (n > b->c->tile_du)
		n = b->c->tile_du;
	*out = SIZE_MAX;
	b->start = cf_stopwatch_start();
	b->budget_ns = budget_ns;
	for (; n && (*out == SIZE_MAX || has_time(b)); n /= 2) {
		int wins = batch_wins(b, n);
		if (wins < 0)
			return wins;
		if (!wins)
			break;
		*out = n;
	}
	return 0;
}

int cf_cipher_measure(struct cf_cipher *c, uint64_t budget_ns)
{
	size_t from = 0;
	struct bench b = {.c = c};
	size_t len = c->spec.du_bytes * c->tile_du < LARGEST_BYTES ? c->spec.du_bytes * c->tile_du : LARGEST_BYTES;
	b.src = malloc(2 * len);
	if (!b.src)
		return -ENOMEM;
	memset(b.src, 0x5a, 2 * len);
	b.dst = b.src + len;
	int rc = 0;
	for (enum cf_dir d = c->never_lanes ? CF_DECRYPT : CF_ENCRYPT; !rc && d <= CF_DECRYPT; d++) {
		b.dir = d;
		rc = find_threshold(&b, budget_ns, &from);
		if (!rc)
			c->batch_from[d] = from;
	}
	free(b.src);
	return rc;
}
