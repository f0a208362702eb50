/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* image.c - opens an image once and makes sure that nobody else changes it meanwhile.
 *
 * Runs in the parent of the daemon. What protects the image stays with the descriptor: an open file description lock
 * (write lock for a writer, read lock for a reader) and, for a block device that is written, O_EXCL. A loop device
 * takes no lock, so those are looked up in sysfs. No state; any thread. */
#include "config.h"

#include "cryptfuse/image.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "parts.h"

static const char *kind_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "directory";
	case S_IFIFO:
		return "FIFO";
	case S_IFSOCK:
		return "socket";
	case S_IFCHR:
		return "character device";
	default:
		return "special file";
	}
}

static int check_kind(const char *path, const struct stat *st, struct cf_err *err)
{
	if (S_ISREG(st->st_mode) || S_ISBLK(st->st_mode))
		return 0;
	return cf_fail(err, -ENODEV, "%s is a %s, not a file or block device", path, kind_name(st->st_mode));
}

static int open_failed(const char *path, enum cf_access access, int code, struct cf_err *err)
{
	switch (code) {
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case ENAMETOOLONG:
		return cf_fail(err, -ENODEV, "cannot open %s: %s", path, strerror(code));
	case ENXIO:
	case ENODEV:
	case ENOMEDIUM:
		return cf_fail(err, -ENODEV, "cannot open %s: no such device, or no medium in it", path);
	case EACCES:
	case EPERM:
		return cf_fail(err, -EACCES, "cannot open %s for %s: %s", path,
					   access == CF_READ_WRITE ? "writing (--readonly may do)" : "reading", strerror(code));
	case EROFS:
		return cf_fail(err, -EROFS, "%s cannot be written: %s; use --readonly", path, strerror(code));
	case EBUSY:
	case ETXTBSY:
	case EAGAIN:
		return cf_fail(err, -EBUSY, "%s is in use: mounted, or held by another program", path);
	default:
		return cf_fail(err, -code, "cannot open %s: %s", path, strerror(code));
	}
}

/* Never blocks and never touches anything but a file or block device: opening a tape or a watchdog has effects of its
 * own, so the kind is looked at first, and once more on the descriptor, since the name may have changed hands. */
static int open_checked(const char *path, enum cf_access access, enum cf_lock lock, struct stat *st, struct cf_err *err)
{
	if (stat(path, st) != 0)
		return open_failed(path, access, errno, err);
	int rc = check_kind(path, st, err);
	if (rc)
		return rc;
	int flags = O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	if (access == CF_READ_ONLY)
		flags |= O_RDONLY | O_NOATIME;
	else
		flags |= O_RDWR | (S_ISBLK(st->st_mode) && lock == CF_LOCK ? O_EXCL : 0);
	CF_CLEANUP(cf_close_fd) int fd = open(path, flags);
	if (fd < 0 && errno == EPERM && (flags & O_NOATIME)) /* only the owner may leave the access time alone */
		fd = open(path, flags & ~O_NOATIME);
	if (fd < 0)
		return open_failed(path, access, errno, err);
	if (fstat(fd, st) != 0)
		return cf_fail(err, -EIO, "cannot look at %s: %s", path, strerror(errno));
	rc = check_kind(path, st, err);
	if (rc)
		return rc;
	int now = fcntl(fd, F_GETFL);
	if (now < 0 || fcntl(fd, F_SETFL, now & ~O_NONBLOCK) != 0)
		return cf_fail(err, -EIO, "cannot set up %s: %s", path, strerror(errno));
	int out = fd;
	fd = -1;
	return out;
}

static int lock_whole(int fd, const char *path, enum cf_access access, struct cf_err *err)
{
	struct flock range = {.l_type = access == CF_READ_WRITE ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET};
	if (fcntl(fd, F_OFD_SETLK, &range) == 0)
		return 0;
	switch (errno) {
	case EAGAIN:
	case EACCES:
		return cf_fail(err, -EBUSY, "%s is in use by another program (locked)", path);
	case ENOLCK:
	case EOPNOTSUPP:
	case EINVAL:
	case ENOSYS:
		return cf_fail(err, -ENOLCK,
					   "%s cannot be locked: its file system has no locks; if nobody else uses it, use --shared", path);
	default:
		return cf_fail(err, -errno, "cannot lock %s: %s", path, strerror(errno));
	}
}

