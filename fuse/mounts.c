/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* mounts.c - finds and names cryptfuse mounts by what the kernel says of them.
 *
 * Invariant: no call here asks a mounted file system anything, so a daemon that is dead or hangs cannot hang the
 * caller. Holds no state; any thread. */
#include "config.h"

#include "cryptfuse/mounts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOUNTINFO "/proc/self/mountinfo"
#define FS_TYPE "fuse.cryptfuse"
#define MAX_LINKS 8 /* symbolic links in a row as the last name of a mount point */

/* ---- reading mountinfo ---- */

/* Three octal digits as a character; -1: they are none. No name holds a NUL. */
static int octal(const char *s)
{
	if (s[0] < '0' || s[0] > '3' || s[1] < '0' || s[1] > '7' || s[2] < '0' || s[2] > '7')
		return -1;
	const int c = (s[0] - '0') * 64 + (s[1] - '0') * 8 + (s[2] - '0');
	return c ? c : -1;
}

/* Undo the kernel's \040 for space, tab, newline, backslash and number sign. -ENAMETOOLONG if it does not fit. */
static int unescape(const char *in, char out[static PATH_MAX])
{
	size_t n = 0;
	while (*in) {
		if (n + 1 >= PATH_MAX)
			return -ENAMETOOLONG;
		int c = *in == '\\' ? octal(in + 1) : -1;
		out[n++] = c < 0 ? *in : (char)c;
		in += c < 0 ? 1 : 4;
	}
	out[n] = '\0';
	return 0;
}

static uid_t user_id(const char *super_opts)
{
	static const char key[] = "user_id=";
	const char *p = super_opts ? strstr(super_opts, key) : NULL;
	return p ? (uid_t)strtoul(p + sizeof(key) - 1, NULL, 10) : 0;
}

/* ID PARENT MAJOR:MINOR ROOT MOUNTPOINT OPTIONS [OPTIONAL …] - TYPE SOURCE SUPER_OPTIONS
 * Source: Linux Documentation/filesystems/proc.rst, 3.5. CF_TOP_NONE: not such a line. */
static enum cf_mount_top parse_line(char *line, struct cf_mount *m)
{
	char *rest = strstr(line, " - "), *save = NULL, *field[5];
	if (!rest)
		return CF_TOP_NONE;
	*rest = '\0';
	for (size_t i = 0; i < CF_ARRAY_LEN(field); i++)
		if (!(field[i] = strtok_r(i ? NULL : line, " ", &save)))
			return CF_TOP_NONE;
	if (unescape(field[4], m->mountpoint) != 0 || sscanf(field[2], "%u:%u", &m->dev_major, &m->dev_minor) != 2)
		return CF_TOP_NONE;
	const char *type = strtok_r(rest + 3, " \n", &save);
	const char *source = strtok_r(NULL, " \n", &save);
	if (!type || !source || unescape(source, m->source) != 0) {
		m->source[0] = '\0';
		return CF_TOP_OTHER;
	}
	if (strcmp(type, FS_TYPE) != 0)
		return CF_TOP_OTHER;
	m->uid = user_id(strtok_r(NULL, " \n", &save));
	return CF_TOP_CRYPTFUSE;
}

/* Every line of a mountinfo file, ours or not. */
static int each(const char *mountinfo, int (*fn)(void *ctx, enum cf_mount_top kind, const struct cf_mount *m),
				void *ctx)
{
	CF_CLEANUP(cf_close_stream) FILE *f = fopen(mountinfo, "re");
	if (!f)
		return -errno;
	CF_CLEANUP(cf_freep) char *line = NULL;
	size_t line_bytes = 0;
	struct cf_mount m;
	while (errno = 0, getline(&line, &line_bytes, f) >= 0) {
		enum cf_mount_top kind = parse_line(line, &m);
		int stop = kind == CF_TOP_NONE ? 0 : fn(ctx, kind, &m);
		if (stop)
			return stop;
	}
	return feof(f) ? 0 : errno ? -errno : -EIO; /* out of memory is no error of the file */
}

struct visitor {
	int (*fn)(void *ctx, const struct cf_mount *m);
	void *ctx;
};

static int visit_ours(void *ctx, enum cf_mount_top kind, const struct cf_mount *m)
{
	const struct visitor *v = ctx;
	return kind == CF_TOP_CRYPTFUSE ? v->fn(v->ctx, m) : 0;
}

int cf_mounts_each_in(const char *mountinfo, int (*fn)(void *ctx, const struct cf_mount *m), void *ctx)
{
	struct visitor v = {.fn = fn, .ctx = ctx};
	return each(mountinfo, visit_ours, &v);
}

int cf_mounts_each(int (*fn)(void *ctx, const struct cf_mount *m), void *ctx)
{
	return cf_mounts_each_in(MOUNTINFO, fn, ctx);
}

