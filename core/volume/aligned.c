/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* aligned.c - makes a store that takes only whole blocks fit for any range.
 *
 *     off - skip       off                                 off + len
 *      |................|====|=================|============|.......|
 *       block             from the caller's own buffer       block
 *
 * A range that begins and ends on blocks, in memory that suits, passes as it is. Any other goes through a bounce
 * buffer, reserved at open; the blocks at its edges are read first, and written whole. Two writes in one block at once
 * would undo each other: the granule says so, and the volume's range lock keeps them apart, readers too. Any number of
 * threads; as many as there are bounce buffers work at once, the others wait. */
#include "aligned.h"

#include <assert.h>
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/err.h"
#include "cryptfuse/units.h"

#define BOUNCE_BYTES ((size_t)256 * 1024)
#define BOUNCES 16u /* as many as there can be workers */
#define PAGE_BYTES 4096u

struct aligned {
	struct cf_backing base;   /* first */
	struct cf_backing *inner; /* whole blocks only */
	struct cf_backing *tail;  /* any range, from tail_off on; NULL: there is none */
	uint64_t tail_off;
	uint32_t block, memory; /* bytes, powers of two */
	sem_t n_free;
	atomic_uint used; /* a bit a bounce buffer */
	uint8_t *bounces;
};

static struct aligned *of(struct cf_backing *b)
{
	return (struct aligned *)b;
}

/* ---- bounce buffers ---- */

/* Whoever got past the semaphore finds one free. */
static uint8_t *take_bounce(struct aligned *a)
{
	while (sem_wait(&a->n_free) != 0)
		;
	unsigned used = atomic_load(&a->used), i;
	do
		i = (unsigned)__builtin_ctz(~used);
	while (!atomic_compare_exchange_weak(&a->used, &used, used | 1u << i));
	assert(i < BOUNCES);
	return a->bounces + i * BOUNCE_BYTES;
}

static void give_bounce(struct aligned *a, const uint8_t *bounce)
{
	atomic_fetch_and(&a->used, ~(1u << (size_t)(bounce - a->bounces) / BOUNCE_BYTES));
	sem_post(&a->n_free);
}

/* ---- transfers ---- */

/* Can the range, or its first blocks, pass as it is? */
static bool fits(const struct aligned *a, const void *buf, size_t len, uint64_t off)
{
	return off % a->block == 0 && len >= a->block && (uintptr_t)buf % a->memory == 0;
}

