/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* output.c - makes a file in such a way that its name means that it is finished.
 *
 * Order: everything written, fsync, name, fsync of the folder. Without --force the name is given by a call that fails
 * where there is one already, so nothing is overwritten even if it appeared meanwhile. A file is for its owner only:
 * what is copied out is what was encrypted for a reason. */
#include "config.h"

#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cli.h"
#include "cryptfuse/err.h"

#define FILE_MODE 0600
#define PARTIAL ".partial"

/* ---- what is there ---- */

static int in_use(const struct cli_output *out, const char *path, struct cf_err *err)
{
	struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char loop[NAME_MAX + 8];
	if (cf_backing_loop_user("/sys/block", path, &out->st, loop, sizeof(loop)))
		return cf_fail(err, -EBUSY, "%s is in use by the loop device %s", out->shown, loop);
	CF_CLEANUP(cf_close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK)
		return cf_fail(err, -EBUSY, "%s is in use by another program (locked)", out->shown);
	return 0; /* one that may not be read can be replaced all the same */
}

static int judge_existing(struct cli_output *out, const char *path, struct cf_err *err)
{
	switch (out->st.st_mode & S_IFMT) {
	case S_IFCHR:
	case S_IFIFO:
		out->kind = CLI_OUTPUT_STREAM;
		return 0;
	case S_IFBLK:
		out->kind = CLI_OUTPUT_DEVICE;
		break;
	case S_IFREG:
		break;
	case S_IFDIR:
		return cf_fail(err, -EINVAL, "%s is a directory", out->shown);
	default:
		return cf_fail(err, -EINVAL, "%s is no file and no block device", out->shown);
	}
	if (!out->force)
		return cf_fail(err, -EEXIST, "%s exists; --force overwrites it", out->shown);
	return in_use(out, path, err);
}

/* ---- names ---- */

static int open_folder(struct cli_output *out, const char *path, struct cf_err *err)
{
	char folder[PATH_MAX];
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	if (!*name || !strcmp(name, ".") || !strcmp(name, ".."))
		return cf_fail(err, -EINVAL, "%s does not name a file", out->shown);
	if (strlen(name) + sizeof(PARTIAL) > sizeof(out->partial))
		return cf_fail(err, -ENAMETOOLONG, "%s: the name of the file is too long", out->shown);
	snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
	snprintf(out->name, sizeof(out->name), "%s", name);
	snprintf(out->partial, sizeof(out->partial), "%.*s" PARTIAL, (int)(NAME_MAX - sizeof(PARTIAL)), name);
	out->dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (out->dir < 0)
		return cf_fail(err, errno == ENOENT ? -EINVAL : -errno, "%s cannot be made: %s", out->shown, strerror(errno));
	if (faccessat(out->dir, ".", W_OK, AT_EACCESS) != 0)
		return cf_fail(err, -errno, "%s cannot be made: its directory: %s", out->shown, strerror(errno));
	return 0;
}

static int plan_path(struct cli_output *out, const char *path, struct cf_err *err)
{
	/* A link is followed: what it points to is replaced, and the link stays. */
	CF_CLEANUP(cf_freep) char *resolved = realpath(path, NULL);
	const char *target = resolved ? resolved : path;
	if (strlen(target) >= PATH_MAX)
		return cf_fail(err, -ENAMETOOLONG, "%s: the path is too long", path);
	if (stat(target, &out->st) != 0) {
		out->st = (struct stat){.st_nlink = 0};
		if (errno != ENOENT && errno != ENOTDIR)
			return cf_fail(err, -errno, "%s cannot be made: %s", path, strerror(errno));
		if (lstat(path, &(struct stat){0}) == 0)
			return cf_fail(err, -EINVAL, "%s is a link that leads nowhere", path);
	}
	int rc = out->st.st_nlink ? judge_existing(out, target, err) : 0;
	return rc || out->kind != CLI_OUTPUT_FILE ? rc : open_folder(out, target, err);
}

static int plan_stdout(struct cli_output *out, struct cf_err *err)
{
	out->shown = "standard output";
	out->is_stdout = 1;
	out->kind = CLI_OUTPUT_STREAM;
	if (isatty(STDOUT_FILENO))
		return cf_fail(err, -EINVAL, "standard output is a terminal: give it to a file or a program");
	if (fstat(STDOUT_FILENO, &out->st) != 0)
		return cf_fail(err, -EINVAL, "standard output is closed");
	return 0;
}

