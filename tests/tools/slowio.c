/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* slowio.c - to be preloaded: a disk that takes its time. pread and pwrite sleep first, fdatasync sleeps or waits.
 *
 *   SLOWIO_CALL_US=N     before each pread and pwrite
 *   SLOWIO_SYNC_MS=N     before each fdatasync
 *   SLOWIO_SYNC_GATE=F   fdatasync makes the file F.waits and goes on when the file F is there; F: an absolute path
 *   SLOWIO_READ_GATE=F   while the file F is there pread waits; the n-th that waits at once makes the file F.n
 * What waits for a file needs a daemon without a sandbox. Any number of threads. */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default)
ssize_t pread64(int fd, void *buf, size_t len, off64_t off);
ssize_t pwrite64(int fd, const void *buf, size_t len, off64_t off);
int fdatasync(int fd);
#pragma GCC visibility pop

/* Sleeps last as long as was said, and not 50 us more: 1 ns, which threads have from who makes them. */
static __attribute__((constructor)) void sleep_exactly(void)
{
	prctl(PR_SET_TIMERSLACK, 1);
}

static void sleep_us(uint64_t us)
{
	struct timespec t = {.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000 * 1000)};
	int before = errno;
	while (us && clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
		;
	errno = before;
}

static uint64_t number(const char *name)
{
	const char *text = getenv(name);
	return text ? strtoull(text, NULL, 10) : 0;
}

static void make_file(const char *path)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
	if (fd >= 0)
		close(fd);
}

static void wait_to_read(const char *gate)
{
	static atomic_uint waiting;
	char name[PATH_MAX];
	if (access(gate, F_OK) != 0)
		return;
	snprintf(name, sizeof(name), "%s.%u", gate, atomic_fetch_add(&waiting, 1) + 1);
	make_file(name);
	while (access(gate, F_OK) == 0)
		sleep_us(1000);
	atomic_fetch_sub(&waiting, 1);
}

static void wait_at_gate(const char *gate)
{
	char waits[PATH_MAX];
	snprintf(waits, sizeof(waits), "%s.waits", gate);
	make_file(waits);
	while (access(gate, F_OK) != 0)
		sleep_us(1000);
}

ssize_t pread64(int fd, void *buf, size_t len, off64_t off)
{
	ssize_t (*real)(int, void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pread64");
	sleep_us(number("SLOWIO_CALL_US"));
	if (getenv("SLOWIO_READ_GATE"))
		wait_to_read(getenv("SLOWIO_READ_GATE"));
	return real(fd, buf, len, off);
}

ssize_t pwrite64(int fd, const void *buf, size_t len, off64_t off)
{
	ssize_t (*real)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");
	sleep_us(number("SLOWIO_CALL_US"));
	return real(fd, buf, len, off);
}

int fdatasync(int fd)
{
	int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
	sleep_us(number("SLOWIO_SYNC_MS") * 1000);
	if (getenv("SLOWIO_SYNC_GATE"))
		wait_at_gate(getenv("SLOWIO_SYNC_GATE"));
	return real(fd);
}
