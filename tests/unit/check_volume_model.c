/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_volume_model.c - many threads on the same data units, against a model of every byte.
 *
 * The volume is cut into extents of one byte to three data units, dealt out to the threads, so that nearly every data
 * unit has several owners. A byte is changed by its owner only, and its value says how often it was; an owner announces
 * a value before the write and confirms it after. Whoever reads a byte must see one of the values between the one that
 * was confirmed when the read began and the one that was announced when it ended. A lost update, a mixed one, or a data
 * unit seen half written breaks that. Some extents are also zeroed and punched.
 *
 * CF_MODEL_MS: how long each shape runs; CF_MODEL_SEED: another sequence. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cryptfuse/secret.h"
#include "run.h"
#include "test_volume.h"

#define THREADS 6u
#define EXTENTS_MAX 1024u
#define BYTES_MAX (1024u * 1024u)
#define REQUEST_MAX (4u * 65536u)
#define DEFAULT_MS 300u

static const struct test_shape shapes[] = {
	{.mode = "cbc", .du_bytes = 512, .bytes = 32768, .granule = 4096, .data_off = 63 * 512, .access = CF_READ_WRITE},
	{.mode = "xts", .du_bytes = 512, .bytes = 32768, .granule = 1, .data_off = 63 * 512, .access = CF_READ_WRITE},
	{.mode = "cbc", .du_bytes = 4096, .bytes = 131072, .granule = 512, .data_off = 63 * 512, .access = CF_READ_WRITE},
	{.mode = "xts", .du_bytes = 4096, .bytes = 131072, .granule = 4096, .access = CF_READ_WRITE},
	{.mode = "cbc", .du_bytes = 65536, .bytes = BYTES_MAX, .granule = 1, .access = CF_READ_WRITE},
	{.mode = "xts", .du_bytes = 65536, .bytes = BYTES_MAX, .granule = 512, .data_off = 512, .access = CF_READ_WRITE},
	{.mode = "cbc", .du_bytes = 4096, .bytes = 131072, .discards = CF_DISCARDS_ALLOWED, .access = CF_READ_WRITE},
	{.mode = "xts",
	 .du_bytes = 512,
	 .bytes = 32768,
	 .granule = 4096,
	 .data_off = 63 * 512,
	 .discards = CF_DISCARDS_ALLOWED,
	 .access = CF_READ_WRITE},
	{.mode = "xts", .du_bytes = 512, .bytes = 32768, .block = 4096, .data_off = 63 * 512, .access = CF_READ_WRITE},
	{.mode = "cbc", .du_bytes = 4096, .bytes = 131072, .block = 4096, .data_off = 63 * 512, .access = CF_READ_WRITE},
	{.mode = "xts",
	 .du_bytes = 512,
	 .bytes = 32768,
	 .granule = 4096,
	 .data_off = 63 * 512,
	 .discards = CF_DISCARDS_ALLOWED,
	 .access = CF_READ_WRITE,
	 .log_bytes = 65536},
	{.mode = "cbc", .du_bytes = 4096, .bytes = 131072, .data_off = 512, .access = CF_READ_WRITE, .log_bytes = 1 << 20},
	{.mode = "cbc",
	 .du_bytes = 4096,
	 .bytes = 131072,
	 .block = 4096,
	 .data_off = 63 * 512,
	 .discards = CF_DISCARDS_ALLOWED,
	 .access = CF_READ_WRITE,
	 .log_bytes = 131072},
	{.mode = "cbc", .du_bytes = 65536, .bytes = BYTES_MAX, .access = CF_READ_WRITE, .log_bytes = 512 << 10},
};

struct extent {
	uint64_t off, len;
	bool zeroes;
};

struct thread {
	pthread_t id;
	unsigned index;
	uint64_t random;
	uint8_t *buf, *before;
	uint64_t n_reads, n_writes, n_zeroes;
};

static struct test_volume tv;
static struct extent extents[EXTENTS_MAX];
static size_t n_extents;
static uint8_t zeroed[BYTES_MAX]; /* by byte: of an extent that is also zeroed */
static _Atomic uint8_t confirmed[BYTES_MAX], announced[BYTES_MAX];
static _Atomic unsigned wrong;
static _Atomic uint64_t first_wrong;
static struct timespec deadline;
static uint64_t seed;

/* What a byte holds after @version changes. Of an extent that is also zeroed, even versions are zero. */
static uint8_t value_of(uint64_t pos, uint8_t version)
{
	uint8_t mask = (uint8_t)(pos * 131 ^ pos >> 8);
	if (zeroed[pos])
		return version % 2 ? (uint8_t)(mask | 1) : 0;
	return (uint8_t)(version ^ mask);
}

