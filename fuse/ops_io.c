/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ops_io.c - the operations that move bytes.
 *
 * A thin skin: a byte range of a file goes to the volume, moved to where the file lies in it, cut at the file's end.
 * Allocates nothing and prints nothing. Any number of
 * threads: a handle's state is atomic. */
#include "config.h"

#include "cryptfuse/ops_slots.h"

#include <errno.h>
#include <unistd.h>

void cf_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct cf_ops *o = cf_ops_of(req);
	const struct cf_ops_file *f = cf_ops_handle_of(fi)->file;
	size_t len = (size_t)cf_ops_clip(f, (uint64_t)off, size < CF_IO_MAX ? size : CF_IO_MAX);
	if (!cf_gate_enter(&o->gate)) {
		cf_gate_park(&o->gate, req, &(struct cf_gate_call){CF_CALL_READ, ino, fi, (uint64_t)off, size, 0, NULL});
		return;
	}
	struct cf_worker *w = cf_volume_enter(o->volume);
	ssize_t n = len ? cf_volume_read(o->volume, w, w->io, len, f->off + (uint64_t)off) : 0;
	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_buf(req, (const char *)w->io, (size_t)n);
	cf_volume_leave(o->volume, w);
	cf_gate_leave(&o->gate);
}

/* The handle owes a sync when it is closed. Noted when the bytes are in the backing, before the answer: what is noted
 * earlier a flush may take for its own, whose sync knows nothing of bytes still on their way. Pages of a mapping are
 * written through whatever handle the kernel finds: no handle's flag would be the right one. */
static void note_write(struct cf_ops *o, const struct fuse_file_info *fi)
{
	if (fi->writepage)
		atomic_fetch_add(&o->page_writes, 1);
	else
		atomic_store(&cf_ops_handle_of(fi)->wrote, true);
}

void cf_op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct cf_ops *o = cf_ops_of(req);
	const struct cf_ops_file *f = cf_ops_handle_of(fi)->file;
	size_t len = (size_t)cf_ops_clip(f, (uint64_t)off, size < CF_IO_MAX ? size : CF_IO_MAX);
	if (!len && size) {
		fuse_reply_err(req, ENOSPC);
		return;
	}
	if (!cf_gate_enter(&o->gate)) {
		cf_gate_park(&o->gate, req, &(struct cf_gate_call){CF_CALL_WRITE, ino, fi, (uint64_t)off, size, 0, buf});
		return;
	}
	struct cf_worker *w = cf_volume_enter(o->volume);
	ssize_t n = cf_volume_write(o->volume, w, (const uint8_t *)buf, len, f->off + (uint64_t)off);
	cf_volume_leave(o->volume, w);
	note_write(o, fi);
	cf_gate_leave(&o->gate);
	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_write(req, (size_t)n);
}

/* Where the next data or hole of a file is; its end counts as a hole. */
static int64_t seek_file(const struct cf_ops *o, const struct cf_ops_file *f, uint64_t off, enum cf_seek what)
{
	if (off >= f->bytes)
		return -ENXIO;
	int64_t at = cf_volume_seek(o->volume, f->off + off, what);
	if (at < 0)
		return at;
	uint64_t in_file = (uint64_t)at - f->off;
	if (in_file < f->bytes)
		return (int64_t)in_file;
	return what == CF_SEEK_HOLE ? (int64_t)f->bytes : -ENXIO;
}

void cf_op_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi)
{
	(void)ino;
	if (whence != SEEK_DATA && whence != SEEK_HOLE) {
		fuse_reply_err(req, EINVAL);
		return;
	}
	int64_t r = seek_file(cf_ops_of(req), cf_ops_handle_of(fi)->file, (uint64_t)off,
						  whence == SEEK_DATA ? CF_SEEK_DATA : CF_SEEK_HOLE);
	if (r < 0)
		fuse_reply_err(req, r == -ENOSYS ? EINVAL : (int)-r);
	else
		fuse_reply_lseek(req, r);
}
