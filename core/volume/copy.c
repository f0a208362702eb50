/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* copy.c - the engine of decrypt and encrypt: workers carry chunks, taps look on.
 *
 * A worker takes a free slot and only then the next chunk, so the lowest chunk that is not finished always has a slot,
 * and the copy never stands still. One mutex guards everything but the bytes in a slot, which belong to its worker
 * until it is full and to nobody but readers then. */
#include "cryptfuse/copy.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "cryptfuse/clock.h"
#include "cryptfuse/secret.h"

#define THREADS_MAX (CF_COPY_THREADS_MAX + CF_COPY_TAPS_MAX)
#define SLOTS_MAX (2 * CF_COPY_THREADS_MAX + 2)
#define STEP_NS 100000000 /* between two looks at how far it is */
#define BUFFER_ALIGN 4096

struct slot {
	uint8_t *buf;
	size_t len;
	uint64_t chunk; /* that it is for, unless it is free */
	enum { SLOT_FREE, SLOT_TAKEN, SLOT_FULL } state;
	unsigned pending; /* sink and taps that have not had it yet */
};

struct tap_thread {
	struct cf_copy *c;
	const struct cf_copy_tap *tap;
};

struct cf_copy {
	const struct cf_copy_opts *o;
	size_t chunk_bytes;
	pthread_mutex_t mutex;
	pthread_cond_t moved; /* a slot, a turn, the end */
	pthread_cond_t ended; /* a thread */
	struct slot slots[SLOTS_MAX];
	unsigned n_slots;
	uint64_t next;                  /* chunk to be carried */
	uint64_t read_turn, write_turn; /* chunk whose turn it is, where order matters */
	uint64_t end;                   /* bytes, once known */
	uint64_t done;
	unsigned n_running;
	_Atomic int rc;
	enum cf_copy_part failed;
	uint64_t failed_off;
	struct tap_thread taps[CF_COPY_TAPS_MAX];
};

bool cf_copy_stopped(const struct cf_copy *c)
{
	return atomic_load_explicit(&c->rc, memory_order_relaxed) != 0;
}

/* ---- under the mutex ---- */

static void fail(struct cf_copy *c, int rc, enum cf_copy_part part, uint64_t off)
{
	if (!cf_copy_stopped(c)) {
		c->failed = part;
		c->failed_off = off;
		atomic_store(&c->rc, rc);
	}
	pthread_cond_broadcast(&c->moved);
}

static uint64_t off_of(const struct cf_copy *c, uint64_t chunk)
{
	return chunk * c->chunk_bytes;
}

/* Nothing left to do for whoever would handle this chunk. */
static bool over(const struct cf_copy *c, uint64_t chunk)
{
	return cf_copy_stopped(c) || off_of(c, chunk) >= c->end;
}

static void wait_moved(struct cf_copy *c)
{
	pthread_cond_wait(&c->moved, &c->mutex);
}

static struct slot *free_slot(struct cf_copy *c)
{
	for (unsigned i = 0; i < c->n_slots; i++)
		if (c->slots[i].state == SLOT_FREE)
			return &c->slots[i];
	return NULL;
}

static struct slot *full_slot(struct cf_copy *c, uint64_t chunk)
{
	for (unsigned i = 0; i < c->n_slots; i++)
		if (c->slots[i].state == SLOT_FULL && c->slots[i].chunk == chunk)
			return &c->slots[i];
	return NULL;
}

static void had(struct cf_copy *c, struct slot *s)
{
	assert(s->pending);
	if (--s->pending)
		return;
	s->state = SLOT_FREE;
	pthread_cond_broadcast(&c->moved);
}

/* ---- workers ---- */