struct search {
	const char *mountpoint;
	struct cf_mount *out; /* NULL: only whether */
	int found;
	enum cf_mount_top top;
};

/* The file lists mounts in the order they were made: the last one on a path lies on top. */
static int keep_match(void *ctx, enum cf_mount_top kind, const struct cf_mount *m)
{
	struct search *s = ctx;
	if (strcmp(m->mountpoint, s->mountpoint) != 0)
		return 0;
	s->top = kind;
	if (kind != CF_TOP_CRYPTFUSE)
		return 0;
	s->found = 1;
	if (s->out)
		*s->out = *m;
	return 0;
}

int cf_mounts_find(const char *mountpoint, struct cf_mount *out)
{
	struct search s = {.mountpoint = mountpoint, .out = out};
	int r = each(MOUNTINFO, keep_match, &s);
	return r < 0 ? r : s.found;
}

static int keep_top(void *ctx, enum cf_mount_top kind, const struct cf_mount *m)
{
	struct search *s = ctx;
	if (strcmp(m->mountpoint, s->mountpoint) != 0)
		return 0;
	s->top = kind;
	*s->out = *m;
	return 0;
}

int cf_mounts_find_any(const char *mountpoint, struct cf_mount *out)
{
	struct search s = {.mountpoint = mountpoint, .out = out};
	int r = each(MOUNTINFO, keep_top, &s);
	return r < 0 ? r : s.top != CF_TOP_NONE;
}

struct source_search {
	const char *source;
	struct cf_mount *out;
};

static int stop_at_source(void *ctx, enum cf_mount_top kind, const struct cf_mount *m)
{
	struct source_search *s = ctx;
	(void)kind;
	if (strcmp(m->source, s->source) != 0)
		return 0;
	*s->out = *m;
	return 1;
}

int cf_mounts_find_source(const char *source, struct cf_mount *out)
{
	struct source_search s = {.source = source, .out = out};
	return each(MOUNTINFO, stop_at_source, &s);
}

int cf_mounts_top(const char *mountpoint)
{
	struct search s = {.mountpoint = mountpoint};
	int r = each(MOUNTINFO, keep_match, &s);
	return r < 0 ? r : (int)s.top;
}

/* ---- names ---- */

/* Split off the last name, trailing slashes aside. @name points into @path; "." and ".." are no names. */
static int split(char *path, const char **folder, const char **name)
{
	size_t n = strlen(path);
	while (n > 1 && path[n - 1] == '/')
		path[--n] = '\0';
	char *slash = strrchr(path, '/');
	*name = slash ? slash + 1 : path;
	if (!**name || !strcmp(*name, ".") || !strcmp(*name, ".."))
		return -EISDIR;
	*folder = !slash ? "." : slash == path ? "/" : path;
	if (slash)
		*slash = '\0';
	return 0;
}

static int join(const char *folder, const char *name, char out[static PATH_MAX])
{
	int n = snprintf(out, PATH_MAX, "%s%s%s", folder, strcmp(folder, "/") ? "/" : "", name);
	return n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

/* One step: the folder resolved, the last name kept; then 1 if that name is a link, with @path set to its target.
 * readlink on a mount point sees only the root that the kernel holds already. */
static int resolve_step(char path[static PATH_MAX], char out[static PATH_MAX])
{
	char copy[PATH_MAX], folder_real[PATH_MAX], target[PATH_MAX];
	const char *folder, *name;
	strcpy(copy, path);
	if (split(copy, &folder, &name) < 0)
		return realpath(path, out) ? 0 : -errno;
	if (!realpath(folder, folder_real))
		return -errno;
	int r = join(folder_real, name, out);
	const int top = r < 0 ? r : cf_mounts_top(out);
	if (top != CF_TOP_NONE)
		return top < 0 ? top : 0;
	ssize_t n = readlink(out, target, sizeof(target) - 1);
	if (n < 0)
		return errno == EINVAL ? 0 : -errno;
	target[n] = '\0';
	r = target[0] == '/' ? join("/", target + 1, path) : join(folder_real, target, path);
	return r < 0 ? r : 1;
}

int cf_mounts_resolve(const char *path, char out[static PATH_MAX])
{
	char next[PATH_MAX];
	if (!*path)
		return -ENOENT;
	if (strlen(path) >= sizeof(next))
		return -ENAMETOOLONG;
	strcpy(next, path);
	int r = 1;
	for (int i = 0; r == 1 && i < MAX_LINKS; i++)
		r = resolve_step(next, out);
	if (r == 1)
		return -ELOOP;
	if (r < 0 && cf_mounts_top(path) ==
					 CF_TOP_CRYPTFUSE) { /* its folder cannot be read any more, but the kernel knows the name */
		strcpy(out, path);
		return 0;
	}
	return r;
}
