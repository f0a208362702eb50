/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ops_io.c - the operations that move, change and sync bytes.
 *
 * A thin skin: every byte range goes to the volume as it is. Allocates nothing and prints nothing. Any number of
 * threads: a handle's state is atomic. */
#include "config.h"

#include "cryptfuse/ops_slots.h"

#include <errno.h>
#include <linux/falloc.h>
#include <unistd.h>

void cf_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	struct cf_ops *o = cf_ops_of(req);
	struct cf_worker *w = cf_volume_enter(o->volume);
	ssize_t n = cf_volume_read(o->volume, w, w->io, size < CF_IO_MAX ? size : CF_IO_MAX, (uint64_t)off);
	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_buf(req, (const char *)w->io, (size_t)n);
	cf_volume_leave(o->volume, w);
}

/* Pages of a mapping are written through whatever handle the kernel finds: no handle's flag would be the right one. */
static void note_write(struct cf_ops *o, const struct fuse_file_info *fi)
{
	if (fi->writepage)
		atomic_fetch_add(&o->page_writes, 1);
	else
		atomic_store(&cf_ops_handle_of(fi)->wrote, true);
}

void cf_op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)ino;
	struct cf_ops *o = cf_ops_of(req);
	note_write(o, fi);
	struct cf_worker *w = cf_volume_enter(o->volume);
	ssize_t n = cf_volume_write(o->volume, w, (const uint8_t *)buf, size < CF_IO_MAX ? size : CF_IO_MAX, (uint64_t)off);
	cf_volume_leave(o->volume, w);
	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_write(req, (size_t)n);
}

/* Never -ENOSYS: the kernel would not ask again for as long as it is mounted (HAZARDS 8). */
static int change_space(struct cf_ops *o, int mode, uint64_t off, uint64_t len)
{
	struct cf_worker *w;
	int r;
	switch (mode) {
	case 0:
	case FALLOC_FL_KEEP_SIZE:
		return cf_volume_allocate(o->volume, off, len);
	case FALLOC_FL_ZERO_RANGE:
	case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
		w = cf_volume_enter(o->volume);
		r = cf_volume_zero(o->volume, w, off, len);
		break;
	case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
		w = cf_volume_enter(o->volume);
		r = cf_volume_punch(o->volume, w, off, len);
		break;
	default:
		return -EOPNOTSUPP;
	}
	cf_volume_leave(o->volume, w);
	return r;
}

void cf_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len, struct fuse_file_info *fi)
{
	(void)ino;
	struct cf_ops *o = cf_ops_of(req);
	if (cf_volume_access(o->volume) == CF_READ_ONLY) {
		fuse_reply_err(req, EROFS);
		return;
	}
	note_write(o, fi);
	int r = change_space(o, mode, (uint64_t)off, (uint64_t)len);
	fuse_reply_err(req, r == -ENOSYS ? EOPNOTSUPP : -r);
}

void cf_op_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	if (whence != SEEK_DATA && whence != SEEK_HOLE) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	int64_t r =
		cf_volume_seek(cf_ops_of(req)->volume, (uint64_t)off, whence == SEEK_DATA ? CF_SEEK_DATA : CF_SEEK_HOLE);
	if (r < 0)
		fuse_reply_err(req, r == -ENOSYS ? EINVAL : (int)-r);
	else
		fuse_reply_lseek(req, r);
}

/* ---- making it durable ---- */

void cf_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	(void)datasync;
	(void)fi;
	fuse_reply_err(req, -cf_volume_sync(cf_ops_of(req)->volume));
}

/* close(2): only a handle that wrote pays for a sync; after a failed one it says so every time (HAZARDS 15). */
static int sync_if_written(struct cf_ops *o, struct cf_ops_handle *h)
{
	unsigned page_writes = atomic_load(&o->page_writes);
	bool pages = h->access == CF_READ_WRITE && page_writes != atomic_load(&h->page_writes);
	if (!atomic_exchange(&h->wrote, false) && !pages)
		return 0;
	int r = cf_volume_sync(o->volume);
	if (r < 0)
		atomic_store(&h->wrote, true);
	else
		atomic_store(&h->page_writes, page_writes);
	return r;
}

void cf_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	fuse_reply_err(req, -sync_if_written(cf_ops_of(req), cf_ops_handle_of(fi)));
}
