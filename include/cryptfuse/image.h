/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* image.h - what IMAGE names, opened and locked: a file, a block device, or the parts of a split image.
 *
 * The parent opens it, reads headers through a backing of its own, and sends it to the daemon. The lock belongs to the
 * open file descriptions, so it lives as long as any copy of the descriptors does. One thread. */
#ifndef CRYPTFUSE_IMAGE_H
#define CRYPTFUSE_IMAGE_H

#include "cryptfuse/backing.h"

#define CF_IMAGE_PARTS_MAX 240u /* descriptors that one message carries */

struct cf_image {
	enum cf_access access;
	enum cf_image_cache cache;
	unsigned n_parts;           /* 0: nothing is open */
	int fd[CF_IMAGE_PARTS_MAX]; /* in order, owned, close-on-exec */
	unsigned n_journals;        /* 0 or 1: */
	int journal;                /* the log that stands before it (--journal), owned, of the same access */
};

/** cf_image_open - open and lock every part of @path
 * @path: a file or block device, or the first part of a split image (disk.img.001, disk.img.aa …), which must be whole.
 * Errors as cf_backing_open_fd; -ENODEV a part is missing; -EINVAL @path is a later part; -E2BIG. Nothing stays open on
 * failure. */
int cf_image_open(struct cf_image *image, const char *path, enum cf_access access, enum cf_lock lock,
				  struct cf_err *err) CF_MUST_CHECK;

/** cf_image_set_direct - from now on past the page cache; errors as cf_backing_set_direct; -EINVAL a split
 * image. */
int cf_image_set_direct(struct cf_image *image, const char *path, struct cf_err *err) CF_MUST_CHECK;

/** cf_image_copy - the same image on copies of its descriptors, without its journal; the lock is one. 0; -EMFILE. */
int cf_image_copy(struct cf_image *image, const struct cf_image *from, struct cf_err *err) CF_MUST_CHECK;

/** cf_image_lock_lost - has somebody else a lock on a part that ours would keep out? Only asked for, nothing is locked.
 * (A server may give it to another when this machine was out of reach.) */
bool cf_image_lock_lost(const struct cf_image *image);

/** cf_image_close - close all parts; CF_CLEANUP helper, idempotent. */
void cf_image_close(struct cf_image *image);

/** cf_image_backing - the image as one store of bytes, on copies of its descriptors; without its journal
 * @image: borrowed, may be closed at once. Returns 0 and *out, owned; errors as cf_backing_from_fd; -EMFILE. */
int cf_image_backing(const struct cf_image *image, struct cf_backing **out, struct cf_err *err) CF_MUST_CHECK;

/** cf_image_log - the same of its journal's file, which it must have. */
int cf_image_log(const struct cf_image *image, struct cf_backing **out, struct cf_err *err) CF_MUST_CHECK;

#endif
