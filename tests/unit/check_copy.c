/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_copy.c - the copy engine: whatever order, length and number of threads, the sink gets every byte once and at
 * its place, taps see them in order, and whoever fails ends it, with nobody left running. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cryptfuse/copy.h"
#include "run.h"
#include "test_volume.h"

#define CHUNK 4096u
#define MAX_BYTES (40u * CHUNK)
#define NEVER UINT64_MAX

/** Both ends and the taps of a copy in memory, and who is to fail when. */
struct bench {
	uint64_t bytes; /* that the source has */
	uint8_t from[MAX_BYTES], to[MAX_BYTES], seen[2][MAX_BYTES];
	uint64_t n_seen[2];
	_Atomic unsigned written[MAX_BYTES / CHUNK + 1];      /* how often a chunk was written */
	uint64_t fail_read, fail_write, fail_take, fail_step; /* at this offset, or at this number of steps */
	_Atomic unsigned reading, writing;
	_Atomic int mixed; /* something in order was not */
	_Atomic uint64_t next_read, next_write;
	uint64_t n_steps;
	enum cf_copy_order read_order, write_order;
	int linger; /* the sink waits until the copy is stopped */
};

static struct bench b;
static struct cf_copy_opts opts;
static struct cf_copy_result result;

static ssize_t mem_read(void *ctx, const struct cf_copy *c, uint8_t *buf, size_t len, uint64_t off)
{
	(void)ctx;
	(void)c;
	if (atomic_fetch_add(&b.reading, 1) && b.read_order == CF_COPY_IN_ORDER)
		b.mixed = 1;
	if (b.read_order == CF_COPY_IN_ORDER && off != b.next_read)
		b.mixed = 1;
	const uint64_t left = off < b.bytes ? b.bytes - off : 0;
	const size_t n = left < len ? (size_t)left : len;
	memcpy(buf, b.from + off, n);
	if (b.read_order == CF_COPY_IN_ORDER)
		b.next_read = off + n;
	atomic_fetch_sub(&b.reading, 1);
	return off == b.fail_read ? -ENXIO : (ssize_t)n;
}

static int mem_write(void *ctx, const struct cf_copy *c, const uint8_t *buf, size_t len, uint64_t off)
{
	(void)ctx;
	if (atomic_fetch_add(&b.writing, 1) && b.write_order == CF_COPY_IN_ORDER)
		b.mixed = 1;
	if (b.write_order == CF_COPY_IN_ORDER && off != b.next_write)
		b.mixed = 1;
	while (b.linger && !cf_copy_stopped(c))
		usleep(1000);
	if (off != b.fail_write) {
		memcpy(b.to + off, buf, len);
		atomic_fetch_add(&b.written[off / CHUNK], 1);
		if (b.write_order == CF_COPY_IN_ORDER)
			b.next_write = off + len;
	}
	atomic_fetch_sub(&b.writing, 1);
	return off == b.fail_write ? -ENOSPC : 0;
}

static int tap_take(void *ctx, const uint8_t *buf, size_t len)
{
	const size_t i = (size_t)(uintptr_t)ctx;
	if (i == 1 && b.n_seen[i] == b.fail_take)
		return -EPROTO;
	memcpy(b.seen[i] + b.n_seen[i], buf, len);
	b.n_seen[i] += len;
	return 0;
}

static int count_step(void *ctx, uint64_t done, uint64_t total)
{
	ck_assert_ptr_eq(ctx, &b);
	ck_assert_uint_le(done, total);
	return b.n_steps++ == b.fail_step ? -EINTR : 0;
}

static void setup(void)
{
	memset(&b, 0, sizeof(b));
	b.fail_read = b.fail_write = b.fail_take = b.fail_step = NEVER;
	test_fill(b.from, sizeof(b.from), 1);
}

static int copy(uint64_t bytes, unsigned n_threads, unsigned n_taps, enum cf_copy_order in, enum cf_copy_order out,
				uint64_t told)
{
	b.bytes = bytes;
	b.read_order = in;
	b.write_order = out;
	opts = (struct cf_copy_opts){
		.source = {.order = in, .bytes = told, .read = mem_read},
		.sink = {.order = out, .write = mem_write},
		.taps = {{(void *)0, tap_take}, {(void *)1, tap_take}},
		.n_taps = n_taps,
		.n_threads = n_threads,
		.chunk_bytes = CHUNK,
		.step_ctx = &b,
		.step = count_step,
	};
	return cf_copy_run(&opts, &result);
}

