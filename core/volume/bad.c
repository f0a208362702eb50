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

/* Side by side, in the volume and in the image: the pieces of a volume may lie anywhere. */
static bool adjoin(const struct cf_bad_range *a, const struct cf_bad_range *b)
{
	return a->off + a->bytes == b->off && a->image_off + a->bytes == b->image_off;
}

/* Make a range of the one at @i and the next, if they adjoin. */
static void join(struct cf_bad *b, unsigned i)
{
	if (i + 1 >= b->n || !adjoin(&b->at[i], &b->at[i + 1]))
		return;
	b->at[i].bytes += b->at[i + 1].bytes;
	b->n--;
	memmove(&b->at[i + 1], &b->at[i + 2], (b->n - i - 1) * sizeof(b->at[0]));
}

/* Ranges are whole data units, so a new one lies inside one that is known, or clear of all. */
static void add(struct cf_bad *b, const struct cf_bad_range *new)
{
	unsigned i = find(b, new->off);
	if (i < b->n && b->at[i].off + b->at[i].bytes == new->off)
		i++;
	if (i < b->n && b->at[i].off <= new->off)
		return;
	if (i > 0 && adjoin(&b->at[i - 1], new)) {
		b->at[--i].bytes += new->bytes;
	} else if (i < b->n && adjoin(new, &b->at[i])) {
		b->at[i].off = new->off;
		b->at[i].image_off = new->image_off;
		b->at[i].bytes += new->bytes;
	} else if (b->n == CF_BAD_MAX) {
		b->overflow = true;
		return;
	} else {
		memmove(&b->at[i + 1], &b->at[i], (b->n - i) * sizeof(*new));
		b->at[i] = *new;
		b->n++;
	}
	join(b, i);
}

static void note(struct cf_volume *v, uint64_t off)
{
	const struct cf_bad_range range = {.off = off, .bytes = v->du_bytes, .image_off = cf_volume_at(v, off)};
	pthread_mutex_lock(&v->bad.mutex);
	add(&v->bad, &range);
	pthread_mutex_unlock(&v->bad.mutex);
}

/* Decrypt the data unit at @off to w->edge, or make it zeros. */
static int read_du(struct cf_volume *v, struct cf_worker *w, uint64_t off)
{
	if (cf_backing_read_full(v->backing, w->crypt, v->du_bytes, cf_volume_at(v, off)) == 0)
		return cf_volume_decrypt(v, w, cf_volume_du(v, off), 1, w->crypt, w->edge);
	memset(w->edge, 0, v->du_bytes);
	note(v, off);
	return 0;
}

int cf_volume_read_bad(struct cf_volume *v, struct cf_worker *w, uint8_t *buf, size_t len, uint64_t off)
{
	for (size_t done = 0, take; done < len; done += take) {
		const size_t skip = (size_t)((off + done) & (v->du_bytes - 1)), left = len - done;
		const int rc = read_du(v, w, off + done - skip);
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
