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
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/spec.h"
#include "cryptfuse/volume.h"
#include "verdict.h"

#define TAIL_BYTES 1024u /* of the image, behind the volume */

struct shape {
	const char *cipher;
	uint32_t du_bytes;
	unsigned n_du, n_threads;
	uint64_t n_ops; /* of each thread */
	enum crash_tear tear;
	enum crash_holes holes;
	uint64_t data_off;
};

static const struct shape shapes[] = {
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

struct run {
	char name[96];
	const struct shape *shape;
	struct crash_work work;
	struct crash_trace trace;
	struct crash_store *store; /* the volume's backing */
	struct cf_volume *v;
	struct cf_cipher *oracle;
	struct ref ref; /* with a cipher: libcrypto itself decrypts */
	uint8_t key[CF_KEY_MAX];
	uint8_t *first; /* the image before */
	uint64_t image_bytes;
	_Atomic uint64_t ended[CRASH_THREADS_MAX];
};

struct thread {
	pthread_t id;
	struct run *run;
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
static void decrypt(void *ctx, uint64_t du, const uint8_t *src, uint8_t *dst)
{
	struct run *r = ctx;
	if (r->ref.cipher)
		ref_convert(&r->ref, 0, du * r->shape->du_bytes, src, dst);
	else if (cf_cipher_crypt(r->oracle, 0, CF_DECRYPT, du, 1, src, dst) != 0)
		errx(2, "cannot decrypt");
}

static struct cf_cipher *ciphers(struct run *r)
{
	struct cf_cipher_spec spec = {.du_bytes = r->shape->du_bytes};
	struct cf_err err = {.code = 0};
	if (cf_spec_parse_cipher(r->shape->cipher, &spec, &err) != 0)
		errx(2, "%s", err.text);
	spec.key_bytes = cf_cipher_default_key_bytes(&spec);
	fill(r->key, spec.key_bytes, 1);
	const bool plain_iv = strcmp(spec.iv, "plain64") == 0;
	if (plain_iv && (strcmp(spec.mode, "xts") == 0 || strcmp(spec.mode, "cbc") == 0 || strcmp(spec.mode, "ctr") == 0)) {
		r->ref = (struct ref){.iv_mode = *spec.essiv_hash ? "essiv" : "plain64", .du_bytes = spec.du_bytes};
		ref_set_cipher(&r->ref, spec.mode, r->key, spec.key_bytes);
	}
	r->oracle = new_cipher(&spec, r->key, CF_PATH_BATCH, 1);
	return new_cipher(&spec, r->key, CF_PATH_AUTO, r->shape->n_threads);
}

static void run_init(struct run *r, const struct shape *s)
{
	const uint64_t bytes = (uint64_t)s->du_bytes * s->n_du;
	*r = (struct run){.shape = s, .image_bytes = s->data_off + bytes + TAIL_BYTES};
	r->work = (struct crash_work){
		.seed = all.seed, .bytes = bytes, .du_bytes = s->du_bytes, .n_threads = s->n_threads, .holes = s->holes};
	snprintf(r->name, sizeof(r->name), "%s/%u", s->cipher, s->du_bytes);
	crash_work_init(&r->work);
	crash_trace_init(&r->trace);
	r->first = must_alloc((size_t)r->image_bytes);
	fill(r->first, (size_t)r->image_bytes, all.seed);
	r->store = crash_store_new(&r->trace, 0, r->first, r->image_bytes);
	struct cf_backing *b = &r->store->base;
	struct cf_cipher *c = ciphers(r);
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

static void run_fini(struct run *r)
{
	cf_volume_free(&r->v);
	cf_cipher_free(&r->oracle);
	crash_trace_fini(&r->trace);
	crash_work_fini(&r->work);
	free(r->first);
}

/* ---- the work ---- */

/* What had ended before it began is durable when it has succeeded. */
static void sync_volume(struct run *r, unsigned thread)
{
	uint64_t ended[CRASH_THREADS_MAX];
	for (unsigned i = 0; i < CRASH_THREADS_MAX; i++)
		ended[i] = atomic_load(&r->ended[i]);
	if (cf_volume_sync(r->v) != 0)
		errx(1, "%s: a sync failed", r->name);
	crash_trace_add(&r->trace, (struct crash_event){.kind = CRASH_EV_ACK, .who = thread, .len = sizeof(ended)}, ended);
}

static void perform(struct run *r, const struct crash_op *op, uint8_t *buf)
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
	struct run *r = t->run;
	uint8_t *buf = must_alloc(CF_IO_MAX);
	for (uint64_t n = 0; n < r->shape->n_ops * all.factor; n++) {
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

static void record(struct run *r)
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
}

/* ---- the crashes ---- */

static void decrypt_first(struct run *r, uint8_t *plain)
{
	for (unsigned du = 0; du < r->shape->n_du; du++)
		decrypt(r, du, r->first + r->shape->data_off + (size_t)du * r->shape->du_bytes,
				plain + (size_t)du * r->shape->du_bytes);
}

/* What must be there: after kill -9 all that was answered for, otherwise what was synced. */
struct duty {
	struct crash_model killed, synced;
};

static void crash(const struct run *r, const struct duty *must, const struct crash_disk *d, struct crash_judge *j,
				  size_t upto, enum crash_loss loss, uint64_t *random, uint8_t *image)
{
	static const char *const names[] = {"kill -9", "everything unsynced lost", "a part lost"};
	j->model = loss == CRASH_LOSES_NOTHING ? &must->killed : &must->synced;
	crash_disk_crash(d, &r->trace, upto, loss, random, image);
	crash_judge_image(j, upto, image, names[loss]);
	all.n_crashes++;
}

/* Event @i has happened. Returns whether a crash now differs from one before. */
static bool pass(const struct run *r, size_t i, struct duty *must, struct crash_disk *d)
{
	const struct crash_event *e = &r->trace.event[i];
	crash_disk_pass(d, &r->trace, i);
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

static uint64_t replay(struct run *r, const char *name)
{
	struct duty must;
	struct crash_disk d;
	uint64_t random = all.seed;
	uint8_t *image = must_alloc((size_t)r->image_bytes), *plain = must_alloc((size_t)r->work.bytes);
	struct crash_judge j = {.name = name,
							.trace = &r->trace,
							.top = &d,
							.tear = r->shape->tear,
							.data_off = r->shape->data_off,
							.bytes = r->work.bytes,
							.du_bytes = r->shape->du_bytes,
							.decrypt = decrypt,
							.ctx = r,
							.holes = r->shape->holes};
	decrypt_first(r, plain);
	crash_model_init(&must.killed, &r->work, plain);
	crash_model_init(&must.synced, &r->work, plain);
	crash_disk_init(&d, 0, r->first, r->image_bytes);
	crash_judge_init(&j);
	for (size_t i = 0; i < r->trace.n; i++) {
		if (!pass(r, i, &must, &d))
			continue;
		all.n_prefixes++;
		crash(r, &must, &d, &j, i + 1, CRASH_LOSES_NOTHING, &random, image);
		crash(r, &must, &d, &j, i + 1, CRASH_LOSES_ALL, &random, image);
		for (unsigned k = 0; k < all.n_random; k++)
			crash(r, &must, &d, &j, i + 1, CRASH_LOSES_SOME, &random, image);
	}
	all.n_torn += j.n_torn;
	const uint64_t n = j.n_violations;
	crash_judge_fini(&j);
	crash_disk_fini(&d);
	crash_model_fini(&must.killed);
	crash_model_fini(&must.synced);
	free(image);
	free(plain);
	return n;
}

static void run_shape(const struct shape *s)
{
	struct run r;
	const uint64_t prefixes = all.n_prefixes, crashes = all.n_crashes, torn = all.n_torn;
	run_init(&r, s);
	record(&r);
	const uint64_t n = replay(&r, r.name);
	printf("%-32s %s %5zu events, %5" PRIu64 " prefixes, %6" PRIu64 " crashes, %6" PRIu64 " torn data units, %" PRIu64
		   " violations\n",
		   r.name, s->holes == CRASH_HOLES ? "holes" : "     ", r.trace.n, all.n_prefixes - prefixes,
		   all.n_crashes - crashes, all.n_torn - torn, n);
	all.n_violations += n;
	run_fini(&r);
}

/* A disk that does not sync must not pass. */
static void run_lie(void)
{
	struct run r;
	run_init(&r, &shapes[0]);
	r.store->sync = CRASH_SYNC_LIES;
	record(&r);
	all.n_lies_found = replay(&r, NULL);
	run_fini(&r);
}

static bool wanted(const struct shape *s, char **names)
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
			run_shape(&shapes[i]);
	const uint64_t torn = all.n_torn, prefixes = all.n_prefixes, crashes = all.n_crashes;
	run_lie();
	printf("seed %" PRIu64 ": %" PRIu64 " prefixes, %" PRIu64 " crashes, of them %" PRIu64
		   " with random order and loss; %" PRIu64 " torn data units; %" PRIu64 " violations; %" PRIu64
		   " where syncs did nothing\n",
		   all.seed, prefixes, crashes, crashes - 2 * prefixes, torn, all.n_violations, all.n_lies_found);
	return all.n_violations || !all.n_lies_found;
}
