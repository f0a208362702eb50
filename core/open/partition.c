/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* partition.c - libblkid's list of partitions, and what lies in them.
 *
 * libblkid reads descriptors. An image in one piece is one; of a split image it gets a window (window.c), which lacks
 * what stands between partitions: the links of logical partitions. So the window grows by the start of each gap until
 * nothing new is found. No parser of our own; no state. */
#include "config.h"

#include "cryptfuse/partition.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "blkid.h"
#include "cryptfuse/err.h"
#include "cryptfuse/units.h"

#define LINK_BYTES (UINT64_C(8) << 20) /* how far behind a logical partition the link to the next is looked for */

/* ---- the table ---- */

static void take_partition(blkid_partition from, struct cf_partition *to)
{
	*to = (struct cf_partition){
		.number = (unsigned)blkid_partition_get_partno(from),
		.kind = blkid_partition_is_extended(from) ? CF_PARTITION_EXTENDED : CF_PARTITION_PLAIN,
		.place = {.off = (uint64_t)blkid_partition_get_start(from) * CF_SECTOR_BYTES,
				  .bytes = (uint64_t)blkid_partition_get_size(from) * CF_SECTOR_BYTES},
	};
	const char *type = blkid_partition_get_type_string(from);
	if (type)
		cf_blkid_append(to->type, sizeof(to->type), type);
	else
		snprintf(to->type, sizeof(to->type), "0x%02x", (unsigned)blkid_partition_get_type(from));
	to->type_name = cf_partition_type_name(to->type);
	cf_blkid_append(to->name, sizeof(to->name), blkid_partition_get_name(from));
	cf_blkid_append(to->uuid, sizeof(to->uuid), blkid_partition_get_uuid(from));
}

/* Sizes that could not be bytes are no partitions. */
static bool is_possible(blkid_partition p)
{
	const int64_t max = INT64_MAX / CF_SECTOR_BYTES, start = blkid_partition_get_start(p),
				  size = blkid_partition_get_size(p);
	return blkid_partition_get_partno(p) > 0 && start >= 0 && size > 0 && start <= max && size <= max - start;
}

static int take_list(blkid_partlist from, struct cf_partitions *out)
{
	blkid_parttable table = blkid_partlist_get_table(from);
	if (!table)
		return 0;
	cf_blkid_append(out->table, sizeof(out->table), blkid_parttable_get_type(table));
	cf_blkid_append(out->uuid, sizeof(out->uuid), blkid_parttable_get_id(table));
	const int n = blkid_partlist_numof_partitions(from);
	for (int i = 0; i < n && out->n < CF_PARTITIONS_MAX; i++) {
		blkid_partition p = blkid_partlist_get_partition(from, i);
		if (p && is_possible(p))
			take_partition(p, &out->at[out->n++]);
	}
	return 1;
}

/* A table counts in the sectors of the disk it was made on: 512 bytes, or 4096. */
static int list_by(int fd, unsigned sector_bytes, struct cf_partitions *out, struct cf_err *err)
{
	CF_CLEANUP(cf_blkid_free) blkid_probe probe = NULL;
	*out = (struct cf_partitions){.n = 0};
	int rc = cf_blkid_new(&probe, fd, 0, 0, err);
	if (rc)
		return rc;
	if (blkid_probe_get_size(probe) < (blkid_loff_t)sector_bytes)
		return 0;
	blkid_probe_set_sectorsize(probe, sector_bytes);
	blkid_probe_enable_superblocks(probe, 0);
	blkid_probe_enable_partitions(probe, 1);
	blkid_partlist list = blkid_probe_get_partitions(probe);
	return list ? take_list(list, out) : 0;
}

int cf_partitions_list_fd(int fd, struct cf_partitions *out, struct cf_err *err)
{
	int rc = list_by(fd, 512, out, err);
	return rc ? rc : list_by(fd, 4096, out, err);
}

/* ---- of split images ---- */

/* What is free from @off on, before the next partition that is known. */
static struct cf_extent gap_at(const struct cf_partitions *list, uint64_t off)
{
	uint64_t end = off + LINK_BYTES;
	for (unsigned i = 0; i < list->n; i++) {
		uint64_t start = list->at[i].place.off;
		if (list->at[i].kind != CF_PARTITION_EXTENDED && start >= off && start < end)
			end = start;
	}
	return (struct cf_extent){.off = off, .bytes = end - off};
}

/* The ends, and where links may stand: at the start of an extended partition, and behind each logical one. */
static unsigned extents_of(const struct cf_partitions *list, uint64_t image_bytes, struct cf_extent *keep)
{
	const struct cf_extent whole = {.bytes = image_bytes};
	unsigned n = 2;
	cf_window_ends(&whole, keep);
	for (unsigned i = 0; i < list->n; i++) {
		const struct cf_partition *p = &list->at[i];
		uint64_t off = p->place.off + (p->kind == CF_PARTITION_EXTENDED ? 0 : p->place.bytes);
		keep[n++] = cf_extent_clip(gap_at(list, off), image_bytes);
	}
	return n;
}

static int list_window(struct cf_backing *b, struct cf_partitions *out, struct cf_err *err)
{
	struct cf_extent keep[CF_PARTITIONS_MAX + 2];
	*out = (struct cf_partitions){.n = 0};
	for (unsigned known = 0;; known = out->n) {
		CF_CLEANUP(cf_close_fd) int fd = -1;
		int rc = cf_window_fd(b, keep, extents_of(out, b->bytes, keep), &fd, err);
		if (!rc)
			rc = cf_partitions_list_fd(fd, out, err);
		if (rc <= 0 || out->n <= known)
			return rc;
	}
}

int cf_partitions_list(const struct cf_image *image, struct cf_partitions *out, struct cf_err *err)
{
	CF_CLEANUP(cf_backing_free) struct cf_backing *b = NULL;
	if (image->n_parts == 1)
		return cf_partitions_list_fd(image->fd[0], out, err);
	int rc = cf_image_backing(image, &b, err);
	return rc ? rc : list_window(b, out, err);
}

/* ---- what is in them ---- */

static int probe_window(struct cf_backing *b, const struct cf_extent *e, struct cf_content *out, struct cf_err *err)
{
	CF_CLEANUP(cf_close_fd) int fd = -1;
	struct cf_extent ends[2];
	cf_window_ends(e, ends);
	int rc = cf_window_fd(b, ends, 2, &fd, err);
	return rc ? rc : cf_probe_content(fd, e->off, e->bytes, out, err);
}

int cf_image_probe(const struct cf_image *image, const struct cf_extent *e, struct cf_content *out, struct cf_err *err)
{
	CF_CLEANUP(cf_backing_free) struct cf_backing *b = NULL;
	*out = (struct cf_content){.type = ""};
	int rc = cf_image_backing(image, &b, err);
	if (rc)
		return rc;
	const struct cf_extent inside = cf_extent_clip(*e, b->bytes);
	if (!inside.bytes)
		return 0;
	if (image->n_parts == 1)
		return cf_probe_content(image->fd[0], inside.off, inside.bytes, out, err);
	return probe_window(b, &inside, out, err);
}

int cf_partitions_probe(const struct cf_image *image, struct cf_partitions *list, struct cf_err *err)
{
	for (unsigned i = 0; i < list->n; i++) {
		struct cf_partition *p = &list->at[i];
		int rc = p->kind == CF_PARTITION_EXTENDED ? 0 : cf_image_probe(image, &p->place, &p->content, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}
