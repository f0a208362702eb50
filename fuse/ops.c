/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ops.c - the table of FUSE operations, open and close, and what is refused.
 *
 * Nothing here is left out that the kernel would remember as missing: an operation this file system has not answers
 * EPERM. Any number of threads. */
#include "config.h"

#include "cryptfuse/ops_slots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
#include "cryptfuse/clock.h"

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	struct cf_ops *o = userdata;
	cf_ops_negotiate(o, conn);
	o->ready(o->ready_ctx);
}

/* ---- handles ---- */

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct cf_ops *o = cf_ops_of(req);
	enum cf_access access = (fi->flags & O_ACCMODE) == O_RDONLY ? CF_READ_ONLY : CF_READ_WRITE;
	int i = cf_ops_index(o, ino);
	if (i < 0) {
		fuse_reply_err(req, EISDIR);
		return;
	}
	if (access == CF_READ_WRITE && cf_volume_access(o->volume) == CF_READ_ONLY) {
		fuse_reply_err(req, EROFS);
		return;
	}
	struct cf_ops_handle *h = calloc(1, sizeof(*h));
	if (!h) {
		fuse_reply_err(req, ENOMEM);
		return;
	}
	h->file = &o->file[i];
	h->access = access;
	enum cf_ops_pages pages;
	int r = cf_ops_count_in(o, h, fi->flags & O_TRUNC, &pages);
	if (r < 0) {
		free(h);
		fuse_reply_err(req, -r);
		return;
	}
	atomic_init(&h->page_writes, atomic_load(&o->page_writes));
	fi->fh = (uintptr_t)h;
	cf_ops_open_as(o, pages, fi);
	if (fuse_reply_open(req, fi) != 0) { /* whoever wanted it has gone: there will be no release */
		cf_ops_count_back(o, h);
		free(h);
	}
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	struct cf_ops_handle *h = cf_ops_handle_of(fi);
	cf_ops_count_out(cf_ops_of(req), h);
	free(h);
	fuse_reply_err(req, 0);
}

/* ---- what a file system of these files refuses ---- */

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t dev)
{
	(void)parent, (void)name, (void)mode, (void)dev;
	fuse_reply_err(req, EPERM);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	(void)parent, (void)name, (void)mode;
	fuse_reply_err(req, EPERM);
}

static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	(void)parent, (void)name, (void)mode, (void)fi;
	fuse_reply_err(req, EPERM);
}

/* unlink and rmdir */
static void op_remove(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	(void)parent, (void)name;
	fuse_reply_err(req, EPERM);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	(void)target, (void)parent, (void)name;
	fuse_reply_err(req, EPERM);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent, const char *new_name,
					  unsigned flags)
{
	(void)parent, (void)name, (void)new_parent, (void)new_name, (void)flags;
	fuse_reply_err(req, EPERM);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
	(void)ino, (void)parent, (void)name;
	fuse_reply_err(req, EPERM);
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags)
{
	(void)ino, (void)name, (void)value, (void)size, (void)flags;
	fuse_reply_err(req, EPERM);
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	(void)ino, (void)name;
	fuse_reply_err(req, EPERM);
}

static void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned cmd, void *arg, struct fuse_file_info *fi, unsigned flags,
					 const void *in, size_t in_size, size_t out_size)
{
	(void)ino, (void)cmd, (void)arg, (void)fi, (void)flags, (void)in, (void)in_size, (void)out_size;
	fuse_reply_err(req, ENOTTY);
}

/* ---- the table ---- */

void cf_ops_init(struct cf_ops *o, struct cf_volume *v, const struct cf_serve_opts *opts,
				 const struct cf_open_plan *plan)
{
	*o = (struct cf_ops){
		.volume = v, .opts = opts, .plan = plan, .sandbox.use = opts->sandbox, .uid = geteuid(), .gid = getegid()};
	clock_gettime(CLOCK_REALTIME, &o->since);
	cf_gate_init(&o->gate);
	cf_lane_init(&o->space_lane, cf_ops_change_space, o);
	o->file[0].bytes = cf_volume_bytes(v);
	atomic_init(&o->n_files, 1);
	pthread_mutex_init(&o->mutex, NULL);
	cf_cond_init(&o->released);
}

void cf_ops_fini(struct cf_ops *o)
{
	cf_lane_fini(&o->space_lane);
	cf_gate_fini(&o->gate);
	pthread_cond_destroy(&o->released);
	pthread_mutex_destroy(&o->mutex);
}

const struct fuse_lowlevel_ops cf_ops_table = {
	.init = op_init,
	.lookup = cf_op_lookup,
	.forget = cf_op_forget,
	.getattr = cf_op_getattr,
	.setattr = cf_op_setattr,
	.readdir = cf_op_readdir,
	.statfs = cf_op_statfs,
	.getxattr = cf_op_getxattr,
	.listxattr = cf_op_listxattr,
	.open = op_open,
	.release = op_release,
	.read = cf_op_read,
	.write = cf_op_write,
	.fallocate = cf_op_fallocate,
	.lseek = cf_op_lseek,
	.flush = cf_op_flush,
	.fsync = cf_op_fsync,
	.fsyncdir = cf_op_fsync,
	.mknod = op_mknod,
	.mkdir = op_mkdir,
	.create = op_create,
	.unlink = op_remove,
	.rmdir = op_remove,
	.symlink = op_symlink,
	.rename = op_rename,
	.link = op_link,
	.setxattr = op_setxattr,
	.removexattr = op_removexattr,
	.ioctl = op_ioctl,
};
