/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* afalg_socket.c - a keyed algorithm of the kernel, and requests to it: sendmsg puts direction, IV and data on an
 * operation socket, a read takes the result.
 *
 * A plain read computes: nothing is in flight. Where the driver is asynchronous, several sockets are loaded and their
 * reads submitted together by the kernel's AIO (HAZARDS 25); the call returns when all have ended, since the kernel
 * writes to the destinations until then. (Linux 6.1.192 and others of 2026 read synchronously whatever the driver: then
 * they end one by one inside the submission, which is right and no faster.) A socket whose request did not run from end
 * to end may hold bytes of it, and nothing in its interface tells: it is closed and another accepted in its place, so
 * that no later request gets them. Nothing waits on a socket but for the cipher (non-blocking); nothing is allocated. A
 * slot is its worker's. */
#include "config.h"

#include <errno.h>
#include <linux/if_alg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "afalg.h"
#include "cryptfuse/secret.h"

#define SYNC_OPS 2u /* one works, one stands by for when it must be replaced and none can be had */

/* A failure of the data path: it may pass (the kernel is short of something), or the engine is lost. A sound request
 * that is refused for any other reason will be refused again. */
static int lost_or(int err)
{
	static const int may_pass[] = {EAGAIN, ENOMEM, ENOBUFS, EMFILE, ENFILE, EBUSY, ENOSPC, EINTR};
	for (size_t i = 0; i < CF_ARRAY_LEN(may_pass); i++)
		if (err == may_pass[i])
			return err == EINTR ? -EAGAIN : -err;
	return -ENODEV;
}

