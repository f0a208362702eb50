/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* replay.c - every crash of a volume that is being written to, one after the other.
 *
 * Threads write, zero, punch and sync at random; what reaches the disk is recorded. Then the disk crashes after every
 * event of the record: with all that was written, with nothing since the last sync, and several times with any of it in
 * any order and torn at 512 bytes. What is left is decrypted apart from the volume, and must be what
 * cryptfuse-format(7) promises of the mode: all that was synced, and no change outside of the data units being written.
 * Last, a disk whose sync does nothing must be found out.
 *
 * Usage: replay [-s SEED] [-n FACTOR] [-r CRASHES] [SHAPE…]
 *   -n: times as many operations   -r: random crashes after each event   SHAPE: "aes-xts-plain64/4096" */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "run.h"

static const struct crash_shape shapes[] = {
	{"aes-xts-plain64", 512, 64, 3, 80, CRASH_TEAR_NEVER, CRASH_NO_HOLES, 63 * 512},
	{"aes-xts-plain64", 512, 64, 3, 80, CRASH_TEAR_NEVER, CRASH_HOLES, 0},
	{"aes-xts-plain64", 4096, 24, 1, 160, CRASH_TEAR_PIECES, CRASH_NO_HOLES, 0},
	{"aes-xts-plain64", 4096, 24, 4, 50, CRASH_TEAR_PIECES, CRASH_HOLES, 63 * 512},
	{"aes-xts-plain64", 65536, 6, 3, 20, CRASH_TEAR_PIECES, CRASH_HOLES, 0},
	{"aes-cbc-essiv:sha256", 512, 64, 3, 80, CRASH_TEAR_NEVER, CRASH_HOLES, 0},
	{"aes-cbc-essiv:sha256", 4096, 24, 4, 50, CRASH_TEAR_BLOCK, CRASH_HOLES, 63 * 512},
	{"aes-cbc-plain64", 65536, 6, 3, 20, CRASH_TEAR_BLOCK, CRASH_NO_HOLES, 512},
	{"capi:cts(cbc(aes))-plain64", 4096, 24, 3, 50, CRASH_TEAR_BLOCK, CRASH_NO_HOLES, 0},
	{"aes-ctr-plain64", 4096, 24, 3, 50, CRASH_TEAR_PIECES, CRASH_NO_HOLES, 0},
	{"aes-lrw-benbi", 512, 64, 3, 80, CRASH_TEAR_NEVER, CRASH_NO_HOLES, 0},
	{"aes-lrw-benbi", 4096, 24, 3, 50, CRASH_TEAR_PIECES, CRASH_HOLES, 0},
	{"aes-lrw-benbi", 65536, 6, 3, 20, CRASH_TEAR_PIECES, CRASH_NO_HOLES, 0},
	{"aes-pcbc-plain64", 4096, 24, 3, 50, CRASH_TEAR_REST, CRASH_NO_HOLES, 0},
	{"aes-cbc-elephant", 512, 64, 3, 80, CRASH_TEAR_NEVER, CRASH_NO_HOLES, 0},
	{"aes-cbc-elephant", 4096, 24, 3, 50, CRASH_TEAR_UNIT, CRASH_HOLES, 0},
	{"aes-cbc-elephant", 65536, 6, 3, 20, CRASH_TEAR_UNIT, CRASH_NO_HOLES, 0},
	{"aes:64-cbc-lmk", 512, 64, 3, 80, CRASH_TEAR_NEVER, CRASH_HOLES, 0},
	{"aes-cbc-tcw", 512, 64, 3, 80, CRASH_TEAR_NEVER, CRASH_NO_HOLES, 0},
};

static struct {
	uint64_t seed, factor;
	unsigned n_random;
	uint64_t n_prefixes, n_crashes, n_torn, n_violations, n_lies_found;
} all = {.factor = 1, .n_random = 4};

static void decrypt_first(struct crash_run *r, uint8_t *plain)
{
	for (unsigned du = 0; du < r->shape->n_du; du++)
		crash_run_decrypt(r, du, r->first + r->shape->data_off + (size_t)du * r->shape->du_bytes,
						  plain + (size_t)du * r->shape->du_bytes);
}

