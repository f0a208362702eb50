/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* compare.c - see compare.h. A model in memory holds what the volume must contain; both sides read and write it. */
#include "compare.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/engine.h"

#define RANGES 8u /* a path */

struct run {
	const struct dm *dm;
	const struct ours *o;
	struct rng *r;
	struct compare_stats *stats;
	uint64_t off, len; /* of the volume in the backing, bytes */
	uint32_t du;       /* bytes */
	uint8_t *model;    /* what the volume must contain */
	uint8_t *buf;      /* for dm_pread */
	uint8_t *image;    /* the backing before anybody wrote */
	const char *engine, *path;
};

static int differ(const struct run *c, const char *what, const uint8_t *got, uint64_t at, size_t len)
{
	size_t i = 0;
	while (i < len && got[i] == c->model[at + i])
		i++;
	printf("  %s, engine %s, path %s: bytes %llu + %zu differ, first at %llu (data unit %llu)\n", what, c->engine,
		   c->path, (unsigned long long)at, len, (unsigned long long)(at + i), (unsigned long long)((at + i) / c->du));
	return -1;
}

static int failed(const struct run *c, const char *what, int rc)
{
	printf("  %s, engine %s, path %s: %s\n", what, c->engine, c->path, strerror(-rc));
	return -1;
}

/* ---- whole volume ---- */

static void kernel_writes(struct run *c)
{
	rng_fill(c->r, c->model, c->len);
	dm_pwrite(c->dm, c->model, c->len, 0);
}

static int ours_reads(struct run *c, struct cf_volume *v)
{
	int rc = ours_read(v, c->buf, c->len, 0);
	if (rc)
		return failed(c, "cryptfuse reads what dm-crypt wrote", rc);
	if (memcmp(c->buf, c->model, c->len) != 0)
		return differ(c, "cryptfuse reads what dm-crypt wrote", c->buf, 0, c->len);
	c->stats->kernel_wrote += c->len;
	return 0;
}

static int ours_writes(struct run *c, struct cf_volume *v)
{
	rng_fill(c->r, c->model, c->len);
	int rc = ours_write(v, c->model, c->len, 0);
	if (rc)
		return failed(c, "cryptfuse writes", rc);
	dm_pread(c->dm, c->buf, c->len, 0);
	if (memcmp(c->buf, c->model, c->len) != 0)
		return differ(c, "dm-crypt reads what cryptfuse wrote", c->buf, 0, c->len);
	c->stats->ours_wrote += c->len;
	return 0;
}

/* ---- random ranges ---- */

struct range {
	uint64_t at;
	size_t len;
};

/* Any bytes for cryptfuse, whole data units for a block device. */
static struct range pick(struct run *c, uint64_t unit)
{
	uint64_t n = c->len / unit, at = rng_below(c->r, n), most = n - at;
	if (rng_below(c->r, 2) && most > 3 * c->du / unit)
		most = 3 * c->du / unit;
	return (struct range){at * unit, (size_t)((1 + rng_below(c->r, most)) * unit)};
}

static int kernel_range(struct run *c, bool write)
{
	struct range x = pick(c, c->du);
	if (write) {
		rng_fill(c->r, c->buf, x.len);
		memcpy(c->model + x.at, c->buf, x.len);
		dm_pwrite(c->dm, c->buf, x.len, x.at);
		return 0;
	}
	dm_pread(c->dm, c->buf, x.len, x.at);
	return memcmp(c->buf, c->model + x.at, x.len) == 0 ? 0 : differ(c, "dm-crypt reads a range", c->buf, x.at, x.len);
}

static int ours_range(struct run *c, struct cf_volume *v, bool write)
{
	struct range x = pick(c, 1);
	int rc;
	if (write) {
		rng_fill(c->r, c->model + x.at, x.len);
		rc = ours_write(v, c->model + x.at, x.len, x.at);
		return rc ? failed(c, "cryptfuse writes a range", rc) : 0;
	}
	rc = ours_read(v, c->buf, x.len, x.at);
	if (rc)
		return failed(c, "cryptfuse reads a range", rc);
	return memcmp(c->buf, c->model + x.at, x.len) == 0 ? 0 : differ(c, "cryptfuse reads a range", c->buf, x.at, x.len);
}

static int ranges(struct run *c, struct cf_volume *v)
{
	int rc = 0;
	for (unsigned i = 0; i < RANGES && !rc; i++) {
		bool write = rng_below(c->r, 2);
		rc = rng_below(c->r, 2) ? kernel_range(c, write) : ours_range(c, v, write);
		c->stats->ranges++;
	}
	if (rc)
		return rc;
	dm_pread(c->dm, c->buf, c->len, 0);
	if (memcmp(c->buf, c->model, c->len) != 0)
		return differ(c, "dm-crypt reads all after random ranges", c->buf, 0, c->len);
	return ours_reads(c, v);
}

/* ---- ---- */

/* What lies before and after the volume is nobody's to change. */
static int check_outside(const struct run *c)
{
	uint8_t *now = aligned_new(TABLE_BACKING);
	uint64_t end = c->off + c->len;
	whole_pread(c->dm->backing, now, TABLE_BACKING, 0);
	bool same = memcmp(now, c->image, c->off) == 0 && memcmp(now + end, c->image + end, TABLE_BACKING - end) == 0;
	free(now);
	if (!same)
		printf("  engine %s, path %s: bytes outside the volume changed\n", c->engine, c->path);
	return same ? 0 : -1;
}

