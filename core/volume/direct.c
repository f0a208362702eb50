/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* direct.c - a file or block device without the kernel's page cache (O_DIRECT).
 *
 * Turns O_DIRECT on, finds out what it demands of offsets and of memory, and puts the backing together: aligned.c over
 * file.c. The end of a file that is no whole block cannot be written this way without making the file longer: its last
 * page goes through the page cache, by a descriptor of its own. Runs at open, in one thread. */
#include "config.h"

#include "cryptfuse/backing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "aligned.h"
#include "cryptfuse/err.h"
#include "cryptfuse/units.h"

/** What offsets and lengths, and addresses, must be multiples of. */
struct alignment {
	uint32_t block, memory;
};

static bool is_alignment(uint64_t n)
{
	return n && n <= CF_ALIGNED_BLOCK_MAX && (n & (n - 1)) == 0;
}

/* What the kernel says; where it does not, a sector to begin with. Memory that suits blocks suits. */
static struct alignment ask_alignment(int fd, const struct stat *st)
{
	struct alignment a = {CF_SECTOR_BYTES, CF_SECTOR_BYTES};
	int block;
	if (S_ISBLK(st->st_mode)) {
		if (ioctl(fd, BLKSSZGET, &block) == 0 && block > 0 && is_alignment((uint64_t)block))
			a = (struct alignment){(uint32_t)block, (uint32_t)block};
		return a;
	}
#ifdef STATX_DIOALIGN
	struct statx x;
	if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &x) == 0 && (x.stx_mask & STATX_DIOALIGN) &&
		is_alignment(x.stx_dio_offset_align) && is_alignment(x.stx_dio_mem_align)) {
		a.memory = x.stx_dio_mem_align;
		a.block = x.stx_dio_offset_align > a.memory ? x.stx_dio_offset_align : a.memory;
	}
#endif
	return a;
}

/* The smallest block from there on that can really be read. */
static int find_alignment(int fd, struct alignment *out, struct cf_err *err)
{
	CF_CLEANUP(cf_freep) void *buf = NULL;
	struct stat st;
	if (fstat(fd, &st) != 0)
		return cf_fail(err, -EIO, "cannot look at the image: %s", strerror(errno));
	if (posix_memalign(&buf, CF_ALIGNED_BLOCK_MAX, CF_ALIGNED_BLOCK_MAX) != 0)
		return cf_fail(err, -ENOMEM, "out of memory");
	int code = EINVAL;
	for (*out = ask_alignment(fd, &st); out->block <= CF_ALIGNED_BLOCK_MAX && code == EINVAL;
		 out->memory = out->block *= 2) {
		if (pread(fd, buf, out->block, 0) >= 0)
			return 0;
		code = errno;
	}
	return cf_fail(err, code == EINVAL ? -EINVAL : -EIO,
				   "--direct: the image cannot be read without the page cache: %s", strerror(code));
}

int cf_backing_set_direct(int fd, const char *path, struct cf_err *err)
{
	struct alignment a;
	int flags = fcntl(fd, F_GETFL);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_DIRECT) != 0)
		return cf_fail(err, -EINVAL, "--direct: %s: its file system cannot do without the page cache (O_DIRECT: %s)",
					   path, strerror(errno));
	return find_alignment(fd, &a, err);
}

/* The same file once more, by a description that knows no O_DIRECT and leaves the access time alone if it may. */
static int open_again(int fd, enum cf_access access, struct cf_err *err)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int again = open(path, access == CF_READ_ONLY ? O_RDONLY | O_CLOEXEC | O_NOATIME : O_RDWR | O_CLOEXEC);
	if (again < 0 && errno == EPERM && access == CF_READ_ONLY)
		again = open(path, O_RDONLY | O_CLOEXEC);
	if (again < 0)
		return cf_fail(err, -errno,
					   "--direct: the end of the image is no whole block, and it cannot be opened again: %s",
					   strerror(errno));
	posix_fadvise(again, 0, 0, POSIX_FADV_RANDOM); /* pages before the last one shall stay out of the cache */
	return again;
}

static int tail_from_fd(struct cf_backing **out, int fd, enum cf_access access, struct cf_err *err)
{
	CF_CLEANUP(cf_close_fd) int again = open_again(fd, access, err);
	int rc = again < 0 ? again : cf_backing_from_fd(out, again, access, err);
	if (!rc)
		again = -1;
	return rc;
}

int cf_backing_from_direct_fd(struct cf_backing **out, int fd, enum cf_access access, struct cf_err *err)
{
	CF_CLEANUP(cf_backing_free) struct cf_backing *tail = NULL, *inner = NULL;
	struct alignment a;
	uint64_t bytes;
	int rc = find_alignment(fd, &a, err);
	if (!rc)
		rc = cf_backing_size_fd(fd, &bytes, err);
	if (!rc && cf_aligned_tail_off(bytes, a.block) < bytes)
		rc = tail_from_fd(&tail, fd, access, err);
	if (rc)
		return rc;
	/* From here on a failure may close the descriptor's twin only: the caller keeps his. */
	CF_CLEANUP(cf_close_fd) int twin = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (twin < 0)
		return cf_fail(err, -errno, "cannot take over the image's descriptor: %s", strerror(errno));
	rc = cf_backing_from_fd(&inner, twin, access, err);
	if (rc)
		return rc;
	twin = -1;
	rc = cf_aligned_new(out, &inner, &tail, a.block, a.memory, err);
	if (!rc)
		close(fd);
	return rc;
}
