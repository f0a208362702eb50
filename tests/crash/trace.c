/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* trace.c - recording, see trace.h. */
#include "trace.h"

#include <err.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

void crash_trace_init(struct crash_trace *t)
{
	*t = (struct crash_trace){.n = 0};
	pthread_mutex_init(&t->mutex, NULL);
}

void crash_trace_fini(struct crash_trace *t)
{
	pthread_mutex_destroy(&t->mutex);
	free(t->event);
	free(t->bytes);
}

static void *grow(void *old, size_t size)
{
	void *p = realloc(old, size);
	if (!p)
		errx(2, "no memory for %zu bytes of what was recorded", size);
	return p;
}

/* The mutex is held. */
static void add(struct crash_trace *t, struct crash_event e, const void *data)
{
	if (t->n == t->room) {
		t->room = t->room ? 2 * t->room : 1024;
		t->event = grow(t->event, t->room * sizeof(*t->event));
	}
	if (data) {
		while (t->n_bytes + e.len > t->bytes_room) {
			t->bytes_room = t->bytes_room ? 2 * t->bytes_room : 1u << 20;
			t->bytes = grow(t->bytes, t->bytes_room);
		}
		memcpy(t->bytes + t->n_bytes, data, e.len);
		e.data = t->n_bytes;
		t->n_bytes += e.len;
	}
	t->event[t->n++] = e;
}

void crash_trace_add(struct crash_trace *t, struct crash_event e, const void *data)
{
	pthread_mutex_lock(&t->mutex);
	add(t, e, data);
	pthread_mutex_unlock(&t->mutex);
}

static struct crash_store *of(struct cf_backing *b)
{
	return (struct crash_store *)b;
}

static ssize_t store_pread(struct cf_backing *b, void *buf, size_t len, uint64_t off)
{
	struct crash_store *s = of(b);
	if (s->inner)
		return s->inner->ops->pread(s->inner, buf, len, off);
	if (off >= b->bytes)
		return 0;
	len = len < b->bytes - off ? len : (size_t)(b->bytes - off);
	memcpy(buf, s->data + off, len);
	sched_yield(); /* whoever writes there meanwhile is not seen */
	return (ssize_t)len;
}

/* A write that is passed on is written down first: it may show from then on. Returns its place in under_way. */
static unsigned record(struct crash_store *s, uint64_t off, size_t len, const void *buf)
{
	struct crash_event e = {.kind = CRASH_EV_WRITE, .who = s->index, .off = off, .len = len, .data = CRASH_ZEROS};
	unsigned slot = 0;
	if (s->trace) {
		pthread_mutex_lock(&s->trace->mutex);
		add(s->trace, e, buf);
		while (s->inner && s->under_way[slot])
			slot++;
		s->under_way[slot] = s->inner ? s->trace->n : 0;
	}
	if (!s->inner && buf)
		memcpy(s->data + off, buf, len);
	else if (!s->inner)
		memset(s->data + off, 0, len);
	if (s->trace) {
		pthread_mutex_unlock(&s->trace->mutex);
		sched_yield();
	}
	return slot;
}

/* What @inner did not take of it, it will be given again: a sync that comes first does not cover that. */
static void answered(struct crash_store *s, unsigned slot, size_t taken)
{
	pthread_mutex_lock(&s->trace->mutex);
	struct crash_event *e = &s->trace->event[s->under_way[slot] - 1];
	e->len = taken < e->len ? taken : e->len;
	s->under_way[slot] = 0;
	pthread_mutex_unlock(&s->trace->mutex);
}

static ssize_t store_pwrite(struct cf_backing *b, const void *buf, size_t len, uint64_t off)
{
	struct crash_store *s = of(b);
	const unsigned slot = record(s, off, len, buf);
	if (!s->inner)
		return (ssize_t)len;
	ssize_t n = s->inner->ops->pwrite(s->inner, buf, len, off);
	answered(s, slot, n < 0 ? 0 : (size_t)n);
	return n;
}

static int store_punch(struct cf_backing *b, uint64_t off, uint64_t len)
{
	struct crash_store *s = of(b);
	const unsigned slot = record(s, off, (size_t)len, NULL);
	if (!s->inner)
		return 0;
	int rc = s->inner->ops->punch(s->inner, off, len);
	answered(s, slot, (size_t)len);
	return rc;
}

/* The first event that a sync does not cover; the mutex is held. */
static size_t covered(const struct crash_store *s)
{
	size_t n = s->trace->n;
	for (unsigned i = 0; i < CRASH_THREADS_MAX; i++)
		if (s->under_way[i] && s->under_way[i] - 1 < n)
			n = s->under_way[i] - 1;
	return n;
}

/* What is written while it runs may be durable or not. */
static int store_sync(struct cf_backing *b)
{
	struct crash_store *s = of(b);
	if (s->sync == CRASH_SYNC_LIES || !s->trace)
		return 0;
	pthread_mutex_lock(&s->trace->mutex);
	struct crash_event e = {.kind = CRASH_EV_SYNC, .who = s->index, .off = covered(s)};
	pthread_mutex_unlock(&s->trace->mutex);
	sched_yield();
	int rc = s->inner ? s->inner->ops->sync(s->inner) : 0;
	if (!rc)
		crash_trace_add(s->trace, e, NULL);
	return rc;
}

static void store_close(struct cf_backing *b)
{
	cf_backing_free(&of(b)->inner);
	free(of(b)->data);
}

static const struct cf_backing_ops store_ops = {
	.name = "recorder",
	.pread = store_pread,
	.pwrite = store_pwrite,
	.sync = store_sync,
	.punch = store_punch,
	.close = store_close,
};

static struct crash_store *new_store(struct crash_trace *t, unsigned index, const struct cf_backing *like)
{
	struct crash_store *s = calloc(1, sizeof(*s));
	if (!s)
		errx(2, "no memory");
	s->base = *like;
	s->base.ops = &store_ops;
	s->trace = t;
	s->index = index;
	return s;
}

struct crash_store *crash_store_new(struct crash_trace *t, unsigned index, const uint8_t *content, uint64_t bytes)
{
	const struct cf_backing like = {
		.bytes = bytes, .access = CF_READ_WRITE, .granule = 1, .discard_granule = CRASH_PIECE};
	struct crash_store *s = new_store(t, index, &like);
	s->data = grow(NULL, (size_t)bytes);
	memcpy(s->data, content, (size_t)bytes);
	return s;
}

struct crash_store *crash_store_over(struct crash_trace *t, unsigned index, struct cf_backing *inner)
{
	struct crash_store *s = new_store(t, index, inner);
	s->inner = inner;
	return s;
}
