/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* model.c - random work on a file against a model of it in memory, with readers and writers at once.
 *
 * Each writer owns every W-th stripe (an odd length, so that owners meet inside data units) and knows what its bytes
 * must be. Now and then one of them takes the whole file: a long unaligned write, zeroing, allocation, a full compare.
 * Readers read anywhere at any time; a byte they see must be one that it had, or was getting, while they read.
 * The arrays are read and written without a lock, byte by byte, through relaxed atomics.
 * Usage: model [-d] [-p] [-D] [-w WRITERS] [-r READERS] [-t SECONDS] [-s SEED] [-u DU] [-o DUMP] FILE
 *   -d O_DIRECT   -p holes may be punched   -D writers are processes that share data units byte by byte */
#include "config.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 16u
#define WRITE_MAX (1200u * 1024u) /* longer than one FUSE request, so its parts meet inside a data unit */

static struct {
	const char *path;
	int flags;
	unsigned n_writers, n_readers, du_bytes;
	bool punch;
	size_t bytes, stripe_bytes;
	uint64_t seed, deadline_ns;
	uint8_t *now, *next, *version; /* a byte is now or next; version counts the writes begun on it */
	pthread_rwlock_t whole;        /* shared: work in one's own stripes */
	uint64_t n_writes, n_reads, n_checked, n_whole;
} m = {.n_writers = 3, .n_readers = 3, .du_bytes = 512, .whole = PTHREAD_RWLOCK_WRITER_NONRECURSIVE_INITIALIZER_NP};

