/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* loop.c - threads that read requests, work, and are parked when there are enough.
 *
 * Who takes a request while nobody else reads calls another if it may; who has finished reads again unless enough do.
 * Whether calls wait is known only afterwards: when no request was taken for a moment and nobody reads, the main thread
 * calls one more whatever is wanted, so a store that hangs takes all threads, not two, to hold up everything. The last
 * that was parked is called first: its stack and buffer are warm. The mutex guards the counts and
 * the list, and is held across no request. A thread can be cancelled while it reads, nowhere else. */
#include "config.h"

#include "cryptfuse/loop.h"

#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "cryptfuse/cipher.h"
#include "cryptfuse/secret.h"

#define STUCK_NS (5L * 1000 * 1000)
#define STACK_WIPED 32768u
#define WIPE_TRIES 2500u /* of 2 ms */
#define QUIET 20u        /* looks without a request, and the main thread sleeps */

struct thread {
	struct cf_loop *loop;
	pthread_t id;
	struct fuse_buf buf;    /* libfuse allocates its memory at the first request */
	size_t filled;          /* bytes of it that requests may have left behind */
	_Atomic unsigned wiped; /* the last round of wiping that it took part in */
	pthread_cond_t call;
	bool called, is_parked; /* under the mutex */
	struct thread *next_parked;
};

struct cf_loop {
	struct fuse_session *se;
	struct cf_loop_opts opts;
	pthread_mutex_t mutex;
	unsigned n, reading, n_parked; /* reading: also those that were called to read */
	struct thread *parked;
	unsigned n_taken;      /* requests; may wrap */
	_Atomic unsigned wipe; /* rounds of wiping that were asked for */
	bool watched;          /* the main thread looks for a standstill */
	bool ending;
	atomic_int error;
	sem_t wake; /* the main thread: it is over, or it should watch */
	struct thread threads[CF_WORKERS_MAX];
};

static void *work(void *arg);

/* How many threads should be awake. */
static unsigned wanted(const struct cf_loop *l)
{
	unsigned waiting = l->opts.waiting(l->opts.ctx), max = l->opts.n_threads;
	unsigned ready = l->opts.n_ready < max ? l->opts.n_ready : max;
	return waiting < max - ready ? ready + waiting : max;
}

/* The signals that end a daemon are not for these. */
static int start_thread(struct cf_loop *l)
{
	struct thread *t = &l->threads[l->n];
	sigset_t ends, before;
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	sigaddset(&ends, SIGQUIT);
	*t = (struct thread){.loop = l, .wiped = atomic_load(&l->wipe)};
	pthread_cond_init(&t->call, NULL);
	pthread_sigmask(SIG_BLOCK, &ends, &before);
	int r = pthread_create(&t->id, NULL, work, t);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r != 0) {
		pthread_cond_destroy(&t->call);
		return -r;
	}
	l->n++;
	l->reading++;
	return 0;
}

/* Have one more thread read, if fewer than @most are awake. Without memory for a new one those that are there go on. */
static void call_another(struct cf_loop *l, unsigned most)
{
	struct thread *t = l->parked;
	if (l->ending || l->n - l->n_parked >= most)
		return;
	if (!t) {
		(void)!start_thread(l);
		return;
	}
	l->parked = t->next_parked;
	l->n_parked--;
	l->reading++;
	t->is_parked = false;
	t->called = true;
	pthread_cond_signal(&t->call);
}

/* What calls that have returned left on the stack; and the signal that interrupted a read saved all registers there,
 * with what memcpy had in them. */
static __attribute__((noinline)) void wipe_stack(void)
{
	uint8_t below[STACK_WIPED];
	cf_secret_wipe(below, sizeof(below));
}

/* Its own thread only. */
static void wipe_if_asked(struct cf_loop *l, struct thread *t)
{
	const unsigned round = atomic_load_explicit(&l->wipe, memory_order_relaxed);
	if (atomic_load_explicit(&t->wiped, memory_order_relaxed) == round)
		return;
	if (t->filled)
		cf_secret_wipe(t->buf.mem, t->filled);
	t->filled = 0;
	wipe_stack();
	atomic_store(&t->wiped, round);
}

/* Become a reader, or be parked until called. False: it is over. */
static bool back_to_reading(struct cf_loop *l, struct thread *t)
{
	pthread_mutex_lock(&l->mutex);
	bool enough = l->reading >= l->opts.n_ready || (l->reading && l->n - l->n_parked > wanted(l));
	if (!enough) {
		l->reading++;
	} else {
		t->called = false;
		t->is_parked = true;
		t->next_parked = l->parked;
		l->parked = t;
		l->n_parked++;
		while (!t->called && !l->ending) {
			wipe_if_asked(l, t);
			pthread_cond_wait(&t->call, &l->mutex);
		}
	}
	bool go_on = !l->ending;
	pthread_mutex_unlock(&l->mutex);
	return go_on;
}

static void taken(struct cf_loop *l)
{
	pthread_mutex_lock(&l->mutex);
	l->n_taken++;
	if (--l->reading == 0)
		call_another(l, wanted(l));
	bool call_watch = l->reading == 0 && !l->watched;
	l->watched = l->watched || call_watch;
	pthread_mutex_unlock(&l->mutex);
	if (call_watch)
		sem_post(&l->wake);
}

