/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* split.c - several backings, one after the other, as one.
 *
 *     part 0             part 1   part 2
 *     |==================|========|==============|
 *     start[0] = 0       start[1] start[2]       bytes
 *
 * Parts may have any length, so a data unit may lie across a border: a transfer ends at the border, as a short one, and
 * the caller goes on. Owns its parts. Holds nothing that changes; any number of threads. */
#include "config.h"

#include "cryptfuse/backing.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "cryptfuse/err.h"
#include "cryptfuse/units.h"

struct part {
	struct cf_backing *b;
	uint64_t start; /* in the whole */
};

struct split_backing {
	struct cf_backing base; /* first */
	unsigned n;
	struct part part[];
};

static struct split_backing *of(struct cf_backing *b)
{
	return (struct split_backing *)b;
}

static uint64_t end_of(const struct part *p)
{
	return p->start + p->b->bytes;
}

/* The part that has the byte at @off, which lies inside. */
static struct part *part_at(struct split_backing *s, uint64_t off)
{
	unsigned low = 0, high = s->n;
	assert(off < s->base.bytes);
	while (low < high) { /* the first that ends behind @off */
		unsigned mid = low + (high - low) / 2;
		if (end_of(&s->part[mid]) <= off)
			low = mid + 1;
		else
			high = mid;
	}
	return &s->part[low];
}

static ssize_t split_pread(struct cf_backing *b, void *buf, size_t len, uint64_t off)
{
	if (off >= b->bytes)
		return 0;
	struct part *p = part_at(of(b), off);
	return p->b->ops->pread(p->b, buf, (size_t)cf_min_u64(len, end_of(p) - off), off - p->start);
}

static ssize_t split_pwrite(struct cf_backing *b, const void *buf, size_t len, uint64_t off)
{
	assert(off <= b->bytes && len <= b->bytes - off);
	if (!len)
		return 0;
	struct part *p = part_at(of(b), off);
	return p->b->ops->pwrite(p->b, buf, (size_t)cf_min_u64(len, end_of(p) - off), off - p->start);
}

/* All of them, whatever one says; the first failure counts. */
static int split_sync(struct cf_backing *b)
{
	struct split_backing *s = of(b);
	int rc = 0;
	for (unsigned i = 0; i < s->n; i++) {
		int one = s->part[i].b->ops->sync(s->part[i].b);
		rc = rc ? rc : one;
	}
	return rc;
}

static int write_zeros(struct cf_backing *b, uint64_t off, uint64_t len)
{
	static const uint8_t zeros[4096];
	for (size_t written; len; off += written, len -= written) {
		int rc = cf_backing_write_full(b, zeros, (size_t)cf_min_u64(len, sizeof(zeros)), off, &written);
		if (rc)
			return rc;
	}
	return 0;
}

/* A part behind the first that cannot punch gets zeros: something has changed by then, so it is too late to refuse. */
static int split_punch(struct cf_backing *b, uint64_t off, uint64_t len)
{
	assert(off <= b->bytes && len <= b->bytes - off);
	for (uint64_t at = off, take; at < off + len; at += take) {
		struct part *p = part_at(of(b), at);
		take = cf_min_u64(off + len, end_of(p)) - at;
		int rc = p->b->ops->punch ? p->b->ops->punch(p->b, at - p->start, take) : -EOPNOTSUPP;
		if (rc == -EOPNOTSUPP && at != off)
			rc = write_zeros(p->b, at - p->start, take);
		if (rc)
			return rc;
	}
	return 0;
}

static int split_allocate(struct cf_backing *b, uint64_t off, uint64_t len)
{
	assert(off <= b->bytes && len <= b->bytes - off);
	for (uint64_t at = off, take; at < off + len; at += take) {
		struct part *p = part_at(of(b), at);
		take = cf_min_u64(off + len, end_of(p)) - at;
		int rc = p->b->ops->allocate(p->b, at - p->start, take);
		if (rc)
			return rc;
	}
	return 0;
}

/* Where the next data or hole of one part is: its end when there is none of it. A file has a hole behind its end, which
 * says nothing about the next part. */
static int64_t seek_part(struct cf_backing *b, uint64_t off, enum cf_seek what)
{
	if (!b->ops->seek)
		return (int64_t)(what == CF_SEEK_DATA ? off : b->bytes);
	int64_t at = b->ops->seek(b, off, what);
	return at == -ENXIO || at > (int64_t)b->bytes ? (int64_t)b->bytes : at;
}

static int64_t split_seek(struct cf_backing *b, uint64_t off, enum cf_seek what)
{
	for (uint64_t at = off; at < b->bytes;) {
		struct part *p = part_at(of(b), at);
		int64_t found = seek_part(p->b, at - p->start, what);
		if (found < 0 || (uint64_t)found < p->b->bytes)
			return found < 0 ? found : (int64_t)p->start + found;
		at = end_of(p);
	}
	return what == CF_SEEK_HOLE && off < b->bytes ? (int64_t)b->bytes : -ENXIO;
}

static void split_close(struct cf_backing *b)
{
	struct split_backing *s = of(b);
	for (unsigned i = 0; i < s->n; i++)
		cf_backing_free(&s->part[i].b);
}

static const struct cf_backing_ops split_ops = {
	.name = "split image",
	.pread = split_pread,
	.pwrite = split_pwrite,
	.sync = split_sync,
	.punch = split_punch,
	.allocate = split_allocate,
	.seek = split_seek,
	.close = split_close,
};

int cf_backing_join(struct cf_backing **out, struct cf_backing *const *parts, unsigned n, struct cf_err *err)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < n; i++)
		if (__builtin_add_overflow(bytes, parts[i]->bytes, &bytes) || bytes > INT64_MAX)
			return cf_fail(err, -EFBIG, "the parts of the image are together longer than any file can be");
	struct split_backing *s = calloc(1, sizeof(*s) + n * sizeof(s->part[0]));
	if (!s)
		return cf_fail(err, -ENOMEM, "out of memory");
	s->base = (struct cf_backing){
		.ops = &split_ops, .access = parts[0]->access, .granule = 1, .discard_granule = parts[0]->discard_granule};
	s->n = n;
	for (unsigned i = 0; i < n; i++) {
		assert(parts[i]->granule == 1); /* coordinates of the whole are not those of the parts */
		s->part[i] = (struct part){.b = parts[i], .start = s->base.bytes};
		s->base.bytes += parts[i]->bytes;
	}
	*out = &s->base;
	return 0;
}
