/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* suspend.h - an open volume without its key, and back.
 *
 *     open       --- suspend: flush, drop the kernel's pages, close the gate, sync, wipe --->   suspended
 *     suspended  --- resume: the same key, self-test, open the gate ------------------------>   open
 *     suspended  --- refuse (close, SIGTERM): what waits gets EIO, so that nothing hangs
 *
 * Any thread; one suspend or resume at a time. */
#ifndef CRYPTFUSE_SUSPEND_H
#define CRYPTFUSE_SUSPEND_H

#include <pthread.h>
#include <stdbool.h>

#include "cryptfuse/base.h"
#include "cryptfuse/gate.h"

struct cf_err;
struct cf_loop;
struct cf_ops;
struct fuse_session;

struct cf_suspend {
	struct cf_ops *ops;           /* borrowed */
	struct fuse_session *session; /* borrowed */
	struct cf_loop *loop;         /* borrowed; NULL: the transport is libfuse's own */
	pthread_mutex_t turn;         /* of the one that suspends or resumes */
	int helper;
	pthread_mutex_t mutex; /* below */
	pthread_cond_t heard;
	int word;       /* the helper's last one; 0 it has gone */
	bool suspended; /* the key is gone */
	bool stopping;  /* nothing may wait for the key any more */
};

/** cf_suspend_init - @helper: the socket to the unmount helper. */
void cf_suspend_init(struct cf_suspend *s, struct cf_ops *ops, struct fuse_session *session, int helper);
void cf_suspend_fini(struct cf_suspend *s);

/** cf_suspend - make all that was written durable, then wipe the key
 * Requests that need it wait from then on. Waits for running ones. Returns 0; -EINVAL it is suspended already;
 * -EBUSY another one is at it; -ENOTSUP this volume cannot be; -ETIMEDOUT, or what the sync said: it is open as before.
 */
int cf_suspend(struct cf_suspend *s, struct cf_err *err) CF_MUST_CHECK;

/** cf_resume - take the key again and work off what waited
 * @key: borrowed; @key_bytes of it. Returns 0; -EPERM it is another key; -EINVAL it is not suspended; -EBUSY; -EIO. On
 * failure it stays suspended. */
int cf_resume(struct cf_suspend *s, const uint8_t *key, size_t key_bytes, struct cf_err *err) CF_MUST_CHECK;

/** cf_suspend_refuse - while it is suspended: CF_GATE_REFUSING what waits and what comes gets EIO; CF_GATE_CLOSED it
 * waits again. */
void cf_suspend_refuse(struct cf_suspend *s, enum cf_gate_state state);

/** cf_suspend_heard - the helper has said @word; 0: it has gone. */
void cf_suspend_heard(struct cf_suspend *s, int word);

/** cf_suspend_stop - the daemon is to end: nothing waits any more, and it is not suspended any more if it is not yet.
 */
void cf_suspend_stop(struct cf_suspend *s);

#endif
