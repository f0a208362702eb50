/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* probe.h - what is inside a volume, an image or a partition, as libblkid sees it. Runs in the parent, never in the
 * daemon that serves the file (HAZARDS 4). */
#ifndef CRYPTFUSE_PROBE_H
#define CRYPTFUSE_PROBE_H

#include "cryptfuse/base.h"

struct cf_backing;
struct cf_err;
struct cf_volume;

/** What was found; "" where nothing is known. Printable. */
struct cf_content {
	char type[32];  /* "ext4", "crypto_LUKS" */
	char usage[16]; /* "filesystem", "crypto", "raid", "other" */
	char version[32], label[128], uuid[64];
};

/** A range of bytes. */
struct cf_extent {
	uint64_t off, bytes;
};

/** cf_extent_clip - the part of a range that lies inside a store of @bytes. */
static inline struct cf_extent cf_extent_clip(struct cf_extent e, uint64_t bytes)
{
	e.off = e.off < bytes ? e.off : bytes;
	e.bytes = e.bytes < bytes - e.off ? e.bytes : bytes - e.off;
	return e;
}

/** cf_probe_fd - describe the content of an open file or device
 * @text: out, one line without newline: "ext4, label inner", "gpt partition table"; "" when nothing known was found.
 * Names are made printable. Returns 1 found; 0 nothing known; -errno. */
int cf_probe_fd(int fd, char *text, size_t text_size, struct cf_err *err) CF_MUST_CHECK;

/** cf_probe_volume - the same of a volume that is not mounted; reads 2 MiB at either end. */
int cf_probe_volume(struct cf_volume *v, char *text, size_t text_size, struct cf_err *err) CF_MUST_CHECK;

/** cf_probe_content - the same of a range, in its parts, without partition tables
 * @bytes: 0: to the end. Returns 1 found; 0 nothing known; -EIO, -ENOMEM; more than one signature: 1, with
 * "ambiguous" as type. */
int cf_probe_content(int fd, uint64_t off, uint64_t bytes, struct cf_content *out, struct cf_err *err) CF_MUST_CHECK;

/** cf_window_fd - a sparse copy in memory of a store, for libblkid, which reads descriptors only
 * @keep: what is copied of it, the rest reads as zeros. Sealed: nobody can change it. 0 and *out_fd, owned; -EIO;
 * -ENOMEM …. */
int cf_window_fd(struct cf_backing *b, const struct cf_extent *keep, unsigned n_keep, int *out_fd,
				 struct cf_err *err) CF_MUST_CHECK;

/** cf_window_range_fd - the same of a range of it alone: the copy is as long as @range, and @keep counts from its
 * start, clipped at its end
 * @lost: NULL: what cannot be read is an error; else it reads as zeros, and these bytes are added to @lost. */
int cf_window_range_fd(struct cf_backing *b, const struct cf_extent *range, const struct cf_extent *keep,
					   unsigned n_keep, uint64_t *lost, int *out_fd, struct cf_err *err) CF_MUST_CHECK;

/** cf_window_ends - the two ranges of @e that signatures lie in: the first and the last 2 MiB. */
void cf_window_ends(const struct cf_extent *e, struct cf_extent out[static 2]);

#endif