/* How many tables that path has served; NULL where there is no room for it. */
static unsigned *tables_by(struct compare_stats *s, const char *engine, const char *path)
{
	unsigned i = 0;
	while (i < s->n_paths && (strcmp(s->by_path[i].engine, engine) || strcmp(s->by_path[i].path, path)))
		i++;
	if (i == COMPARE_PATHS)
		return NULL;
	if (i == s->n_paths) {
		s->by_path[i].engine = engine;
		s->by_path[i].path = path;
		s->n_paths++;
	}
	return &s->by_path[i].tables;
}

unsigned compare_served(struct compare_stats *s, const char *engine, const char *path)
{
	const unsigned *n = tables_by(s, engine, path);
	return n ? *n : 0;
}

static void count_path(const struct run *c)
{
	unsigned *n = tables_by(c->stats, c->engine, c->path);
	if (n)
		++*n;
}

/* One engine on one path: 1 agrees, 0 it does not serve this table so, -1. */
static int one_path(struct run *c, enum cf_path path)
{
	CF_CLEANUP(cf_volume_free) struct cf_volume *v = NULL;
	struct cf_err err = {0};
	int rc = ours_open(&v, c->o, c->dm->backing, c->engine, path, &err);
	if (rc == -ENODEV)
		return 0;
	if (rc) {
		printf("  engine %s, path %s: %s\n", c->engine, c->path, err.text);
		return -1;
	}
	kernel_writes(c);
	rc = ours_reads(c, v);
	if (!rc)
		rc = ours_writes(c, v);
	if (!rc)
		rc = ranges(c, v);
	if (!rc)
		rc = check_outside(c);
	count_path(c);
	return rc ? -1 : 1;
}

/* Every path of every engine that works here, in random order. */
struct choice {
	const char *engine, *name;
	enum cf_path path;
};

static unsigned list_paths(struct rng *r, const char *engine, struct choice out[static COMPARE_PATHS])
{
	unsigned n = 0;
	for (size_t e = 0; cf_engines[e] && n + 2 <= COMPARE_PATHS; e++) {
		const char *name = cf_engines[e]->name;
		if ((engine && strcmp(engine, name) != 0) || cf_engines[e]->probe(NULL) != 0)
			continue;
		out[n++] = (struct choice){name, "batch", CF_PATH_BATCH};
		out[n++] = (struct choice){name, "native", CF_PATH_NATIVE};
	}
	for (unsigned i = n; i > 1; i--) {
		unsigned j = (unsigned)rng_below(r, i);
		struct choice c = out[i - 1];
		out[i - 1] = out[j];
		out[j] = c;
	}
	return n;
}

/* Try one path and strike it from the list. */
static int try_path(struct run *c, struct choice *choice)
{
	c->engine = choice->engine;
	c->path = choice->name;
	choice->engine = NULL;
	return one_path(c, choice->path);
}

/* The CPU's paths in turn: of those that serve the table, the one that has served the fewest. */
static int cpu_in_turn(struct run *c, struct choice *list, unsigned n)
{
	for (;;) {
		struct choice *least = NULL;
		unsigned served = UINT_MAX;
		for (unsigned i = 0; i < n; i++) {
			if (!list[i].engine || strncmp(list[i].engine, "cpu-", 4) != 0)
				continue;
			unsigned tables = compare_served(c->stats, list[i].engine, list[i].name);
			if (tables < served) {
				served = tables;
				least = &list[i];
			}
		}
		int rc = least ? try_path(c, least) : 0;
		if (rc || !least)
			return rc;
	}
}

static int some_paths(struct run *c, const char *engine, unsigned want)
{
	struct choice list[COMPARE_PATHS];
	unsigned n = list_paths(c->r, engine, list), served = 0;
	int rc = cpu_in_turn(c, list, n);
	if (rc > 0)
		served = 1;
	for (unsigned i = 0; i < n && rc >= 0 && served < want; i++) {
		rc = list[i].engine ? try_path(c, &list[i]) : 0;
		served += rc > 0;
	}
	if (rc < 0 || served || engine)
		return rc < 0 ? rc : 0;
	printf("  no engine served it, though one was said to\n");
	return -1;
}

int compare_table(const struct dm *dm, const struct ours *o, const char *engine, unsigned paths, struct rng *r,
				  struct compare_stats *stats)
{
	struct run c = {
		.dm = dm,
		.o = o,
		.r = r,
		.stats = stats,
		.off = o->table.data_sector * CF_SECTOR_BYTES,
		.len = o->table.sectors * CF_SECTOR_BYTES,
		.du = o->table.cipher.du_bytes,
		.model = aligned_new(TABLE_BACKING),
		.buf = aligned_new(TABLE_BACKING),
		.image = aligned_new(TABLE_BACKING),
	};
	rng_fill(r, c.image, TABLE_BACKING);
	whole_pwrite(dm->backing, c.image, TABLE_BACKING, 0);
	int rc = some_paths(&c, engine, paths);
	free(c.model);
	free(c.buf);
	free(c.image);
	return rc;
}