/* As many bytes of whole blocks as there are: going on after a short read that ended on a block. */
static ssize_t read_blocks(struct aligned *a, uint8_t *bounce, size_t span, uint64_t at)
{
	size_t done = 0;
	while (done < span && done % a->block == 0) {
		ssize_t n = a->inner->ops->pread(a->inner, bounce + done, span - done, at + done);
		if (n < 0 && !done)
			return n;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

/* All of it, or how much of it is surely written: @code says why. Goes on at the block where a short write ended. */
static size_t write_blocks(struct aligned *a, const uint8_t *bounce, size_t span, uint64_t at, int *code)
{
	size_t done = 0;
	*code = 0;
	while (done < span) {
		size_t from = (size_t)cf_units_round_down(done, a->block);
		ssize_t n = a->inner->ops->pwrite(a->inner, bounce + from, span - from, at + from);
		if (n <= 0 || from + (size_t)n <= done) {
			*code = n < 0 ? (int)n : -EIO;
			break;
		}
		done = from + (size_t)n;
	}
	return done;
}

static size_t span_of(const struct aligned *a, size_t skip, size_t len)
{
	return len < BOUNCE_BYTES ? cf_min_size((size_t)cf_units_round_up(skip + len, a->block), BOUNCE_BYTES)
							  : BOUNCE_BYTES;
}

static ssize_t read_bounced(struct aligned *a, uint8_t *buf, size_t len, uint64_t off)
{
	size_t skip = (size_t)(off % a->block), span = span_of(a, skip, len);
	uint8_t *bounce = take_bounce(a);
	ssize_t n = read_blocks(a, bounce, span, off - skip);
	if (n >= 0) {
		size_t usable = (size_t)n > skip ? (size_t)n - skip : 0;
		n = (ssize_t)cf_min_size(usable, len);
		memcpy(buf, bounce + skip, (size_t)n);
	}
	give_bounce(a, bounce);
	return n;
}

/* What stands before and behind @len bytes in their first and last block. */
static int read_edges(struct aligned *a, uint8_t *bounce, size_t span, uint64_t at, size_t skip, size_t len)
{
	size_t last = span - a->block;
	int rc = 0;
	if (skip)
		rc = cf_backing_read_full(a->inner, bounce, a->block, at);
	if (!rc && skip + len < span && !(skip && last == 0))
		rc = cf_backing_read_full(a->inner, bounce + last, a->block, at + last);
	return rc;
}

static ssize_t write_bounced(struct aligned *a, const uint8_t *buf, size_t len, uint64_t off)
{
	size_t skip = (size_t)(off % a->block), span = span_of(a, skip, len), written = 0;
	uint8_t *bounce = take_bounce(a);
	len = cf_min_size(len, span - skip);
	int rc = read_edges(a, bounce, span, off - skip, skip, len);
	if (!rc) {
		memcpy(bounce + skip, buf, len);
		written = write_blocks(a, bounce, span, off - skip, &rc);
	}
	give_bounce(a, bounce);
	return written > skip ? (ssize_t)cf_min_size(written - skip, len) : rc;
}

/* ---- the backing ---- */

static ssize_t aligned_pread(struct cf_backing *b, void *buf, size_t len, uint64_t off)
{
	struct aligned *a = of(b);
	if (off >= a->tail_off)
		return a->tail ? a->tail->ops->pread(a->tail, buf, len, off) : 0;
	len = (size_t)(len < a->tail_off - off ? len : a->tail_off - off);
	if (!fits(a, buf, len, off))
		return read_bounced(a, buf, len, off);
	return a->inner->ops->pread(a->inner, buf, (size_t)cf_units_round_down(len, a->block), off);
}

static ssize_t aligned_pwrite(struct cf_backing *b, const void *buf, size_t len, uint64_t off)
{
	struct aligned *a = of(b);
	assert(off <= b->bytes && len <= b->bytes - off);
	if (off >= a->tail_off)
		return a->tail ? a->tail->ops->pwrite(a->tail, buf, len, off) : 0;
	len = (size_t)(len < a->tail_off - off ? len : a->tail_off - off);
	if (!fits(a, buf, len, off))
		return write_bounced(a, buf, len, off);
	return a->inner->ops->pwrite(a->inner, buf, (size_t)cf_units_round_down(len, a->block), off);
}

/* Both are the same file: one sync is for both. */
static int aligned_sync(struct cf_backing *b)
{
	return of(b)->inner->ops->sync(of(b)->inner);
}

static int aligned_punch(struct cf_backing *b, uint64_t off, uint64_t len)
{
	struct cf_backing *inner = of(b)->inner;
	return inner->ops->punch ? inner->ops->punch(inner, off, len) : -EOPNOTSUPP;
}

static int aligned_allocate(struct cf_backing *b, uint64_t off, uint64_t len)
{
	struct cf_backing *inner = of(b)->inner;
	return inner->ops->allocate ? inner->ops->allocate(inner, off, len) : -EOPNOTSUPP;
}

static int64_t aligned_seek(struct cf_backing *b, uint64_t off, enum cf_seek what)
{
	struct cf_backing *inner = of(b)->inner;
	if (inner->ops->seek)
		return inner->ops->seek(inner, off, what);
	return off >= b->bytes ? -ENXIO : what == CF_SEEK_DATA ? (int64_t)off : (int64_t)b->bytes;
}

static void aligned_close(struct cf_backing *b)
{
	struct aligned *a = of(b);
	cf_backing_free(&a->tail);
	cf_backing_free(&a->inner);
	sem_destroy(&a->n_free);
	free(a->bounces);
}

static const struct cf_backing_ops aligned_ops = {
	.name = "direct",
	.pread = aligned_pread,
	.pwrite = aligned_pwrite,
	.sync = aligned_sync,
	.punch = aligned_punch,
	.allocate = aligned_allocate,
	.seek = aligned_seek,
	.close = aligned_close,
};

uint64_t cf_aligned_tail_off(uint64_t bytes, uint32_t block)
{
	return bytes % block ? cf_units_round_down(bytes, block > PAGE_BYTES ? block : PAGE_BYTES) : bytes;
}

int cf_aligned_new(struct cf_backing **out, struct cf_backing **inner, struct cf_backing **tail, uint32_t block,
				   uint32_t memory, struct cf_err *err)
{
	assert(memory <= block && block <= CF_ALIGNED_BLOCK_MAX); /* so that every block in a bounce buffer is aligned */
	struct aligned *a = calloc(1, sizeof(*a));
	void *bounces = NULL;
	if (!a || posix_memalign(&bounces, CF_ALIGNED_BLOCK_MAX, BOUNCES * BOUNCE_BYTES) != 0) {
		free(a);
		return cf_fail(err, -ENOMEM, "no memory for the buffers of direct input and output");
	}
	a->bounces = bounces;
	a->base = **inner;
	a->base.ops = &aligned_ops;
	a->base.granule = block > a->base.granule ? block : a->base.granule;
	a->block = block;
	a->memory = memory;
	sem_init(&a->n_free, 0, BOUNCES);
	a->tail_off = cf_aligned_tail_off(a->base.bytes, block);
	assert((a->tail_off < a->base.bytes) == (*tail != NULL));
	a->inner = cf_take(*inner);
	a->tail = cf_take(*tail);
	*out = &a->base;
	return 0;
}
