/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* test_crash.c - disks that remember. */
#include "test_crash.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "test_volume.h"

#define DISKS_MAX 4u
#define PIECE 512u

struct event {
	unsigned disk;
	bool is_sync;
	uint64_t off;
	size_t len;
	uint8_t *data;
};

struct first {
	uint8_t *data; /* what the disk began as */
	uint64_t bytes;
};

struct test_events {
	size_t n, room;
	struct event *at;
	unsigned n_disks;
	struct first disk[DISKS_MAX];
};

struct test_disk {
	struct cf_backing base; /* first */
	struct test_events *events;
	unsigned id;
	uint8_t *data;
};

static struct test_disk *of(struct cf_backing *b)
{
	return (struct test_disk *)b;
}

static uint8_t *copy_of(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len + 1);
	assert(copy);
	return memcpy(copy, data, len);
}

struct test_events *test_events_new(void)
{
	struct test_events *e = calloc(1, sizeof(*e));
	assert(e);
	return e;
}

void test_events_free(struct test_events **e)
{
	for (size_t i = 0; *e && i < (*e)->n; i++)
		free((*e)->at[i].data);
	for (unsigned i = 0; *e && i < (*e)->n_disks; i++)
		free((*e)->disk[i].data);
	if (*e)
		free((*e)->at);
	free(*e);
	*e = NULL;
}

size_t test_events_count(const struct test_events *e)
{
	return e->n;
}

static struct event *add(struct test_events *e)
{
	if (e->n == e->room) {
		e->room = e->room ? 2 * e->room : 64;
		e->at = realloc(e->at, e->room * sizeof(*e->at));
		assert(e->at);
	}
	return &e->at[e->n++];
}

static ssize_t disk_pread(struct cf_backing *b, void *buf, size_t len, uint64_t off)
{
	if (off >= b->bytes)
		return 0;
	len = len < b->bytes - off ? len : (size_t)(b->bytes - off);
	memcpy(buf, of(b)->data + off, len);
	return (ssize_t)len;
}

static ssize_t disk_pwrite(struct cf_backing *b, const void *buf, size_t len, uint64_t off)
{
	struct test_disk *d = of(b);
	assert(b->access == CF_READ_WRITE && off <= b->bytes && len <= b->bytes - off);
	memcpy(d->data + off, buf, len);
	*add(d->events) = (struct event){.disk = d->id, .off = off, .len = len, .data = copy_of(buf, len)};
	return (ssize_t)len;
}

static int disk_sync(struct cf_backing *b)
{
	*add(of(b)->events) = (struct event){.disk = of(b)->id, .is_sync = true};
	return 0;
}

static int disk_punch(struct cf_backing *b, uint64_t off, uint64_t len)
{
	uint8_t *zeros = calloc(1, (size_t)len);
	assert(zeros);
	const ssize_t n = disk_pwrite(b, zeros, (size_t)len, off);
	free(zeros);
	return n == (ssize_t)len ? 0 : -EIO;
}

static int disk_allocate(struct cf_backing *b, uint64_t off, uint64_t len)
{
	return off + len <= b->bytes ? 0 : -EFBIG;
}

static void disk_close(struct cf_backing *b)
{
	free(of(b)->data);
}

static const struct cf_backing_ops disk_ops = {
	.name = "disk",
	.pread = disk_pread,
	.pwrite = disk_pwrite,
	.sync = disk_sync,
	.punch = disk_punch,
	.allocate = disk_allocate,
	.close = disk_close,
};

struct cf_backing *test_disk_new(struct test_events *e, const uint8_t *data, uint64_t bytes, unsigned *id)
{
	struct test_disk *d = calloc(1, sizeof(*d));
	assert(d && e->n_disks < DISKS_MAX);
	d->base = (struct cf_backing){
		.ops = &disk_ops, .bytes = bytes, .access = CF_READ_WRITE, .granule = 1, .discard_granule = PIECE};
	d->events = e;
	d->id = e->n_disks++;
	d->data = calloc(1, (size_t)bytes + 1);
	assert(d->data);
	if (data)
		memcpy(d->data, data, (size_t)bytes);
	e->disk[d->id] = (struct first){.data = copy_of(d->data, (size_t)bytes), .bytes = bytes};
	*id = d->id;
	return &d->base;
}

/* Pieces by their place on the disk, since that is what is written in one. */
static void apply(uint8_t *disk, const struct event *w, enum test_cut cut, uint64_t *random)
{
	for (size_t at = 0, take; at < w->len; at += take) {
		take = PIECE - (size_t)((w->off + at) % PIECE);
		take = take < w->len - at ? take : w->len - at;
		if (cut == TEST_CUT_ALL || (cut == TEST_CUT_SOME && test_random(random) % 2))
			memcpy(disk + w->off + at, w->data + at, take);
	}
}

uint8_t *test_events_cut(const struct test_events *e, unsigned id, size_t k, enum test_cut cut, uint64_t seed)
{
	uint8_t *disk = copy_of(e->disk[id].data, (size_t)e->disk[id].bytes);
	size_t synced = 0;
	assert(k <= e->n);
	for (size_t i = 0; i < k; i++)
		if (e->at[i].disk == id && e->at[i].is_sync)
			synced = i;
	for (size_t i = 0; i < k; i++)
		if (e->at[i].disk == id && !e->at[i].is_sync)
			apply(disk, &e->at[i], i < synced ? TEST_CUT_ALL : cut, &seed);
	return disk;
}
