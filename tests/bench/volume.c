/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* volume.c - a volume over memory, without FUSE: something to count instructions of, or to see waiting.
 *
 * Usage: volume ENGINE read|write BYTES COUNT         one thread, COUNT requests of BYTES at aligned random offsets
 *        volume ENGINE wait US THREADS COUNT          THREADS threads read 4 KiB COUNT times each, where each call of
 * the backing sleeps US microseconds; prints reads a second ENGINE null is the null cipher, any other aes-xts-plain64
 * with data units of 512 bytes. */
#include "config.h"

#include <err.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/volume.h"

#define VOLUME_BYTES (UINT64_C(16) << 20)
#define SMALL 4096u

struct memory {
	struct cf_backing base; /* first */
	uint8_t *data;
	long sleep_us;
};

static void take_time(const struct memory *m)
{
	const struct timespec t = {.tv_sec = m->sleep_us / 1000000, .tv_nsec = m->sleep_us % 1000000 * 1000};
	if (m->sleep_us)
		nanosleep(&t, NULL);
}

static ssize_t memory_pread(struct cf_backing *b, void *buf, size_t len, uint64_t off)
{
	const struct memory *m = (const struct memory *)b;
	take_time(m);
	memcpy(buf, m->data + off, len);
	return (ssize_t)len;
}

static ssize_t memory_pwrite(struct cf_backing *b, const void *buf, size_t len, uint64_t off)
{
	const struct memory *m = (const struct memory *)b;
	take_time(m);
	memcpy(m->data + off, buf, len);
	return (ssize_t)len;
}

static int memory_sync(struct cf_backing *b)
{
	(void)b;
	return 0;
}

static void memory_close(struct cf_backing *b)
{
	free(((struct memory *)b)->data);
}

static const struct cf_backing_ops memory_ops = {
	.name = "memory", .pread = memory_pread, .pwrite = memory_pwrite, .sync = memory_sync, .close = memory_close};

static struct cf_volume *new_volume(const char *engine, unsigned n_workers, long sleep_us)
{
	struct cf_cipher_spec spec = {
		.cipher = "aes", .mode = "xts", .iv = "plain64", .keycount = 1, .key_bytes = 64, .du_bytes = CF_DU_MIN};
	const struct cf_cipher_spec null_spec = {
		.cipher = "cipher_null", .mode = "ecb", .keycount = 1, .du_bytes = CF_DU_MIN};
	if (strcmp(engine, "null") == 0)
		spec = null_spec;
	const unsigned n_cpus = (unsigned)sysconf(_SC_NPROCESSORS_ONLN),
				   n_permits = n_cpus < n_workers ? n_cpus : n_workers;
	/* Which path is the faster is measured at open: a figure that is to be compared needs one that is fixed. */
	const struct cf_cipher_opts cipher_opts = {.engine = engine, .path = CF_PATH_BATCH, .n_workers = n_permits};
	const struct cf_volume_opts opts = {
		.bytes = VOLUME_BYTES, .access = CF_READ_WRITE, .n_workers = n_workers, .n_permits = n_permits};
	uint8_t key[64];
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 7);
	struct memory *m = calloc(1, sizeof(*m));
	struct cf_err e = {0};
	struct cf_cipher *c = NULL;
	struct cf_volume *v = NULL;
	if (!m || !(m->data = calloc(1, VOLUME_BYTES)))
		errx(1, "no memory");
	m->base = (struct cf_backing){
		.ops = &memory_ops, .bytes = VOLUME_BYTES, .access = CF_READ_WRITE, .granule = 1, .discard_granule = 512};
	m->sleep_us = sleep_us;
	struct cf_backing *b = &m->base;
	if (cf_secret_init(&e) != 0 || cf_cipher_new(&c, &spec, key, &cipher_opts, &e) != 0 ||
		cf_volume_new(&v, &b, &c, &opts, &e) != 0)
		errx(1, "%s", e.text);
	return v;
}

static uint64_t next_off(uint64_t *state, size_t len)
{
	*state = *state * UINT64_C(6364136223846793005) + 1;
	return (*state >> 33) % (VOLUME_BYTES / len) * len;
}

static void requests(struct cf_volume *v, int writes, size_t len, uint64_t count, uint64_t seed)
{
	for (uint64_t state = seed; count; count--) {
		struct cf_worker *w = cf_volume_enter(v);
		uint64_t off = next_off(&state, len);
		ssize_t n = writes ? cf_volume_write(v, w, w->io, len, off) : cf_volume_read(v, w, w->io, len, off);
		cf_volume_leave(v, w);
		if (n != (ssize_t)len)
			errx(1, "a request failed");
	}
}

struct reader {
	pthread_t id;
	struct cf_volume *v;
	uint64_t count, seed;
};

static void *read_some(void *arg)
{
	const struct reader *r = arg;
	prctl(PR_SET_TIMERSLACK, 1); /* nanoseconds: sleep as long as was said */
	requests(r->v, 0, SMALL, r->count, r->seed);
	return NULL;
}

static void wait_for_backing(struct cf_volume *v, unsigned n_threads, uint64_t count)
{
	struct reader r[CF_WORKERS_MAX];
	struct timespec from, to;
	clock_gettime(CLOCK_MONOTONIC, &from);
	for (unsigned i = 0; i < n_threads; i++) {
		r[i] = (struct reader){.v = v, .count = count, .seed = i};
		if (pthread_create(&r[i].id, NULL, read_some, &r[i]) != 0)
			errx(1, "no thread");
	}
	for (unsigned i = 0; i < n_threads; i++)
		pthread_join(r[i].id, NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	double s = (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9;
	printf("%.0f\n", (double)(n_threads * count) / s);
}

static uint64_t number(const char *text, uint64_t max)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);
	if (*end || !n || n > max)
		errx(2, "'%s': 1 to %llu", text, (unsigned long long)max);
	return n;
}

int main(int argc, char **argv)
{
	const int waits = argc == 6 && strcmp(argv[2], "wait") == 0;
	const int writes = argc == 5 && strcmp(argv[2], "write") == 0;
	if (!waits && !writes && !(argc == 5 && strcmp(argv[2], "read") == 0))
		errx(2, "usage: volume ENGINE read|write BYTES COUNT, or volume ENGINE wait US THREADS COUNT");
	const unsigned n_threads = waits ? (unsigned)number(argv[4], CF_WORKERS_MAX) : CF_WORKERS_MAX;
	struct cf_volume *v = new_volume(argv[1], n_threads, waits ? (long)number(argv[3], 1000000) : 0);
	if (waits)
		wait_for_backing(v, n_threads, number(argv[5], UINT32_MAX));
	else
		requests(v, writes, (size_t)number(argv[3], CF_IO_MAX), number(argv[4], UINT32_MAX), 1);
	cf_volume_free(&v);
	cf_secret_fini();
	return 0;
}
