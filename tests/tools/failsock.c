/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* failsock.c - to be preloaded: makes a call on an AF_ALG socket, or of the kernel's AIO, fail or go short, and counts
 * the requests that are outstanding at once. Calls on other sockets pass.
 *
 * FAILSOCK=CALL:N:HOW, or failsock_arm("CALL:N:HOW") from the program itself (dlsym): from now on, the N-th CALL.
 *   CALL  accept sendmsg recv io_setup io_submit io_getevents, or result: what an AIO read is said to have returned
 *   HOW   before:ERRNO  the call is not made   after:ERRNO  it is made, and its result withheld   short  half of it
 * N may end in '+': that one and all after it. For one thread. */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/aio_abi.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(default)
void failsock_arm(const char *plan);
unsigned failsock_fired(void);
unsigned failsock_peak(void);
#pragma GCC visibility pop

enum how { PASS, BEFORE, AFTER, SHORT };

static struct {
	char call[16];
	unsigned at, seen, fired;
	bool and_after;
	enum how how;
	int err;
} plan;

/* Requests whose reads were submitted and not collected; and the most that were not even complete. */
static unsigned uncollected, peak;

/* The user-visible head of an AIO context. */
struct ring {
	unsigned id, nr, head, tail, magic;
};

void failsock_arm(const char *text)
{
	char how[16] = "", more[2] = "";
	memset(&plan, 0, sizeof(plan));
	peak = 0;
	if (!text || sscanf(text, "%15[^:]:%u%1[+]", plan.call, &plan.at, more) < 2)
		return;
	plan.and_after = *more;
	text = strchr(strchr(text, ':') + 1, ':');
	if (!text || sscanf(text, ":%15[^:]:%d", how, &plan.err) < 1)
		return;
	plan.how = !strcmp(how, "short") ? SHORT : !strcmp(how, "after") ? AFTER : BEFORE;
}

unsigned failsock_fired(void)
{
	return plan.fired;
}

unsigned failsock_peak(void)
{
	return peak;
}

__attribute__((constructor)) static void from_environment(void)
{
	failsock_arm(getenv("FAILSOCK"));
}

static enum how fate(const char *call)
{
	if (plan.how == PASS || strcmp(call, plan.call) != 0)
		return PASS;
	plan.seen++;
	if (plan.seen != plan.at && !(plan.and_after && plan.seen > plan.at))
		return PASS;
	plan.fired++;
	return plan.how;
}

static long fail(void)
{
	errno = plan.err;
	return -1;
}

static bool is_alg(int fd)
{
	int domain = 0;
	socklen_t len = sizeof(domain);
	return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) == 0 && domain == AF_ALG;
}

/* A function of libc's as a type that can be called. */
#define REAL(name, ...) __extension__((__typeof__(&name))dlsym(RTLD_NEXT, #name))(__VA_ARGS__)

static void saw(unsigned outstanding)
{
	peak = outstanding > peak ? outstanding : peak;
}

int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	enum how h = is_alg(fd) ? fate("accept") : PASS;
	if (h == BEFORE)
		return (int)fail();
	int got = REAL(accept4, fd, addr, len, flags);
	if (h == PASS || got < 0)
		return got;
	close(got);
	return (int)fail();
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	enum how h = is_alg(fd) ? fate("sendmsg") : PASS;
	struct msghdr half = *m;
	struct iovec iov = *m->msg_iov;
	if (h == BEFORE)
		return fail();
	if (h == SHORT) {
		iov.iov_len /= 2;
		half.msg_iov = &iov;
	}
	ssize_t n = REAL(sendmsg, fd, h == SHORT ? &half : m, flags);
	return h == AFTER ? fail() : n;
}

ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	bool alg = is_alg(fd);
	enum how h = alg ? fate("recv") : PASS;
	if (h == BEFORE)
		return fail();
	if (alg)
		saw(1);
	ssize_t n = REAL(recv, fd, buf, h == SHORT ? len / 2 : len, flags);
	return h == AFTER ? fail() : n;
}

static long submit(long ctx, long n, long list)
{
	enum how h = fate("io_submit");
	if (h == BEFORE)
		return fail();
	long r = REAL(syscall, SYS_io_submit, ctx, h == SHORT && n > 1 ? n / 2 : n, list);
	const volatile struct ring *ring = (const volatile struct ring *)ctx;
	if (r > 0) {
		uncollected += (unsigned)r;
		saw(uncollected - (ring->tail + ring->nr - ring->head) % ring->nr);
	}
	return r;
}

static long collect(long ctx, long min, long max, struct io_event *events, long timeout)
{
	enum how h = fate("io_getevents");
	if (h == BEFORE)
		return fail();
	long r = REAL(syscall, SYS_io_getevents, ctx, h == SHORT ? 1 : min, h == SHORT ? 1 : max, events, timeout);
	for (long i = 0; i < r; i++) {
		uncollected--;
		enum how result = fate("result");
		if (result == SHORT)
			events[i].res /= 2;
		else if (result != PASS)
			events[i].res = -plan.err;
	}
	return r;
}

long syscall(long number, ...)
{
	long a[6];
	va_list ap;
	va_start(ap, number);
	for (unsigned i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (number == SYS_io_setup && fate("io_setup") != PASS)
		return fail();
	if (number == SYS_io_destroy)
		uncollected = 0;
	if (number == SYS_io_submit)
		return submit(a[0], a[1], a[2]);
	if (number == SYS_io_getevents)
		return collect(a[0], a[1], a[2], (struct io_event *)a[3], a[4]);
	return REAL(syscall, number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
