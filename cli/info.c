/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* info.c - cryptfuse info: say what an image is, and how it would be opened.
 *
 * Reads only, as any user, without a lock, so that an image in use can be looked at; no time stamp is set that can be
 * avoided. What stands in the image comes from libblkid and libcryptsetup. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cryptfuse/err.h"
#include "info.h"

static const struct cli_option info_options[] = {
	{.name = "json", .kind = CLI_SET, .help = "machine-readable", CLI_FIELD(json), .value = 1},
	{.name = "partition",
	 .kind = CLI_STRING,
	 .arg = "PART",
	 .help = "look at this partition only: number, name or PARTUUID",
	 CLI_FIELD(volume.partition)},
	{.name = "header",
	 .kind = CLI_STRING,
	 .arg = "FILE",
	 .help = "the LUKS header is in FILE, not in front of the data",
	 CLI_FIELD(volume.header_file)},
	{.name = NULL},
};

static const struct cli_group info_groups[] = {
	{"Output", info_options},
	{"From crypttab", cli_crypttab_options},
	{"Help", cli_help_options},
	{NULL, NULL},
};

/** What is open meanwhile. */
struct look {
	struct cf_image image;
	struct cf_backing *data;
	struct cf_backing *detached; /* --header; NULL */
};

static void look_fini(struct look *l)
{
	cf_backing_free(&l->detached);
	cf_backing_free(&l->data);
	cf_image_close(&l->image);
}

static int open_store(const char *path, struct cf_image *image, struct cf_backing **out, struct cf_err *err)
{
	int rc = cf_image_open(image, path, CF_READ_ONLY, CF_LOCK_NONE, err);
	return rc ? rc : cf_image_backing(image, out, err);
}

static int look_open(struct look *l, const struct cf_open_opts *opts, struct cf_err *err)
{
	CF_CLEANUP(cf_image_close) struct cf_image header = {.n_parts = 0};
	int rc = open_store(opts->image, &l->image, &l->data, err);
	return rc || !opts->header_file ? rc : open_store(opts->header_file, &header, &l->detached, err);
}

/* A damaged header is something to tell, not a reason to stop. */
static int look_for_header(const struct look *l, struct cf_extent where, struct info_volume *v, struct cf_err *err)
{
	CF_CLEANUP(cf_header_free) struct cf_header *h = NULL;
	struct cf_err why = {.code = 0};
	const int rc = cf_header_load(&h, CF_HEADER_NONE, l->data, where.off, where.bytes, l->detached, &why);
	if (rc == 0) {
		cf_header_info(h, &v->header);
		cf_header_check(h, v->header.problem);
	} else if (rc == -EIO || rc == -ENOMEM) {
		return cf_fail(err, rc, "%s", why.text);
	} else if (rc != -ENOENT || *why.text) {
		snprintf(v->header.problem, sizeof(v->header.problem), "%s", why.text);
	}
	return 0;
}

/* A file system or the like has no header in front: what looks like one behind it is not asked for. */
static int look_at(const struct look *l, struct cf_extent where, struct info_volume *v, struct cf_err *err)
{
	const int rc = cf_image_probe(&l->image, &where, &v->content, err);
	if (rc < 0)
		return rc;
	const int may_have = l->detached || !*v->content.type || !strcmp(v->content.usage, "crypto");
	return may_have ? look_for_header(l, where, v, err) : 0;
}

/* With --partition, that one alone is kept. */
static int look_at_table(const struct look *l, const char *partition, struct info *i, struct cf_err *err)
{
	const struct cf_partition *p;
	int rc = cf_partitions_list(&l->image, &i->list, err);
	if (rc < 0 || !partition)
		return rc < 0 ? rc : 0;
	if (rc == 0)
		return cf_fail(err, -EINVAL, "--partition %s: %s has no partition table", partition, i->image);
	rc = cf_partition_find(&i->list, partition, &p, err);
	if (rc)
		return rc;
	i->list.at[0] = *p;
	i->list.n = 1;
	return 0;
}

static int look_at_partitions(const struct look *l, struct info *i, struct cf_err *err)
{
	int rc = 0;
	for (unsigned k = 0; k < i->list.n && !rc; k++) {
		struct cf_partition *p = &i->list.at[k];
		const struct cf_extent there = cf_extent_clip(p->place, i->bytes);
		i->part[k].missing_bytes = p->place.bytes - there.bytes;
		if (p->kind == CF_PARTITION_PLAIN && there.bytes)
			rc = look_at(l, there, &i->part[k], err);
		p->content = i->part[k].content;
	}
	return rc;
}

static int gather(const struct cf_open_opts *opts, struct info *i, struct cf_err *err)
{
	CF_CLEANUP(look_fini) struct look l = {.data = NULL};
	int rc = look_open(&l, opts, err);
	if (rc)
		return rc;
	i->image = opts->image;
	i->header_file = opts->header_file;
	i->bytes = l.data->bytes;
	i->n_parts = l.image.n_parts;
	rc = look_at_table(&l, opts->partition, i, err);
	if (!rc && !opts->partition)
		rc = look_at(&l, (struct cf_extent){.bytes = i->bytes}, &i->whole, err);
	return rc ? rc : look_at_partitions(&l, i, err);
}

static void free_info(struct info **i)
{
	free(*i);
}

static int run_info(const struct cli_opts *o, struct cf_err *err)
{
	CF_CLEANUP(free_info) struct info *i = calloc(1, sizeof(*i));
	if (!i)
		return cf_fail(err, -ENOMEM, "out of memory");
	struct cf_open_opts opts = o->volume;
	opts.image = o->args[0];
	int rc = gather(&opts, i, err);
	if (rc)
		return rc;
	info_suggest(i);
	if (o->json)
		return info_print_json(i, err);
	info_print_text(i);
	return 0;
}

const struct cli_command cli_info = {
	.name = "info",
	.args = "IMAGE",
	.about = "Tell what an image is: headers, partitions, what is in them, and how to open it",
	.min_args = 1,
	.max_args = 1,
	.groups = info_groups,
	.run = run_info,
};