static const uint64_t lengths[] = {0,        1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 7 * CHUNK + 9, MAX_BYTES - 1,
								   MAX_BYTES};
static const unsigned thread_counts[] = {1, 2, 5, CF_COPY_THREADS_MAX};

/* Every shape: length x threads x taps x order of either end x known or unknown length. */
static void check_shape(uint64_t bytes, unsigned n_threads, unsigned n_taps, unsigned orders)
{
	const enum cf_copy_order in = orders & 1 ? CF_COPY_IN_ORDER : CF_COPY_ANY_ORDER;
	const enum cf_copy_order out = orders & 2 ? CF_COPY_IN_ORDER : CF_COPY_ANY_ORDER;
	const uint64_t told = orders & 4 ? CF_COPY_UNKNOWN : bytes;
	if (told == CF_COPY_UNKNOWN && in == CF_COPY_ANY_ORDER)
		return;
	setup();
	ck_assert_int_eq(copy(bytes, n_threads, n_taps, in, out, told), 0);
	ck_assert_uint_eq(result.bytes, bytes);
	ck_assert_int_eq(result.failed, CF_COPY_NOBODY);
	ck_assert_int_eq(b.mixed, 0);
	ck_assert(memcmp(b.to, b.from, bytes) == 0);
	for (uint64_t i = 0; i < MAX_BYTES / CHUNK; i++)
		ck_assert_uint_eq(b.written[i], i * CHUNK < bytes);
	for (unsigned i = 0; i < n_taps; i++) {
		ck_assert_uint_eq(b.n_seen[i], bytes);
		ck_assert(memcmp(b.seen[i], b.from, bytes) == 0);
	}
}

START_TEST(copy__every_shape_is_whole)
{
	for (size_t t = 0; t < CF_ARRAY_LEN(thread_counts); t++)
		for (unsigned n_taps = 0; n_taps <= 2; n_taps++)
			for (unsigned orders = 0; orders < 8; orders++)
				check_shape(lengths[_i], thread_counts[t], n_taps, orders);
}
END_TEST

/* The chunk that fails: the first, one in the middle, the last. */
static const uint64_t failing[] = {0, CHUNK, 17 * CHUNK, MAX_BYTES - CHUNK};

START_TEST(source__failure_ends_it)
{
	for (unsigned t = 0; t < CF_ARRAY_LEN(thread_counts); t++)
		for (unsigned order = 0; order < 2; order++) {
			setup();
			b.fail_read = failing[_i];
			ck_assert_int_eq(
				copy(MAX_BYTES, thread_counts[t], t % 3, (enum cf_copy_order)order, CF_COPY_ANY_ORDER, MAX_BYTES),
				-ENXIO);
			ck_assert_int_eq(result.failed, CF_COPY_SOURCE);
			ck_assert_uint_eq(result.failed_off, failing[_i]);
			ck_assert_uint_eq(b.written[failing[_i] / CHUNK], 0);
		}
}
END_TEST

START_TEST(sink__failure_ends_it)
{
	for (unsigned t = 0; t < CF_ARRAY_LEN(thread_counts); t++)
		for (unsigned order = 0; order < 2; order++) {
			setup();
			b.fail_write = failing[_i];
			ck_assert_int_eq(
				copy(MAX_BYTES, thread_counts[t], t % 3, CF_COPY_ANY_ORDER, (enum cf_copy_order)order, MAX_BYTES),
				-ENOSPC);
			ck_assert_int_eq(result.failed, CF_COPY_SINK);
			ck_assert_uint_eq(result.failed_off, failing[_i]);
			ck_assert_uint_lt(result.bytes, MAX_BYTES);
		}
}
END_TEST

START_TEST(tap__failure_ends_it)
{
	setup();
	b.fail_take = failing[_i];
	ck_assert_int_eq(copy(MAX_BYTES, 2, 2, CF_COPY_ANY_ORDER, CF_COPY_ANY_ORDER, MAX_BYTES), -EPROTO);
	ck_assert_int_eq(result.failed, CF_COPY_TAP);
}
END_TEST

