/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* mountpoint.c - can a volume be shown there, by this user?
 *
 * All of it is asked before the daemon is forked and before any secret exists, so that what is wrong is said at once
 * and leaves nothing behind. fusermount3 judges again at the mount: this is for a clear line, not for safety. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "cryptfuse/err.h"
#include "cryptfuse/mounts.h"

#define FUSE_DEVICE "/dev/fuse"
#define FUSE_CONF "/etc/fuse.conf" /* libfuse's, compiled in there too */

/* ---- something of ours is there already ---- */

static int refuse_open_mount(const struct cf_mount *m, struct cf_err *err)
{
	char json[CLI_STATUS_MAX];
	if (cli_daemon_status(m, json) == -ENOTCONN)
		return cf_fail(err, -EBUSY, "%s: the daemon of this mount has died; clean up with 'cryptfuse close %s'",
					   m->mountpoint, m->mountpoint);
	return cf_fail(err, -EBUSY, "%s: %s is already open here; close it first", m->mountpoint, m->source);
}

static int check_not_open(const char *path, struct cf_err *err)
{
	char abs[PATH_MAX];
	struct cf_mount m;
	if (cf_mounts_resolve(path, abs) != 0)
		return 0; /* realpath will say what is wrong with it */
	int rc = cf_mounts_find(abs, &m);
	if (rc < 0)
		return cf_fail(err, rc, "the list of mounts cannot be read: %s", strerror(-rc));
	return rc ? refuse_open_mount(&m, err) : 0;
}

/* ---- the mount point itself ---- */

static int check_empty(const char *dir, struct cf_err *err)
{
	CF_CLEANUP(cf_close_dir) DIR *d = opendir(dir);
	if (!d)
		return cf_fail(err, -errno, "mount point %s cannot be read: %s", dir, strerror(errno));
	for (const struct dirent *e; (e = readdir(d));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			return cf_fail(err, -ENOTEMPTY, "mount point %s is not empty; an empty directory is needed", dir);
	return 0;
}

/* What fusermount3 demands of a user who is not root. */
static int check_owner(const char *path, const struct stat *st, struct cf_err *err)
{
	if (geteuid() == 0)
		return 0;
	if (S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) && st->st_uid != geteuid())
		return cf_fail(err, -EPERM,
					   "mount point %s belongs to somebody else (a sticky directory): make one of your own", path);
	if (access(path, W_OK) != 0)
		return cf_fail(err, -EACCES, "mount point %s is not writable by you: make one of your own", path);
	return 0;
}

static int check_kind(const char *path, const struct stat *st, enum cf_mount_kind *kind, struct cf_err *err)
{
	if (S_ISDIR(st->st_mode))
		*kind = CF_MOUNT_DIRECTORY;
	else if (S_ISREG(st->st_mode))
		*kind = CF_MOUNT_FILE;
	else
		return cf_fail(err, -EINVAL, "mount point %s is neither a directory nor a regular file", path);
	return 0;
}

/* The image must stay reachable under its own name (HAZARDS 18): not be the mount point, nor lie under it. */
static int check_apart(const struct cf_serve_opts *s, const struct stat *mp, const struct stat *image,
					   struct cf_err *err)
{
	const size_t len = strlen(s->mountpoint);
	if (mp->st_dev == image->st_dev && mp->st_ino == image->st_ino)
		return cf_fail(err, -EINVAL, "%s is both image and mount point", s->image);
	if (S_ISDIR(mp->st_mode) && !strncmp(s->image, s->mountpoint, len) &&
		(s->image[len] == '/' || !strcmp(s->mountpoint, "/")))
		return cf_fail(err, -EINVAL, "image %s lies under the mount point %s", s->image, s->mountpoint);
	return 0;
}

static int resolve_image(const char *image, char out[static PATH_MAX], struct stat *st, struct cf_err *err)
{
	if (stat(image, st) != 0 || !realpath(image, out)) {
		const bool nowhere = errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG;
		return cf_fail(err, nowhere ? -ENOENT : -errno, "image %s: %s", image, strerror(errno));
	}
	if (S_ISDIR(st->st_mode))
		return cf_fail(err, -ENODEV, "image %s is a directory, not a file or block device", image);
	return 0;
}

