/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* trace.h - everything that happened to some stores, in one order, and what a crash could leave of each.
 *
 * A store is a backing that writes down what reaches it: one in memory, which is what a disk gets, or one that passes
 * all on to another backing, so that what went in there is known too. Operations and acknowledgements go into the same
 * list. Recording: any thread. Looking: one, when all has ended. */
#ifndef CRYPTFUSE_CRASH_TRACE_H
#define CRYPTFUSE_CRASH_TRACE_H

#include <pthread.h>

#include "cryptfuse/backing.h"
#include "work.h"

#define CRASH_PIECE 512u /* bytes that a disk writes whole or not at all */

enum crash_event_kind {
	CRASH_EV_WRITE, /* who: store; off, len, data: a hole's is CRASH_ZEROS */
	CRASH_EV_SYNC,  /* who: store; off: how many events there were when it began, all of them durable now */
	CRASH_EV_BEGIN, /* who: thread: its next operation begins */
	CRASH_EV_END,   /* who: thread; off: so many of its operations have been answered for */
	CRASH_EV_ACK,   /* data: a count for each thread: operations that have been acknowledged as durable */
};

#define CRASH_ZEROS SIZE_MAX

struct crash_event {
	enum crash_event_kind kind;
	unsigned who;
	uint64_t off;
	size_t len, data; /* data: where in the trace's bytes */
};

struct crash_trace {
	pthread_mutex_t mutex;
	size_t n, room;
	struct crash_event *event;
	size_t n_bytes, bytes_room;
	uint8_t *bytes;
};

void crash_trace_init(struct crash_trace *t);
void crash_trace_fini(struct crash_trace *t);

/** crash_trace_add - write an event down. @data: e->len bytes that are copied, or NULL. */
void crash_trace_add(struct crash_trace *t, struct crash_event e, const void *data);

/** How much of the store's sync is one. */
enum crash_sync { CRASH_SYNCS, CRASH_SYNC_LIES /* says 0 and does nothing: what the replay must find */ };

struct crash_store {
	struct cf_backing base; /* first */
	struct crash_trace *trace;
	unsigned index; /* in the trace */
	enum crash_sync sync;
	struct cf_backing *inner; /* all goes on to it; NULL: in memory */
	uint8_t *data;
	size_t under_way[CRASH_THREADS_MAX]; /* writes that @inner has not answered for: which event, plus 1; 0 none */
};

/** crash_store_new - a store in memory that holds @bytes of @content. @t: NULL: nothing is written down. */
struct crash_store *crash_store_new(struct crash_trace *t, unsigned index, const uint8_t *content, uint64_t bytes);

/** crash_store_over - one that passes on to @inner, which it takes. */
struct crash_store *crash_store_over(struct crash_trace *t, unsigned index, struct cf_backing *inner);

/** What is surely on a disk after the first @upto events of the trace, and from which event on nothing is sure. */
struct crash_disk {
	unsigned index; /* of the store */
	uint64_t bytes;
	uint8_t *durable;
	size_t floor;
};

void crash_disk_init(struct crash_disk *d, unsigned index, const uint8_t *content, uint64_t bytes);
void crash_disk_fini(struct crash_disk *d);

/** crash_disk_pass - event @i has happened. */
void crash_disk_pass(struct crash_disk *d, const struct crash_trace *t, size_t i);

enum crash_loss {
	CRASH_LOSES_NOTHING, /* kill -9: all that was written, in part what is being written */
	CRASH_LOSES_ALL,     /* a cache that wrote nothing by itself */
	CRASH_LOSES_SOME,    /* any writes since the last sync, in any order, torn at any piece */
};

/** crash_disk_crash - what is found after a crash when @upto events had happened. @out: d->bytes. */
void crash_disk_crash(const struct crash_disk *d, const struct crash_trace *t, size_t upto, enum crash_loss loss,
					  uint64_t *random, uint8_t *out);

/** crash_disk_unsure - the next write at or after event *@i, before @upto, that a crash may undo. NULL: no more. */
const struct crash_event *crash_disk_unsure(const struct crash_disk *d, const struct crash_trace *t, size_t upto,
											size_t *i);

#endif
