/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* bad.c - ranges of the backing that cannot be read, under --bad-sectors zero (HAZARDS 29).
 *
 * A read that fails is tried again data unit by data unit; those that fail alone read as zeros and go on a list of
 * disjoint, ascending ranges, which has room for a fixed number: nothing is allocated here. The mutex is a leaf. */
#include <string.h>

#include "internal.h"

void cf_bad_init(struct cf_bad *b, enum cf_bad_sectors policy)
{
	b->policy = policy;
	pthread_mutex_init(&b->mutex, NULL);
}

void cf_bad_fini(struct cf_bad *b)
{
	pthread_mutex_destroy(&b->mutex);
}

/* The first range that ends at or after @off. */
static unsigned find(const struct cf_bad *b, uint64_t off)
{
	unsigned low = 0, high = b->n;
	while (low < high) {
		const unsigned middle = (low + high) / 2;
		if (b->at[middle].off + b->at[middle].bytes < off)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* @r may join the range at @i to the next one. */
static void join_next(struct cf_bad *b, unsigned i)
{
	struct cf_bad_range *r = &b->at[i];
	if (i + 1 == b->n || r->off + r->bytes < r[1].off)
		return;
	r->bytes = r[1].off + r[1].bytes - r->off;
	b->n--;
	memmove(r + 1, r + 2, (b->n - i - 1) * sizeof(*r));
}

/* One data unit: on the list already, beside a range, or a new range. */
static void add(struct cf_bad *b, uint64_t off, uint64_t bytes)
{
	const unsigned i = find(b, off);
	struct cf_bad_range *r = &b->at[i];
	if (i < b->n && r->off <= off && off + bytes <= r->off + r->bytes)
		return;
	if (i < b->n && r->off + r->bytes == off) {
		r->bytes += bytes;
		join_next(b, i);
	} else if (i < b->n && r->off == off + bytes) {
		r->off = off;
		r->bytes += bytes;
	} else if (b->n == CF_BAD_MAX) {
		b->overflow = true;
	} else {
		memmove(r + 1, r, (b->n - i) * sizeof(*r));
		*r = (struct cf_bad_range){.off = off, .bytes = bytes};
		b->n++;
	}
}

static void note(struct cf_volume *v, uint64_t du)
{
	pthread_mutex_lock(&v->bad.mutex);
	add(&v->bad, du << v->du_shift, v->du_bytes);
	pthread_mutex_unlock(&v->bad.mutex);
}

/* Decrypt one data unit to w->edge, or make it zeros. */
static int read_du(struct cf_volume *v, struct cf_worker *w, uint64_t du)
{
	const uint64_t off = du << v->du_shift;
	if (cf_backing_read_full(v->backing, w->crypt, v->du_bytes, cf_volume_at(v, off)) == 0)
		return cf_volume_decrypt(v, w, cf_volume_du(v, off), 1, w->crypt, w->edge);
	memset(w->edge, 0, v->du_bytes);
	note(v, du);
	return 0;
}

int cf_volume_read_bad(struct cf_volume *v, struct cf_worker *w, uint8_t *buf, size_t len, uint64_t off)
{
	for (size_t done = 0, take; done < len; done += take) {
		const size_t skip = (size_t)((off + done) & (v->du_bytes - 1)), left = len - done;
		const int rc = read_du(v, w, (off + done) >> v->du_shift);
		if (rc)
			return rc;
		take = left < v->du_bytes - skip ? left : v->du_bytes - skip;
		memcpy(buf + done, w->edge + skip, take);
	}
	return 0;
}

unsigned cf_volume_bad(struct cf_volume *v, struct cf_bad_range *out, unsigned max, struct cf_bad_total *total)
{
	struct cf_bad *b = &v->bad;
	pthread_mutex_lock(&b->mutex);
	*total = (struct cf_bad_total){.ranges = b->n, .complete = !b->overflow};
	for (unsigned i = 0; i < b->n; i++)
		total->bytes += b->at[i].bytes;
	const unsigned n = b->n < max ? b->n : max;
	memcpy(out, b->at, n * sizeof(*out));
	pthread_mutex_unlock(&b->mutex);
	return n;
}
