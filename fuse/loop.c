/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* loop.c - threads that read requests, work, and are parked when there are enough.
 *
 * Invariant: while the session lives at least one thread reads or one at work will read before it could be missed: who
 * takes a request while nobody else reads looks whether another may be called, and who has finished reads again unless
 * enough do. The last that was parked is called first: its stack and buffer are warm. The mutex guards the counts and
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

#include "cryptfuse/cipher.h"

struct thread {
	struct loop *loop;
	pthread_t id;
	struct fuse_buf buf; /* libfuse allocates its memory at the first request */
	pthread_cond_t call;
	bool called;
	struct thread *next_parked;
};

struct loop {
	struct fuse_session *se;
	const struct cf_loop_opts *opts;
	pthread_mutex_t mutex;
	unsigned n, reading, n_parked; /* reading: also those that were called to read */
	struct thread *parked;
	bool ending;
	atomic_int error;
	sem_t ended;
	struct thread threads[CF_WORKERS_MAX];
};

static void *work(void *arg);

/* How many threads should be awake. */
static unsigned wanted(const struct loop *l)
{
	unsigned waiting = l->opts->waiting(l->opts->ctx), max = l->opts->n_threads;
	unsigned ready = l->opts->n_ready < max ? l->opts->n_ready : max;
	return waiting < max - ready ? ready + waiting : max;
}

/* The signals that end a daemon are not for these. */
static int start_thread(struct loop *l)
{
	struct thread *t = &l->threads[l->n];
	sigset_t ends, before;
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGHUP);
	sigaddset(&ends, SIGQUIT);
	sigaddset(&ends, SIGUSR1);
	*t = (struct thread){.loop = l};
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

/* Have one more thread read, if more should be awake. Without memory for a new one those that are there go on. */
static void call_another(struct loop *l)
{
	struct thread *t = l->parked;
	if (l->ending || l->n - l->n_parked >= wanted(l))
		return;
	if (!t) {
		(void)!start_thread(l);
		return;
	}
	l->parked = t->next_parked;
	l->n_parked--;
	l->reading++;
	t->called = true;
	pthread_cond_signal(&t->call);
}

/* Become a reader, or be parked until called. False: it is over. */
static bool back_to_reading(struct loop *l, struct thread *t)
{
	pthread_mutex_lock(&l->mutex);
	bool enough = l->reading >= l->opts->n_ready || (l->reading && l->n - l->n_parked > wanted(l));
	if (!enough) {
		l->reading++;
	} else {
		t->called = false;
		t->next_parked = l->parked;
		l->parked = t;
		l->n_parked++;
		while (!t->called && !l->ending)
			pthread_cond_wait(&t->call, &l->mutex);
	}
	bool go_on = !l->ending;
	pthread_mutex_unlock(&l->mutex);
	return go_on;
}

static void taken(struct loop *l)
{
	pthread_mutex_lock(&l->mutex);
	if (--l->reading == 0)
		call_another(l);
	pthread_mutex_unlock(&l->mutex);
}

/* 1; 0 it is over; -errno. */
static int serve_one(struct loop *l, struct thread *t)
{
	int n;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	do
		n = fuse_session_receive_buf(l->se, &t->buf);
	while (n == -EINTR || n == -EAGAIN);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	if (n <= 0)
		return n;
	taken(l);
	fuse_session_process_buf(l->se, &t->buf);
	return 1;
}

static void *work(void *arg)
{
	struct thread *t = arg;
	struct loop *l = t->loop;
	int r;
	do
		r = serve_one(l, t);
	while (r > 0 && !fuse_session_exited(l->se) && back_to_reading(l, t));
	if (r < 0)
		atomic_store(&l->error, r);
	fuse_session_exit(l->se);
	sem_post(&l->ended);
	return NULL;
}

/* Those that read are cancelled, those at work finish, those that are parked are let go. */
static void end_all(struct loop *l)
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

int cf_loop_run(struct fuse_session *se, const struct cf_loop_opts *opts)
{
	struct loop *l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->se = se;
	l->opts = opts;
	pthread_mutex_init(&l->mutex, NULL);
	sem_init(&l->ended, 0, 0);
	pthread_mutex_lock(&l->mutex);
	int r = start_thread(l);
	pthread_mutex_unlock(&l->mutex);
	while (r == 0 && !fuse_session_exited(se))
		sem_wait(&l->ended); /* or a signal */
	end_all(l);
	r = r ? r : atomic_load(&l->error);
	sem_destroy(&l->ended);
	pthread_mutex_destroy(&l->mutex);
	free(l);
	return r;
}
