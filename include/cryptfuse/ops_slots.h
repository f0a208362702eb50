/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ops_slots.h - the single operations, for the one table in ops.c, and what they share. The contract of each is
 * libfuse's (fuse_lowlevel.h). Any thread. */
#ifndef CRYPTFUSE_OPS_SLOTS_H
#define CRYPTFUSE_OPS_SLOTS_H

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include "cryptfuse/ops.h"

/** An open file; fi->fh points to it. */
struct cf_ops_handle {
	enum cf_access access;
	atomic_bool wrote;       /* since the last good sync */
	atomic_uint page_writes; /* of struct cf_ops, at the last good sync */
};

static inline struct cf_ops *cf_ops_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static inline struct cf_ops_handle *cf_ops_handle_of(const struct fuse_file_info *fi)
{
	return (struct cf_ops_handle *)(uintptr_t)fi->fh;
}

/** cf_ops_is_file - is it the volume's inode? */
bool cf_ops_is_file(const struct cf_ops *o, fuse_ino_t ino);

/* ops_init.c: what is asked of the kernel */

/** cf_ops_negotiate - fill in the answer to the kernel's first request. */
void cf_ops_negotiate(struct cf_ops *o, struct fuse_conn_info *conn);

/** cf_ops_open_as - how the kernel shall treat a file that is being opened: cached, kept, or neither. */
void cf_ops_open_as(const struct cf_ops *o, struct fuse_file_info *fi);

/** cf_ops_own_killpriv - tell the kernel that it need not ask for security.capability before each write. After the
 * mount, before the loop. 0 or -ENOMEM. */
int cf_ops_own_killpriv(struct cf_ops *o, struct fuse_session *se);

/** cf_ops_note_write - the handle owes a sync when it is closed. */
void cf_ops_note_write(struct cf_ops *o, const struct fuse_file_info *fi);

/** cf_ops_change_space - what space_lane runs. */
void cf_ops_change_space(void *ops, struct cf_lane_job *jobs);

/* ops_io.c: bytes */
void cf_op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void cf_op_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off, struct fuse_file_info *fi);
void cf_op_lseek(fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi);

/* ops_long.c: what may take long */
void cf_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len, struct fuse_file_info *fi);
void cf_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void cf_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);

/* ops_attr.c: names, attributes, status */
void cf_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void cf_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n);
void cf_op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void cf_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi);
void cf_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi);
void cf_op_statfs(fuse_req_t req, fuse_ino_t ino);
void cf_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size);
void cf_op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size);

#endif