/* A slot with the next chunk to be read; NULL nothing is left. */
static struct slot *claim(struct cf_copy *c)
{
	struct slot *s = NULL;
	while (!over(c, c->next) && !(s = free_slot(c)))
		wait_moved(c);
	if (over(c, c->next))
		return NULL;
	s->state = SLOT_TAKEN;
	s->chunk = c->next++;
	while (!over(c, s->chunk) && c->o->source.order == CF_COPY_IN_ORDER && c->read_turn != s->chunk)
		wait_moved(c);
	return over(c, s->chunk) ? NULL : s;
}

static void take_read(struct cf_copy *c, struct slot *s, ssize_t n, size_t want)
{
	const uint64_t off = off_of(c, s->chunk);
	if (n >= 0 && (size_t)n < want && c->end == CF_COPY_UNKNOWN)
		c->end = off + (uint64_t)n;
	else if (n < 0 || (size_t)n < want)
		fail(c, n < 0 ? (int)n : -EIO, CF_COPY_SOURCE, off);
	c->read_turn++;
	if (n > 0 && !cf_copy_stopped(c)) {
		s->len = (size_t)n;
		s->state = SLOT_FULL;
		s->pending = 1 + c->o->n_taps;
	}
	pthread_cond_broadcast(&c->moved);
}

/* Fill the slot; the mutex is let go meanwhile. */
static void carry_in(struct cf_copy *c, struct slot *s)
{
	const uint64_t off = off_of(c, s->chunk), left = c->end - off;
	const size_t want = left < c->chunk_bytes ? (size_t)left : c->chunk_bytes;
	pthread_mutex_unlock(&c->mutex);
	const ssize_t n = c->o->source.read(c->o->source.ctx, c, s->buf, want, off);
	pthread_mutex_lock(&c->mutex);
	take_read(c, s, n, want);
}

static void carry_out(struct cf_copy *c, struct slot *s)
{
	const uint64_t chunk = s->chunk;
	while (!cf_copy_stopped(c) && c->o->sink.order == CF_COPY_IN_ORDER && c->write_turn != chunk)
		wait_moved(c);
	if (cf_copy_stopped(c))
		return;
	pthread_mutex_unlock(&c->mutex);
	const int rc = c->o->sink.write(c->o->sink.ctx, c, s->buf, s->len, off_of(c, chunk));
	pthread_mutex_lock(&c->mutex);
	if (rc) {
		fail(c, rc, CF_COPY_SINK, off_of(c, chunk));
		return;
	}
	c->write_turn++;
	c->done += s->len;
	had(c, s);
}

static void thread_ends(struct cf_copy *c)
{
	c->n_running--;
	pthread_cond_signal(&c->ended);
	pthread_mutex_unlock(&c->mutex);
}

static void *work(void *arg)
{
	struct cf_copy *c = arg;
	pthread_mutex_lock(&c->mutex);
	for (struct slot *s; (s = claim(c));) {
		carry_in(c, s);
		if (s->state == SLOT_FULL)
			carry_out(c, s);
	}
	thread_ends(c);
	return NULL;
}

/* ---- taps ---- */

static void *look_on(void *arg)
{
	const struct tap_thread *t = arg;
	struct cf_copy *c = t->c;
	pthread_mutex_lock(&c->mutex);
	for (uint64_t chunk = 0;; chunk++) {
		struct slot *s = NULL;
		while (!over(c, chunk) && !(s = full_slot(c, chunk)))
			wait_moved(c);
		if (over(c, chunk))
			break;
		pthread_mutex_unlock(&c->mutex);
		const int rc = t->tap->take(t->tap->ctx, s->buf, s->len);
		pthread_mutex_lock(&c->mutex);
		if (rc)
			fail(c, rc, CF_COPY_TAP, off_of(c, chunk));
		had(c, s);
	}
	thread_ends(c);
	return NULL;
}

/* ---- the caller's thread ---- */

static void wait_until(struct cf_copy *c, const struct timespec *when)
{
	while (c->n_running && pthread_cond_timedwait(&c->ended, &c->mutex, when) != ETIMEDOUT)
		;
}

