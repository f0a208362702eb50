/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* file.c - a regular file or a block device as the backing.
 *
 * Owns the descriptor and nothing else: pread and pwrite through the page cache, so writes need not keep apart on a
 * file. The size is the one at open, and nothing here ever makes the image longer. Any number of threads. */
#include "config.h"

#include "cryptfuse/backing.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "cryptfuse/units.h"

struct file_backing {
	struct cf_backing base; /* first */
	int fd;
};

static int fd_of(const struct cf_backing *b)
{
	return ((const struct file_backing *)b)->fd;
}

static ssize_t file_pread(struct cf_backing *b, void *buf, size_t len, uint64_t off)
{
	ssize_t n;
	do
		n = pread(fd_of(b), buf, len, (off_t)off);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static ssize_t file_pwrite(struct cf_backing *b, const void *buf, size_t len, uint64_t off)
{
	assert(off <= b->bytes && len <= b->bytes - off);
	ssize_t n;
	do
		n = pwrite(fd_of(b), buf, len, (off_t)off);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static int file_sync(struct cf_backing *b)
{
	int rc;
	do
		rc = fdatasync(fd_of(b));
	while (rc != 0 && errno == EINTR);
	return rc ? -errno : 0;
}

/* fallocate, with "this kernel or file system cannot" as one code. */
static int reserve(struct cf_backing *b, int mode, uint64_t off, uint64_t len)
{
	assert(off <= b->bytes && len <= b->bytes - off);
	int rc;
	do
		rc = fallocate(fd_of(b), mode, (off_t)off, (off_t)len);
	while (rc != 0 && errno == EINTR);
	if (rc == 0)
		return 0;
	return errno == ENOSYS ? -EOPNOTSUPP : -errno;
}

/* On a block device the kernel zeroes without a fallback, or says EOPNOTSUPP. */
static int file_punch(struct cf_backing *b, uint64_t off, uint64_t len)
{
	return reserve(b, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len);
}

static int file_allocate(struct cf_backing *b, uint64_t off, uint64_t len)
{
	return reserve(b, FALLOC_FL_KEEP_SIZE, off, len);
}

static int device_allocate(struct cf_backing *b, uint64_t off, uint64_t len)
{
	assert(off <= b->bytes && len <= b->bytes - off);
	return 0;
}

static int64_t file_seek(struct cf_backing *b, uint64_t off, enum cf_seek what)
{
	off_t at = lseek(fd_of(b), (off_t)off, what == CF_SEEK_DATA ? SEEK_DATA : SEEK_HOLE);
	return at < 0 ? -errno : at;
}

static void file_close(struct cf_backing *b)
{
	cf_close_fd(&((struct file_backing *)b)->fd);
}

static const struct cf_backing_ops file_ops = {
	.name = "file",
	.pread = file_pread,
	.pwrite = file_pwrite,
	.sync = file_sync,
	.punch = file_punch,
	.allocate = file_allocate,
	.seek = file_seek,
	.close = file_close,
};

static const struct cf_backing_ops device_ops = {
	.name = "block device",
	.pread = file_pread,
	.pwrite = file_pwrite,
	.sync = file_sync,
	.punch = file_punch,
	.allocate = device_allocate,
	.seek = NULL,
	.close = file_close,
};

static int size_of(int fd, const struct stat *st, uint64_t *out, struct cf_err *err)
{
	if (S_ISREG(st->st_mode)) {
		*out = (uint64_t)st->st_size;
		return 0;
	}
	if (!S_ISBLK(st->st_mode))
		return cf_fail(err, -ENODEV, "not a file or block device");
	if (ioctl(fd, BLKGETSIZE64, out) != 0)
		return cf_fail(err, -EIO, "cannot tell the size of the block device: %s", strerror(errno));
	return 0;
}

int cf_backing_size_fd(int fd, uint64_t *out_bytes, struct cf_err *err)
{
	struct stat st;
	if (fstat(fd, &st) != 0)
		return cf_fail(err, -EIO, "cannot tell the size of the image: %s", strerror(errno));
	return size_of(fd, &st, out_bytes, err);
}

static int check_access(int fd, enum cf_access access, struct cf_err *err)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0)
		return cf_fail(err, -EIO, "cannot look at the image's descriptor: %s", strerror(errno));
	if ((flags & O_ACCMODE) != (access == CF_READ_ONLY ? O_RDONLY : O_RDWR))
		return cf_fail(err, -EINVAL, "the image was not opened for the access that is asked for");
	return 0;
}

int cf_backing_from_fd(struct cf_backing **out, int fd, enum cf_access access, struct cf_err *err)
{
	struct stat st;
	uint64_t bytes;
	int block = (int)CF_SECTOR_BYTES;
	if (fstat(fd, &st) != 0)
		return cf_fail(err, -EIO, "cannot look at the image: %s", strerror(errno));
	int rc = size_of(fd, &st, &bytes, err);
	if (!rc)
		rc = check_access(fd, access, err);
	if (rc)
		return rc;
	bool device = S_ISBLK(st.st_mode);
	if (device && (ioctl(fd, BLKSSZGET, &block) != 0 || block < (int)CF_SECTOR_BYTES))
		return cf_fail(err, -EIO, "cannot tell the block size of the device");
	struct file_backing *f = calloc(1, sizeof(*f));
	if (!f)
		return cf_fail(err, -ENOMEM, "out of memory");
	/* A file system zeroes what it cannot punch of a block, so a file's discard granule is a sector. */
	f->base = (struct cf_backing){
		.ops = device ? &device_ops : &file_ops,
		.bytes = bytes,
		.access = access,
		.granule = device ? (uint32_t)block : 1,
		.discard_granule = (uint32_t)block,
	};
	f->fd = fd;
	*out = &f->base;
	return 0;
}
