/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* run.c - see run.h. */
#include "run.h"

#include <err.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/err.h"
#include "cryptfuse/journal.h"
#include "cryptfuse/spec.h"
#include "cryptfuse/volume.h"

#define TAIL_BYTES 1024u /* of the image, behind the volume */

/* The journal's file is so small that it is full again and again. */
#define LOG_MIN (160u << 10)
#define LOG_DU 6u

struct thread {
	pthread_t id;
	struct crash_run *run;
	unsigned index;
};

static void *must_alloc(size_t len)
{
	void *p = calloc(1, len);
	if (!p)
		errx(2, "no memory");
	return p;
}

static void fill(uint8_t *buf, size_t len, uint64_t seed)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)crash_random(&seed);
}

static struct cf_cipher *new_cipher(const struct cf_cipher_spec *spec, const uint8_t *key, enum cf_path path,
									unsigned n_workers)
{
	const struct cf_cipher_opts opts = {.engine = "openssl", .path = path, .n_workers = n_workers};
	struct cf_cipher *c = NULL;
	struct cf_err err = {.code = 0};
	if (cf_cipher_new(&c, spec, key, &opts, &err) != 0)
		errx(2, "%s", err.text);
	return c;
}

/* Modes that libcrypto has whole are decrypted by it, the others by a cipher of ours that the recordings of dm-crypt
 * prove. */
void crash_run_decrypt(void *ctx, uint64_t du, const uint8_t *src, uint8_t *dst)
{
	struct crash_run *r = ctx;
	if (r->ref.cipher)
		ref_convert(&r->ref, 0, du * r->shape->du_bytes, src, dst);
	else if (cf_cipher_crypt(r->oracle, 0, CF_DECRYPT, du, 1, src, dst) != 0)
		errx(2, "cannot decrypt");
}

static struct cf_cipher *ciphers(struct crash_run *r)
{
	struct cf_cipher_spec spec = {.du_bytes = r->shape->du_bytes};
	struct cf_err err = {.code = 0};
	if (cf_spec_parse_cipher(r->shape->cipher, &spec, &err) != 0)
		errx(2, "%s", err.text);
	spec.key_bytes = cf_cipher_default_key_bytes(&spec);
	fill(r->key, spec.key_bytes, 1);
	r->key_bytes = spec.key_bytes;
	const bool plain_iv = strcmp(spec.iv, "plain64") == 0;
	if (plain_iv && (strcmp(spec.mode, "xts") == 0 || strcmp(spec.mode, "cbc") == 0 || strcmp(spec.mode, "ctr") == 0)) {
		r->ref = (struct ref){.iv_mode = *spec.essiv_hash ? "essiv" : "plain64", .du_bytes = spec.du_bytes};
		ref_set_cipher(&r->ref, spec.mode, r->key, spec.key_bytes);
	}
	r->oracle = new_cipher(&spec, r->key, CF_PATH_BATCH, 1);
	return new_cipher(&spec, r->key, CF_PATH_AUTO, r->shape->n_threads);
}

static int wrap(const struct crash_run *r, struct cf_backing **b, struct cf_backing **log, struct cf_err *err)
{
	const struct cf_journal_opts opts = {.key = r->key,
										 .key_bytes = r->key_bytes,
										 .cipher = r->shape->cipher,
										 .uuid = "",
										 .data_off = r->shape->data_off,
										 .bytes = r->work.bytes,
										 .du_bytes = r->shape->du_bytes,
										 .n_callers = r->shape->n_threads};
	return cf_journal_wrap(b, log, &opts, err);
}

int crash_run_recover(const struct crash_run *r, uint8_t *image, uint8_t *log, struct cf_err *err)
{
	struct cf_backing *b = &crash_store_new(NULL, 0, image, r->image_bytes)->base;
	struct cf_backing *l = &crash_store_new(NULL, 0, log, r->log_bytes)->base;
	int rc = wrap(r, &b, &l, err);
	if (!rc)
		rc = cf_backing_read_full(b, image, (size_t)r->image_bytes, 0);
	cf_backing_free(&b);
	if (l)
		cf_backing_free(&l);
	return rc;
}

/* The journal's file as it is made: its name and version, and nothing in it. */
static struct cf_backing *stores(struct crash_run *r, enum crash_sync sync)
{
	struct cf_err err = {.code = 0};
	struct crash_store *image =
		crash_store_new(&r->trace, r->log == CRASH_NO_LOG ? CRASH_TOP : CRASH_IMAGE, r->first, r->image_bytes);
	struct cf_backing *b = &image->base;
	image->sync = sync;
	if (r->log == CRASH_NO_LOG)
		return b;
	r->first_log = must_alloc((size_t)r->log_bytes);
	memcpy(r->first_log, "CRYPTFUSEJOURNAL\1\0\0", 20);
	struct crash_store *file = crash_store_new(&r->trace, CRASH_LOG, r->first_log, r->log_bytes);
	struct cf_backing *log = &file->base;
	file->sync = sync;
	if (wrap(r, &b, &log, &err) != 0)
		errx(2, "%s", err.text);
	return &crash_store_over(&r->trace, CRASH_TOP, b)->base;
}