/* What must be there: after kill -9 all that was answered for, otherwise what was synced. */
struct duty {
	struct crash_model killed, synced;
};

/* All that a crash finds, and what comes of it. */
struct scene {
	struct duty must;
	struct crash_disk disk[CRASH_STORES];
	struct crash_judge judge;
	uint8_t *image, *log;
	uint64_t random;
};

static void crash(const struct crash_run *r, struct scene *s, size_t upto, enum crash_loss loss)
{
	static const char *const names[] = {"kill -9", "everything unsynced lost", "a part lost"};
	struct cf_err err = {.code = 0};
	int rc = 0;
	s->judge.model = loss == CRASH_LOSES_NOTHING ? &s->must.killed : &s->must.synced;
	if (r->log == CRASH_NO_LOG) {
		crash_disk_crash(&s->disk[CRASH_TOP], &r->trace, upto, loss, &s->random, s->image);
	} else {
		crash_disk_crash(&s->disk[CRASH_IMAGE], &r->trace, upto, loss, &s->random, s->image);
		crash_disk_crash(&s->disk[CRASH_LOG], &r->trace, upto, loss, &s->random, s->log);
		rc = crash_run_recover(r, s->image, s->log, &err);
	}
	if (rc)
		crash_judge_refuse(&s->judge, upto, names[loss], err.text);
	else
		crash_judge_image(&s->judge, upto, s->image, names[loss]);
	all.n_crashes++;
}

/* Event @i has happened. Returns whether a crash now differs from one before. */
static bool pass(const struct crash_run *r, size_t i, struct scene *s)
{
	const struct crash_event *e = &r->trace.event[i];
	struct duty *must = &s->must;
	for (unsigned k = 0; k < CRASH_STORES; k++)
		crash_disk_pass(&s->disk[k], &r->trace, i);
	if (e->kind == CRASH_EV_BEGIN) {
		crash_model_begin(&must->killed, e->who);
		crash_model_begin(&must->synced, e->who);
		return false;
	}
	if (e->kind == CRASH_EV_END) {
		crash_model_ack(&must->killed, e->who, e->off);
		return false;
	}
	if (e->kind == CRASH_EV_ACK)
		for (unsigned t = 0; t < r->shape->n_threads; t++) {
			uint64_t n;
			memcpy(&n, r->trace.bytes + e->data + t * sizeof(n), sizeof(n));
			crash_model_ack(&must->synced, t, n);
		}
	return true;
}

static void scene_init(struct scene *s, struct crash_run *r, const char *name)
{
	uint8_t *plain = malloc((size_t)r->work.bytes);
	*s = (struct scene){
		.random = all.seed, .image = malloc((size_t)r->image_bytes), .log = malloc((size_t)r->log_bytes)};
	if (!s->image || !s->log || !plain)
		errx(2, "no memory");
	decrypt_first(r, plain);
	crash_model_init(&s->must.killed, &r->work, plain);
	crash_model_init(&s->must.synced, &r->work, plain);
	free(plain);
	crash_disk_init(&s->disk[CRASH_TOP], CRASH_TOP, r->first, r->image_bytes);
	crash_disk_init(&s->disk[CRASH_IMAGE], CRASH_IMAGE, r->first, r->image_bytes);
	crash_disk_init(&s->disk[CRASH_LOG], CRASH_LOG, r->first_log ? r->first_log : s->log, r->log_bytes);
	s->judge = (struct crash_judge){.name = name,
									.trace = &r->trace,
									.top = &s->disk[CRASH_TOP],
									.tear = r->log == CRASH_NO_LOG ? r->shape->tear : CRASH_TEAR_NEVER,
									.data_off = r->shape->data_off,
									.bytes = r->work.bytes,
									.du_bytes = r->shape->du_bytes,
									.decrypt = crash_run_decrypt,
									.ctx = r,
									.holes = r->shape->holes};
	crash_judge_init(&s->judge);
}

