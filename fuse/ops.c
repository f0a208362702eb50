/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ops.c - the table of FUSE operations, open files, and what is refused.
 *
 * Nothing here is left out that the kernel would remember as missing: an operation this file system has not answers
 * EPERM. Any number of threads; the count of open files has a mutex. */
#include "config.h"

#include "cryptfuse/ops_slots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define TRUNC_WAIT_S 1

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
	struct cf_ops *o = userdata;
	cf_ops_negotiate(o, conn);
	o->ready(o->ready_ctx);
}

/* ---- handles ---- */

/* Count a handle in. One that truncates wants to be alone, since the kernel drops the others' dirty mapped pages
 * (HAZARDS 10). The release of a file that was just closed may still be under way: give it a moment. */
static int count_in(struct cf_ops *o, int truncates)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += TRUNC_WAIT_S;
	pthread_mutex_lock(&o->mutex);
	int r = 0;
	while (truncates && o->n_open && r == 0)
		r = pthread_cond_timedwait(&o->released, &o->mutex, &until);
	if (truncates && o->n_open)
		r = -EBUSY;
	else
		o->n_open++;
	pthread_mutex_unlock(&o->mutex);
	return r < 0 ? r : 0;
}

static void count_out(struct cf_ops *o)
{
	pthread_mutex_lock(&o->mutex);
	o->n_open--;
	pthread_cond_broadcast(&o->released);
	pthread_mutex_unlock(&o->mutex);
}

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct cf_ops *o = cf_ops_of(req);
	enum cf_access access = (fi->flags & O_ACCMODE) == O_RDONLY ? CF_READ_ONLY : CF_READ_WRITE;
	if (!cf_ops_is_file(o, ino)) {
		fuse_reply_err(req, EISDIR);
		return;
	}
	if (access == CF_READ_WRITE && cf_volume_access(o->volume) == CF_READ_ONLY) {
		fuse_reply_err(req, EROFS);
		return;
	}
	struct cf_ops_handle *h = calloc(1, sizeof(*h));
	int r = h ? count_in(o, fi->flags & O_TRUNC) : -ENOMEM;
	if (r < 0) {
		free(h);
		fuse_reply_err(req, -r);
		return;
	}
	h->access = access;
	atomic_init(&h->page_writes, atomic_load(&o->page_writes));
	fi->fh = (uintptr_t)h;
	cf_ops_open_as(o, fi);
	if (fuse_reply_open(req, fi) != 0) { /* whoever wanted it has gone: there will be no release */
		count_out(o);
		free(h);
	}
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	free(cf_ops_handle_of(fi));
	count_out(cf_ops_of(req));
	fuse_reply_err(req, 0);
}

/* ---- what a file system of one file refuses ---- */

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
	*o = (struct cf_ops){.volume = v, .opts = opts, .plan = plan, .uid = geteuid(), .gid = getegid()};
	clock_gettime(CLOCK_REALTIME, &o->since);
	cf_lane_init(&o->space_lane, cf_ops_change_space, o);
	pthread_mutex_init(&o->mutex, NULL);
	pthread_cond_init(&o->released, NULL);
}

void cf_ops_fini(struct cf_ops *o)
{
	cf_lane_fini(&o->space_lane);
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
