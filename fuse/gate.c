/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* gate.c - requests that wait for the key.
 *
 * Who takes a parked request off the list, under the mutex, answers it: the thread that opens or refuses, or libfuse's
 * that brings an interrupt. libfuse calls that function with its request locked, so no call of libfuse is made under
 * the mutex. A write brings its data along in plaintext: it is wiped when it was used. */
#include "config.h"

#include "cryptfuse/gate.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/clock.h"
#include "cryptfuse/ops_slots.h"
#include "cryptfuse/secret.h"

struct cf_parked {
	struct cf_parked *prev, *next;
	struct cf_gate *gate;
	fuse_req_t req;
	bool listed, interrupted;
	struct cf_gate_call call;
	struct fuse_file_info fi; /* call.fi points here */
	char data[];              /* call.buf points here */
};

void cf_gate_init(struct cf_gate *g)
{
	*g = (struct cf_gate){.inside = 0};
	pthread_mutex_init(&g->mutex, NULL);
	cf_cond_init(&g->changed);
}

void cf_gate_leave(struct cf_gate *g)
{
	if (atomic_fetch_sub(&g->inside, 1) != 1 || atomic_load(&g->state) == CF_GATE_OPEN)
		return;
	pthread_mutex_lock(&g->mutex);
	pthread_cond_broadcast(&g->changed);
	pthread_mutex_unlock(&g->mutex);
}

/* ---- a parked request ---- */

static size_t data_bytes(const struct cf_gate_call *c)
{
	return c->what == CF_CALL_WRITE ? (size_t)c->len : 0;
}

static struct cf_parked *parked_new(struct cf_gate *g, fuse_req_t req, const struct cf_gate_call *call)
{
	struct cf_parked *p = calloc(1, sizeof(*p) + data_bytes(call));
	if (!p)
		return NULL;
	p->gate = g;
	p->req = req;
	p->call = *call;
	p->fi = *call->fi;
	p->call.fi = &p->fi;
	if (call->what == CF_CALL_WRITE)
		p->call.buf = memcpy(p->data, call->buf, (size_t)call->len);
	return p;
}

static void parked_free(struct cf_parked *p)
{
	cf_secret_wipe(p->data, data_bytes(&p->call));
	free(p);
}

/* Under the mutex. */
static void count(struct cf_gate *g, const struct cf_gate_call *call, int sign)
{
	*(call->what == CF_CALL_READ ? &g->stats.reads : &g->stats.writes) += (unsigned)sign;
	g->bytes += (uint64_t)sign * data_bytes(call);
}

static void list(struct cf_gate *g, struct cf_parked *p)
{
	p->listed = true;
	p->prev = g->last;
	*(g->last ? &g->last->next : &g->first) = p;
	g->last = p;
	count(g, &p->call, 1);
}

static void unlist(struct cf_gate *g, struct cf_parked *p)
{
	p->listed = false;
	*(p->prev ? &p->prev->next : &g->first) = p->next;
	*(p->next ? &p->next->prev : &g->last) = p->prev;
	count(g, &p->call, -1);
}

/* ---- an answer ---- */

static void call_again(fuse_req_t req, const struct cf_gate_call *c)
{
	struct fuse_file_info fi = *c->fi;
	switch (c->what) {
	case CF_CALL_READ:
		cf_op_read(req, c->ino, (size_t)c->len, (off_t)c->off, &fi);
		break;
	case CF_CALL_WRITE:
		cf_op_write(req, c->ino, c->buf, (size_t)c->len, (off_t)c->off, &fi);
		break;
	case CF_CALL_FALLOCATE:
		cf_op_fallocate(req, c->ino, c->mode, (off_t)c->off, (off_t)c->len, &fi);
		break;
	}
}

static void refuse(struct cf_gate *g, fuse_req_t req, const struct cf_gate_call *c)
{
	pthread_mutex_lock(&g->mutex);
	g->stats.lost_writes += c->what != CF_CALL_READ;
	g->stats.lost_bytes += data_bytes(c);
	pthread_mutex_unlock(&g->mutex);
	fuse_reply_err(req, EIO);
}

static void answer(struct cf_gate *g, enum cf_gate_state state, fuse_req_t req, const struct cf_gate_call *c)
{
	if (state == CF_GATE_REFUSING)
		refuse(g, req, c);
	else
		call_again(req, c);
}

/* libfuse: whoever waits for this request wants to wait no longer. Called with the request locked; it may be called
 * from inside fuse_req_interrupt_func, before the request is listed, and must not answer there. */
