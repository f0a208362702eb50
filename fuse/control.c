/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* control.c - the daemon's ear: a thread that accepts, and one for each request, since some take long.
 *
 * Invariant: a request that is not from this user or root is not read. After cf_control_listen nothing is opened:
 * accept4, recvmsg, sendmsg, poll, getsockopt, shutdown, close and threads are all that is needed. */
#include "config.h"

#include "cryptfuse/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "cryptfuse/clock.h"
#include "cryptfuse/mounts.h"
#include "cryptfuse/ops.h"
#include "cryptfuse/runtime.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/suspend.h"

#define STOP_TIMEOUT_S 5

/** One request being answered. */
struct talk {
	struct cf_control *control;
	unsigned slot;
	int sock;
};

/* ---- the socket ---- */

/* Nobody listens at the end of a stale one. */
static bool is_stale(const struct sockaddr_un *addr)
{
	CF_CLEANUP(cf_close_fd) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd >= 0 && connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) != 0 && errno == ECONNREFUSED;
}

static int bind_at(const char *base, const struct cf_mount *m, int *out)
{
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int r = cf_control_path(base, m, addr.sun_path, sizeof(addr.sun_path));
	if (r < 0 || (r = cf_runtime_make(base, NULL)) < 0)
		return r;
	CF_CLEANUP(cf_close_fd) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	r = bind(fd, (const struct sockaddr *)&addr, sizeof(addr));
	if (r != 0 && errno == EADDRINUSE && is_stale(&addr) && unlink(addr.sun_path) == 0)
		r = bind(fd, (const struct sockaddr *)&addr, sizeof(addr));
	if (r != 0 || listen(fd, CF_CONTROL_CLIENTS) != 0)
		return -errno;
	*out = fd;
	fd = -1;
	return 0;
}

int cf_control_listen(struct cf_control *c, const struct cf_mount *m, struct cf_err *err)
{
	char base[CF_RUNTIME_BASES][PATH_MAX];
	int r = -ENOENT;
	c->uid = geteuid();
	cf_runtime_bases(c->uid, base);
	for (unsigned i = 0; i < CF_RUNTIME_BASES && r < 0; i++)
		if (base[i][0])
			r = bind_at(base[i], m, &c->sock);
	return r < 0 ? cf_fail(err, r, "no control socket (%s): this volume cannot be suspended", strerror(-r)) : 0;
}

/* ---- requests ---- */

static bool may_ask(const struct cf_control *c, int sock)
{
	struct ucred who;
	socklen_t len = sizeof(who);
	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && (who.uid == c->uid || who.uid == 0);
}

static void answer(int sock, int code, const struct cf_err *err)
{
	struct cf_control_answer a = {.magic = CF_CONTROL_MAGIC, .code = code};
	if (err && err->code)
		snprintf(a.text, sizeof(a.text), "%s", err->text);
	(void)!cf_control_send(sock, &a, sizeof(a));
}

static void say_status(const struct talk *t)
{
	CF_CLEANUP(cf_freep) char *json = cf_status_json(t->control->ops);
	answer(t->sock, json ? 0 : -ENOMEM, NULL);
	if (json)
		(void)!cf_control_send(t->sock, json, strlen(json));
}

static int take_key(const struct talk *t, size_t key_bytes, struct cf_err *err)
{
	if (key_bytes > CF_KEY_MAX)
		return cf_fail(err, -EPROTO, "a key of %zu bytes", key_bytes);
	CF_CLEANUP(cf_secret_freep) uint8_t *key = cf_secret_alloc(key_bytes);
	if (!key)
		return cf_fail(err, -ENOMEM, "no memory for the key");
	int r = key_bytes ? cf_control_recv(t->sock, key, key_bytes, CF_CONTROL_TIMEOUT_S) : 0;
	if (r < 0)
		return cf_fail(err, r, "the key did not arrive: %s", strerror(-r));
	return cf_resume(t->control->suspend, key, key_bytes, err);
}