static bool plausible(uint64_t pos, uint8_t value, uint8_t from, uint8_t to)
{
	if (zeroed[pos])
		return value == value_of(pos, from) || (from != to && value == value_of(pos, (uint8_t)(from + 1)));
	uint8_t version = (uint8_t)(value ^ value_of(pos, 0));
	return (uint8_t)(version - from) <= (uint8_t)(to - from);
}

static void check_bytes(const struct thread *t, uint64_t off, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint64_t pos = off + i;
		if (plausible(pos, t->buf[i], t->before[i], atomic_load_explicit(&announced[pos], memory_order_acquire)))
			continue;
		if (atomic_fetch_add(&wrong, 1) == 0)
			atomic_store(&first_wrong, pos);
	}
}

static void read_some(struct thread *t)
{
	uint64_t bytes = tv.shape.bytes, off = test_random(&t->random) % bytes;
	size_t max = (size_t)(bytes - off < REQUEST_MAX ? bytes - off : REQUEST_MAX);
	size_t len = 1 + (size_t)(test_random(&t->random) % max);
	if (test_random(&t->random) % 2 && len > 3 * tv.shape.du_bytes)
		len %= 3 * tv.shape.du_bytes;
	for (size_t i = 0; i < len; i++)
		t->before[i] = atomic_load_explicit(&confirmed[off + i], memory_order_acquire);
	struct cf_worker *w = cf_volume_enter(tv.v);
	ssize_t n = cf_volume_read(tv.v, w, t->buf, len, off);
	cf_volume_leave(tv.v, w);
	if (n != (ssize_t)len)
		atomic_fetch_add(&wrong, 1);
	check_bytes(t, off, len);
	t->n_reads++;
}

static void mark(_Atomic uint8_t *map, const uint8_t *versions, uint64_t off, size_t len)
{
	for (size_t i = 0; i < len; i++)
		atomic_store_explicit(&map[off + i], versions[i], memory_order_release);
}

static bool change(struct thread *t, uint64_t off, size_t len, bool to_zero)
{
	struct cf_worker *w = cf_volume_enter(tv.v);
	int rc = 0;
	if (!to_zero)
		rc = cf_volume_write(tv.v, w, t->buf, len, off) == (ssize_t)len ? 0 : -EIO;
	else if (tv.shape.discards == CF_DISCARDS_ALLOWED)
		rc = cf_volume_punch(tv.v, w, off, len);
	else
		rc = cf_volume_zero(tv.v, w, off, len);
	cf_volume_leave(tv.v, w);
	return rc == 0;
}

static void write_some(struct thread *t)
{
	const struct extent *e = &extents[test_random(&t->random) % (n_extents / THREADS) * THREADS + t->index];
	uint64_t skip = test_random(&t->random) % 2 ? 0 : test_random(&t->random) % e->len;
	size_t len = (size_t)(test_random(&t->random) % 2 ? e->len - skip : 1 + test_random(&t->random) % (e->len - skip));
	uint64_t off = e->off + skip;
	bool to_zero = e->zeroes && test_random(&t->random) % 2;
	for (size_t i = 0; i < len; i++) {
		uint8_t version = atomic_load_explicit(&confirmed[off + i], memory_order_relaxed);
		bool next_fits = !e->zeroes || version % 2 == to_zero; /* the next version is the kind that is wanted */
		t->before[i] = (uint8_t)(version + (next_fits ? 1 : 2));
		t->buf[i] = value_of(off + i, t->before[i]);
	}
	mark(announced, t->before, off, len);
	if (!change(t, off, len, to_zero))
		atomic_fetch_add(&wrong, 1);
	mark(confirmed, t->before, off, len);
	t->n_writes += !to_zero;
	t->n_zeroes += to_zero;
}

static bool time_is_up(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec > deadline.tv_sec || (now.tv_sec == deadline.tv_sec && now.tv_nsec >= deadline.tv_nsec);
}

static void *run(void *arg)
{
	struct thread *t = arg;
	while ((!time_is_up() || !t->n_reads || !t->n_writes) && !atomic_load(&wrong))
		if (test_random(&t->random) % 5 < 2)
			read_some(t);
		else
			write_some(t);
	return NULL;
}

static uint64_t env_number(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	return text ? strtoull(text, NULL, 0) : otherwise;
}

/* One byte to three data units each; as many as threads, or a multiple. */
static void cut_extents(uint64_t *random)
{
	const uint64_t du = tv.shape.du_bytes, longest[] = {1, 16, 50, du / 2, du, 3 * du};
	n_extents = 0;
	for (uint64_t off = 0; off < tv.shape.bytes && n_extents < EXTENTS_MAX;) {
		uint64_t len = 1 + test_random(random) % longest[test_random(random) % CF_ARRAY_LEN(longest)];
		len = len < tv.shape.bytes - off ? len : tv.shape.bytes - off;
		extents[n_extents++] = (struct extent){off, len, test_random(random) % 4 == 0};
		off += len;
	}
	ck_assert_uint_ge(n_extents, THREADS);
	n_extents -= n_extents % THREADS;
}