int cf_afalg_bind(const char *alg)
{
	/* The kernel takes a longer address than its header had for years: names of up to 127 characters. */
	union {
		struct sockaddr_alg alg;
		uint8_t bytes[sizeof(struct sockaddr_alg) + CF_AFALG_NAME];
	} addr = {.alg = {.salg_family = AF_ALG, .salg_type = "skcipher"}};
	const size_t name_at = offsetof(struct sockaddr_alg, salg_name), len = strlen(alg);
	if (len == 0 || len >= CF_AFALG_NAME)
		return -ENOENT;
	memcpy(addr.bytes + name_at, alg, len);
	const size_t addr_len = len < sizeof(addr.alg.salg_name) ? sizeof(addr.alg) : name_at + len + 1;
	int fd = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&addr, (socklen_t)addr_len) != 0) {
		int rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

bool cf_afalg_takes_key(const char *alg, size_t key_len)
{
	uint8_t key[256];
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(1 + i * 151);
	CF_CLEANUP(cf_close_fd) int fd = key_len <= sizeof(key) ? cf_afalg_bind(alg) : -1;
	return fd >= 0 && setsockopt(fd, SOL_ALG, ALG_SET_KEY, key, (socklen_t)key_len) == 0;
}

/* ---- operation sockets ---- */

/* A fresh one, with a buffer that holds a request where the system's limit allows: the descriptor or -errno. */
static int op_accept(const struct cf_afalg_tfm *t)
{
	int fd = accept4(t->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), bytes = (int)CF_AFALG_REQUEST_MAX;
	if (fd < 0)
		return lost_or(errno);
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	return fd;
}

/* Move up to @want usable sockets to the front, accepting anew what had to be closed. How many there are; the reason if
 * there is none. */
static int ops_ready(const struct cf_afalg_tfm *t, struct cf_afalg_slot *s, unsigned want)
{
	unsigned ready = 0;
	int rc = -ENODEV;
	for (unsigned i = 0; i < s->n_ops && ready < want; i++) {
		if (s->op[i] < 0)
			s->op[i] = rc = op_accept(t);
		if (s->op[i] >= 0) {
			int fd = s->op[i];
			s->op[i] = s->op[ready];
			s->op[ready++] = fd;
		}
	}
	return ready ? (int)ready : rc;
}

/* ---- a request ---- */

static int op_send(int fd, enum cf_dir dir, const struct cf_afalg_request *r, size_t iv_bytes)
{
	union {
		struct cmsghdr align;
		uint8_t bytes[CMSG_SPACE(sizeof(uint32_t)) + CMSG_SPACE(sizeof(struct af_alg_iv) + CF_AFALG_IV_MAX)];
	} control = {.bytes = {0}};
	struct iovec data = {.iov_base = (void *)r->src, .iov_len = r->len};
	struct msghdr m = {.msg_iov = &data, .msg_iovlen = 1, .msg_control = &control};
	uint32_t op = dir == CF_ENCRYPT ? ALG_OP_ENCRYPT : ALG_OP_DECRYPT;
	m.msg_controllen = CMSG_SPACE(sizeof(op));
	if (r->iv)
		m.msg_controllen += CMSG_SPACE(sizeof(struct af_alg_iv) + iv_bytes);
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	*c = (struct cmsghdr){.cmsg_level = SOL_ALG, .cmsg_type = ALG_SET_OP, .cmsg_len = CMSG_LEN(sizeof(op))};
	memcpy(CMSG_DATA(c), &op, sizeof(op));
	if (r->iv) {
		uint32_t len = (uint32_t)iv_bytes;
		c = CMSG_NXTHDR(&m, c);
		*c = (struct cmsghdr){
			.cmsg_level = SOL_ALG, .cmsg_type = ALG_SET_IV, .cmsg_len = CMSG_LEN(sizeof(struct af_alg_iv) + iv_bytes)};
		memcpy(CMSG_DATA(c), &len, sizeof(len));
		memcpy(CMSG_DATA(c) + sizeof(len), r->iv, iv_bytes);
	}
	ssize_t n = sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (n < 0)
		return lost_or(errno);
	return (size_t)n == r->len ? 0 : -ENOBUFS;
}

/* The read of a loaded socket: the cipher runs in here. */
static int op_receive(int fd, const struct cf_afalg_request *r)
{
	ssize_t n = recv(fd, r->dst, r->len, MSG_DONTWAIT);
	if (n < 0)
		return lost_or(errno);
	return (size_t)n == r->len ? 0 : -ENOBUFS;
}

/* One after the other on the first socket. */
static int run_serial(struct cf_afalg_tfm *t, struct cf_afalg_slot *s, enum cf_dir dir,
					  const struct cf_afalg_request *req, size_t n)
{
	int rc = ops_ready(t, s, 1);
	for (size_t i = 0; rc >= 0 && i < n; i++) {
		rc = op_send(s->op[0], dir, &req[i], t->iv_bytes);
		if (rc == 0)
			rc = op_receive(s->op[0], &req[i]);
		if (rc)
			cf_close_fd(&s->op[0]);
	}
	return rc < 0 ? rc : 0;
}

/* ---- several in flight ---- */

/* The kernel's AIO by its system calls: libaio would add nothing. Without it requests go one at a time. */
static void aio_setup(unsigned n, aio_context_t *ctx)
{
	if (syscall(SYS_io_setup, n, ctx) != 0)
		*ctx = 0;
}

/* Waits until nothing of it is outstanding. */
static void aio_destroy(aio_context_t *ctx)
{
	if (*ctx)
		syscall(SYS_io_destroy, *ctx);
	*ctx = 0;
}

/* How many were taken, from the front; or -errno and none. */
static int aio_submit(aio_context_t ctx, struct iocb **list, size_t n)
{
	size_t done = 0;
	while (done < n) {
		long r = syscall(SYS_io_submit, ctx, (long)(n - done), list + done);
		if (r > 0)
			done += (size_t)r;
		else if (r == 0 || errno != EINTR)
			return done ? (int)done : lost_or(r ? errno : EAGAIN);
	}
	return (int)done;
}

/* Wait for all @n; result[i] becomes what the read of socket i returned. If they cannot be waited for one by one they
 * are waited for by ending the context, without their results: the slot goes on with one request at a time. */
static void aio_collect(struct cf_afalg_slot *s, size_t n, int64_t *result)
{
	struct io_event events[CF_AFALG_IN_FLIGHT];
	while (n) {
		long got = syscall(SYS_io_getevents, s->aio, (long)n, (long)n, events, NULL);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) {
			aio_destroy(&s->aio);
			return;
		}
		for (long i = 0; i < got; i++)
			result[events[i].data] = events[i].res;
		n -= (size_t)got;
	}
}

/* One request a socket, all submitted, then all collected. @n: at most the sockets that are ready. */
static int run_round(struct cf_afalg_tfm *t, struct cf_afalg_slot *s, enum cf_dir dir,
					 const struct cf_afalg_request *req, size_t n)
{
	struct iocb cb[CF_AFALG_IN_FLIGHT] = {0}, *list[CF_AFALG_IN_FLIGHT];
	int64_t result[CF_AFALG_IN_FLIGHT];
	int rc = 0;
	size_t loaded = 0;
	for (; rc == 0 && loaded < n; loaded++) {
		struct iocb *c = list[loaded] = &cb[loaded];
		c->aio_data = loaded;
		c->aio_lio_opcode = IOCB_CMD_PREAD;
		c->aio_fildes = (uint32_t)s->op[loaded];
		c->aio_buf = (uintptr_t)req[loaded].dst;
		c->aio_nbytes = req[loaded].len;
		result[loaded] = -ENOBUFS;
		rc = op_send(s->op[loaded], dir, &req[loaded], t->iv_bytes);
	}
	if (rc == 0) {
		rc = aio_submit(s->aio, list, loaded);
		if (rc > 0)
			aio_collect(s, (size_t)rc, result);
	}
	rc = rc < 0 ? rc : 0;
	for (size_t i = 0; i < loaded; i++) {
		if (result[i] == (int64_t)req[i].len)
			continue;
		cf_close_fd(&s->op[i]);
		if (rc != -ENODEV)
			rc = result[i] < 0 ? lost_or((int)-result[i]) : -ENOBUFS;
	}
	return rc;
}