void crash_run_init(struct crash_run *r, const struct crash_shape *s, enum crash_log log, uint64_t seed,
					uint64_t factor, enum crash_sync sync)
{
	const uint64_t bytes = (uint64_t)s->du_bytes * s->n_du;
	*r = (struct crash_run){.shape = s, .log = log, .factor = factor, .image_bytes = s->data_off + bytes + TAIL_BYTES};
	r->work = (struct crash_work){
		.seed = seed, .bytes = bytes, .du_bytes = s->du_bytes, .n_threads = s->n_threads, .holes = s->holes};
	snprintf(r->name, sizeof(r->name), "%s/%u%s", s->cipher, s->du_bytes, log == CRASH_NO_LOG ? "" : "/journal");
	r->log_bytes = LOG_DU * (uint64_t)s->du_bytes > LOG_MIN ? LOG_DU * (uint64_t)s->du_bytes : LOG_MIN;
	crash_work_init(&r->work);
	crash_trace_init(&r->trace);
	r->first = must_alloc((size_t)r->image_bytes);
	fill(r->first, (size_t)r->image_bytes, seed);
	struct cf_cipher *c = ciphers(r);
	struct cf_backing *b = stores(r, sync);
	struct cf_err err = {.code = 0};
	const struct cf_volume_opts opts = {
		.data_off = s->data_off,
		.bytes = bytes,
		.access = CF_READ_WRITE,
		.discards = s->holes == CRASH_HOLES ? CF_DISCARDS_ALLOWED : CF_DISCARDS_REFUSED,
		.n_workers = s->n_threads,
	};
	if (cf_volume_new(&r->v, &b, &c, &opts, &err) != 0)
		errx(2, "%s", err.text);
}

void crash_run_fini(struct crash_run *r)
{
	cf_volume_free(&r->v);
	cf_cipher_free(&r->oracle);
	crash_trace_fini(&r->trace);
	crash_work_fini(&r->work);
	free(r->first);
	free(r->first_log);
}

/* ---- the work ---- */

/* What had ended before it began is durable when it has succeeded. */
static void sync_volume(struct crash_run *r, unsigned thread)
{
	uint64_t ended[CRASH_THREADS_MAX];
	for (unsigned i = 0; i < CRASH_THREADS_MAX; i++)
		ended[i] = atomic_load(&r->ended[i]);
	if (cf_volume_sync(r->v) != 0)
		errx(1, "%s: a sync failed", r->name);
	crash_trace_add(&r->trace, (struct crash_event){.kind = CRASH_EV_ACK, .who = thread, .len = sizeof(ended)}, ended);
}

static void perform(struct crash_run *r, const struct crash_op *op, uint8_t *buf)
{
	struct cf_worker *w = cf_volume_enter(r->v);
	int rc = 0;
	crash_op_bytes(op, buf);
	if (op->kind == CRASH_WRITE)
		rc = cf_volume_write(r->v, w, buf, op->len, op->off) == (ssize_t)op->len ? 0 : -1;
	else if (op->kind == CRASH_ZERO)
		rc = cf_volume_zero(r->v, w, op->off, op->len);
	else
		rc = cf_volume_punch(r->v, w, op->off, op->len);
	cf_volume_leave(r->v, w);
	if (rc)
		errx(1, "%s: an operation failed: %d", r->name, rc);
}

static void *work(void *arg)
{
	struct thread *t = arg;
	struct crash_run *r = t->run;
	uint8_t *buf = must_alloc(CF_IO_MAX);
	for (uint64_t n = 0; n < r->shape->n_ops * r->factor; n++) {
		struct crash_op op;
		crash_op_get(&r->work, t->index, n, &op);
		crash_trace_add(&r->trace, (struct crash_event){.kind = CRASH_EV_BEGIN, .who = t->index}, NULL);
		perform(r, &op, buf);
		atomic_store(&r->ended[t->index], n + 1);
		crash_trace_add(&r->trace, (struct crash_event){.kind = CRASH_EV_END, .who = t->index, .off = n + 1}, NULL);
		if (op.sync)
			sync_volume(r, t->index);
	}
	free(buf);
	return NULL;
}

void crash_run_record(struct crash_run *r)
{
	struct thread t[CRASH_THREADS_MAX];
	for (unsigned i = 0; i < r->shape->n_threads; i++) {
		t[i] = (struct thread){.run = r, .index = i};
		if (pthread_create(&t[i].id, NULL, work, &t[i]) != 0)
			errx(2, "no thread");
	}
	for (unsigned i = 0; i < r->shape->n_threads; i++)
		pthread_join(t[i].id, NULL);
	sync_volume(r, 0);
	cf_volume_free(&r->v);
}
