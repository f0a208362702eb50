/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* control_client.c - a command's side of the control socket, and what both sides share.
 *
 * Invariant: nothing is sent to a socket that does not lie in a private directory of the mount's user, or behind which
 * somebody else listens. One thread; never waits longer than its time-out. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "cryptfuse/control.h"
#include "cryptfuse/mounts.h"
#include "cryptfuse/runtime.h"

/* ---- messages ---- */

int cf_control_path(const char *base, const struct cf_mount *m, char *path, size_t path_size)
{
	const int n = snprintf(path, path_size, "%s/%u:%u.sock", base, m->dev_major, m->dev_minor);
	return n > 0 && (size_t)n < path_size ? 0 : -ENAMETOOLONG;
}

int cf_control_send(int sock, const void *data, size_t len)
{
	struct iovec iov = {.iov_base = (void *)(uintptr_t)data, .iov_len = len};
	const struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	ssize_t n;
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* How long it is; it may be shorter than @size. */
static ssize_t recv_any(int sock, void *data, size_t size, unsigned timeout_s)
{
	struct iovec iov = {.iov_base = data, .iov_len = size};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	struct pollfd p = {.fd = sock, .events = POLLIN};
	int ready;
	do
		ready = poll(&p, 1, (int)timeout_s * 1000);
	while (ready < 0 && errno == EINTR);
	if (ready <= 0)
		return ready ? -errno : -ETIMEDOUT;
	const ssize_t n = recvmsg(sock, &msg, 0);
	if (n <= 0)
		return n && errno != ECONNRESET ? -errno : -EPIPE;
	return msg.msg_flags & MSG_TRUNC ? -EPROTO : n;
}

int cf_control_recv(int sock, void *data, size_t len, unsigned timeout_s)
{
	const ssize_t n = recv_any(sock, data, len, timeout_s);
	return n < 0 ? (int)n : (size_t)n == len ? 0 : -EPROTO;
}

/* ---- finding the daemon ---- */

static bool belongs_to(int sock, uid_t uid)
{
	struct ucred who;
	socklen_t len = sizeof(who);
	return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 && who.uid == uid;
}

/* A daemon that is stopped accepts nobody, and the queue is short: connecting has its time-out, too. */
static int connect_at(const char *base, const struct cf_mount *m, int *out)
{
	const struct timeval limit = {.tv_sec = CF_CONTROL_TIMEOUT_S};
	struct sockaddr_un addr = {.sun_family = AF_UNIX};
	int r = cf_control_path(base, m, addr.sun_path, sizeof(addr.sun_path));
	if (r < 0 || !cf_runtime_is_private(base, m->uid))
		return -ENOENT;
	CF_CLEANUP(cf_close_fd) int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) != 0)
		return -errno;
	do
		r = connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 ? 0 : -errno;
	while (r == -EINTR);
	if (r == -ECONNREFUSED) /* left behind by a daemon that was killed */
		unlink(addr.sun_path);
	if (r < 0)
		return r == -EAGAIN ? -ETIMEDOUT : r == -ECONNREFUSED ? -ENOENT : r;
	if (!belongs_to(fd, m->uid))
		return -ENOENT;
	*out = fd;
	fd = -1;
	return 0;
}

static int connect_to(const struct cf_mount *m, int *out)
{
	char base[CF_RUNTIME_BASES][PATH_MAX];
	int r = -ENOENT;
	if (geteuid() != 0 && geteuid() != m->uid)
		return -EACCES;
	cf_runtime_bases(m->uid, base);
	for (unsigned i = 0; i < CF_RUNTIME_BASES && r == -ENOENT; i++)
		if (base[i][0])
			r = connect_at(base[i], m, out);
	return r;
}

void cf_control_forget(const struct cf_mount *m)
{
	int fd = -1;
	(void)!connect_to(m, &fd);
	cf_close_fd(&fd);
}

/* ---- questions ---- */

static int exchange(int sock, const struct cf_control_request *q, const uint8_t *key, unsigned timeout_s,
					struct cf_control_answer *a)
{
	int r = cf_control_send(sock, q, sizeof(*q));
	if (r == 0 && q->key_bytes)
		r = cf_control_send(sock, key, q->key_bytes);
	if (r == 0)
		r = cf_control_recv(sock, a, sizeof(*a), timeout_s);
	return r == 0 && (a->magic != CF_CONTROL_MAGIC || a->code > 0 || !memchr(a->text, '\0', sizeof(a->text))) ? -EPROTO
																											  : r;
}

int cf_control_ask(const struct cf_mount *m, char *json)
{
	const struct cf_control_request q = {.magic = CF_CONTROL_MAGIC, .word = CF_CONTROL_STATUS};
	struct cf_control_answer a;
	CF_CLEANUP(cf_close_fd) int sock = -1;
	int r = connect_to(m, &sock);
	if (r == 0)
		r = exchange(sock, &q, NULL, CF_CONTROL_TIMEOUT_S, &a);
	if (r < 0 || a.code < 0)
		return r < 0 ? r : a.code;
	const ssize_t n = recv_any(sock, json, CF_CONTROL_STATUS_MAX - 1, CF_CONTROL_TIMEOUT_S);
	json[n > 0 ? n : 0] = '\0';
	return n < 0 ? (int)n : 0;
}

int cf_control_tell(const struct cf_mount *m, enum cf_control_word word, const uint8_t *key, size_t key_bytes,
					struct cf_err *err)
{
	const struct cf_control_request q = {
		.magic = CF_CONTROL_MAGIC, .word = word, .key_bytes = word == CF_CONTROL_RESUME ? (uint32_t)key_bytes : 0};
	struct cf_control_answer a;
	CF_CLEANUP(cf_close_fd) int sock = -1;
	int r = connect_to(m, &sock);
	if (r == -ENOENT)
		return cf_fail(err, r, "%s: its daemon has no control socket that can be found from here", m->mountpoint);
	if (r == -EACCES)
		return cf_fail(err, r, "%s belongs to another user", m->mountpoint);
	if (r == 0)
		r = exchange(sock, &q, key, CF_CONTROL_LONG_TIMEOUT_S, &a);
	if (r < 0)
		return cf_fail(err, r, "%s: the daemon does not answer: %s", m->mountpoint, strerror(-r));
	return a.code < 0 ? cf_fail(err, a.code, "%s: %s", m->mountpoint, *a.text ? a.text : strerror(-a.code)) : 0;
}
