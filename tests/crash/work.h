/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* work.h - work for a volume that is going to crash, and what it may hold afterwards.
 *
 * The volume is cut into extents of one byte to a few data units, dealt out to threads, so that most data units have
 * several owners; a byte is changed by its owner only. The n-th operation of a thread follows from the seed, so whoever
 * knows how many were acknowledged knows what must be there, and what may be, without the writer's help. */
#ifndef CRYPTFUSE_CRASH_WORK_H
#define CRYPTFUSE_CRASH_WORK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CRASH_THREADS_MAX 8u
#define CRASH_PENDING_MAX 512u

enum crash_kind { CRASH_WRITE, CRASH_ZERO, CRASH_PUNCH };
enum crash_holes { CRASH_NO_HOLES, CRASH_HOLES };

struct crash_extent {
	uint64_t off, len;
};

struct crash_work {
	uint64_t seed, bytes;
	uint32_t du_bytes;
	unsigned n_threads;
	enum crash_holes holes; /* whether ranges are punched too */
	size_t n_extents;
	struct crash_extent *extents; /* extent i is of thread i % n_threads */
};

struct crash_op {
	enum crash_kind kind;
	uint64_t off;
	size_t len;
	bool sync; /* and make it durable, with all before, ahead of the next one */
	uint64_t random;
};

/** crash_work_init - cut the extents; the other fields are the caller's. */
void crash_work_init(struct crash_work *w);
void crash_work_fini(struct crash_work *w);

/** crash_op_get - operation @n, from 0, of @thread. Pure. */
void crash_op_get(const struct crash_work *w, unsigned thread, uint64_t n, struct crash_op *op);

/** crash_op_bytes - what its range reads as afterwards. @out: op->len. */
void crash_op_bytes(const struct crash_op *op, uint8_t *out);

uint64_t crash_random(uint64_t *state);

/** An operation that began and is not known to be durable. */
struct crash_pending {
	unsigned thread;
	struct crash_op op;
	uint8_t *bytes;
};

/** What a volume may hold: of every byte, what it held when all acknowledged operations were done, or what one of the
 * later ones that began gave it. */
struct crash_model {
	const struct crash_work *work;
	uint8_t *synced; /* work->bytes */
	uint64_t acked[CRASH_THREADS_MAX], begun[CRASH_THREADS_MAX];
	size_t n_pending;
	struct crash_pending pending[CRASH_PENDING_MAX]; /* of one thread: in its order */
};

/** crash_model_init - @plain: what the volume holds at first; copied. */
void crash_model_init(struct crash_model *m, const struct crash_work *w, const uint8_t *plain);
void crash_model_fini(struct crash_model *m);

/** crash_model_begin - the next operation of @thread may have left traces. */
void crash_model_begin(struct crash_model *m, unsigned thread);

/** crash_model_ack - the first @n operations of @thread, all begun, are durable. */
void crash_model_ack(struct crash_model *m, unsigned thread, uint64_t n);

/** crash_model_unexplained - which of @len bytes at @off of the volume cannot be what they are
 * @bytes: what was found   @bad: out, @len flags. Returns how many are set. */
size_t crash_model_unexplained(const struct crash_model *m, uint64_t off, const uint8_t *bytes, size_t len,
							   uint8_t *bad);

#endif
