/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* holders.c - who keeps a mount busy: loop devices and processes.
 *
 * Looks at links and lists of /proc and /sys only, never at the mount itself. What this user may not see is not found:
 * an empty answer means "nobody that can be seen". */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

#define NAMED_MAX 4 /* holders named in one line; the rest is counted */

struct holders {
	const char *mountpoint;
	size_t mountpoint_len;
	char *text;
	size_t text_size;
	unsigned n;
};

static void add(struct holders *h, const char *what)
{
	const size_t len = strlen(h->text);
	if (h->n < NAMED_MAX)
		snprintf(h->text + len, h->text_size - len, "%s%s", h->n ? ", " : "", what);
	h->n++;
}

/* @path is the mount point or lies under it. */
static int is_inside(const struct holders *h, const char *path)
{
	return !strncmp(path, h->mountpoint, h->mountpoint_len) &&
		   (!path[h->mountpoint_len] || path[h->mountpoint_len] == '/' ||
			isspace((unsigned char)path[h->mountpoint_len]));
}

/* The first line of a small file, without its newline; "" if there is none. */
static void first_line(const char *path, char *line, size_t size)
{
	CF_CLEANUP(cf_close_stream) FILE *f = fopen(path, "re");
	if (!f || !fgets(line, (int)size, f))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
}

/* Up to the first @max of them. */
static void find_loop_devices(struct holders *h, unsigned max)
{
	CF_CLEANUP(cf_close_dir) DIR *d = opendir("/sys/block");
	for (const struct dirent *e; d && h->n < max && (e = readdir(d));) {
		char path[NAME_MAX + 64], backing[PATH_MAX];
		snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", e->d_name);
		first_line(path, backing, sizeof(backing));
		if (!is_inside(h, backing))
			continue;
		snprintf(path, sizeof(path), "/dev/%s", e->d_name);
		add(h, path);
	}
}

static int link_is_inside(const struct holders *h, int dir, const char *name)
{
	char target[PATH_MAX];
	const ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	return n > 0 && is_inside(h, target);
}

static int fds_inside(const struct holders *h, const char *pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%.20s/fd", pid);
	CF_CLEANUP(cf_close_dir) DIR *d = opendir(path);
	for (const struct dirent *e; d && (e = readdir(d));)
		if (link_is_inside(h, dirfd(d), e->d_name))
			return 1;
	return 0;
}

/* A mapping outlives its descriptor. Lines end in the path, which is the first '/' of the line. */
static int maps_inside(const struct holders *h, const char *pid)
{
	char path[64], line[PATH_MAX + 128];
	snprintf(path, sizeof(path), "/proc/%.20s/maps", pid);
	CF_CLEANUP(cf_close_stream) FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		const char *mapped = strchr(line, '/');
		if (mapped && is_inside(h, mapped))
			return 1;
	}
	return 0;
}

static int folder_inside(const struct holders *h, const char *pid)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%.20s/cwd", pid);
	return link_is_inside(h, AT_FDCWD, path);
}

static void find_processes(struct holders *h)
{
	CF_CLEANUP(cf_close_dir) DIR *d = opendir("/proc");
	for (const struct dirent *e; d && (e = readdir(d));) {
		char path[64], name[64], what[128];
		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		if (!fds_inside(h, e->d_name) && !folder_inside(h, e->d_name) && !maps_inside(h, e->d_name))
			continue;
		snprintf(path, sizeof(path), "/proc/%.20s/comm", e->d_name);
		first_line(path, name, sizeof(name));
		snprintf(what, sizeof(what), "process %.20s (%s)", e->d_name, name);
		add(h, what);
	}
}

void cli_holders(const char *mountpoint, char *text, size_t text_size)
{
	struct holders h = {
		.mountpoint = mountpoint, .mountpoint_len = strlen(mountpoint), .text = text, .text_size = text_size};
	text[0] = '\0';
	find_loop_devices(&h, UINT_MAX);
	find_processes(&h);
	if (h.n > NAMED_MAX) {
		const size_t len = strlen(text);
		snprintf(text + len, text_size - len, " and %u more", h.n - NAMED_MAX);
	}
}

int cli_holders_loop(const char *mountpoint, char *device, size_t device_size)
{
	struct holders h = {
		.mountpoint = mountpoint, .mountpoint_len = strlen(mountpoint), .text = device, .text_size = device_size};
	device[0] = '\0';
	find_loop_devices(&h, 1);
	return h.n != 0;
}