int cli_output_plan(struct cli_output *out, const char *path, unsigned force, struct cf_err *err)
{
	*out = (struct cli_output){.shown = path, .force = force, .dir = -1, .fd = -1};
	return strcmp(path, "-") ? plan_path(out, path, err) : plan_stdout(out, err);
}

static int same_object(const struct stat *a, const struct stat *b)
{
	if (S_ISBLK(a->st_mode) && S_ISBLK(b->st_mode))
		return a->st_rdev == b->st_rdev; /* two nodes of one device */
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

int cli_output_differs(const struct cli_output *out, const struct cf_image *image, const char *name, struct cf_err *err)
{
	for (unsigned i = 0; out->st.st_nlink && i < image->n_parts; i++) {
		struct stat st;
		if (fstat(image->fd[i], &st) == 0 && same_object(&st, &out->st))
			return cf_fail(err, -EINVAL, "%s is %s itself: nothing is done in place", out->shown, name);
	}
	return 0;
}

/* ---- room ---- */

static int too_small(const struct cli_output *out, uint64_t bytes, uint64_t has, struct cf_err *err)
{
	char needed[32], room[32];
	cli_format_bytes(bytes, needed, sizeof(needed));
	cli_format_bytes(has, room, sizeof(room));
	return cf_fail(err, -ENOSPC, "%s needs %s (%llu bytes), but there is room for %s", out->shown, needed,
				   (unsigned long long)bytes, room);
}

static int device_bytes(const struct cli_output *out, uint64_t *bytes, struct cf_err *err)
{
	CF_CLEANUP(cf_close_fd) int fd = open(out->shown, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return cf_fail(err, -errno, "cannot open %s: %s", out->shown, strerror(errno));
	return cf_backing_size_fd(fd, bytes, err);
}

static uint64_t free_bytes(const struct cli_output *out)
{
	struct statvfs fs;
	if (fstatvfs(out->dir, &fs) != 0 || !fs.f_blocks) /* one that does not tell has 0 of 0 */
		return UINT64_MAX;
	const uint64_t blocks = geteuid() == 0 ? fs.f_bfree : fs.f_bavail;
	return blocks > UINT64_MAX / fs.f_frsize ? UINT64_MAX : blocks * fs.f_frsize;
}

int cli_output_room(const struct cli_output *out, uint64_t bytes, struct cf_err *err)
{
	uint64_t has = UINT64_MAX;
	int rc = 0;
	if (out->kind == CLI_OUTPUT_DEVICE)
		rc = device_bytes(out, &has, err);
	else if (out->kind == CLI_OUTPUT_FILE)
		has = free_bytes(out);
	return rc || bytes <= has ? rc : too_small(out, bytes, has, err);
}

/* ---- making ---- */

static int make_failed(const struct cli_output *out, struct cf_err *err)
{
	switch (errno) {
	case ENOSPC:
	case EDQUOT:
		return cf_fail(err, -ENOSPC, "%s cannot be made: there is not enough room for it", out->shown);
	case EFBIG:
		return cf_fail(err, -EFBIG, "%s cannot be made: files may not be so long there", out->shown);
	default:
		return cf_fail(err, -errno, "%s cannot be made: %s", out->shown, strerror(errno));
	}
}

/* On tmpfs room is memory, taken page by page: the copy's threads do that faster, and what is free is known anyway.
 * Elsewhere reserving can fail for no better reason than that the file system does not know how to. */
static int set_length(const struct cli_output *out, uint64_t bytes, enum cf_copy_zeros zeros, struct cf_err *err)
{
	if (ftruncate(out->fd, (off_t)bytes) != 0)
		return make_failed(out, err);
	struct statfs fs;
	if (fstatfs(out->fd, &fs) == 0 && fs.f_type == TMPFS_MAGIC)
		return 0;
	if (zeros == CF_COPY_ZEROS_SKIPPED || !bytes || fallocate(out->fd, 0, 0, (off_t)bytes) == 0)
		return 0;
	return errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR ? 0 : make_failed(out, err);
}

static int make_file(struct cli_output *out, struct cf_err *err)
{
	out->fd = openat(out->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, FILE_MODE);
	if (out->fd >= 0)
		return 0;
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL && errno != ENOENT)
		return make_failed(out, err);
	out->fd = openat(out->dir, out->partial, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
	if (out->fd < 0 && errno == EEXIST)
		return cf_fail(err, -EEXIST, "%s" PARTIAL " exists: another run makes it, or left it behind; then remove it",
					   out->shown);
	out->has_partial = out->fd >= 0;
	return out->fd < 0 ? make_failed(out, err) : 0;
}

static int open_device(struct cli_output *out, struct cf_err *err)
{
	out->fd = open(out->shown, O_RDWR | O_EXCL | O_CLOEXEC);
	if (out->fd < 0 && errno == EBUSY)
		return cf_fail(err, -EBUSY, "%s is in use: mounted, or held by another program", out->shown);
	return out->fd < 0 ? cf_fail(err, -errno, "cannot open %s for writing: %s", out->shown, strerror(errno)) : 0;
}

/* Not to hang in a write when it is time to end, a pipe is opened anew: O_NONBLOCK on the descriptor that was inherited
 * would be the caller's problem. Where that is not possible the inherited one will do. */
static int open_stream(struct cli_output *out, struct cf_err *err)
{
	if (out->is_stdout)
		out->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	else
		out->fd = open(out->shown, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (out->fd < 0)
		return cf_fail(err, -errno, "cannot open %s for writing: %s", out->shown, strerror(errno));
	char again[32];
	snprintf(again, sizeof(again), "/proc/self/fd/%d", out->fd);
	const int fd = S_ISFIFO(out->st.st_mode) ? open(again, O_WRONLY | O_CLOEXEC | O_NONBLOCK) : -1;
	if (fd >= 0) {
		close(out->fd);
		out->fd = fd;
	}
	return 0;
}

int cli_output_make(struct cli_output *out, uint64_t bytes, enum cf_copy_zeros zeros, struct cf_err *err)
{
	int rc = 0;
	switch (out->kind) {
	case CLI_OUTPUT_FILE:
		rc = make_file(out, err);
		return rc ? rc : set_length(out, bytes, zeros, err);
	case CLI_OUTPUT_DEVICE:
		return open_device(out, err);
	case CLI_OUTPUT_STREAM:
		break;
	}
	return open_stream(out, err);
}

/* ---- finishing ---- */

/* A file without a name gets @name, unless something has it. 0 or -errno. */
static int name_it(const struct cli_output *out, const char *name)
{
	char nameless[32];
	snprintf(nameless, sizeof(nameless), "/proc/self/fd/%d", out->fd);
	return linkat(AT_FDCWD, nameless, out->dir, name, AT_SYMLINK_FOLLOW) == 0 ? 0 : -errno;
}

/* 0 or -errno; only a link leaves NAME.partial behind, which then goes in the end. */
static int rename_partial(struct cli_output *out, unsigned flags)
{
	if (renameat2(out->dir, out->partial, out->dir, out->name, flags) != 0)
		return -errno;
	out->has_partial = 0;
	return 0;
}

static int give_new_name(struct cli_output *out)
{
	if (!out->has_partial)
		return name_it(out, out->name);
	const int rc = rename_partial(out, RENAME_NOREPLACE);
	if (rc != -EINVAL && rc != -ENOSYS)
		return rc;
	return linkat(out->dir, out->partial, out->dir, out->name, 0) == 0 ? 0 : -errno;
}

static int give_name(struct cli_output *out)
{
	int rc = give_new_name(out);
	if (rc != -EEXIST || !out->force)
		return rc;
	if (!out->has_partial && (rc = name_it(out, out->partial)))
		return rc;
	out->has_partial = 1;
	return rename_partial(out, 0);
}

int cli_output_finish(struct cli_output *out, struct cf_err *err)
{
	if (out->kind == CLI_OUTPUT_STREAM)
		return 0;
	if (fsync(out->fd) != 0)
		return cf_fail(err, -errno, "%s: what was written did not reach the disk: %s", out->shown, strerror(errno));
	if (out->kind == CLI_OUTPUT_DEVICE)
		return 0;
	const int rc = give_name(out);
	if (rc == -EEXIST)
		return cf_fail(err, rc, "%s has appeared meanwhile; it stays as it is", out->shown);
	if (rc)
		return cf_fail(err, rc, "%s cannot be given its name: %s", out->shown, strerror(-rc));
	if (fsync(out->dir) != 0 && errno != EINVAL)
		return cf_fail(err, -errno, "%s: its name did not reach the disk: %s", out->shown, strerror(errno));
	return 0;
}

void cli_output_unmake(struct cli_output *out)
{
	if (out->has_partial)
		unlinkat(out->dir, out->partial, 0);
	out->has_partial = 0;
	cf_close_fd(&out->fd);
}

void cli_output_fini(struct cli_output *out)
{
	cli_output_unmake(out);
	cf_close_fd(&out->dir);
}
