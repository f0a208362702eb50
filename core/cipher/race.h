/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* race.h - ciphers that take turns at the same work. Inside core/cipher only, for bench.c. */
#ifndef CRYPTFUSE_CIPHER_RACE_H
#define CRYPTFUSE_CIPHER_RACE_H

#include "cryptfuse/bench.h"

#define CF_RACE_ROUNDS 10u /* the first is to warm up */

/* What was measured in one direction. */
struct cf_tally {
	uint64_t request_ns[CF_RACE_ROUNDS]; /* mean of each turn */
	size_t n_turns;
	uint64_t wall_ns, cpu_ns, n_requests; /* all turns together */
};

/* An engine on one of its paths. */
struct cf_contender {
	struct cf_cipher *cipher;
	const char *engine, *path;
	bool is_batch;
	struct cf_tally tally; /* of the direction that is being measured */
};

struct cf_race {
	const struct cf_bench_ui *ui;
	uint64_t start_ns, budget_ns; /* of the whole bench: for the progress */
	uint8_t *buf;                 /* source and destination, CF_REQUEST_MAX each */
	uint32_t du_bytes, batch_bytes;
	struct cf_contender contenders[CF_BENCH_CONTENDERS_MAX];
	size_t n_contenders;
};

/** cf_race_elapsed_ns - time since race->start_ns. */
uint64_t cf_race_elapsed_ns(const struct cf_race *race);

/** cf_race_run - all contenders in one direction, until @until_ns since the start, in equal shares of the time
 * Their tallies are set. Returns 0; -EIO an engine failed or was lost; what ui->step said. */
int cf_race_run(struct cf_race *race, enum cf_dir dir, uint64_t until_ns, struct cf_err *err) CF_MUST_CHECK;

/** cf_race_clear - free the contenders' ciphers; none is left. */
void cf_race_clear(struct cf_race *race);

#endif