START_TEST(source__ends_early)
{
	setup();
	ck_assert_int_eq(copy(5 * CHUNK + 3, 2, 0, CF_COPY_ANY_ORDER, CF_COPY_ANY_ORDER, 6 * CHUNK), -EIO);
	ck_assert_int_eq(result.failed, CF_COPY_SOURCE);
	ck_assert_uint_eq(result.failed_off, 5 * CHUNK);
}
END_TEST

/* A sink that waits for somebody outside gets to know that the copy is over. */
START_TEST(step__ends_it_and_wakes_who_waits)
{
	setup();
	b.linger = 1;
	b.fail_step = 1;
	ck_assert_int_eq(copy(MAX_BYTES, 4, 1, CF_COPY_ANY_ORDER, (enum cf_copy_order)_i, MAX_BYTES), -EINTR);
	ck_assert_int_eq(result.failed, CF_COPY_STEP);
	ck_assert_uint_ge(b.n_steps, 2);
}
END_TEST

/* ---- the usual ends ---- */

static int memory_file(void)
{
	int fd = memfd_create("check_copy", MFD_CLOEXEC);
	ck_assert_int_ge(fd, 0);
	return fd;
}

static int run(struct cf_copy_source source, struct cf_copy_sink sink)
{
	opts = (struct cf_copy_opts){.source = source, .sink = sink, .n_threads = 3, .chunk_bytes = 64 * 1024};
	return cf_copy_run(&opts, &result);
}

START_TEST(volume__there_and_back)
{
	const struct test_shape shape = {.mode = "xts",
									 .du_bytes = 4096,
									 .data_off = 63 * 512,
									 .bytes = 4096 * 97,
									 .access = CF_READ_WRITE,
									 .n_workers = 4};
	struct test_volume tv;
	uint8_t plain[4096 * 97], back[4096 * 97];
	test_volume_open(&tv, &shape);
	struct cf_copy_file f = {.fd = memory_file()};
	test_fill(plain, sizeof(plain), 3);
	ck_assert_int_eq(pwrite(f.fd, plain, sizeof(plain), 0), sizeof(plain));
	ck_assert_int_eq(run(cf_copy_from_file(&f, sizeof(plain)), cf_copy_to_volume(tv.v)), 0);
	test_volume_decrypt(&tv, back);
	ck_assert(memcmp(plain, back, sizeof(plain)) == 0);
	ck_assert_int_eq(ftruncate(f.fd, 0), 0);
	ck_assert_int_eq(run(cf_copy_from_volume(tv.v), cf_copy_to_file(&f)), 0);
	ck_assert_int_eq(pread(f.fd, back, sizeof(back), 0), sizeof(back));
	ck_assert(memcmp(plain, back, sizeof(plain)) == 0);
	close(f.fd);
	test_volume_close(&tv);
}
END_TEST

START_TEST(volume__is_never_written_past_its_end)
{
	const struct test_shape shape = {
		.mode = "xts", .du_bytes = 512, .bytes = 64 * 1024, .access = CF_READ_WRITE, .n_workers = 4};
	struct test_volume tv;
	test_volume_open(&tv, &shape);
	ck_assert_int_eq(run(cf_copy_from_zeros(64 * 1024 + 1), cf_copy_to_volume(tv.v)), -ENOSPC);
	ck_assert_int_eq(result.failed, CF_COPY_SINK);
	test_volume_close(&tv);
}
END_TEST

/* Zeros, a block of data that is all zeros but for its last byte, an end in the middle of a block of zeros. */
START_TEST(file__zeros_become_holes_and_nothing_else)
{
	uint8_t plain[40 * 4096 + 100], back[sizeof(plain)];
	struct cf_copy_file from = {.fd = memory_file()}, to = {.fd = memory_file(), .zeros = CF_COPY_ZEROS_SKIPPED};
	struct stat st;
	memset(plain, 0, sizeof(plain));
	plain[5 * 4096 - 1] = 1;
	test_fill(plain + 20 * 4096, 2 * 4096, 4);
	ck_assert_int_eq(pwrite(from.fd, plain, sizeof(plain), 0), sizeof(plain));
	ck_assert_int_eq(ftruncate(to.fd, sizeof(plain)), 0);
	ck_assert_int_eq(run(cf_copy_from_file(&from, sizeof(plain)), cf_copy_to_file(&to)), 0);
	ck_assert_int_eq(pread(to.fd, back, sizeof(back), 0), sizeof(back));
	ck_assert(memcmp(plain, back, sizeof(plain)) == 0);
	ck_assert_int_eq(fstat(to.fd, &st), 0);
	ck_assert_int_eq(st.st_blocks, 3 * 4096 / 512);
	close(from.fd);
	close(to.fd);
}
END_TEST

