/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* disk.c - what a crash can leave of a store, see trace.h. */
#include <err.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

#define UNSURE_MAX 4096u

void crash_disk_init(struct crash_disk *d, unsigned index, const uint8_t *content, uint64_t bytes)
{
	*d = (struct crash_disk){.index = index, .bytes = bytes, .durable = malloc((size_t)bytes)};
	if (!d->durable)
		errx(2, "no memory");
	memcpy(d->durable, content, (size_t)bytes);
}

void crash_disk_fini(struct crash_disk *d)
{
	free(d->durable);
	d->durable = NULL;
}

static void put(const struct crash_trace *t, const struct crash_event *e, size_t from, size_t len, uint8_t *out)
{
	if (e->data == CRASH_ZEROS)
		memset(out + e->off + from, 0, len);
	else
		memcpy(out + e->off + from, t->bytes + e->data + from, len);
}

const struct crash_event *crash_disk_unsure(const struct crash_disk *d, const struct crash_trace *t, size_t upto,
											size_t *i)
{
	for (*i = *i > d->floor ? *i : d->floor; *i < upto;) {
		const struct crash_event *e = &t->event[(*i)++];
		if (e->kind == CRASH_EV_WRITE && e->who == d->index)
			return e;
	}
	return NULL;
}

void crash_disk_pass(struct crash_disk *d, const struct crash_trace *t, size_t i)
{
	const struct crash_event *sync = &t->event[i], *e;
	size_t at = 0;
	if (sync->kind != CRASH_EV_SYNC || sync->who != d->index || sync->off <= d->floor)
		return;
	while ((e = crash_disk_unsure(d, t, sync->off, &at)))
		put(t, e, 0, e->len, d->durable);
	d->floor = sync->off;
}

/* Up to the next border of a piece of the disk. */
static size_t piece(const struct crash_event *e, size_t from)
{
	size_t len = CRASH_PIECE - (size_t)((e->off + from) % CRASH_PIECE);
	return len < e->len - from ? len : e->len - from;
}

static void put_torn(const struct crash_trace *t, const struct crash_event *e, uint64_t *random, uint8_t *out)
{
	const uint64_t odds = crash_random(random) % 16;
	for (size_t from = 0, len; from < e->len; from += len) {
		len = piece(e, from);
		if (crash_random(random) % 16 < odds)
			put(t, e, from, len, out);
	}
}

/* Its first pieces only. */
static void put_start(const struct crash_trace *t, const struct crash_event *e, uint64_t *random, uint8_t *out)
{
	const size_t end = (size_t)(crash_random(random) % (e->len + CRASH_PIECE));
	for (size_t from = 0, len; from < e->len; from += len) {
		len = piece(e, from);
		if (from + len <= end)
			put(t, e, from, len, out);
	}
}

static void lose_some(const struct crash_disk *d, const struct crash_trace *t, size_t upto, uint64_t *random,
					  uint8_t *out)
{
	const struct crash_event *list[UNSURE_MAX], *e;
	size_t n = 0, at = 0;
	while ((e = crash_disk_unsure(d, t, upto, &at))) {
		if (n == UNSURE_MAX)
			errx(2, "more than %u writes without a sync", UNSURE_MAX);
		list[n++] = e;
	}
	const uint64_t odds = crash_random(random) % 5; /* of a write to be kept whole, in quarters */
	while (n) {
		size_t i = (size_t)(crash_random(random) % n);
		e = list[i];
		list[i] = list[--n];
		if (crash_random(random) % 2)
			put_torn(t, e, random, out);
		else if (crash_random(random) % 4 < odds)
			put(t, e, 0, e->len, out);
	}
}

void crash_disk_crash(const struct crash_disk *d, const struct crash_trace *t, size_t upto, enum crash_loss loss,
					  uint64_t *random, uint8_t *out)
{
	const struct crash_event *e;
	size_t at = 0;
	memcpy(out, d->durable, (size_t)d->bytes);
	if (loss == CRASH_LOSES_SOME) {
		lose_some(d, t, upto, random, out);
	} else if (loss == CRASH_LOSES_NOTHING) {
		while ((e = crash_disk_unsure(d, t, upto, &at)))
			if (at < upto)
				put(t, e, 0, e->len, out);
			else
				put_start(t, e, random, out); /* it is under way */
	}
}