int cli_mountpoint_check(const char *path, const char *image, struct cf_serve_opts *out, struct cf_err *err)
{
	struct stat mp, img;
	int rc = check_not_open(path, err);
	if (rc)
		return rc;
	if (!realpath(path, out->mountpoint) || stat(out->mountpoint, &mp) != 0) {
		if (errno == ENOTCONN)
			return cf_fail(err, -EBUSY, "mount point %s: the daemon of another FUSE mount there has died; unmount it",
						   path);
		return cf_fail(err, -errno, "mount point %s: %s", path, strerror(errno));
	}
	/* Again under its real name: a symbolic link may lead to a mount of ours. */
	if ((rc = check_not_open(out->mountpoint, err)) || (rc = check_kind(out->mountpoint, &mp, &out->kind, err)) ||
		(rc = resolve_image(image, out->image, &img, err)) || (rc = check_apart(out, &mp, &img, err)) ||
		(rc = check_owner(out->mountpoint, &mp, err)))
		return rc;
	return out->kind == CF_MOUNT_DIRECTORY ? check_empty(out->mountpoint, err) : 0;
}

/* Not the mount point either: it need not be there yet, but its folder must. */
int cli_journal_check(const char *journal, const struct cf_serve_opts *s, struct cf_err *err)
{
	char folder[PATH_MAX], resolved[PATH_MAX];
	const size_t len = strlen(s->mountpoint);
	if (!journal)
		return 0;
	if (realpath(journal, resolved) && !strcmp(resolved, s->mountpoint))
		return cf_fail(err, -EINVAL, "%s is both journal and mount point", journal);
	snprintf(folder, sizeof(folder), "%s", journal);
	if (s->kind == CF_MOUNT_DIRECTORY && realpath(dirname(folder), resolved) &&
		!strncmp(resolved, s->mountpoint, len) && (!resolved[len] || resolved[len] == '/' || len == 1))
		return cf_fail(err, -EINVAL, "the journal %s lies under the mount point %s", journal, s->mountpoint);
	return 0;
}

/* ---- FUSE ---- */

static int check_device(struct cf_err *err)
{
	CF_CLEANUP(cf_close_fd) int fd = open(FUSE_DEVICE, O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		return 0;
	if (errno == EACCES || errno == EPERM)
		return cf_fail(err, -EACCES, "FUSE is not usable: no permission to open " FUSE_DEVICE);
	return cf_fail(err, -ENODEV, "FUSE is not usable: " FUSE_DEVICE ": %s; load the module with 'modprobe fuse'",
				   strerror(errno));
}

static int in_path(const char *program)
{
	char candidate[PATH_MAX];
	const char *dir = getenv("PATH");
	if (strchr(program, '/'))
		return access(program, X_OK) == 0;
	while (dir && *dir) {
		const size_t len = strcspn(dir, ":");
		const int n = snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)len, dir, program);
		if (n > 0 && (size_t)n < sizeof(candidate) && access(candidate, X_OK) == 0)
			return 1;
		dir += len + (dir[len] == ':');
	}
	return 0;
}

/* Whether root lets users share their mounts: the words alone on a line of fuse.conf. */
static int user_allow_other(void)
{
	static const char words[] = "user_allow_other";
	CF_CLEANUP(cf_close_stream) FILE *f = fopen(FUSE_CONF, "re");
	char line[256];
	while (f && fgets(line, sizeof(line), f)) {
		const char *start = line + strspn(line, " \t");
		const size_t len = strcspn(start, "# \t\n");
		if (len == sizeof(words) - 1 && !strncmp(start, words, len) && !start[len + strspn(start + len, " \t\n")])
			return 1;
	}
	return 0;
}

int cli_fuse_check(enum cf_mount_share share, struct cf_err *err)
{
	int rc = check_device(err);
	if (rc || geteuid() == 0)
		return rc;
	if (!in_path(FUSERMOUNT_PROG))
		return cf_fail(err, -ENOENT, "FUSE is not usable: no " FUSERMOUNT_PROG " in PATH (package fuse3)");
	if (share != CF_SHARE_OWNER && !user_allow_other())
		return cf_fail(err, -EPERM,
					   "--allow-%s needs a line 'user_allow_other' in " FUSE_CONF " (only root can add it)",
					   share == CF_SHARE_ROOT ? "root" : "other");
	return 0;
}