/* No memory for the thread's buffer, and no request taken: to end for it would lose what others have written. */
static bool sleep_a_little(void)
{
	static const struct timespec pause = {.tv_nsec = STUCK_NS};
	nanosleep(&pause, NULL);
	return true;
}

/* 1; 0 it is over; -errno. A signal (cf_loop_wipe) can come between the look and the read: it is repeated. */
static int serve_one(struct cf_loop *l, struct thread *t)
{
	int n;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	do {
		wipe_if_asked(l, t);
		n = fuse_session_receive_buf(l->se, &t->buf);
	} while (n == -EINTR || n == -EAGAIN || (n == -ENOMEM && sleep_a_little()));
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	if (n <= 0)
		return n;
	t->filled = (size_t)n > t->filled ? (size_t)n : t->filled;
	taken(l);
	fuse_session_process_buf(l->se, &t->buf);
	return 1;
}

static void *work(void *arg)
{
	struct thread *t = arg;
	struct cf_loop *l = t->loop;
	int r;
	do
		r = serve_one(l, t);
	while (r > 0 && !fuse_session_exited(l->se) && back_to_reading(l, t));
	if (r < 0)
		atomic_store(&l->error, r);
	fuse_session_exit(l->se);
	sem_post(&l->wake);
	return NULL;
}

/* Sleeps while nothing is to be watched. A signal interrupts it. */
static void sleep_main(struct cf_loop *l, bool watched)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += STUCK_NS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	(void)(watched ? sem_clockwait(&l->wake, CLOCK_MONOTONIC, &until) : sem_wait(&l->wake));
}

/* Until it is over: find a standstill. */
static void watch(struct cf_loop *l)
{
	unsigned seen = 0, quiet = 0;
	for (bool watched = false; !fuse_session_exited(l->se);) {
		sleep_main(l, watched);
		pthread_mutex_lock(&l->mutex);
		const bool still = l->n_taken == seen;
		if (still && l->reading == 0)
			call_another(l, l->opts.n_threads);
		quiet = still && l->reading ? quiet + 1 : 0;
		l->watched = l->watched && quiet < QUIET;
		watched = l->watched;
		seen = l->n_taken;
		pthread_mutex_unlock(&l->mutex);
	}
}

/* Those that read are cancelled, those at work finish, those that are parked are let go. */
static void end_all(struct cf_loop *l)
{
	pthread_mutex_lock(&l->mutex);
	l->ending = true;
	for (struct thread *t = l->parked; t; t = t->next_parked)
		pthread_cond_signal(&t->call);
	pthread_mutex_unlock(&l->mutex);
	for (unsigned i = 0; i < l->n; i++) {
		pthread_cancel(l->threads[i].id);
		pthread_join(l->threads[i].id, NULL);
		pthread_cond_destroy(&l->threads[i].call);
		free(l->threads[i].buf.mem);
	}
}

int cf_loop_new(struct cf_loop **out, struct fuse_session *se, const struct cf_loop_opts *opts)
{
	struct cf_loop *l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->se = se;
	l->opts = *opts;
	pthread_mutex_init(&l->mutex, NULL);
	sem_init(&l->wake, 0, 0);
	*out = l;
	return 0;
}

int cf_loop_run(struct cf_loop *l)
{
	pthread_mutex_lock(&l->mutex);
	int r = start_thread(l);
	pthread_mutex_unlock(&l->mutex);
	if (r == 0)
		watch(l);
	l->opts.ending(l->opts.ctx);
	end_all(l);
	return r ? r : atomic_load(&l->error);
}

void cf_loop_free(struct cf_loop **l)
{
	if (!*l)
		return;
	sem_destroy(&(*l)->wake);
	pthread_mutex_destroy(&(*l)->mutex);
	free(*l);
	*l = NULL;
}

/* Under the mutex. True: all have done it. Those that are parked are called without a call, the others may be reading.
 */
static bool wipe_round(struct cf_loop *l, unsigned round)
{
	bool all = true;
	for (struct thread *t = l->parked; t && !l->ending; t = t->next_parked)
		pthread_cond_signal(&t->call);
	for (unsigned i = 0; i < l->n && !l->ending; i++) {
		struct thread *t = &l->threads[i];
		if (atomic_load(&t->wiped) == round)
			continue;
		all = false;
		if (!t->is_parked)
			pthread_kill(t->id, CF_LOOP_SIGNAL);
	}
	return all;
}

int cf_loop_wipe(struct cf_loop *l)
{
	static const struct timespec pause = {.tv_nsec = 2 * 1000 * 1000};
	const unsigned round = atomic_fetch_add(&l->wipe, 1) + 1;
	for (unsigned i = 0; i < WIPE_TRIES; i++) {
		pthread_mutex_lock(&l->mutex);
		const bool all = wipe_round(l, round);
		pthread_mutex_unlock(&l->mutex);
		if (all)
			return 0;
		nanosleep(&pause, NULL);
	}
	return -ETIMEDOUT;
}