unsigned cf_afalg_in_flight(const struct cf_afalg_tfm *t, unsigned worker)
{
	return t->slot[worker].aio ? t->slot[worker].n_ops : 1;
}

int cf_afalg_run(struct cf_afalg_tfm *t, unsigned worker, enum cf_dir dir, const struct cf_afalg_request *req, size_t n)
{
	struct cf_afalg_slot *s = &t->slot[worker];
	for (size_t run; n; n -= run, req += run) {
		int ready = s->aio && n > 1 ? ops_ready(t, s, n < s->n_ops ? (unsigned)n : s->n_ops) : 1;
		if (ready < 0)
			return ready;
		run = ready > 1 ? (size_t)ready : n;
		int rc = ready > 1 ? run_round(t, s, dir, req, run) : run_serial(t, s, dir, req, run);
		if (rc)
			return rc;
	}
	return 0;
}

/* ---- setting up ---- */

void cf_afalg_tfm_free(struct cf_afalg_tfm **tfm)
{
	struct cf_afalg_tfm *t = *tfm;
	for (unsigned w = 0; t && w < t->n_workers; w++) {
		aio_destroy(&t->slot[w].aio);
		for (unsigned i = 0; i < t->slot[w].n_ops; i++)
			cf_close_fd(&t->slot[w].op[i]);
	}
	if (t)
		cf_close_fd(&t->fd);
	cf_secret_freep(tfm);
}

/* A volume with 64 keys for 16 workers has thousands of sockets: the soft limit is for programs that use select(). */
static bool raise_descriptor_limit(void)
{
	struct rlimit l;
	if (getrlimit(RLIMIT_NOFILE, &l) != 0 || l.rlim_cur >= l.rlim_max)
		return false;
	l.rlim_cur = l.rlim_max;
	return setrlimit(RLIMIT_NOFILE, &l) == 0;
}

static int add_op(struct cf_afalg_tfm *t, struct cf_afalg_slot *s)
{
	int fd = op_accept(t);
	if (fd == -EMFILE && raise_descriptor_limit())
		fd = op_accept(t);
	if (fd >= 0)
		s->op[s->n_ops++] = fd;
	return fd;
}

/* One socket for every worker, whatever happens; more while descriptors are plenty, for other keys need them too. */
static int add_ops(struct cf_afalg_tfm *t, unsigned want)
{
	struct rlimit l = {0};
	for (unsigned n = 0; n < want; n++)
		for (unsigned w = 0; w < t->n_workers; w++) {
			int fd = add_op(t, &t->slot[w]);
			if (fd < 0 && n == 0)
				return fd;
			if (fd < 0 || (getrlimit(RLIMIT_NOFILE, &l) == 0 && (rlim_t)fd > l.rlim_cur / 2 && n > 0))
				return 0;
		}
	return 0;
}

/* As large as a request may be: the socket buffer must hold it. */
static size_t request_max(int fd)
{
	int bytes = 0;
	socklen_t len = sizeof(bytes);
	if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &len) != 0 || bytes < 4096)
		return 4096;
	size_t fits = (size_t)bytes & ~(size_t)4095;
	return fits < CF_AFALG_REQUEST_MAX ? fits : CF_AFALG_REQUEST_MAX;
}

int cf_afalg_tfm_new(struct cf_afalg_tfm **out, const char *alg, const uint8_t *key, size_t key_len, size_t iv_bytes,
					 unsigned n_workers)
{
	CF_CLEANUP(cf_afalg_tfm_free)
	struct cf_afalg_tfm *t = cf_secret_alloc(sizeof(*t) + n_workers * sizeof(t->slot[0]));
	struct cf_afalg_driver driver;
	if (!t)
		return -ENOMEM;
	t->iv_bytes = iv_bytes;
	t->n_workers = n_workers;
	t->fd = cf_afalg_bind(alg);
	if (t->fd < 0)
		return t->fd == -EMFILE || t->fd == -ENFILE || t->fd == -ENOMEM ? t->fd : -ENOENT;
	if (setsockopt(t->fd, SOL_ALG, ALG_SET_KEY, key, (socklen_t)key_len) != 0)
		return errno == ENOMEM ? -ENOMEM : -EINVAL;
	bool async = cf_afalg_driver_find(alg, &driver) == 0 && driver.async;
	int rc = add_ops(t, async ? CF_AFALG_IN_FLIGHT : SYNC_OPS);
	if (rc)
		return rc;
	for (unsigned w = 0; async && w < n_workers; w++)
		if (t->slot[w].n_ops > 1)
			aio_setup(t->slot[w].n_ops, &t->slot[w].aio);
	t->request_max = request_max(t->slot[0].op[0]);
	*out = cf_take(t);
	return 0;
}
