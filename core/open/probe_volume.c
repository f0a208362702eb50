/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* probe_volume.c - what is inside a volume that is not mounted: its ends, decrypted, in a sealed file in memory. One
 * thread. */
#include "config.h"

#include "cryptfuse/probe.h"

#include <errno.h>

#include "cryptfuse/backing.h"
#include "cryptfuse/err.h"
#include "cryptfuse/volume.h"

/** A volume as a store of bytes that can be read; borrows it, and is never freed. */
struct volume_store {
	struct cf_backing base; /* first */
	struct cf_volume *v;
};

static ssize_t store_pread(struct cf_backing *b, void *buf, size_t len, uint64_t off)
{
	struct cf_volume *v = ((struct volume_store *)b)->v;
	struct cf_worker *w = cf_volume_enter(v);
	const ssize_t n = cf_volume_read(v, w, buf, len < CF_IO_MAX ? len : CF_IO_MAX, off);
	cf_volume_leave(v, w);
	return n;
}

static const struct cf_backing_ops store_ops = {.name = "volume", .pread = store_pread};

int cf_probe_volume(struct cf_volume *v, char *text, size_t text_size, struct cf_err *err)
{
	struct volume_store store = {
		.base = {.ops = &store_ops, .bytes = cf_volume_bytes(v), .access = CF_READ_ONLY, .granule = 1}, .v = v};
	const struct cf_extent all = {.off = 0, .bytes = store.base.bytes};
	struct cf_extent ends[2];
	CF_CLEANUP(cf_close_fd) int fd = -1;
	cf_window_ends(&all, ends);
	const int rc = cf_window_fd(&store.base, ends, 2, &fd, err);
	return rc ? rc : cf_probe_fd(fd, text, text_size, err);
}
