/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* loop.h - the threads that take requests from the kernel.
 *
 *     reading (at most n_ready) <-> at work        as many awake as can compute, and one more for each that waits
 *         ^                           |
 *         '--------- parked <---------'            the rest, out of the kernel's sight
 *
 * Why not libfuse's own loop: it starts a thread whenever all are busy, also when they compute, and the kernel wakes
 * the reader that has slept longest, whose stack and buffer are cold. Here a backing that answers at once is served by
 * n_ready threads, and one that waits by as many as are needed (HAZARDS 17); also one that hangs: every 5 ms in which
 * all threads are at work and none takes a request bring another one. */
#ifndef CRYPTFUSE_LOOP_H
#define CRYPTFUSE_LOOP_H

#include "cryptfuse/base.h"

struct cf_loop;
struct fuse_session;

struct cf_loop_opts {
	unsigned n_threads; /* at most; 1 to CF_WORKERS_MAX */
	unsigned n_ready;   /* how many may compute at once */
	/** How many of those at work wait, as far as can be told; more than there are is fine. Any thread. */
	unsigned (*waiting)(void *ctx);
	/** Called once when no more requests are taken: those at work must come to an end. */
	void (*ending)(void *ctx);
	void *ctx;
};

/** cf_loop_new - make one that does not run yet; it serves @se once. 0 and *out; -ENOMEM. */
int cf_loop_new(struct cf_loop **out, struct fuse_session *se, const struct cf_loop_opts *opts) CF_MUST_CHECK;

/** cf_loop_run - serve until the kernel says it is over, or fuse_session_exit and a signal to this thread. Ends all its
 * threads. 0 or -errno: -EIO the kernel's connection failed, -EAGAIN, -ENOMEM no thread could be started. */
int cf_loop_run(struct cf_loop *l) CF_MUST_CHECK;

/** cf_loop_free - when it has run, or never did. Takes NULL, leaves NULL. */
void cf_loop_free(struct cf_loop **l);

/** Only interrupts a wait: the process has an empty handler for it, without SA_RESTART. */
#define CF_LOOP_SIGNAL SIGUSR1

/** cf_loop_wipe - have every thread wipe what requests left in its buffer. Any other thread, while it runs; no write
 * may be under way. Returns 0; -ETIMEDOUT some thread has been at work for seconds and will wipe it afterwards. */
int cf_loop_wipe(struct cf_loop *l);

#endif
