/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* load.c - work (work.h) on a mounted volume, until it goes away, and a log of what was acknowledged as durable.
 *
 * Threads write and zero, and now and then make it durable: by fsync, fdatasync or close. Each time a line "THREAD N"
 * is added to the log: the first N operations of that thread are. Only then the thread goes on, so the log of a thread
 * is never more than one line behind. With -k the program itself kills the daemon after a while, and cuts the power of
 * crashfs just before or after.
 *
 * Usage: load [-d] [-k MICROSECONDS -p POWER -c HOW] -s SEED -t THREADS -u DU FILE LOG
 *   -d the log is made durable line by line   -k: at a random time up to that   -p, -c: crashfs's file, and "drop",
 * "tear", "keep" Ends with 0 when it has killed; 1 when something fails before. */
#include "config.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "work.h"

static struct {
	struct crash_work work;
	const char *file, *power, *how;
	int log, fd[CRASH_THREADS_MAX]; /* fd: the volume, open once for each thread */
	useconds_t within_us;
	sem_t first;        /* something has been acknowledged */
	bool loses_nothing; /* a write counts as soon as it is answered for */
	_Atomic bool dying;
} load;

static void stop(const char *what)
{
	if (!atomic_load(&load.dying))
		err(1, "%s, before the crash", what);
}

static int change(int fd, const struct crash_op *op, uint8_t *buf)
{
	if (op->kind == CRASH_ZERO)
		return fallocate(fd, FALLOC_FL_ZERO_RANGE, (off_t)op->off, (off_t)op->len);
	crash_op_bytes(op, buf);
	for (size_t done = 0; done < op->len;) {
		ssize_t n = pwrite(fd, buf + done, op->len - done, (off_t)(op->off + done));
		if (n <= 0)
			return -1;
		done += (size_t)n;
	}
	return 0;
}

static int make_durable(int fd, uint64_t random)
{
	if (random % 3 == 0)
		return fsync(fd);
	if (random % 3 == 1)
		return fdatasync(fd);
	int other = dup(fd);
	return other < 0 ? -1 : close(other);
}

static void acknowledge(unsigned thread, uint64_t n)
{
	char line[64];
	int len = snprintf(line, sizeof(line), "%u %" PRIu64 "\n", thread, n);
	if (write(load.log, line, (size_t)len) != len)
		err(1, "the log");
	sem_post(&load.first);
}

static void *work(void *arg)
{
	const unsigned thread = (unsigned)(uintptr_t)arg;
	const int fd = load.fd[thread];
	uint8_t *buf = malloc(8 * (size_t)load.work.du_bytes);
	if (!buf)
		errx(1, "no memory");
	for (uint64_t n = 0;; n++) {
		struct crash_op op;
		crash_op_get(&load.work, thread, n, &op);
		if (change(fd, &op, buf) != 0) {
			stop("a write failed");
			break;
		}
		if (op.sync && make_durable(fd, op.random) != 0) {
			stop("a sync failed");
			break;
		}
		if (op.sync || load.loses_nothing)
			acknowledge(thread, n + 1);
	}
	free(buf);
	return NULL;
}

static pid_t daemon_pid(void)
{
	static char status[65536];
	ssize_t n = getxattr(load.file, "user.cryptfuse.status", status, sizeof(status) - 1);
	const char *at = n < 0 ? NULL : strstr(status, "\"pid\"");
	int pid = 0;
	if (!at || sscanf(at, "\"pid\" : %d", &pid) != 1 || pid < 2)
		errx(1, "no pid in the status of %s", load.file);
	return pid;
}

static void cut_power(unsigned seed)
{
	char text[64];
	int fd = open(load.power, O_WRONLY | O_CLOEXEC);
	int len = snprintf(text, sizeof(text), "cut %s %u", load.how, seed);
	if (fd < 0 || write(fd, text, (size_t)len) != len)
		err(1, "%s", load.power);
	close(fd);
}

/* The daemon is gone when this returns. */
static void crash(void)
{
	uint64_t random = load.work.seed ^ 0x6b696c6c;
	struct pollfd p = {.fd = pidfd_open(daemon_pid(), 0), .events = POLLIN};
	if (p.fd < 0)
		err(1, "the daemon");
	if (crash_random(&random) % 8)
		sem_wait(&load.first);
	usleep((useconds_t)(crash_random(&random) % load.within_us));
	const bool power_first = crash_random(&random) % 2;
	atomic_store(&load.dying, true);
	if (power_first)
		cut_power((unsigned)random);
	if (pidfd_send_signal(p.fd, SIGKILL, NULL, 0) != 0)
		err(1, "kill");
	if (poll(&p, 1, -1) != 1)
		err(1, "poll");
	if (!power_first)
		cut_power((unsigned)random);
}

int main(int argc, char **argv)
{
	struct stat st;
	pthread_t id[CRASH_THREADS_MAX];
	int flags = 0;
	for (int opt; (opt = getopt(argc, argv, "dk:p:c:s:t:u:")) != -1;) {
		switch (opt) {
		case 'd':
			flags = O_DSYNC;
			break;
		case 'k':
			load.within_us = (useconds_t)strtoul(optarg, NULL, 10);
			break;
		case 'p':
			load.power = optarg;
			break;
		case 'c':
			load.how = optarg;
			load.loses_nothing = strcmp(optarg, "keep") == 0;
			break;
		case 's':
			load.work.seed = strtoull(optarg, NULL, 10);
			break;
		case 't':
			load.work.n_threads = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'u':
			load.work.du_bytes = (uint32_t)strtoul(optarg, NULL, 10);
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 2 || !load.work.du_bytes || (load.within_us && (!load.power || !load.how)))
		errx(2, "usage: see the top of load.c");
	load.file = argv[optind];
	load.log = open(argv[optind + 1], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | flags, 0600);
	if (load.log < 0 || stat(load.file, &st) != 0)
		err(2, "%s, %s", load.file, argv[optind + 1]);
	load.work.bytes = (uint64_t)st.st_size;
	crash_work_init(&load.work);
	sem_init(&load.first, 0, 0);
	for (unsigned i = 0; i < load.work.n_threads; i++)
		if ((load.fd[i] = open(load.file, O_RDWR | O_CLOEXEC)) < 0)
			err(1, "%s", load.file);
	for (unsigned i = 0; i < load.work.n_threads; i++)
		if (pthread_create(&id[i], NULL, work, (void *)(uintptr_t)i) != 0)
			errx(2, "no thread");
	if (load.within_us)
		crash();
	for (unsigned i = 0; i < load.work.n_threads; i++)
		pthread_join(id[i], NULL);
	crash_work_fini(&load.work);
	return 0;
}
