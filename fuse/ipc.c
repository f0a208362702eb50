/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ipc.c - the messages between the parent that opens and the daemon that serves.
 *
 * Invariant: key bytes go from one arena to the other and through nothing else of ours; both ends are the same program
 * after one fork, so structs travel as they are, but sizes and strings are still checked. */
#include "config.h"

#include "cryptfuse/ipc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cryptfuse/secret.h"

#define KEPT_FD 3

int cf_ipc_pair(int fds[static 2])
{
	return socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0 ? 0 : -errno;
}

int cf_ipc_keep_only(int *sock)
{
	if (dup2(*sock, KEPT_FD) < 0 || fcntl(KEPT_FD, F_SETFD, FD_CLOEXEC) != 0 || close_range(KEPT_FD + 1, ~0U, 0) != 0)
		return -errno;
	*sock = KEPT_FD;
	return 0;
}

int cf_ipc_let_go(int *sock, enum cf_ipc_stderr what)
{
	int r = cf_ipc_keep_only(sock);
	if (r < 0)
		return r;
	for (int fd = 0; fd <= 2; fd++) {
		if (fd == 2 && what == CF_IPC_STDERR_KEPT && fcntl(2, F_GETFD) >= 0)
			break;
		close(fd);
		if (open("/dev/null", O_RDWR) != fd)
			return -EIO;
	}
	setsid();
	return chdir("/") == 0 ? 0 : -errno;
}

/* A whole message, or -errno. */
static int send_bytes(int sock, const void *data, size_t len)
{
	ssize_t n;
	do
		n = send(sock, data, len, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* A message of exactly @len bytes; -EPIPE at the end, as when sending. */
static int recv_bytes(int sock, void *data, size_t len)
{
	ssize_t n;
	do
		n = recv(sock, data, len, MSG_TRUNC);
	while (n < 0 && errno == EINTR);
	/* It ended with something unread: the kernel says so once, and before what it had said itself. */
	if (n < 0 && errno == ECONNRESET)
		n = recv(sock, data, len, MSG_TRUNC);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	return n == 0 ? -EPIPE : (size_t)n == len ? 0 : -EPROTO;
}

/* Room for the descriptors beside a message, aligned as the kernel wants it. */
union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE((CF_IMAGE_PARTS_MAX + 1) * sizeof(int))];
};

static int send_plan(int sock, const struct cf_open_plan *plan, const struct cf_image *image)
{
	union control control = {0};
	const size_t parts_bytes = image->n_parts * sizeof(int), fd_bytes = parts_bytes + image->n_journals * sizeof(int);
	struct iovec iov = {.iov_base = (void *)plan, .iov_len = sizeof(*plan)};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = CMSG_SPACE(fd_bytes)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(fd_bytes);
	memcpy(CMSG_DATA(c), image->fd, parts_bytes);
	memcpy(CMSG_DATA(c) + parts_bytes, &image->journal, fd_bytes - parts_bytes);
	ssize_t n;
	do
		n = sendmsg(sock, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int cf_ipc_send_order(int sock, const struct cf_open_plan *plan, const uint8_t *key, const struct cf_image *image)
{
	int r = send_plan(sock, plan, image);
	return r < 0 || !plan->cipher.key_bytes ? r : send_bytes(sock, key, plan->cipher.key_bytes);
}

/* The descriptors that came with a message, the journal's last. Padding may leave room for one more: none that came may
 * stay open. */
static int take_fds(struct msghdr *msg, unsigned n_journals, struct cf_image *image)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return -EPROTO;
	const size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int), n_parts = n > n_journals ? n - n_journals : 0;
	for (size_t i = 0; i < n; i++) {
		int fd;
		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		if (i < n_parts && i < CF_IMAGE_PARTS_MAX)
			image->fd[image->n_parts++] = fd;
		else if (i >= n_parts && !image->n_journals) {
			image->journal = fd;
			image->n_journals = 1;
		} else
			close(fd);
	}
	return n_parts >= 1 && n_parts <= CF_IMAGE_PARTS_MAX ? 0 : -EPROTO;
}