static void watch(struct cf_copy *c)
{
	struct timespec when;
	clock_gettime(CLOCK_MONOTONIC, &when);
	while (c->n_running) {
		when.tv_nsec += STEP_NS;
		when.tv_sec += when.tv_nsec / 1000000000;
		when.tv_nsec %= 1000000000;
		wait_until(c, &when);
		const uint64_t done = c->done, total = c->end;
		pthread_mutex_unlock(&c->mutex);
		const int rc = c->o->step ? c->o->step(c->o->step_ctx, done, total) : 0;
		pthread_mutex_lock(&c->mutex);
		if (rc)
			fail(c, rc, CF_COPY_STEP, 0);
	}
}

static int start(struct cf_copy *c, pthread_t *threads, unsigned *n, void *(*body)(void *), void *arg)
{
	const int rc = pthread_create(&threads[*n], NULL, body, arg);
	if (rc) {
		fail(c, -rc, CF_COPY_ENGINE, 0);
		return -rc;
	}
	(*n)++;
	c->n_running++;
	return 0;
}

static void run_threads(struct cf_copy *c)
{
	pthread_t threads[THREADS_MAX];
	unsigned n = 0;
	int rc = 0;
	pthread_mutex_lock(&c->mutex);
	for (unsigned i = 0; !rc && i < c->o->n_taps; i++) {
		c->taps[i] = (struct tap_thread){.c = c, .tap = &c->o->taps[i]};
		rc = start(c, threads, &n, look_on, &c->taps[i]);
	}
	for (unsigned i = 0; !rc && i < c->o->n_threads; i++)
		rc = start(c, threads, &n, work, c);
	watch(c);
	pthread_mutex_unlock(&c->mutex);
	while (n)
		pthread_join(threads[--n], NULL);
}

/* More slots than workers only where taps may lag behind. */
static int make_slots(struct cf_copy *c)
{
	c->n_slots = c->o->n_taps ? 2 * c->o->n_threads + 2 : c->o->n_threads;
	for (unsigned i = 0; i < c->n_slots; i++) {
		void *p;
		if (posix_memalign(&p, BUFFER_ALIGN, c->chunk_bytes) != 0)
			return -ENOMEM;
		c->slots[i] = (struct slot){.buf = p};
	}
	return 0;
}

static void free_slots(struct cf_copy *c)
{
	for (unsigned i = 0; i < c->n_slots; i++) {
		if (c->slots[i].buf)
			cf_secret_wipe(c->slots[i].buf, c->chunk_bytes);
		free(c->slots[i].buf);
	}
}

static void init(struct cf_copy *c, const struct cf_copy_opts *o)
{
	*c = (struct cf_copy){
		.o = o, .chunk_bytes = o->chunk_bytes ? o->chunk_bytes : CF_COPY_CHUNK, .end = o->source.bytes};
	pthread_mutex_init(&c->mutex, NULL);
	pthread_cond_init(&c->moved, NULL);
	cf_cond_init(&c->ended);
}

static void fini(struct cf_copy *c)
{
	free_slots(c);
	pthread_cond_destroy(&c->ended);
	pthread_cond_destroy(&c->moved);
	pthread_mutex_destroy(&c->mutex);
}

int cf_copy_run(const struct cf_copy_opts *opts, struct cf_copy_result *out)
{
	assert(opts->n_threads && opts->n_threads <= CF_COPY_THREADS_MAX && opts->n_taps <= CF_COPY_TAPS_MAX);
	assert(opts->source.bytes != CF_COPY_UNKNOWN || opts->source.order == CF_COPY_IN_ORDER);
	struct cf_copy c;
	init(&c, opts);
	const int rc = make_slots(&c);
	if (rc)
		fail(&c, rc, CF_COPY_ENGINE, 0);
	else
		run_threads(&c);
	*out = (struct cf_copy_result){.bytes = c.done, .failed = c.failed, .failed_off = c.failed_off};
	fini(&c);
	return c.rc;
}
