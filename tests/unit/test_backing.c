/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* test_backing.c - a backing in memory. Faults are for one thread, everything else for any number. */
#include "test_backing.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define TORN_BYTES 100u

static struct test_backing *of(struct cf_backing *b)
{
	return (struct test_backing *)b;
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

static size_t clip(const struct test_backing *t, size_t len, uint64_t off)
{
	if (off >= t->base.bytes)
		return 0;
	len = min_size(len, (size_t)(t->base.bytes - off));
	return t->piece ? min_size(len, t->piece) : len;
}

/* How many of @len bytes pass; -1: the call fails. */
static ssize_t pass(struct test_fault *f, size_t len)
{
	if (!f->n_calls)
		return (ssize_t)len;
	if (f->after_bytes) {
		size_t n = min_size(len, (size_t)f->after_bytes);
		f->after_bytes -= n;
		return (ssize_t)n;
	}
	if (f->n_calls != TEST_FOREVER)
		f->n_calls--;
	return -1;
}

static bool misaligned(const struct test_backing *t, const void *buf, size_t len, uint64_t off)
{
	return t->block && (off % t->block || len % t->block || (uintptr_t)buf % (t->block < 4096 ? t->block : 4096));
}

static void copy(const struct test_backing *t, uint8_t *dst, const uint8_t *src, size_t len)
{
	size_t half = t->pace == TEST_FAST ? len : len / 2;
	memcpy(dst, src, half);
	if (half < len)
		sched_yield();
	memcpy(dst + half, src + half, len - half);
}

/* Only the first that comes is stopped. */
static void copy_through_gate(struct test_backing *t, uint8_t *dst, const uint8_t *src, size_t len)
{
	size_t half = atomic_load(&t->at_gate) ? len : len / 2;
	memcpy(dst, src, half);
	atomic_store(&t->at_gate, 1);
	while (half < len && t->pace == TEST_GATE)
		sched_yield();
	memcpy(dst + half, src + half, len - half);
}

/* Is it this one's turn to fail? */
static bool is_nth(struct test_backing *t, enum test_call call)
{
	return t->nth.left && t->nth.call == call && --t->nth.left == 0;
}

/* The same for a call that transfers bytes: one that goes short has fewer of them. 1; 0 it fails. */
static bool survives(struct test_backing *t, enum test_call call, size_t *len)
{
	if (!is_nth(t, call))
		return true;
	*len /= 2;
	return t->nth.code == 0;
}

static bool readable(const struct test_backing *t, size_t len, uint64_t off)
{
	for (uint64_t s = off / 512; t->unreadable && len && s <= (off + len - 1) / 512; s++)
		if (t->unreadable[s])
			return false;
	return true;
}

static void call_hook(struct test_backing *t, enum test_call call)
{
	if (t->hook)
		t->hook(t, call);
}

static ssize_t test_pread(struct cf_backing *b, void *buf, size_t len, uint64_t off)
{
	struct test_backing *t = of(b);
	atomic_fetch_add(&t->n_reads, 1);
	if (misaligned(t, buf, len, off))
		return -EINVAL;
	call_hook(t, TEST_PREAD);
	if (!survives(t, TEST_PREAD, &len))
		return t->nth.code;
	if (!readable(t, clip(t, len, off), off))
		return -EIO;
	ssize_t n = pass(&t->read_fault, clip(t, len, off));
	if (n < 0)
		return t->read_fault.code;
	copy(t, buf, t->data + off, (size_t)n);
	return n;
}

static void mark(struct test_backing *t, uint64_t off, size_t len, unsigned step)
{
	for (uint64_t g = off / t->base.granule; len && g <= (off + len - 1) / t->base.granule; g++)
		if (atomic_fetch_add(&t->writing[g], step) != 0 && step == 1)
			atomic_fetch_add(&t->overlaps, 1);
}

/* Whoever changes another part of a granule meanwhile loses it. */
static void write_granules(struct test_backing *t, const uint8_t *buf, size_t len, uint64_t off)
{
	uint64_t granule = t->base.granule, first = off / granule * granule;
	uint64_t end = (off + len + granule - 1) / granule * granule;
	end = end < t->base.bytes ? end : t->base.bytes;
	uint8_t *whole = malloc((size_t)(end - first));
	assert(whole);
	copy(t, whole, t->data + first, (size_t)(end - first));
	memcpy(whole + (off - first), buf, len);
	copy(t, t->data + first, whole, (size_t)(end - first));
	free(whole);
}

static ssize_t test_pwrite(struct cf_backing *b, const void *buf, size_t len, uint64_t off)
{
	struct test_backing *t = of(b);
	atomic_fetch_add(&t->n_writes, 1);
	if (misaligned(t, buf, len, off))
		return -EINVAL;
	call_hook(t, TEST_PWRITE);
	if (!survives(t, TEST_PWRITE, &len))
		return t->nth.code;
	len = clip(t, len, off);
	ssize_t n = pass(&t->write_fault, len);
	if (n < 0 && t->tear == TEST_TORN)
		memset(t->data + off, 0xdd, min_size(len, TORN_BYTES));
	if (n < 0)
		return t->write_fault.code;
	mark(t, off, (size_t)n, 1);
	if (t->pace == TEST_GATE)
		copy_through_gate(t, t->data + off, buf, (size_t)n);
	else if (t->whole_granules)
		write_granules(t, buf, (size_t)n, off);
	else
		copy(t, t->data + off, buf, (size_t)n);
	mark(t, off, (size_t)n, UINT32_MAX);
	return n;
}

static int test_sync(struct cf_backing *b)
{
	atomic_fetch_add(&of(b)->n_syncs, 1);
	call_hook(of(b), TEST_SYNC);
	if (is_nth(of(b), TEST_SYNC))
		return of(b)->nth.code;
	return of(b)->sync_code;
}

static int test_punch(struct cf_backing *b, uint64_t off, uint64_t len)
{
	struct test_backing *t = of(b);
	uint64_t before = atomic_fetch_add(&t->n_punches, 1);
	assert(off <= b->bytes && len <= b->bytes - off);
	if (off % b->discard_granule || len % b->discard_granule)
		return -EINVAL;
	if (is_nth(t, TEST_PUNCH))
		return t->nth.code;
	if (t->punch_code && before >= t->punch_code_after)
		return t->punch_code;
	t->punched_off = off;
	t->punched_len = len;
	memset(t->data + off, 0, (size_t)len);
	return 0;
}

static int test_allocate(struct cf_backing *b, uint64_t off, uint64_t len)
{
	atomic_fetch_add(&of(b)->n_allocates, 1);
	if (is_nth(of(b), TEST_ALLOCATE))
		return of(b)->nth.code;
	return off + len <= b->bytes ? of(b)->allocate_code : -EFBIG;
}

static int64_t test_seek(struct cf_backing *b, uint64_t off, enum cf_seek what)
{
	const struct test_hole *h = of(b)->holes;
	if (is_nth(of(b), TEST_SEEK))
		return of(b)->nth.code;
	if (off >= b->bytes)
		return -ENXIO;
	for (; h->to; h++) {
		if (off >= h->to)
			continue;
		if (what == CF_SEEK_HOLE)
			return (int64_t)(off > h->from ? off : h->from);
		if (off >= h->from)
			off = h->to;
	}
	if (what == CF_SEEK_HOLE)
		return (int64_t)b->bytes;
	return off < b->bytes ? (int64_t)off : -ENXIO;
}

static void test_close(struct cf_backing *b)
{
	free(of(b)->data);
	free(of(b)->writing);
}

static const struct cf_backing_ops test_ops = {
	.name = "test",
	.pread = test_pread,
	.pwrite = test_pwrite,
	.sync = test_sync,
	.punch = test_punch,
	.allocate = test_allocate,
	.seek = test_seek,
	.close = test_close,
};

struct test_backing *test_backing_new(uint64_t bytes, uint32_t granule)
{
	struct test_backing *t = calloc(1, sizeof(*t));
	assert(t);
	t->base = (struct cf_backing){
		.ops = &test_ops,
		.bytes = bytes,
		.access = CF_READ_WRITE,
		.granule = granule,
		.discard_granule = 512,
	};
	t->data = calloc(1, (size_t)bytes);
	t->writing = calloc((size_t)(bytes / granule + 1), sizeof(*t->writing));
	assert(t->data && t->writing);
	return t;
}
