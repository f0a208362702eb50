/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* bench.h - how fast is each engine, on each of its paths, with a cipher: what `cryptfuse bench` shows.
 *
 * One thread, batches of cf_cipher_request_bytes() of random data from memory to memory, under a random key. The ones
 * that are compared take turns, so that a machine that is busy for a while slows all of them. */
#ifndef CRYPTFUSE_BENCH_H
#define CRYPTFUSE_BENCH_H

#include <stdbool.h>

#include "cryptfuse/cipher.h"

struct cf_err;

#define CF_BENCH_DU_SIZES_MAX 8u    /* there are no more powers of two from 512 to 65536 */
#define CF_BENCH_CONTENDERS_MAX 32u /* engines x paths */
#define CF_BENCH_RESULTS_MAX (2u * CF_BENCH_DU_SIZES_MAX * CF_BENCH_CONTENDERS_MAX)

struct cf_bench_opts {
	struct cf_cipher_spec cipher; /* its du_bytes is not looked at */
	uint32_t du_sizes[CF_BENCH_DU_SIZES_MAX];
	size_t n_du_sizes;
	const char *engine; /* name: only this one; NULL or "auto": all that have the cipher */
	uint64_t budget_ns; /* how long all of it may take; it is passed only where one request each takes longer */
};

struct cf_bench_result {
	const char *engine;
	const char *path; /* "batch"; the engine's own mode: "native", or "per-du" */
	enum cf_dir dir;
	uint32_t du_bytes;
	uint32_t batch_bytes; /* what was done at a time: one request through FUSE */
	double mb_per_s;      /* median of the rounds; 10^6 bytes a second */
	double cpu_s_per_gib; /* of the whole process, user and system, all rounds together; 2^30 bytes */
	bool chosen;          /* open would take it for such a batch: exactly one of each direction and DU size */
};

struct cf_bench {
	size_t n_results;
	struct cf_bench_result results[CF_BENCH_RESULTS_MAX];
};

/** How the bench speaks to a person; every slot is called between measurements only. */
struct cf_bench_ui {
	void *ctx;
	/** An engine that was left out, and why; or that refused some of the batches. */
	void (*note)(void *ctx, const char *text);
	/** What comes next, with @percent of the budget gone. Anything but 0 ends the bench, which returns it. */
	int (*step)(void *ctx, unsigned percent, const struct cf_bench_result *next);
};

/** cf_bench_run - measure all that serves
 * @opts: each of its DU sizes passes cf_cipher_check. The secret arena must be there.
 * @out: set on success: by DU size as given, then direction, engine, path. Its strings live as long as the program.
 * Returns 0; what cf_cipher_new or @ui->step said; -EIO an engine failed, or was lost, while it was measured. */
int cf_bench_run(const struct cf_bench_opts *opts, const struct cf_bench_ui *ui, struct cf_bench *out,
				 struct cf_err *err) CF_MUST_CHECK;

#endif