static void scene_fini(struct scene *s)
{
	crash_judge_fini(&s->judge);
	for (unsigned k = 0; k < CRASH_STORES; k++)
		crash_disk_fini(&s->disk[k]);
	crash_model_fini(&s->must.killed);
	crash_model_fini(&s->must.synced);
	free(s->image);
	free(s->log);
}

static uint64_t replay(struct crash_run *r, const char *name)
{
	static struct scene s;
	scene_init(&s, r, name);
	for (size_t i = 0; i < r->trace.n; i++) {
		if (!pass(r, i, &s))
			continue;
		all.n_prefixes++;
		crash(r, &s, i + 1, CRASH_LOSES_NOTHING);
		crash(r, &s, i + 1, CRASH_LOSES_ALL);
		for (unsigned k = 0; k < all.n_random; k++)
			crash(r, &s, i + 1, CRASH_LOSES_SOME);
	}
	all.n_torn += s.judge.n_torn;
	const uint64_t n = s.judge.n_violations;
	scene_fini(&s);
	return n;
}

static void run_shape(const struct crash_shape *s, enum crash_log log)
{
	struct crash_run r;
	const uint64_t prefixes = all.n_prefixes, crashes = all.n_crashes, torn = all.n_torn;
	crash_run_init(&r, s, log, all.seed, all.factor, CRASH_SYNCS);
	crash_run_record(&r);
	const uint64_t n = replay(&r, r.name);
	printf("%-40s %s %5zu events, %5" PRIu64 " prefixes, %6" PRIu64 " crashes, %6" PRIu64 " torn data units, %" PRIu64
		   " violations\n",
		   r.name, s->holes == CRASH_HOLES ? "holes" : "     ", r.trace.n, all.n_prefixes - prefixes,
		   all.n_crashes - crashes, all.n_torn - torn, n);
	all.n_violations += n;
	crash_run_fini(&r);
}

/* A disk that does not sync must not pass. */
static void run_lie(void)
{
	struct crash_run r;
	crash_run_init(&r, &shapes[0], CRASH_NO_LOG, all.seed, all.factor, CRASH_SYNC_LIES);
	crash_run_record(&r);
	all.n_lies_found = replay(&r, NULL);
	crash_run_fini(&r);
}

static bool wanted(const struct crash_shape *s, char **names)
{
	char name[96];
	snprintf(name, sizeof(name), "%s/%u", s->cipher, s->du_bytes);
	for (char **n = names; *n; n++)
		if (strcmp(*n, name) == 0)
			return true;
	return !*names;
}

int main(int argc, char **argv)
{
	if (getrandom(&all.seed, 4, 0) != 4)
		err(2, "getrandom");
	for (int opt; (opt = getopt(argc, argv, "s:n:r:")) != -1;) {
		switch (opt) {
		case 's':
			all.seed = strtoull(optarg, NULL, 10);
			break;
		case 'n':
			all.factor = strtoull(optarg, NULL, 10);
			break;
		case 'r':
			all.n_random = (unsigned)strtoul(optarg, NULL, 10);
			break;
		default:
			errx(2, "usage: see the top of replay.c");
		}
	}
	struct cf_err e = {.code = 0};
	if (cf_secret_init(&e) != 0)
		errx(2, "%s", e.text);
	printf("seed %" PRIu64 "\n", all.seed);
	fflush(stdout);
	for (size_t i = 0; i < CF_ARRAY_LEN(shapes); i++)
		if (wanted(&shapes[i], argv + optind))
			for (enum crash_log log = CRASH_NO_LOG; log <= CRASH_LOG_BEFORE; log++)
				run_shape(&shapes[i], log);
	const uint64_t torn = all.n_torn, prefixes = all.n_prefixes, crashes = all.n_crashes;
	run_lie();
	printf("seed %" PRIu64 ": %" PRIu64 " prefixes, %" PRIu64 " crashes, of them %" PRIu64
		   " with random order and loss; %" PRIu64 " torn data units; %" PRIu64 " violations; %" PRIu64
		   " where syncs did nothing\n",
		   all.seed, prefixes, crashes, crashes - 2 * prefixes, torn, all.n_violations, all.n_lies_found);
	return all.n_violations || !all.n_lies_found;
}