static void interrupted(fuse_req_t req, void *data)
{
	struct cf_parked *p = data;
	struct cf_gate *g = p->gate;
	pthread_mutex_lock(&g->mutex);
	p->interrupted = true;
	const bool ours = p->listed;
	if (ours)
		unlist(g, p);
	pthread_mutex_unlock(&g->mutex);
	if (!ours)
		return;
	parked_free(p);
	fuse_reply_err(req, EINTR);
}

/* ---- parking ---- */

/* No memory for it: its thread waits. */
static void hold(struct cf_gate *g, fuse_req_t req, const struct cf_gate_call *call)
{
	enum cf_gate_state state;
	pthread_mutex_lock(&g->mutex);
	while ((state = atomic_load(&g->state)) == CF_GATE_CLOSED)
		pthread_cond_wait(&g->changed, &g->mutex);
	pthread_mutex_unlock(&g->mutex);
	answer(g, state, req, call);
}

/* As long as there is room. */
static struct cf_parked *try_park(struct cf_gate *g, fuse_req_t req, const struct cf_gate_call *call)
{
	pthread_mutex_lock(&g->mutex);
	const bool room = g->bytes + data_bytes(call) <= CF_GATE_BYTES_MAX;
	pthread_mutex_unlock(&g->mutex);
	return room ? parked_new(g, req, call) : NULL;
}

void cf_gate_park(struct cf_gate *g, struct fuse_req *req, const struct cf_gate_call *call)
{
	struct cf_parked *p = try_park(g, req, call);
	if (!p) {
		hold(g, req, call);
		return;
	}
	fuse_req_interrupt_func(req, interrupted, p);
	pthread_mutex_lock(&g->mutex);
	const enum cf_gate_state state = atomic_load(&g->state);
	const bool gone = p->interrupted, parked = state == CF_GATE_CLOSED && !gone;
	if (parked)
		list(g, p); /* from here on it is somebody else's */
	pthread_mutex_unlock(&g->mutex);
	if (parked)
		return;
	fuse_req_interrupt_func(req, NULL, NULL);
	if (gone)
		fuse_reply_err(req, EINTR);
	else
		answer(g, state, req, call);
	parked_free(p);
}

/* ---- the gate itself ---- */

int cf_gate_close(struct cf_gate *g, unsigned timeout_s)
{
	const struct timespec until = cf_in_seconds(timeout_s);
	int r = 0;
	assert(atomic_load(&g->state) == CF_GATE_OPEN);
	pthread_mutex_lock(&g->mutex);
	atomic_store(&g->state, CF_GATE_CLOSED);
	while (atomic_load(&g->inside) && r == 0)
		r = pthread_cond_timedwait(&g->changed, &g->mutex, &until);
	r = atomic_load(&g->inside) ? -ETIMEDOUT : 0;
	pthread_mutex_unlock(&g->mutex);
	if (r < 0)
		cf_gate_open(g);
	return r;
}

/* To another state; what was parked is answered accordingly by this thread. */
static void change(struct cf_gate *g, enum cf_gate_state state)
{
	pthread_mutex_lock(&g->mutex);
	atomic_store(&g->state, state);
	pthread_cond_broadcast(&g->changed);
	for (struct cf_parked *p; state != CF_GATE_CLOSED && (p = g->first);) {
		unlist(g, p);
		pthread_mutex_unlock(&g->mutex);
		fuse_req_interrupt_func(p->req, NULL, NULL);
		answer(g, state, p->req, &p->call);
		parked_free(p);
		pthread_mutex_lock(&g->mutex);
	}
	pthread_mutex_unlock(&g->mutex);
}

void cf_gate_open(struct cf_gate *g)
{
	change(g, CF_GATE_OPEN);
}

void cf_gate_refuse(struct cf_gate *g, enum cf_gate_state state)
{
	assert(atomic_load(&g->state) != CF_GATE_OPEN && state != CF_GATE_OPEN);
	change(g, state);
}

void cf_gate_stats(struct cf_gate *g, struct cf_gate_stats *out)
{
	pthread_mutex_lock(&g->mutex);
	*out = g->stats;
	out->state = atomic_load(&g->state);
	pthread_mutex_unlock(&g->mutex);
}

void cf_gate_fini(struct cf_gate *g)
{
	if (g->first)
		change(g, CF_GATE_REFUSING);
	pthread_cond_destroy(&g->changed);
	pthread_mutex_destroy(&g->mutex);
}
