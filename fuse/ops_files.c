/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ops_files.c - the files of the mount, and who has them open.
 *
 *     CF_MOUNT_DIRECTORY   inode 1 the directory, inode 2 the volume, 3 … its partitions
 *     CF_MOUNT_FILE        inode 1 the volume
 *
 * Files over the same bytes are page caches over the same bytes (HAZARDS 12): only one of them may be open for writing,
 * and a file that another one wrote under loses its cached pages at its next open. That they are gone is known only
 * when that handle is released: the kernel drops them after it has the answer, and another open may be faster. Any
 * thread; the counts have a mutex, the list only grows, once, by cf_ops_publish. */
#include "config.h"

#include "cryptfuse/ops_slots.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cryptfuse/clock.h"
#include "cryptfuse/units.h"

#define INO_FILE 2u
#define WAIT_S 1

/* ---- the list ---- */

unsigned cf_ops_n_files(const struct cf_ops *o)
{
	return atomic_load(&o->n_files);
}

fuse_ino_t cf_ops_ino(const struct cf_ops *o, unsigned i)
{
	return o->opts->kind == CF_MOUNT_DIRECTORY ? INO_FILE + i : FUSE_ROOT_ID;
}

int cf_ops_index(const struct cf_ops *o, fuse_ino_t ino)
{
	fuse_ino_t first = cf_ops_ino(o, 0);
	return ino >= first && ino - first < cf_ops_n_files(o) ? (int)(ino - first) : -ENOENT;
}

void cf_ops_file_name(const struct cf_ops *o, unsigned i, char name[static CF_OPS_NAME_MAX])
{
	if (i == 0)
		snprintf(name, CF_OPS_NAME_MAX, "%s", o->opts->name);
	else
		snprintf(name, CF_OPS_NAME_MAX, "%s.p%u", o->opts->name, o->file[i].number);
}

int cf_ops_named(const struct cf_ops *o, const char *name)
{
	for (unsigned i = 0; i < cf_ops_n_files(o); i++) {
		char other[CF_OPS_NAME_MAX];
		cf_ops_file_name(o, i, other);
		if (!strcmp(name, other))
			return (int)i;
	}
	return -ENOENT;
}

static int add(struct cf_ops *o, unsigned n, const struct cf_serve_part *p)
{
	const uint64_t bytes = o->file[0].bytes;
	if (!p->number || !p->bytes || p->off > bytes || p->bytes > bytes - p->off)
		return -EINVAL;
	for (unsigned i = 1; i < n; i++)
		if (o->file[i].number == p->number)
			return -EINVAL;
	o->file[n] = (struct cf_ops_file){.number = p->number, .off = p->off, .bytes = p->bytes};
	return 0;
}

int cf_ops_publish(struct cf_ops *o, const struct cf_serve_part *parts, unsigned n)
{
	if (o->opts->kind != CF_MOUNT_DIRECTORY || cf_ops_n_files(o) != 1 || n > CF_SERVE_PARTS_MAX)
		return -EINVAL;
	for (unsigned i = 0; i < n; i++) {
		int r = add(o, 1 + i, &parts[i]);
		if (r < 0)
			return r;
	}
	atomic_store(&o->n_files, 1 + n);
	return 0;
}

/* ---- who has them open ---- */

static bool overlap(const struct cf_ops_file *a, const struct cf_ops_file *b)
{
	return a != b && a->off < b->off + b->bytes && b->off < a->off + a->bytes;
}

/* Is another file over these bytes open for writing? */
static bool is_written(const struct cf_ops *o, const struct cf_ops_file *f)
{
	for (unsigned i = 0; i < cf_ops_n_files(o); i++)
		if (overlap(f, &o->file[i]) && o->file[i].n_write)
			return true;
	return false;
}

static void note_changes(struct cf_ops *o, const struct cf_ops_file *f)
{
	for (unsigned i = 0; i < cf_ops_n_files(o); i++)
		if (overlap(f, &o->file[i]))
			o->file[i].changes++;
}

/* One that truncates wants its file alone, since the kernel drops the others' dirty mapped pages (HAZARDS 10). */
static bool is_free(const struct cf_ops *o, const struct cf_ops_file *f, enum cf_access access, int truncates)
{
	return !(truncates && f->n_open) && !(access == CF_READ_WRITE && is_written(o, f));
}

static void count(struct cf_ops *o, struct cf_ops_handle *h, enum cf_ops_pages *pages)
{
	struct cf_ops_file *f = h->file;
	*pages = f->changes != f->dropped || is_written(o, f) ? CF_OPS_PAGES_STALE : CF_OPS_PAGES_GOOD;
	h->changes = f->changes;
	f->n_open++;
	f->n_write += h->access == CF_READ_WRITE;
}

/* The release of a file that was just closed may still be under way: give it a moment. */
int cf_ops_count_in(struct cf_ops *o, struct cf_ops_handle *h, int truncates, enum cf_ops_pages *pages)
{
	const struct timespec until = cf_in_seconds(WAIT_S);
	pthread_mutex_lock(&o->mutex);
	int r = 0;
	while (!is_free(o, h->file, h->access, truncates) && r == 0)
		r = pthread_cond_timedwait(&o->released, &o->mutex, &until);
	r = is_free(o, h->file, h->access, truncates) ? 0 : -EBUSY;
	if (r == 0)
		count(o, h, pages);
	pthread_mutex_unlock(&o->mutex);
	return r;
}

/* With the mutex. */
static void uncount(struct cf_ops *o, const struct cf_ops_handle *h)
{
	h->file->n_open--;
	if (h->access == CF_READ_WRITE) {
		h->file->n_write--;
		note_changes(o, h->file);
	}
	pthread_cond_broadcast(&o->released);
}

void cf_ops_count_out(struct cf_ops *o, const struct cf_ops_handle *h)
{
	pthread_mutex_lock(&o->mutex);
	if (h->changes == h->file->changes)
		h->file->dropped = h->changes;
	uncount(o, h);
	pthread_mutex_unlock(&o->mutex);
}

void cf_ops_count_back(struct cf_ops *o, const struct cf_ops_handle *h)
{
	pthread_mutex_lock(&o->mutex);
	uncount(o, h);
	pthread_mutex_unlock(&o->mutex);
}