/* One line of sysfs without its newline; 0 or -errno. */
static int read_line(const char *path, char *line, size_t size)
{
	CF_CLEANUP(cf_close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t n = read(fd, line, size - 1);
	if (n < 0)
		return -errno;
	if (n > 0 && line[n - 1] == '\n')
		n--;
	line[n] = '\0';
	return 0;
}

static bool same_object(const struct stat *a, const struct stat *b)
{
	if (S_ISBLK(a->st_mode) && S_ISBLK(b->st_mode))
		return a->st_rdev == b->st_rdev; /* two nodes of one device */
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool cf_backing_loop_user(const char *sys_block, const char *path, const struct stat *st, char *name, size_t name_size)
{
	CF_CLEANUP(cf_close_dir) DIR *dir = opendir(sys_block);
	CF_CLEANUP(cf_freep) char *resolved = realpath(path, NULL);
	if (!dir)
		return false;
	for (struct dirent *e; (e = readdir(dir));) {
		char file[PATH_MAX], target[PATH_MAX];
		struct stat target_st;
		int n = snprintf(file, sizeof(file), "%s/%s/loop/backing_file", sys_block, e->d_name);
		if (n < 0 || (size_t)n >= sizeof(file) || read_line(file, target, sizeof(target)) != 0)
			continue;
		/* By name too: the file may lie where only root can look. */
		bool same = resolved && strcmp(resolved, target) == 0;
		if (!same && (stat(target, &target_st) != 0 || !same_object(st, &target_st)))
			continue;
		snprintf(name, name_size, "/dev/%s", e->d_name);
		return true;
	}
	return false;
}

int cf_backing_open_fd(const char *path, enum cf_access access, enum cf_lock lock, int *out_fd, struct cf_err *err)
{
	struct stat st;
	CF_CLEANUP(cf_close_fd) int fd = open_checked(path, access, lock, &st, err);
	if (fd < 0)
		return fd;
	char loop[NAME_MAX + 8];
	if (access == CF_READ_WRITE && lock == CF_LOCK && cf_backing_loop_user("/sys/block", path, &st, loop, sizeof(loop)))
		return cf_fail(err, -EBUSY, "%s is in use by the loop device %s", path, loop);
	int rc = lock == CF_LOCK ? lock_whole(fd, path, access, err) : 0;
	if (rc)
		return rc;
	*out_fd = fd;
	fd = -1;
	return 0;
}

/* Counted from the first; only files are put together, since their bytes have no block of their own to keep to. */
static int open_part(struct cf_image *image, const char *path, enum cf_lock lock, struct cf_err *err)
{
	struct stat st;
	int rc = cf_backing_open_fd(path, image->access, lock, &image->fd[image->n_parts], err);
	if (rc)
		return rc;
	int fd = image->fd[image->n_parts++];
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return cf_fail(err, -ENODEV, "%s is not a file: the parts of a split image must be", path);
	return 0;
}

static int open_parts(struct cf_image *image, struct cf_parts *parts, enum cf_lock lock, struct cf_err *err)
{
	int rc = 0;
	for (unsigned i = 0; i < parts->n && rc == 0; i++)
		rc = open_part(image, cf_parts_name(parts, i), lock, err);
	return rc;
}

int cf_image_open(struct cf_image *image, const char *path, enum cf_access access, enum cf_lock lock,
				  struct cf_err *err)
{
	struct cf_parts parts;
	*image = (struct cf_image){.access = access};
	int rc = cf_parts_find(path, &parts, err);
	if (rc)
		return rc;
	if (parts.n == 1) {
		rc = cf_backing_open_fd(path, access, lock, &image->fd[0], err);
		image->n_parts = rc == 0;
		return rc;
	}
	rc = open_parts(image, &parts, lock, err);
	if (rc)
		cf_image_close(image);
	return rc;
}

/* The parts of a split image share blocks in no way that the range lock could know. */
int cf_image_set_direct(struct cf_image *image, const char *path, struct cf_err *err)
{
	if (image->n_parts > 1)
		return cf_fail(err, -EINVAL, "--direct: %s is a split image, and only whole ones go past the page cache", path);
	int rc = cf_backing_set_direct(image->fd[0], path, err);
	if (!rc)
		image->cache = CF_IMAGE_DIRECT;
	return rc;
}

int cf_image_copy(struct cf_image *image, const struct cf_image *from, struct cf_err *err)
{
	CF_CLEANUP(cf_image_close) struct cf_image copy = {.access = from->access, .cache = from->cache};
	for (unsigned i = 0; i < from->n_parts; i++) {
		const int fd = fcntl(from->fd[i], F_DUPFD_CLOEXEC, 3);
		if (fd < 0)
			return cf_fail(err, -errno, "cannot copy the image's descriptor: %s", strerror(errno));
		copy.fd[copy.n_parts++] = fd;
	}
	*image = copy;
	copy.n_parts = 0;
	return 0;
}

bool cf_image_lock_lost(const struct cf_image *image)
{
	for (unsigned i = 0; i < image->n_parts; i++) {
		struct flock range = {.l_type = image->access == CF_READ_WRITE ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET};
		if (fcntl(image->fd[i], F_OFD_GETLK, &range) == 0 && range.l_type != F_UNLCK)
			return true;
	}
	return false;
}

void cf_image_close(struct cf_image *image)
{
	while (image->n_parts)
		cf_close_fd(&image->fd[--image->n_parts]);
	while (image->n_journals) {
		cf_close_fd(&image->journal);
		image->n_journals--;
	}
}

/* A file as a backing, on a copy of its descriptor. */
static int copy_backing(int of, enum cf_image_cache cache, enum cf_access access, struct cf_backing **out,
						struct cf_err *err)
{
	CF_CLEANUP(cf_close_fd) int fd = fcntl(of, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return cf_fail(err, -errno, "cannot copy the image's descriptor: %s", strerror(errno));
	int rc = cache == CF_IMAGE_DIRECT ? cf_backing_from_direct_fd(out, fd, access, err)
									  : cf_backing_from_fd(out, fd, access, err);
	if (!rc)
		fd = -1;
	return rc;
}

int cf_image_backing(const struct cf_image *image, struct cf_backing **out, struct cf_err *err)
{
	struct cf_backing *part[CF_IMAGE_PARTS_MAX] = {0};
	unsigned n = 0;
	int rc = 0;
	for (; !rc && n < image->n_parts; n++)
		rc = copy_backing(image->fd[n], image->cache, image->access, &part[n], err);
	if (!rc && n == 1)
		*out = cf_take(part[0]);
	else if (!rc)
		rc = cf_backing_join(out, part, n, err);
	for (unsigned i = 0; rc && i < n; i++)
		cf_backing_free(&part[i]);
	return rc;
}

int cf_image_log(const struct cf_image *image, struct cf_backing **out, struct cf_err *err)
{
	return copy_backing(image->journal, CF_IMAGE_CACHED, image->access, out, err);
}
