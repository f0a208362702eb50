/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* window.c - a store as libblkid can read it: a sealed file in memory, as long as the store, with little of it inside.
 *
 *     |first 2 MiB|............ zeros, no memory ............|last 2 MiB|
 *
 * No state; one thread. */
#include "config.h"

#include "cryptfuse/probe.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/backing.h"
#include "cryptfuse/err.h"

#define END_BYTES (UINT64_C(2) << 20) /* signatures lie in the first or last 2 MiB */
#define STEP_BYTES ((size_t)256 * 1024)
#define PIECE_BYTES ((size_t)4096) /* what is given up at once where something cannot be read */

void cf_window_ends(const struct cf_extent *e, struct cf_extent out[static 2])
{
	uint64_t n = e->bytes < END_BYTES ? e->bytes : END_BYTES;
	out[0] = (struct cf_extent){.off = e->off, .bytes = n};
	out[1] = (struct cf_extent){.off = e->off + e->bytes - n, .bytes = n};
}

/* @lost: NULL: all of it must be readable. */
static int read_step(struct cf_backing *b, uint8_t *buf, size_t len, uint64_t at, uint64_t *lost)
{
	int rc = cf_backing_read_full(b, buf, len, at);
	if (!rc || !lost)
		return rc;
	for (size_t done = 0, take; done < len; done += take) {
		take = len - done < PIECE_BYTES ? len - done : PIECE_BYTES;
		if (cf_backing_read_full(b, buf + done, take, at + done) != 0) {
			memset(buf + done, 0, take);
			*lost += take;
		}
	}
	return 0;
}

/* @e counts from @base; zeros are what the copy reads as anyway. */
static int copy_extent(struct cf_backing *b, uint64_t base, struct cf_extent e, int fd, uint64_t *lost,
					   struct cf_err *err)
{
	CF_CLEANUP(cf_freep) uint8_t *buf = malloc(STEP_BYTES);
	if (!buf)
		return cf_fail(err, -ENOMEM, "out of memory");
	for (uint64_t done = 0; done < e.bytes;) {
		size_t n = e.bytes - done < STEP_BYTES ? (size_t)(e.bytes - done) : STEP_BYTES;
		int rc = read_step(b, buf, n, base + e.off + done, lost);
		if (rc)
			return cf_fail(err, rc, "the image cannot be read: %s", strerror(-rc));
		if (!cf_is_zero(buf, n) && pwrite(fd, buf, n, (off_t)(e.off + done)) != (ssize_t)n)
			return cf_fail(err, -ENOMEM, "no memory for a copy of parts of the image");
		done += n;
	}
	return 0;
}

int cf_window_range_fd(struct cf_backing *b, const struct cf_extent *range, const struct cf_extent *keep,
					   unsigned n_keep, uint64_t *lost, int *out_fd, struct cf_err *err)
{
	CF_CLEANUP(cf_close_fd) int fd = memfd_create("cryptfuse window", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, (off_t)range->bytes) != 0)
		return cf_fail(err, -errno, "cannot make a file in memory: %s", strerror(errno));
	for (unsigned i = 0; i < n_keep; i++) {
		int rc = copy_extent(b, range->off, cf_extent_clip(keep[i], range->bytes), fd, lost, err);
		if (rc)
			return rc;
	}
	const int rc = cf_seal_memory(fd);
	if (rc < 0)
		return cf_fail(err, rc, "cannot seal a file in memory: %s", strerror(-rc));
	*out_fd = fd;
	fd = -1;
	return 0;
}

int cf_window_fd(struct cf_backing *b, const struct cf_extent *keep, unsigned n_keep, int *out_fd, struct cf_err *err)
{
	const struct cf_extent all = {.off = 0, .bytes = b->bytes};
	return cf_window_range_fd(b, &all, keep, n_keep, NULL, out_fd, err);
}