/* Through a pipe that is full most of the time, by two copies at once. */
static void *drain_pipe(void *arg)
{
	struct cf_copy_stream s = {.fd = ((int *)arg)[0]};
	struct cf_copy_file f = {.fd = ((int *)arg)[1]};
	struct cf_copy_result r;
	const struct cf_copy_opts o = {
		.source = cf_copy_from_stream(&s), .sink = cf_copy_to_file(&f), .n_threads = 2, .chunk_bytes = 12288};
	return cf_copy_run(&o, &r) == 0 && r.bytes == MAX_BYTES ? arg : NULL;
}

START_TEST(stream__keeps_order)
{
	int ends[2], fds[2];
	pthread_t other;
	void *ok;
	struct cf_copy_file f = {.fd = memory_file()};
	setup();
	ck_assert_int_eq(pwrite(f.fd, b.from, MAX_BYTES, 0), MAX_BYTES);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	fds[0] = ends[0];
	fds[1] = memory_file();
	struct cf_copy_stream s = {.fd = ends[1]};
	ck_assert_int_eq(pthread_create(&other, NULL, drain_pipe, fds), 0);
	ck_assert_int_eq(run(cf_copy_from_file(&f, MAX_BYTES), cf_copy_to_stream(&s)), 0);
	close(ends[1]);
	ck_assert_int_eq(pthread_join(other, &ok), 0);
	ck_assert_ptr_nonnull(ok);
	ck_assert_int_eq(pread(fds[1], b.to, MAX_BYTES, 0), MAX_BYTES);
	ck_assert(memcmp(b.to, b.from, MAX_BYTES) == 0);
	close(ends[0]);
	close(fds[1]);
	close(f.fd);
}
END_TEST

static int stop_at_once(void *ctx, uint64_t done, uint64_t total)
{
	(void)ctx;
	(void)done;
	(void)total;
	return -EINTR;
}

/* Nobody writes to the pipe that is read, nobody reads the one that is written. */
START_TEST(stream__does_not_hang_when_stopped)
{
	int ends[2];
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	struct cf_copy_stream s = {.fd = ends[_i]};
	struct cf_copy_file null = {.fd = memory_file()};
	opts = (struct cf_copy_opts){.n_threads = 2, .step = stop_at_once};
	opts.source = _i ? cf_copy_from_zeros(1024 * 1024) : cf_copy_from_stream(&s);
	opts.sink = _i ? cf_copy_to_stream(&s) : cf_copy_to_file(&null);
	ck_assert_int_eq(cf_copy_run(&opts, &result), -EINTR);
	close(null.fd);
	close(ends[0]);
	close(ends[1]);
}
END_TEST

int main(void)
{
	test_one_arena();
	Suite *s = suite_create("copy");
	TCase *t = tcase_create("engine");
	suite_add_tcase(s, t);
	tcase_add_loop_test(t, copy__every_shape_is_whole, 0, (int)CF_ARRAY_LEN(lengths));
	tcase_add_loop_test(t, source__failure_ends_it, 0, (int)CF_ARRAY_LEN(failing));
	tcase_add_loop_test(t, sink__failure_ends_it, 0, (int)CF_ARRAY_LEN(failing));
	tcase_add_loop_test(t, tap__failure_ends_it, 0, (int)CF_ARRAY_LEN(failing));
	tcase_add_test(t, source__ends_early);
	tcase_add_loop_test(t, step__ends_it_and_wakes_who_waits, 0, 2);
	t = tcase_create("ends");
	suite_add_tcase(s, t);
	tcase_add_test(t, volume__there_and_back);
	tcase_add_test(t, volume__is_never_written_past_its_end);
	tcase_add_test(t, file__zeros_become_holes_and_nothing_else);
	tcase_add_test(t, stream__keeps_order);
	tcase_add_loop_test(t, stream__does_not_hang_when_stopped, 0, 2);
	return test_run(s);
}
