/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* journal_file.c - a journal's file: found, locked, made. Runs in the parent of the daemon, without any key.
 *
 * All its bytes are allocated when it is made, so that a full disk is met then and not by a write. Only what begins as
 * a journal, or has no bytes at all, is ever written to. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/err.h"
#include "cryptfuse/image.h"
#include "journal_format.h"

/* The name must survive a power failure as well as the bytes. */
static int sync_folder(const char *path, struct cf_err *err)
{
	char copy[PATH_MAX];
	snprintf(copy, sizeof(copy), "%s", path);
	CF_CLEANUP(cf_close_fd) int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fsync(fd) != 0)
		return cf_fail(err, -EIO, "cannot make the new journal %s durable: %s", path, strerror(errno));
	return 0;
}

static int create(const char *path, struct cf_err *err)
{
	CF_CLEANUP(cf_close_fd) int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return cf_fail(err, errno == EPERM ? -EACCES : -errno, "cannot make the journal %s: %s", path, strerror(errno));
	return 0;
}

static bool is_image(const struct cf_image *image, const struct stat *st)
{
	struct stat part;
	for (unsigned i = 0; i < image->n_parts; i++)
		if (fstat(image->fd[i], &part) == 0 && part.st_dev == st->st_dev && part.st_ino == st->st_ino)
			return true;
	return false;
}

/* A link could come to lead elsewhere while records wait behind it. */
static int check_found(const char *path, const struct stat *st, const struct cf_image *image, struct cf_err *err)
{
	if (S_ISLNK(st->st_mode))
		return cf_fail(err, -ENODEV, "the journal %s is a symbolic link: name the file itself", path);
	if (is_image(image, st))
		return cf_fail(err, -EINVAL, "the journal %s is the image itself: it needs a file of its own", path);
	return 0;
}

static int find(const char *path, enum cf_access access, const struct cf_image *image, bool *created,
				struct cf_err *err)
{
	struct stat st;
	if (strlen(path) >= PATH_MAX)
		return cf_fail(err, -ENODEV, "the name of the journal is too long");
	if (lstat(path, &st) == 0)
		return check_found(path, &st, image, err);
	if (errno != ENOENT)
		return cf_fail(err, errno == EACCES ? -EACCES : -ENODEV, "cannot look at the journal %s: %s", path,
					   strerror(errno));
	if (access == CF_READ_ONLY)
		return cf_fail(err, -ENODEV, "there is no journal %s, and a read-only volume makes none", path);
	const int rc = create(path, err);
	*created = rc == 0;
	return rc;
}

static int check_kind(const char *path, int fd, struct stat *st, struct cf_err *err)
{
	if (fstat(fd, st) != 0)
		return cf_fail(err, -EIO, "cannot look at the journal %s: %s", path, strerror(errno));
	if (!S_ISREG(st->st_mode))
		return cf_fail(err, -ENODEV, "the journal %s is not a file", path);
	return 0;
}

static void fill_blank(uint8_t super[static CF_SUPER_BYTES])
{
	memset(super, 0, CF_SUPER_BYTES);
	memcpy(super, CF_JOURNAL_MAGIC, 16);
	cf_store_le32(super + CF_SUPER_VERSION, CF_JOURNAL_VERSION);
}

/* Empty, and @bytes long. Nothing is in it, or ever was. */
static int format(const char *path, int fd, uint64_t bytes, struct cf_err *err)
{
	uint8_t super[CF_SUPER_BYTES];
	fill_blank(super);
	int code = 0;
	if (pwrite(fd, super, sizeof(super), CF_JOURNAL_SUPER_AT) != (ssize_t)sizeof(super))
		code = errno ? errno : EIO;
	else if (ftruncate(fd, (off_t)bytes) != 0)
		code = errno;
	else
		code = posix_fallocate(fd, 0, (off_t)bytes);
	if (code == 0 && fsync(fd) != 0)
		code = errno;
	if (code == 0)
		return 0;
	(void)!ftruncate(fd, 0);
	return cf_fail(err, -code, "cannot make a journal of %" PRIu64 " bytes, %s: %s", bytes, path, strerror(code));
}

/* Is it a journal, and does it have the size that is asked for? One that holds something keeps its own. */
static int prepare(const char *path, int fd, enum cf_access access, uint64_t bytes, const struct stat *st,
				   struct cf_err *err)
{
	uint8_t super[CF_SUPER_BYTES], blank[CF_SUPER_BYTES];
	if (st->st_size == 0 && access == CF_READ_WRITE)
		return format(path, fd, bytes ? bytes : CF_JOURNAL_BYTES_DEFAULT, err);
	const ssize_t n = pread(fd, super, sizeof(super), CF_JOURNAL_SUPER_AT);
	if (n < 0)
		return cf_fail(err, -EIO, "cannot read the journal %s: %s", path, strerror(errno));
	if (n < (ssize_t)sizeof(super) || memcmp(super, CF_JOURNAL_MAGIC, 16) != 0)
		return cf_fail(err, -ENODEV, "%s is not a journal of cryptfuse", path);
	fill_blank(blank);
	if (access == CF_READ_WRITE && memcmp(super, blank, sizeof(blank)) == 0 &&
		(uint64_t)st->st_size != (bytes ? bytes : (uint64_t)st->st_size))
		return format(path, fd, bytes, err);
	return 0;
}

static int open_locked(const char *path, enum cf_access access, int *fd, struct cf_err *err)
{
	struct cf_err why = {0};
	const int rc = cf_backing_open_fd(path, access, CF_LOCK, fd, &why);
	if (rc == -ENOLCK)
		return cf_fail(err, rc, "the journal %s cannot be locked: its file system has no locks", path);
	return rc ? cf_fail(err, rc, "the journal: %s", why.text) : 0;
}

int cf_journal_open_fd(const char *path, enum cf_access access, uint64_t bytes, const struct cf_image *image,
					   int *out_fd, bool *out_created, struct cf_err *err)
{
	CF_CLEANUP(cf_close_fd) int fd = -1;
	struct stat st;
	bool created = false;
	int rc = find(path, access, image, &created, err);
	if (!rc)
		rc = open_locked(path, access, &fd, err);
	if (!rc)
		rc = check_kind(path, fd, &st, err);
	if (!rc)
		rc = prepare(path, fd, access, bytes, &st, err);
	if (!rc && created)
		rc = sync_folder(path, err);
	if (rc) {
		if (created)
			unlink(path);
		return rc;
	}
	*out_fd = fd;
	fd = -1;
	*out_created = created;
	return 0;
}