static void fill_volume(void)
{
	uint8_t *plain = malloc(tv.shape.bytes);
	memset(zeroed, 0, sizeof(zeroed));
	for (size_t i = 0; i < n_extents; i++)
		memset(zeroed + extents[i].off, extents[i].zeroes, extents[i].len);
	for (uint64_t pos = 0; pos < tv.shape.bytes; pos++) {
		plain[pos] = value_of(pos, 0);
		confirmed[pos] = announced[pos] = 0;
	}
	struct cf_worker *w = cf_volume_enter(tv.v);
	for (uint64_t off = 0; off < tv.shape.bytes; off += tv.shape.du_bytes)
		ck_assert_int_eq(cf_volume_write(tv.v, w, plain + off, tv.shape.du_bytes, off), tv.shape.du_bytes);
	cf_volume_leave(tv.v, w);
	free(plain);
}

/* The end: the volume, and its backing without the volume, hold exactly the confirmed values. */
static void check_end(void)
{
	uint8_t *plain = malloc(tv.shape.bytes);
	struct cf_worker *w = cf_volume_enter(tv.v);
	ck_assert_int_eq(cf_volume_read(tv.v, w, plain, tv.shape.bytes, 0), (ssize_t)tv.shape.bytes);
	cf_volume_leave(tv.v, w);
	for (uint64_t pos = 0; pos < tv.shape.bytes; pos++)
		ck_assert_msg(plain[pos] == value_of(pos, confirmed[pos]), "byte %llu at the end", (unsigned long long)pos);
	if (tv.shape.discards == CF_DISCARDS_REFUSED) {
		test_volume_decrypt(&tv, plain);
		for (uint64_t pos = 0; pos < tv.shape.bytes; pos++)
			ck_assert_uint_eq(plain[pos], value_of(pos, confirmed[pos]));
	}
	free(plain);
}

static void run_threads(uint64_t *random)
{
	struct thread t[THREADS] = {{.index = 0}};
	uint64_t reads = 0, writes = 0, zeroes = 0;
	for (unsigned i = 0; i < THREADS; i++) {
		t[i].index = i;
		t[i].random = test_random(random);
		t[i].buf = malloc(REQUEST_MAX);
		t[i].before = malloc(REQUEST_MAX);
		ck_assert_int_eq(pthread_create(&t[i].id, NULL, run, &t[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(t[i].id, NULL);
		free(t[i].buf);
		free(t[i].before);
		reads += t[i].n_reads;
		writes += t[i].n_writes;
		zeroes += t[i].n_zeroes;
	}
	printf("%s DU %u: %llu reads, %llu writes, %llu zeroed; CF_MODEL_SEED=%llu\n", tv.shape.mode, tv.shape.du_bytes,
		   (unsigned long long)reads, (unsigned long long)writes, (unsigned long long)zeroes, (unsigned long long)seed);
	ck_assert_uint_gt(reads, 0);
	ck_assert_uint_gt(writes, 0);
}

START_TEST(every_byte__is_one_that_was_written)
{
	struct test_shape shape = shapes[_i];
	uint64_t ms = env_number("CF_MODEL_MS", DEFAULT_MS), random = seed + (uint64_t)_i;
	shape.n_workers = THREADS - 1;
	shape.n_permits = 2;
	test_volume_open(&tv, &shape);
	cut_extents(&random);
	fill_volume();
	tv.t->pace = TEST_YIELD;
	tv.t->whole_granules = true;
	if (tv.log)
		tv.log->pace = TEST_YIELD;
	if (_i % 2) /* a journal with its thread, and without */
		ck_assert_int_eq(cf_volume_start(tv.v), 0);
	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += (time_t)(ms / 1000);
	deadline.tv_nsec += (long)(ms % 1000 * 1000000);
	deadline.tv_sec += deadline.tv_nsec / 1000000000;
	deadline.tv_nsec %= 1000000000;
	run_threads(&random);
	ck_assert_msg(wrong == 0, "%u bytes were wrong, the first at %llu; CF_MODEL_SEED=%llu", wrong,
				  (unsigned long long)first_wrong, (unsigned long long)seed);
	ck_assert_msg(tv.t->overlaps == 0, "%u writes ran at once in one granule", tv.t->overlaps);
	check_end();
}
END_TEST

static void setup(void)
{
	ck_assert_int_eq(cf_secret_init(NULL), 0);
}

static void teardown(void)
{
	test_volume_close(&tv);
	cf_secret_fini();
}

int main(void)
{
	seed = env_number("CF_MODEL_SEED", (uint64_t)time(NULL));
	Suite *s = suite_create("volume against a model");
	TCase *t = tcase_create("model");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 0);
	tcase_add_loop_test(t, every_byte__is_one_that_was_written, 0, (int)CF_ARRAY_LEN(shapes));
	suite_add_tcase(s, t);
	return test_run(s);
}
