/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* run.h - one volume, worked on by threads, with all that happened on record. */
#ifndef CRYPTFUSE_CRASH_RUN_H
#define CRYPTFUSE_CRASH_RUN_H

#include <stdatomic.h>

#include "cryptfuse/cipher.h"
#include "verdict.h"

struct cf_volume;

/** Stores of a run. Without a journal there is only the first, and it is the disk. */
enum crash_store_index { CRASH_TOP /* what the volume writes to */, CRASH_IMAGE, CRASH_LOG, CRASH_STORES };

enum crash_log { CRASH_NO_LOG, CRASH_LOG_BEFORE /* a journal before the image */ };

struct crash_shape {
	const char *cipher;
	uint32_t du_bytes;
	unsigned n_du, n_threads;
	uint64_t n_ops; /* of each thread */
	enum crash_tear tear;
	enum crash_holes holes;
	uint64_t data_off;
};

struct crash_run {
	char name[96];
	const struct crash_shape *shape;
	struct crash_work work;
	struct crash_trace trace;
	enum crash_log log;
	struct cf_volume *v;
	struct cf_cipher *oracle;
	struct ref ref; /* with a cipher: libcrypto itself decrypts */
	uint8_t key[CF_KEY_MAX];
	size_t key_bytes;
	uint8_t *first, *first_log; /* image and journal before */
	uint64_t image_bytes, log_bytes;
	uint64_t factor; /* times shape->n_ops */
	_Atomic uint64_t ended[CRASH_THREADS_MAX];
};

/** crash_run_init - make the volume, over a store of random content. @sync: whether the store's does anything. */
void crash_run_init(struct crash_run *r, const struct crash_shape *s, enum crash_log log, uint64_t seed,
					uint64_t factor, enum crash_sync sync);
void crash_run_fini(struct crash_run *r);

/** crash_run_record - all the work, to the end of the volume's life. */
void crash_run_record(struct crash_run *r);

/** crash_run_recover - what a journal makes of an image and a log that a crash left; both are changed. 0; -errno */
int crash_run_recover(const struct crash_run *r, uint8_t *image, uint8_t *log, struct cf_err *err) CF_MUST_CHECK;

/** crash_run_decrypt - a data unit, apart from the volume; struct crash_judge's. @ctx: the run. */
void crash_run_decrypt(void *ctx, uint64_t du, const uint8_t *src, uint8_t *dst);

#endif
