/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* backing.h - the store of ciphertext, as a table of functions.
 *
 * A backing knows bytes, not data units or keys. Offsets count from the start of the store. Every slot may be called by
 * any number of threads at once; overlapping writes are kept apart by the volume's range lock, at the granule the
 * backing names. */
#ifndef CRYPTFUSE_BACKING_H
#define CRYPTFUSE_BACKING_H

#include <stdbool.h>
#include <sys/types.h>

#include "cryptfuse/base.h"

struct cf_err;
struct cf_backing;
struct stat;

enum cf_seek { CF_SEEK_DATA, CF_SEEK_HOLE };

struct cf_backing_ops {
	const char *name; /* "file", "block device" */
	/** Read or write up to @len bytes at @off; may be short, as pread is. Returns bytes (0 only at the end), or -errno.
	 * EINTR is handled inside. */
	ssize_t (*pread)(struct cf_backing *b, void *buf, size_t len, uint64_t off);
	ssize_t (*pwrite)(struct cf_backing *b, const void *buf, size_t len, uint64_t off);
	/** Make everything written so far durable (fdatasync). 0 or -errno. */
	int (*sync)(struct cf_backing *b);
	/** Give the range back so that it reads as zeros. -EOPNOTSUPP before any change if it cannot. */
	int (*punch)(struct cf_backing *b, uint64_t off, uint64_t len);
	/** Reserve space, content unchanged. 0, -ENOSPC, -EOPNOTSUPP. */
	int (*allocate)(struct cf_backing *b, uint64_t off, uint64_t len);
	/** Next data or hole at or after @off, below the size: an offset, or -errno (-ENXIO none). NULL: all data. */
	int64_t (*seek)(struct cf_backing *b, uint64_t off, enum cf_seek what);
	/** From now on threads may be made. 0 or -errno. NULL: it wants none. */
	int (*start)(struct cf_backing *b);
	/** Bring everything written so far to its place in the store, and make it durable. NULL: sync does. 0 or -errno. */
	int (*drain)(struct cf_backing *b);
	/** Release what the backing holds; the struct itself is freed by cf_backing_free. */
	void (*close)(struct cf_backing *b);
};

/** The part every backing shares; an implementation embeds it first. */
struct cf_backing {
	const struct cf_backing_ops *ops;
	uint64_t bytes;        /* its size at open */
	enum cf_access access; /* read-only: the descriptor itself is O_RDONLY */
	uint32_t granule; /* bytes, a power of two: writes that share one must not run at once (1: none; O_DIRECT, 4Kn: a
						 block) */
	uint32_t discard_granule; /* bytes, a power of two: punch only aligned ranges */
};

/** Whether the image's ciphertext goes through the kernel's page cache, or past it (--direct). */
enum cf_image_cache { CF_IMAGE_CACHED, CF_IMAGE_DIRECT };

enum cf_lock { CF_LOCK, CF_LOCK_NONE /* --shared */ };

/** cf_backing_open_fd - open and lock an image, in the parent of the daemon
 * @path: file or block device      @access: decides O_RDONLY or O_RDWR, and a shared or exclusive lock
 * @lock: open file description lock on the whole file (HAZARDS 18), O_EXCL for a block device opened for writing
 * Refuses before writing an image that a loop device has open, naming the device. @out_fd: owned by the caller,
 * close-on-exec. Returns 0; -ENODEV missing, or not a file or block device (directory, FIFO: says which); -EACCES;
 * -EBUSY locked, or behind a loop device; -ENOLCK the store has no locks: says to use --shared. */
int cf_backing_open_fd(const char *path, enum cf_access access, enum cf_lock lock, int *out_fd,
					   struct cf_err *err) CF_MUST_CHECK;

/** cf_backing_from_fd - make a backing of an open descriptor (in the daemon, after it was handed over)
 * @fd: taken on success. Returns 0 and *out; -ENODEV; -EIO its size cannot be told. */
int cf_backing_from_fd(struct cf_backing **out, int fd, enum cf_access access, struct cf_err *err) CF_MUST_CHECK;

/** cf_backing_set_direct - from now on this description goes past the page cache (O_DIRECT), also in other processes
 * @path: for the message. 0; -EINVAL the file system cannot do that; -EIO; -ENOMEM. */
int cf_backing_set_direct(int fd, const char *path, struct cf_err *err) CF_MUST_CHECK;

/** cf_backing_from_direct_fd - cf_backing_from_fd for a descriptor that cf_backing_set_direct was called on
 * Ranges of any alignment; its granule is the block that the store demands. Needs /proc if the image ends inside a
 * block. Also returns -ENOMEM, and what open says. */
int cf_backing_from_direct_fd(struct cf_backing **out, int fd, enum cf_access access, struct cf_err *err) CF_MUST_CHECK;

/** cf_backing_join - several files, one after the other, as one store
 * @parts: @n at least 1, each with a granule of 1 and of the same access; taken on success. 0 and *out, owned; -ENOMEM;
 * -EFBIG longer than any file can be. */
int cf_backing_join(struct cf_backing **out, struct cf_backing *const *parts, unsigned n,
					struct cf_err *err) CF_MUST_CHECK;

/** cf_backing_size_fd - size in bytes of a file or block device. */
int cf_backing_size_fd(int fd, uint64_t *out_bytes, struct cf_err *err) CF_MUST_CHECK;

/** cf_backing_loop_user - which loop device, if any, has a file or block device open
 * @sys_block: "/sys/block" (tests have their own)   @path, @st: the image, by name and by what fstat says
 * @name: out, "/dev/loop0". Returns whether there is one. */
bool cf_backing_loop_user(const char *sys_block, const char *path, const struct stat *st, char *name, size_t name_size);

/** cf_backing_read_full - read all of a range that lies inside the backing: goes on after a short read. 0; -errno, and
 * -EIO if it ends too early: never zeros for bytes that are not there. On error @buf is undefined. */
int cf_backing_read_full(struct cf_backing *b, void *buf, size_t len, uint64_t off) CF_MUST_CHECK;

/** cf_backing_write_full - write all of a range, going on after a short write. 0, or -errno.
 * @written: out, how many bytes are known to be written, also on failure; those after them may be old, new or torn. */
int cf_backing_write_full(struct cf_backing *b, const void *buf, size_t len, uint64_t off,
						  size_t *written) CF_MUST_CHECK;

/** cf_backing_free - close and free; takes NULL, leaves NULL. */
void cf_backing_free(struct cf_backing **b);

#endif