static int recv_plan(int sock, struct cf_open_plan *plan, struct cf_image *image)
{
	union control control;
	struct iovec iov = {.iov_base = plan, .iov_len = sizeof(*plan)};
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
	ssize_t n;
	do
		n = recvmsg(sock, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	if (n == 0)
		return -EPIPE;
	if ((size_t)n != sizeof(*plan)) /* then it does not say either what came with it */
		plan->journal[0] = '\0';
	int r = take_fds(&msg, *plan->journal != '\0', image);
	if (r < 0)
		return r;
	return (size_t)n == sizeof(*plan) && !(msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) ? 0 : -EPROTO;
}

static bool is_string(const char *text, size_t size)
{
	return memchr(text, '\0', size) != NULL;
}

/* Tables are indexed by these, and a value between read-only and read-write would be either, as one looks at it. */
static bool enums_are_sane(const struct cf_open_plan *p)
{
	const struct {
		unsigned value, last;
	} enums[] = {
		{p->access, CF_READ_WRITE},        {p->lock, CF_LOCK_NONE},
		{p->image_cache, CF_IMAGE_DIRECT}, {p->discards, CF_DISCARDS_ALLOWED},
		{p->bad_sectors, CF_BAD_ZERO},     {p->cipher.iv_numbering, CF_IV_LARGE_SECTORS},
	};
	for (size_t i = 0; i < CF_ARRAY_LEN(enums); i++)
		if (enums[i].value > enums[i].last)
			return false;
	for (unsigned i = 0; i < p->n_segments; i++)
		if ((unsigned)p->segment[i].kind > CF_SEGMENT_ZERO)
			return false;
	return true;
}

/* Where the segments lie the volume checks itself. */
static bool plan_is_sane(const struct cf_open_plan *p)
{
	const struct cf_cipher_spec *c = &p->cipher;
	return !p->command[CF_COMMAND_MAX - 1] && !p->command[CF_COMMAND_MAX - 2] &&
		   is_string(c->cipher, sizeof(c->cipher)) && is_string(c->mode, sizeof(c->mode)) &&
		   is_string(c->iv, sizeof(c->iv)) && is_string(c->essiv_hash, sizeof(c->essiv_hash)) &&
		   is_string(p->engine, sizeof(p->engine)) && is_string(p->type, sizeof(p->type)) &&
		   is_string(p->uuid, sizeof(p->uuid)) && is_string(p->journal, sizeof(p->journal)) &&
		   p->n_segments <= CF_SEGMENTS_MAX && c->key_bytes <= CF_KEY_MAX && p->n_workers >= 1 &&
		   p->n_workers <= CF_WORKERS_MAX && p->n_permits >= 1 && p->n_permits <= p->n_workers && enums_are_sane(p);
}

int cf_ipc_recv_order(int sock, struct cf_open_plan *plan, uint8_t **key, struct cf_image *image)
{
	CF_CLEANUP(cf_image_close) struct cf_image got = {0};
	CF_CLEANUP(cf_secret_freep) uint8_t *k = NULL;
	int r = recv_plan(sock, plan, &got);
	if (r < 0)
		return r;
	if (!plan_is_sane(plan) || (plan->image_cache == CF_IMAGE_DIRECT && got.n_parts > 1))
		return -EPROTO;
	size_t key_bytes = plan->cipher.key_bytes;
	if (key_bytes) {
		if (!(k = cf_secret_alloc(key_bytes)))
			return -ENOMEM;
		r = recv_bytes(sock, k, key_bytes);
	}
	if (r < 0)
		return r;
	*key = cf_take(k);
	got.access = plan->access;
	got.cache = plan->image_cache;
	*image = got;
	got.n_parts = got.n_journals = 0;
	return 0;
}

int cf_ipc_send_parts(int sock, const struct cf_serve_part *parts, unsigned n)
{
	struct cf_serve_part none = {0}; /* a message of no bytes would be the end */
	return n > CF_SERVE_PARTS_MAX ? -E2BIG
		   : n                    ? send_bytes(sock, parts, n * sizeof(*parts))
								  : send_bytes(sock, &none, 1);
}

int cf_ipc_recv_parts(int sock, struct cf_serve_part parts[static CF_SERVE_PARTS_MAX])
{
	const size_t max = CF_SERVE_PARTS_MAX * sizeof(parts[0]);
	ssize_t n;
	do
		n = recv(sock, parts, max, MSG_TRUNC | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	if (n == 1)
		return 0;
	if (n == 0 || (size_t)n > max || (size_t)n % sizeof(parts[0]))
		return n == 0 ? -EPIPE : -EPROTO;
	return (int)((size_t)n / sizeof(parts[0]));
}

int cf_ipc_answer(int sock, enum cf_ipc_kind kind, int code, const char *text)
{
	struct cf_ipc_answer a = {.kind = kind, .code = code};
	if (text)
		snprintf(a.text, sizeof(a.text), "%s", text);
	return send_bytes(sock, &a, sizeof(a));
}

int cf_ipc_recv_answer(int sock, struct cf_ipc_answer *out)
{
	int r = recv_bytes(sock, out, sizeof(*out));
	return r == 0 && !is_string(out->text, sizeof(out->text)) ? -EPROTO : r;
}
