/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* suspend.c - the order in which a volume loses its key.
 *
 * The kernel's pages are dropped while requests are still served, mapped ones too: dirty ones are written, and a page
 * whose read is parked could not be dropped before that read is answered. What was read since is dropped by the helper
 * when the gate is closed, as far as nobody maps it or has changed it. The sync comes when nobody writes any more, so
 * that it covers every write that was answered. Two mutexes: a turn is held for as long as a suspend takes, the other
 * only to look and change. */
#include "config.h"

#include "cryptfuse/suspend.h"

#include <errno.h>
#include <string.h>

#include "cryptfuse/clock.h"
#include "cryptfuse/err.h"
#include "cryptfuse/helper.h"
#include "cryptfuse/loop.h"
#include "cryptfuse/ops_slots.h"

#define FLUSH_TIMEOUT_S 300 /* of what the kernel has cached, by the helper */
#define DRAIN_TIMEOUT_S 60u /* a store that takes longer hangs */

void cf_suspend_init(struct cf_suspend *s, struct cf_ops *ops, struct fuse_session *session, int helper)
{
	*s = (struct cf_suspend){.ops = ops, .session = session, .helper = helper, .word = CF_HELPER_MOUNTED};
	pthread_mutex_init(&s->turn, NULL);
	pthread_mutex_init(&s->mutex, NULL);
	cf_cond_init(&s->heard);
}

void cf_suspend_fini(struct cf_suspend *s)
{
	pthread_mutex_destroy(&s->turn);
	pthread_mutex_destroy(&s->mutex);
	pthread_cond_destroy(&s->heard);
}

static bool is_suspended(struct cf_suspend *s)
{
	pthread_mutex_lock(&s->mutex);
	const bool is = s->suspended;
	pthread_mutex_unlock(&s->mutex);
	return is;
}

/* ---- suspend ---- */

static int refuse_to(struct cf_suspend *s, struct cf_err *err)
{
	struct cf_ops *o = s->ops;
	struct cf_cipher_info info;
	if (is_suspended(s))
		return cf_fail(err, -EINVAL, "it is suspended already");
	if (!s->loop)
		return cf_fail(err, -ENOTSUP, "with --io-uring a volume cannot be suspended: close it, or open it without");
	cf_cipher_info(cf_volume_cipher(o->volume), &info);
	if (!cf_volume_can_suspend(o->volume))
		return cf_fail(err, -ENOTSUP,
					   "the engine %s keeps the key in the kernel and could not set it again: close the volume instead",
					   info.engine);
	return 0;
}

void cf_suspend_heard(struct cf_suspend *s, int word)
{
	pthread_mutex_lock(&s->mutex);
	s->word = word;
	pthread_cond_signal(&s->heard);
	pthread_mutex_unlock(&s->mutex);
}

/* Have the helper do something and wait for it. Without a helper, or if it takes for ever, it is not done: no reason to
 * keep the key. */
static void ask_helper(struct cf_suspend *s, enum cf_helper_word word)
{
	const struct timespec until = cf_in_seconds(FLUSH_TIMEOUT_S);
	pthread_mutex_lock(&s->mutex);
	int r = s->word && !s->stopping ? cf_helper_tell(s->helper, word, NULL) : -EPIPE;
	if (r == 0)
		s->word = CF_HELPER_MOUNTED; /* whatever was said before */
	while (r == 0 && s->word && s->word != (int)word && !s->stopping)
		r = pthread_cond_timedwait(&s->heard, &s->mutex, &until);
	pthread_mutex_unlock(&s->mutex);
}

/* Dirty ones are written first. -ENOENT: the kernel does not know the file. */
static void drop_pages(struct cf_suspend *s)
{
	for (unsigned i = 0; i < cf_ops_n_files(s->ops); i++)
		(void)!fuse_lowlevel_notify_inval_inode(s->session, cf_ops_ino(s->ops, i), 0, 0);
}

/* Nobody is inside the gate. */
static int wipe(struct cf_suspend *s, struct cf_err *err)
{
	pthread_mutex_lock(&s->mutex);
	const bool stopping = s->stopping;
	if (!stopping) {
		cf_volume_suspend(s->ops->volume);
		s->suspended = true;
	}
	pthread_mutex_unlock(&s->mutex);
	return stopping ? cf_fail(err, -ESHUTDOWN, "the volume is being closed") : 0;
}

static int suspend(struct cf_suspend *s, struct cf_err *err)
{
	int r = refuse_to(s, err);
	if (r < 0)
		return r;
	ask_helper(s, CF_HELPER_FLUSH);
	drop_pages(s);
	r = cf_gate_close(&s->ops->gate, DRAIN_TIMEOUT_S);
	ask_helper(s, CF_HELPER_DROP);
	if (r < 0)
		return cf_fail(err, r, "requests to the image have not ended within %u s: not suspended", DRAIN_TIMEOUT_S);
	r = cf_volume_drain(s->ops->volume);
	if (r < 0)
		r = cf_fail(err, r, "what was written cannot be made durable (%s): not suspended", strerror(-r));
	else
		r = wipe(s, err);
	if (r < 0)
		cf_gate_open(&s->ops->gate);
	return r;
}

static int take_turn(struct cf_suspend *s, struct cf_err *err)
{
	return pthread_mutex_trylock(&s->turn) == 0
			   ? 0
			   : cf_fail(err, -EBUSY, "somebody else is just suspending or resuming it");
}

int cf_suspend(struct cf_suspend *s, struct cf_err *err)
{
	int r = take_turn(s, err);
	if (r < 0)
		return r;
	r = suspend(s, err);
	if (r == 0)
		(void)cf_loop_wipe(s->loop);
	pthread_mutex_unlock(&s->turn);
	return r;
}

/* ---- resume ---- */

static int resume(struct cf_suspend *s, const uint8_t *key, size_t key_bytes, struct cf_err *err)
{
	if (!is_suspended(s))
		return cf_fail(err, -EINVAL, "it is not suspended");
	if (key_bytes != s->ops->plan->cipher.key_bytes)
		return cf_fail(err, -EPERM, "this is not the key that the volume was opened with");
	pthread_mutex_lock(&s->mutex);
	int r = cf_volume_resume(s->ops->volume, key, err);
	s->suspended = r < 0;
	pthread_mutex_unlock(&s->mutex);
	if (r == 0)
		cf_gate_open(&s->ops->gate);
	return r;
}

int cf_resume(struct cf_suspend *s, const uint8_t *key, size_t key_bytes, struct cf_err *err)
{
	int r = take_turn(s, err);
	if (r < 0)
		return r;
	r = resume(s, key, key_bytes, err);
	pthread_mutex_unlock(&s->turn);
	return r;
}

/* ---- an end without the key ---- */

void cf_suspend_refuse(struct cf_suspend *s, enum cf_gate_state state)
{
	pthread_mutex_lock(&s->mutex);
	if (s->suspended && !(s->stopping && state == CF_GATE_CLOSED))
		cf_gate_refuse(&s->ops->gate, state);
	pthread_mutex_unlock(&s->mutex);
}

void cf_suspend_stop(struct cf_suspend *s)
{
	pthread_mutex_lock(&s->mutex);
	s->stopping = true;
	pthread_cond_signal(&s->heard);
	pthread_mutex_unlock(&s->mutex);
	cf_suspend_refuse(s, CF_GATE_REFUSING);
}