static void do_request(const struct talk *t, const struct cf_control_request *q)
{
	struct cf_suspend *s = t->control->suspend;
	struct cf_err err = {0};
	int r = 0;
	switch (q->word) {
	case CF_CONTROL_STATUS:
		say_status(t);
		return;
	case CF_CONTROL_SUSPEND:
		r = cf_suspend(s, &err);
		break;
	case CF_CONTROL_RESUME:
		r = take_key(t, q->key_bytes, &err);
		break;
	case CF_CONTROL_REFUSE:
		cf_suspend_refuse(s, CF_GATE_REFUSING);
		break;
	case CF_CONTROL_PARK:
		cf_suspend_refuse(s, CF_GATE_CLOSED);
		break;
	default:
		r = cf_fail(&err, -ENOSYS, "the daemon is of an older release and does not know this request");
	}
	answer(t->sock, r, &err);
}

/* ---- threads ---- */

static void *talk(void *arg)
{
	struct talk *t = arg;
	struct cf_control *c = t->control;
	struct cf_control_request q;
	if (!may_ask(c, t->sock))
		answer(t->sock, -EACCES, NULL);
	else if (cf_control_recv(t->sock, &q, sizeof(q), CF_CONTROL_TIMEOUT_S) == 0 && q.magic == CF_CONTROL_MAGIC)
		do_request(t, &q);
	pthread_mutex_lock(&c->mutex);
	close(t->sock);
	c->client[t->slot] = -1;
	c->n--;
	pthread_cond_signal(&c->ended);
	pthread_mutex_unlock(&c->mutex);
	free(t);
	return NULL;
}

/* Under the mutex. Without a free place, or memory, it is hung up on. */
static int start_talk(struct cf_control *c, int sock)
{
	pthread_t thread;
	unsigned slot = 0;
	while (slot < CF_CONTROL_CLIENTS && c->client[slot] >= 0)
		slot++;
	CF_CLEANUP(cf_freep) struct talk *t = slot < CF_CONTROL_CLIENTS ? malloc(sizeof(*t)) : NULL;
	if (!t)
		return -EBUSY;
	*t = (struct talk){.control = c, .slot = slot, .sock = sock};
	int r = pthread_create(&thread, NULL, talk, t);
	if (r != 0)
		return -r;
	pthread_detach(thread);
	t = NULL;
	c->client[slot] = sock;
	c->n++;
	return 0;
}

static void *listen_on(void *arg)
{
	static const struct timespec pause = {.tv_nsec = 100 * 1000 * 1000};
	struct cf_control *c = arg;
	for (;;) {
		int sock = accept4(c->sock, NULL, NULL, SOCK_CLOEXEC);
		if (sock < 0 && errno == EINVAL) /* shut down */
			return NULL;
		if (sock < 0) { /* out of descriptors, perhaps */
			nanosleep(&pause, NULL);
			continue;
		}
		pthread_mutex_lock(&c->mutex);
		int r = start_talk(c, sock);
		pthread_mutex_unlock(&c->mutex);
		if (r < 0)
			close(sock);
	}
}

int cf_control_start(struct cf_control *c, struct cf_ops *ops, struct cf_suspend *s)
{
	c->ops = ops;
	c->suspend = s;
	for (unsigned i = 0; i < CF_CONTROL_CLIENTS; i++)
		c->client[i] = -1;
	if (c->sock < 0)
		return 0;
	pthread_mutex_init(&c->mutex, NULL);
	cf_cond_init(&c->ended);
	int r = pthread_create(&c->thread, NULL, listen_on, c);
	c->running = r == 0;
	return -r;
}

bool cf_control_stop(struct cf_control *c)
{
	if (!c->running)
		return true;
	shutdown(c->sock, SHUT_RDWR);
	pthread_join(c->thread, NULL);
	const struct timespec until = cf_in_seconds(STOP_TIMEOUT_S);
	pthread_mutex_lock(&c->mutex);
	for (unsigned i = 0; i < CF_CONTROL_CLIENTS; i++)
		if (c->client[i] >= 0)
			shutdown(c->client[i], SHUT_RD);
	int r = 0;
	while (c->n && r == 0)
		r = pthread_cond_timedwait(&c->ended, &c->mutex, &until);
	const bool done = c->n == 0;
	pthread_mutex_unlock(&c->mutex);
	c->running = false;
	cf_close_fd(&c->sock);
	return done;
}