struct worker {
	unsigned index;
	int fd;
	uint64_t rng;
	uint8_t *io, *copy[6];
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t rnd(struct worker *w)
{
	w->rng ^= w->rng << 13;
	w->rng ^= w->rng >> 7;
	w->rng ^= w->rng << 17;
	return w->rng;
}

static uint8_t load(const uint8_t *p)
{
	return __atomic_load_n(p, __ATOMIC_RELAXED);
}

static void store(uint8_t *p, uint8_t v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

static void count(uint64_t *n, uint64_t add)
{
	__atomic_fetch_add(n, add, __ATOMIC_RELAXED);
}

static void *must_alloc(size_t len)
{
	void *p = NULL;
	if (posix_memalign(&p, 4096, len) != 0)
		errx(2, "no memory");
	return p;
}

static void worker_init(struct worker *w, unsigned index)
{
	*w = (struct worker){.index = index, .rng = (m.seed + 1) * 0x9e3779b97f4a7c15u + index * 0x2545f4914f6cdd1du};
	w->fd = open(m.path, O_RDWR | O_CLOEXEC | m.flags);
	if (w->fd < 0)
		err(2, "%s", m.path);
	w->io = must_alloc(WRITE_MAX);
	for (size_t i = 0; i < 6; i++)
		w->copy[i] = must_alloc(WRITE_MAX);
}

static void read_all(struct worker *w, size_t off, size_t len)
{
	ssize_t n = pread(w->fd, w->io, len, (off_t)off);
	if (n != (ssize_t)len)
		errx(1, "read of %zu bytes at %zu gave %zd (%s), seed %" PRIu64, len, off, n, n < 0 ? strerror(errno) : "short",
			 m.seed);
	count(&m.n_reads, 1);
}

static _Noreturn void wrong(const char *who, size_t off, uint8_t got, uint8_t want)
{
	errx(1, "%s: byte %zu (data unit %zu, byte %zu of it) is %02x, not %02x; seed %" PRIu64, who, off, off / m.du_bytes,
		 off % m.du_bytes, got, want, m.seed);
}

/* What nobody else may write now must be exactly the model. */
static void check_exact(struct worker *w, size_t off, size_t len)
{
	read_all(w, off, len);
	for (size_t i = 0; i < len; i++)
		if (w->io[i] != load(m.now + off + i))
			wrong("own bytes", off + i, w->io[i], load(m.now + off + i));
}

/* Announce new content in next, before the file is touched; settle makes it the present one. */
static void announce(size_t off, size_t len, const uint8_t *buf)
{
	for (size_t i = 0; i < len; i++) {
		store(m.next + off + i, buf[i]);
		__atomic_fetch_add(m.version + off + i, 1, __ATOMIC_SEQ_CST);
	}
}

static void settle(size_t off, size_t len)
{
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (size_t i = 0; i < len; i++)
		store(m.now + off + i, load(m.next + off + i));
}

static void write_range(struct worker *w, size_t off, size_t len)
{
	for (size_t i = 0; i < len; i++)
		w->io[i] = (uint8_t)(rnd(w) >> 24);
	announce(off, len, w->io);
	ssize_t n = pwrite(w->fd, w->io, len, (off_t)off);
	if (n != (ssize_t)len)
		errx(1, "write of %zu bytes at %zu gave %zd (%s)", len, off, n, n < 0 ? strerror(errno) : "short");
	settle(off, len);
	count(&m.n_writes, 1);
}

static void zero_range(struct worker *w, size_t off, size_t len, int mode)
{
	memset(w->io, 0, len);
	announce(off, len, w->io);
	if (fallocate(w->fd, mode, (off_t)off, (off_t)len) != 0)
		err(1, "fallocate mode %d, %zu bytes at %zu", mode, len, off);
	settle(off, len);
}

static size_t random_len(struct worker *w, size_t max)
{
	size_t du = m.du_bytes, lens[] = {1, 16, du - 1, du, du + 1, 2 * du, 4096, max};
	size_t len = rnd(w) % 2 ? lens[rnd(w) % 8] : 1 + rnd(w) % (3 * du);
	return len > max ? max : len;
}

/* Alone with the file. */
static void work_whole(struct worker *w)
{
	size_t len = 1 + rnd(w) % WRITE_MAX, off = rnd(w) % (m.bytes - len + 1);
	pthread_rwlock_wrlock(&m.whole);
	switch (rnd(w) % 6) {
	case 0:
		zero_range(w, off, len, FALLOC_FL_ZERO_RANGE);
		break;
	case 1:
		zero_range(w, off, len, m.punch ? FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE : FALLOC_FL_ZERO_RANGE);
		break;
	case 2:
		if (fallocate(w->fd, 0, (off_t)off, (off_t)len) != 0)
			err(1, "fallocate");
		break;
	case 3:
		off = m.bytes - len; /* up to the very end */
		__attribute__((fallthrough));
	default:
		write_range(w, off, len);
		break;
	}
	check_exact(w, off, len);
	count(&m.n_whole, 1);
	pthread_rwlock_unlock(&m.whole);
}

static void work_stripe(struct worker *w)
{
	size_t n_own = m.bytes / m.stripe_bytes / m.n_writers;
	size_t start = (rnd(w) % n_own * m.n_writers + w->index) * m.stripe_bytes;
	size_t len = random_len(w, m.stripe_bytes), off = start + rnd(w) % (m.stripe_bytes - len + 1);
	pthread_rwlock_rdlock(&m.whole);
	write_range(w, off, len);
	check_exact(w, start, m.stripe_bytes);
	pthread_rwlock_unlock(&m.whole);
}

static void *writer(void *arg)
{
	struct worker *w = arg;
	while (now_ns() < m.deadline_ns) {
		if (rnd(w) % 32 == 0)
			work_whole(w);
		else
			work_stripe(w);
		if (rnd(w) % 64 == 0 && fsync(w->fd) != 0)
			err(1, "fsync");
	}
	return NULL;
}

static void snapshot(uint8_t *to, const uint8_t *from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = load(from + i);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

/* Read while others write: versions are taken first before and last after, so that a write begun in between is seen. */
static void read_racing(struct worker *w)
{
	size_t len = 1 + rnd(w) % (4 * (size_t)m.du_bytes + 4096), off = rnd(w) % (m.bytes - len + 1);
	uint64_t checked = 0;
	snapshot(w->copy[0], m.version + off, len);
	snapshot(w->copy[1], m.now + off, len);
	snapshot(w->copy[2], m.next + off, len);
	read_all(w, off, len);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	snapshot(w->copy[3], m.now + off, len);
	snapshot(w->copy[4], m.next + off, len);
	snapshot(w->copy[5], m.version + off, len);
	for (size_t i = 0; i < len; i++) {
		uint8_t b = w->io[i];
		if ((uint8_t)(w->copy[5][i] - w->copy[0][i]) > 1)
			continue; /* written twice meanwhile: what lay between is not on record */
		if (b != w->copy[1][i] && b != w->copy[2][i] && b != w->copy[3][i] && b != w->copy[4][i])
			wrong("racing read", off + i, b, w->copy[4][i]);
		checked++;
	}
	count(&m.n_checked, checked);
}

static void *reader(void *arg)
{
	while (now_ns() < m.deadline_ns)
		read_racing(arg);
	return NULL;
}

static void run_threads(void)
{
	static struct worker w[2 * THREADS_MAX];
	pthread_t t[2 * THREADS_MAX];
	unsigned n = m.n_writers + m.n_readers;
	for (unsigned i = 0; i < n; i++) {
		worker_init(&w[i], i);
		if (pthread_create(&t[i], NULL, i < m.n_writers ? writer : reader, &w[i]) != 0)
			errx(2, "no thread");
	}
	for (unsigned i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

/* One of several processes: every n-th run of 37 bytes is ours, all over the same few data units. */
static void share_units(unsigned index)
{
	struct worker w;
	const size_t run = 37, n_runs = 4 * (size_t)m.du_bytes / run;
	uint8_t mine[256] = {0};
	worker_init(&w, index);
	while (now_ns() < m.deadline_ns) {
		size_t k = rnd(&w) % (n_runs / m.n_writers) * m.n_writers + index;
		memset(mine, (int)(rnd(&w) >> 24), run);
		if (pwrite(w.fd, mine, run, (off_t)(k * run)) != (ssize_t)run)
			err(1, "pwrite");
		read_all(&w, k * run, run);
		for (size_t i = 0; i < run; i++)
			if (w.io[i] != mine[i])
				wrong("a process's own bytes", k * run + i, w.io[i], mine[i]);
	}
	exit(0);
}

static void run_processes(void)
{
	int bad = 0, status;
	for (unsigned i = 0; i < m.n_writers; i++) {
		pid_t pid = fork();
		if (pid < 0)
			err(2, "fork");
		if (pid == 0)
			share_units(i);
	}
	while (wait(&status) > 0)
		bad |= status != 0;
	if (bad)
		errx(1, "a writing process failed");
}

static void load_model(void)
{
	struct worker w;
	struct stat st;
	if (stat(m.path, &st) != 0)
		err(2, "%s", m.path);
	m.bytes = (size_t)st.st_size;
	m.stripe_bytes = 3 * (size_t)m.du_bytes / 2 + 13;
	if (m.bytes < 2 * WRITE_MAX)
		errx(2, "%s is too small", m.path);
	m.now = must_alloc(m.bytes);
	m.next = must_alloc(m.bytes);
	m.version = calloc(m.bytes, 1);
	worker_init(&w, 2 * THREADS_MAX);
	for (size_t off = 0; off < m.bytes; off += WRITE_MAX) {
		size_t len = m.bytes - off < WRITE_MAX ? m.bytes - off : WRITE_MAX;
		read_all(&w, off, len);
		memcpy(m.now + off, w.io, len);
		memcpy(m.next + off, w.io, len);
	}
}

static void finish(const char *dump)
{
	struct worker w;
	worker_init(&w, 2 * THREADS_MAX + 1);
	for (size_t off = 0; off < m.bytes; off += WRITE_MAX)
		check_exact(&w, off, m.bytes - off < WRITE_MAX ? m.bytes - off : WRITE_MAX);
	if (fsync(w.fd) != 0)
		err(1, "fsync");
	if (m.n_readers && m.n_checked == 0)
		errx(1, "the readers checked nothing");
	int fd = dump ? open(dump, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	if (dump && (fd < 0 || write(fd, m.now, m.bytes) != (ssize_t)m.bytes))
		err(2, "%s", dump);
	printf("seed %" PRIu64 ": %" PRIu64 " writes, %" PRIu64 " alone with the file, %" PRIu64 " reads, %" PRIu64
		   " bytes checked in a race\n",
		   m.seed, m.n_writes, m.n_whole, m.n_reads, m.n_checked);
}

int main(int argc, char **argv)
{
	double seconds = 1;
	bool processes = false;
	const char *dump = NULL;
	m.seed = now_ns();
	for (int opt; (opt = getopt(argc, argv, "dpDw:r:t:s:u:o:")) != -1;) {
		switch (opt) {
		case 'd':
			m.flags |= O_DIRECT;
			break;
		case 'p':
			m.punch = true;
			break;
		case 'D':
			processes = true;
			break;
		case 'w':
			m.n_writers = (unsigned)atoi(optarg);
			break;
		case 'r':
			m.n_readers = (unsigned)atoi(optarg);
			break;
		case 't':
			seconds = atof(optarg);
			break;
		case 's':
			m.seed = strtoull(optarg, NULL, 10);
			break;
		case 'u':
			m.du_bytes = (unsigned)atoi(optarg);
			break;
		case 'o':
			dump = optarg;
			break;
		default:
			return 2;
		}
	}
	if (optind + 1 != argc || m.n_writers < 1 || m.n_writers > THREADS_MAX || m.n_readers > THREADS_MAX)
		errx(2, "usage: see the top of model.c");
	m.path = argv[optind];
	m.deadline_ns = now_ns() + (uint64_t)(seconds * 1e9);
	if (processes) {
		run_processes();
		return 0;
	}
	load_model();
	run_threads();
	finish(dump);
	return 0;
}
