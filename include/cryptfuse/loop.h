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

struct fuse_session;

struct cf_loop_opts {
	unsigned n_threads; /* at most; 1 to CF_WORKERS_MAX */
	unsigned n_ready;   /* how many may compute at once */
	/** How many of those at work wait, as far as can be told; more than there are is fine. Any thread. */
	unsigned (*waiting)(void *ctx);
	void *ctx;
};

/** cf_loop_run - serve until the kernel says it is over, or fuse_session_exit and a signal to this thread. Ends all its
 * threads. 0 or -errno: -EIO the kernel's connection failed, -EAGAIN, -ENOMEM no thread could be started. */
int cf_loop_run(struct fuse_session *se, const struct cf_loop_opts *opts) CF_MUST_CHECK;

#endif
