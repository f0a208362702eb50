/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* inside.c - a look into a volume that was just mounted, through its file.
 *
 * libblkid reads hostile bytes here, in the parent: the daemon is only told where partitions lie (HAZARDS 4). What goes
 * wrong is said and changes nothing: the volume is open. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "cryptfuse/err.h"
#include "cryptfuse/partition.h"
#include "cryptfuse/probe.h"
#include "cryptfuse/spec.h"

#define NAMES_SAID 4u /* of partitions, in one line */

static void volume_path(const struct cf_serve_opts *s, char path[static PATH_MAX])
{
	const int n = s->kind == CF_MOUNT_FILE ? snprintf(path, PATH_MAX, "%s", s->mountpoint)
										   : snprintf(path, PATH_MAX, "%s/%s", s->mountpoint, s->name);
	if (n < 0 || n >= PATH_MAX)
		path[0] = '\0';
}

/* A wrong passphrase of a plain volume opens as noise: what libblkid finds is the only sign that it was right. Returns
 * whether something was found; -errno. */
static int say_content(const struct cli_opts *o, const char *path, int fd, const struct cf_open_plan *plan)
{
	char found[256] = "", size[32], cipher[CF_SPEC_TEXT];
	struct cf_err err = {0};
	const int rc = fd < 0 ? fd : cf_probe_fd(fd, found, sizeof(found), &err);
	if (o->batch)
		return rc;
	cli_format_bytes(plan->bytes, size, sizeof(size));
	cf_spec_format_cipher(&plan->cipher, cipher, sizeof(cipher));
	cli_say("%s is open at %s: %s, %s, %s%s%s%s", o->args[0], path, plan->type, size, cipher,
			plan->access == CF_READ_ONLY ? ", read-only" : "", rc > 0 ? ", found " : "", rc > 0 ? found : "");
	if (rc == 0)
		cli_say(*plan->uuid
					? "nothing known was found inside: a new volume looks like this"
					: "nothing known was found inside: a wrong passphrase or option looks like this; a new volume too");
	else if (rc < 0)
		cli_say("could not look inside %s: %s", path, err.code ? err.text : strerror(-rc));
	return rc;
}

/* ---- partitions as files ---- */

static int take_parts(const struct cf_partitions *list, uint64_t bytes, struct cf_serve_part *parts)
{
	unsigned n = 0;
	for (unsigned i = 0; i < list->n && n < CF_SERVE_PARTS_MAX; i++) {
		const struct cf_extent e = cf_extent_clip(list->at[i].place, bytes);
		if (list->at[i].kind == CF_PARTITION_PLAIN && e.bytes)
			parts[n++] = (struct cf_serve_part){.number = list->at[i].number, .off = e.off, .bytes = e.bytes};
	}
	return (int)n;
}

/* How many there are; -errno. */
static int find_parts(int fd, uint64_t bytes, struct cf_serve_part *parts, struct cf_err *err)
{
	CF_CLEANUP(cf_freep) struct cf_partitions *list = malloc(sizeof(*list));
	if (!list)
		return cf_fail(err, -ENOMEM, "out of memory");
	const int rc = cf_partitions_list_fd(fd, list, err);
	return rc > 0 ? take_parts(list, bytes, parts) : rc;
}

static void say_parts(const char *name, const struct cf_serve_part *parts, unsigned n)
{
	char names[NAMES_SAID * (NAME_MAX + 16)] = "";
	for (unsigned i = 0; i < n && i < NAMES_SAID; i++) {
		const size_t at = strlen(names);
		snprintf(names + at, sizeof(names) - at, "%s%s.p%u", i ? ", " : "", name, parts[i].number);
	}
	cli_say("shown beside it: %s%s", names, n > NAMES_SAID ? " …" : "");
}

static int show_parts(const struct cli_opts *o, const struct cf_serve_opts *s, uint64_t bytes, struct cf_serve *daemon,
					  int fd, struct cf_err *err)
{
	struct cf_serve_part parts[CF_SERVE_PARTS_MAX];
	int n = find_parts(fd, bytes, parts, err);
	if (n <= 0)
		return n;
	int rc = cf_serve_publish(daemon, parts, (unsigned)n, err);
	if (!rc && !o->batch)
		say_parts(s->name, parts, (unsigned)n);
	return rc;
}

int cli_look_inside(const struct cli_opts *o, const struct cf_serve_opts *s, const struct cf_open_plan *plan,
					struct cf_serve *daemon)
{
	char path[PATH_MAX];
	struct cf_err err = {0};
	volume_path(s, path);
	CF_CLEANUP(cf_close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	const int found = say_content(o, path, fd < 0 ? -errno : fd, plan);
	if (fd >= 0 && s->kind == CF_MOUNT_DIRECTORY && show_parts(o, s, plan->bytes, daemon, fd, &err) < 0)
		cli_say("the partitions in %s are not shown as files: %s", path, err.text);
	return found;
}
