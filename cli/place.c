/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* place.c - private directories that hold the volumes of `mount`, and their links.
 *
 * All of it is links, so that each piece is written in one step and read without following it. Nothing is trusted in a
 * directory that somebody else could have made. One thread. */
#include "config.h"

#include "place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "cryptfuse/mounts.h"
#include "cryptfuse/runtime.h"

#define PREFIX "mount-"

static int join(const char *dir, const char *name, char out[static PATH_MAX])
{
	const int n = snprintf(out, PATH_MAX, "%s/%s", dir, name);
	return n > 0 && n < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int cli_place_path(const struct cli_place *p, const char *name, char out[static PATH_MAX])
{
	return join(p->dir, name, out);
}

/* ---- BASE ---- */

static int make_base(char out[static PATH_MAX], struct cf_err *err)
{
	char base[CF_RUNTIME_BASES][PATH_MAX];
	unsigned i = 0;
	cf_runtime_bases(geteuid(), base);
	while (!base[i][0])
		i++;
	strcpy(out, base[i]);
	return cf_runtime_make(out, err);
}

/* ---- one place ---- */

static int fill_in(struct cli_place *p)
{
	char lock[PATH_MAX];
	int rc = join(p->dir, "volume", p->volume);
	if (rc || (rc = join(p->dir, "lock", lock)))
		return rc;
	p->lock = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return p->lock < 0 ? -errno : 0;
}

static int furnish(struct cli_place *p)
{
	char link[PATH_MAX];
	int rc = fill_in(p);
	if (rc || (rc = join(p->dir, "target", link)))
		return rc;
	return mkdir(p->volume, 0700) != 0 || symlink(p->target, link) != 0 ? -errno : 0;
}

int cli_place_make(const char *target, struct cli_place *out, struct cf_err *err)
{
	char base[PATH_MAX];
	struct cli_place p = {.lock = -1};
	int rc = make_base(base, err);
	if (rc)
		return rc;
	snprintf(p.target, sizeof(p.target), "%s", target);
	if (join(base, PREFIX "XXXXXX", p.dir) != 0)
		return cf_fail(err, -ENAMETOOLONG, "%s: this name is too long", base);
	if (!mkdtemp(p.dir))
		return cf_fail(err, -errno, "no directory can be made in %s: %s", base, strerror(errno));
	rc = furnish(&p);
	if (rc) {
		cf_fail(err, rc, "%s cannot be prepared: %s", p.dir, strerror(-rc));
		cli_place_remove(&p);
		return rc;
	}
	*out = p;
	return 0;
}

static int read_link(const char *dir, const char *name, char out[static PATH_MAX])
{
	char path[PATH_MAX];
	if (join(dir, name, path) != 0)
		return 0;
	const ssize_t n = readlink(path, out, PATH_MAX - 1);
	out[n > 0 ? n : 0] = '\0';
	return n > 0;
}

static int find_in(const char *base, const char *target, struct cli_place *out)
{
	CF_CLEANUP(cf_close_dir) DIR *d = cf_runtime_is_private(base, geteuid()) ? opendir(base) : NULL;
	for (const struct dirent *e; d && (e = readdir(d));) {
		struct cli_place p = {.lock = -1};
		char at[PATH_MAX];
		if (strncmp(e->d_name, PREFIX, sizeof(PREFIX) - 1) != 0 || join(base, e->d_name, p.dir) != 0 ||
			!read_link(p.dir, "target", p.target) ||
			(strcmp(p.target, target) != 0 && (!read_link(p.dir, "at", at) || strcmp(at, target) != 0)) ||
			fill_in(&p) != 0)
			continue;
		*out = p;
		return 1;
	}
	return 0;
}

int cli_place_find(const char *target, struct cli_place *out)
{
	char base[CF_RUNTIME_BASES][PATH_MAX];
	cf_runtime_bases(geteuid(), base);
	for (unsigned i = 0; i < CF_RUNTIME_BASES; i++)
		if (base[i][0] && find_in(base[i], target, out))
			return 1;
	return 0;
}

int cli_place_target(const char *mountpoint, char target[static PATH_MAX])
{
	char dir[PATH_MAX];
	snprintf(dir, sizeof(dir), "%s", mountpoint);
	char *name = strrchr(dir, '/');
	if (!name || strcmp(name, "/volume") != 0)
		return 0;
	*name = '\0';
	name = strrchr(dir, '/');
	return name && !strncmp(name + 1, PREFIX, sizeof(PREFIX) - 1) &&
		   (read_link(dir, "at", target) || read_link(dir, "target", target));
}

/* ---- what was mounted ---- */

static void device_text(const struct cf_mount *m, char text[static 32])
{
	snprintf(text, 32, "%u:%u", m->dev_major, m->dev_minor);
}

int cli_place_record(const struct cli_place *p, const struct cf_mount *before, struct cf_err *err)
{
	char path[PATH_MAX], text[32];
	struct cf_mount now;
	const int rc = cf_mounts_find_any(p->target, &now);
	if (rc < 0)
		return cf_fail(err, rc, "the list of mounts cannot be read: %s", strerror(-rc));
	if (rc == 0 || (now.dev_major == before->dev_major && now.dev_minor == before->dev_minor))
		return 0;
	device_text(&now, text);
	if (join(p->dir, "device", path) != 0 || (symlink(text, path) != 0 && errno != EEXIST))
		return cf_fail(err, -EIO, "%s cannot be written: %s", p->dir, strerror(errno));
	return 1;
}

int cli_place_is_device(const struct cli_place *p, const struct cf_mount *m)
{
	char text[32], found[PATH_MAX];
	device_text(m, text);
	return read_link(p->dir, "device", found) && !strcmp(found, text);
}

/* ---- notes ---- */

void cli_place_note(const struct cli_place *p, const char *name, const char *text)
{
	char path[PATH_MAX];
	if (join(p->dir, name, path) == 0)
		(void)!symlink(text, path);
}

int cli_place_read(const struct cli_place *p, const char *name, char text[static PATH_MAX])
{
	return read_link(p->dir, name, text);
}

void cli_place_forget(const struct cli_place *p, const char *name)
{
	char path[PATH_MAX];
	if (join(p->dir, name, path) == 0)
		unlink(path);
}

/* ---- its end ---- */

void cli_place_fini(struct cli_place *p)
{
	cf_close_fd(&p->lock);
	p->lock = -1;
}

void cli_place_remove(struct cli_place *p)
{
	static const char *const names[] = {"at", "device", "ended", "lock", "target", "udisks", "undoing"};
	char path[PATH_MAX];
	cli_place_fini(p);
	if (!p->dir[0])
		return;
	if (p->volume[0])
		rmdir(p->volume);
	for (size_t i = 0; i < CF_ARRAY_LEN(names); i++)
		if (join(p->dir, names[i], path) == 0)
			unlink(path);
	rmdir(p->dir);
	p->dir[0] = '\0';
}
