/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* gate.h - what every request that needs the key passes through.
 *
 *     OPEN      goes on                                       (one atomic step in, one out)
 *     CLOSED    is parked: as a request on a list, not as a thread; answered when the gate opens, EINTR when whoever
 *               waits for it is interrupted
 *     REFUSING  gets EIO, also what was parked
 *
 * What is parked needs memory; a request that gets none holds its thread instead, so a bound on it costs no request. */
#ifndef CRYPTFUSE_GATE_H
#define CRYPTFUSE_GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cryptfuse/base.h"

struct fuse_req;
struct fuse_file_info;
struct cf_parked;

enum cf_gate_state { CF_GATE_OPEN, CF_GATE_CLOSED, CF_GATE_REFUSING };

#define CF_GATE_BYTES_MAX (64u * 1024u * 1024u) /* of data that writes bring along */

/** An operation that can be called again with what it was called with. */
struct cf_gate_call {
	enum { CF_CALL_READ, CF_CALL_WRITE, CF_CALL_FALLOCATE } what;
	uint64_t ino;
	const struct fuse_file_info *fi; /* borrowed until the call returns */
	uint64_t off, len;
	int mode;        /* CF_CALL_FALLOCATE */
	const char *buf; /* CF_CALL_WRITE: @len bytes, borrowed until the call returns */
};

/** What waits, and what was answered with EIO. */
struct cf_gate_stats {
	enum cf_gate_state state;
	unsigned reads, writes; /* parked; a write is whatever changes the volume */
	uint64_t lost_writes, lost_bytes;
};

struct cf_gate {
	_Atomic unsigned inside; /* requests between enter and leave */
	_Atomic enum cf_gate_state state;
	pthread_mutex_t mutex;  /* below; a leaf, held across no call of libfuse */
	pthread_cond_t changed; /* the state, or nobody is inside */
	struct cf_parked *first, *last;
	uint64_t bytes; /* of parked data */
	struct cf_gate_stats stats;
};

void cf_gate_init(struct cf_gate *g);

/** cf_gate_fini - refuses what is still parked. */
void cf_gate_fini(struct cf_gate *g);

/** cf_gate_leave - the request is answered, or almost: it needs the key no more. Any thread. */
void cf_gate_leave(struct cf_gate *g);

/** cf_gate_enter - may this request use the key? True: until cf_gate_leave. False: cf_gate_park it. Any thread. */
static inline bool cf_gate_enter(struct cf_gate *g)
{
	atomic_fetch_add(&g->inside, 1);
	if (atomic_load(&g->state) == CF_GATE_OPEN)
		return true;
	cf_gate_leave(g);
	return false;
}

/** cf_gate_park - answer a request that was not let in, later or at once; it may be called again by this thread or
 * another. The request is the gate's. */
void cf_gate_park(struct cf_gate *g, struct fuse_req *req, const struct cf_gate_call *call);

/** cf_gate_close - park from now on, and wait until nobody is inside. 0; -ETIMEDOUT after @timeout_s seconds: it is
 * open again. Only an open gate. */
int cf_gate_close(struct cf_gate *g, unsigned timeout_s) CF_MUST_CHECK;

/** cf_gate_open - let all in; this thread works off what was parked. */
void cf_gate_open(struct cf_gate *g);

/** cf_gate_refuse - EIO from now on, CF_GATE_REFUSING, or park again, CF_GATE_CLOSED. Only a gate that is not open. */
void cf_gate_refuse(struct cf_gate *g, enum cf_gate_state state);

void cf_gate_stats(struct cf_gate *g, struct cf_gate_stats *out);

#endif
