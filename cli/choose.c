/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* choose.c - a look into an open volume for the one file system in it.
 *
 * libblkid reads hostile bytes here, through the mounted file, in a process that has no key any more and that the
 * daemon does not wait for (HAZARDS 4). */
#include "config.h"

#include "choose.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "cryptfuse/err.h"
#include "cryptfuse/partition.h"

#define LISTED_MAX 256

static int is_mountable(const struct cf_content *c)
{
	return !strcmp(c->usage, "filesystem");
}

static void take(const struct cli_opts *o, const char *name, unsigned part, const struct cf_content *c,
				 struct cli_choice *out)
{
	if (part)
		snprintf(out->name, sizeof(out->name), "%.200s.p%u", name, part);
	else
		snprintf(out->name, sizeof(out->name), "%s", name);
	snprintf(out->type, sizeof(out->type), "%s", o->fs ? o->fs : c->type);
	snprintf(out->label, sizeof(out->label), "%s", c->label);
	out->partition = part;
}

/* ---- partitions ---- */

/* "1 (vfat), 2 (ext4)"; where nothing is known only the number. */
static void name_partitions(const struct cf_partitions *list, char text[static LISTED_MAX])
{
	text[0] = '\0';
	for (unsigned i = 0; i < list->n; i++) {
		const size_t len = strlen(text);
		const struct cf_partition *p = &list->at[i];
		if (p->kind == CF_PARTITION_PLAIN)
			snprintf(text + len, LISTED_MAX - len, "%s%u%s%s%s", len ? ", " : "", p->number,
					 p->content.type[0] ? " (" : "", p->content.type, p->content.type[0] ? ")" : "");
	}
}

static int probe_partitions(int fd, struct cf_partitions *list, struct cf_err *err)
{
	int rc = 0;
	for (unsigned i = 0; i < list->n && rc >= 0; i++) {
		struct cf_partition *p = &list->at[i];
		if (p->kind == CF_PARTITION_PLAIN && p->place.bytes)
			rc = cf_probe_content(fd, p->place.off, p->place.bytes, &p->content, err);
	}
	return rc < 0 ? rc : 0;
}

static int take_number(const struct cli_opts *o, const char *name, const struct cf_partitions *list,
					   struct cli_choice *out, struct cf_err *err)
{
	char names[LISTED_MAX];
	name_partitions(list, names);
	for (unsigned i = 0; i < list->n; i++) {
		const struct cf_partition *p = &list->at[i];
		if (p->kind != CF_PARTITION_PLAIN || p->number != o->inner_partition)
			continue;
		if (!p->content.type[0] && !o->fs)
			return cf_fail(err, -EINVAL, "nothing known was found in partition %u inside", p->number);
		take(o, name, p->number, &p->content, out);
		return 0;
	}
	return cf_fail(err, -EINVAL, "--inner-partition %llu: there are %s inside", (unsigned long long)o->inner_partition,
				   *names ? names : "no partitions");
}

static int take_only_one(const struct cli_opts *o, const char *name, const struct cf_partitions *list,
						 struct cli_choice *out, struct cf_err *err)
{
	char names[LISTED_MAX];
	unsigned n = 0;
	for (unsigned i = 0; i < list->n; i++) {
		if (list->at[i].kind != CF_PARTITION_PLAIN || !is_mountable(&list->at[i].content))
			continue;
		take(o, name, list->at[i].number, &list->at[i].content, out);
		n++;
	}
	name_partitions(list, names);
	if (n == 1)
		return 0;
	if (n)
		return cf_fail(err, -EINVAL, "several file systems are inside: say --inner-partition; there are %s", names);
	return cf_fail(err, -EINVAL, "a partition table is inside, but no file system in its partitions: %s",
				   *names ? names : "there are none");
}

/* ---- the volume ---- */

static int take_whole(const struct cli_opts *o, const char *name, const struct cf_content *c, struct cli_choice *out,
					  struct cf_err *err)
{
	if (o->inner_partition)
		return cf_fail(err, -EINVAL, "--inner-partition %llu: no partition table is inside",
					   (unsigned long long)o->inner_partition);
	if (!c->type[0] && !o->fs)
		return cf_fail(err, -EINVAL,
					   "%s is not mounted: nothing known was found inside; "
					   "a wrong passphrase or option looks like this, a new volume too",
					   o->args[0]);
	take(o, name, 0, c, out);
	return 0;
}

int cli_choose(const struct cli_opts *o, const char *path, const char *name, struct cli_choice *out, struct cf_err *err)
{
	struct cf_content content = {0};
	CF_CLEANUP(cf_freep) struct cf_partitions *list = calloc(1, sizeof(*list));
	CF_CLEANUP(cf_close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (!list)
		return cf_fail(err, -ENOMEM, "out of memory");
	if (fd < 0)
		return cf_fail(err, -errno, "%s cannot be opened: %s", path, strerror(errno));
	int rc = cf_probe_content(fd, 0, 0, &content, err);
	if (rc < 0)
		return rc;
	if (!o->inner_partition && (content.type[0] || o->fs))
		return take_whole(o, name, &content, out, err);
	rc = cf_partitions_list_fd(fd, list, err);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return take_whole(o, name, &content, out, err);
	rc = probe_partitions(fd, list, err);
	if (rc)
		return rc;
	return o->inner_partition ? take_number(o, name, list, out, err) : take_only_one(o, name, list, out, err);
}
