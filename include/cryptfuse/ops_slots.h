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
	struct cf_ops_file *file;
	enum cf_access access;
	unsigned changes;        /* of the file, when it was opened */
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

/* ops_files.c: the files, counted from 0, the volume itself */

#define CF_OPS_NAME_MAX (NAME_MAX + 16u) /* NAME.p<number> */

/** cf_ops_n_files, cf_ops_ino - how many there are; the inode of one. */
unsigned cf_ops_n_files(const struct cf_ops *o);
fuse_ino_t cf_ops_ino(const struct cf_ops *o, unsigned i);

/** cf_ops_index - which file an inode is; -ENOENT none. */
int cf_ops_index(const struct cf_ops *o, fuse_ino_t ino);

/** cf_ops_named - which file is called so; -ENOENT none. */
int cf_ops_named(const struct cf_ops *o, const char *name);

void cf_ops_file_name(const struct cf_ops *o, unsigned i, char name[static CF_OPS_NAME_MAX]);

/** cf_ops_clip - how much of a range lies inside a file. */
static inline uint64_t cf_ops_clip(const struct cf_ops_file *f, uint64_t off, uint64_t len)
{
	uint64_t rest = off < f->bytes ? f->bytes - off : 0;
	return len < rest ? len : rest;
}

/** What the kernel has cached of a file. */
enum cf_ops_pages { CF_OPS_PAGES_GOOD, CF_OPS_PAGES_STALE /* to be dropped at this open */ };

/** cf_ops_count_in - @h, whose file and access are set, is opened: 0; -EBUSY it would write where another file is open
 * for writing, or truncate where it is not alone. Waits a second at most. */
int cf_ops_count_in(struct cf_ops *o, struct cf_ops_handle *h, int truncates, enum cf_ops_pages *pages) CF_MUST_CHECK;

/** cf_ops_count_out - it is closed. */
void cf_ops_count_out(struct cf_ops *o, const struct cf_ops_handle *h);

/** cf_ops_count_back - it was not opened after all: whatever pages were to be dropped are still there. */
void cf_ops_count_back(struct cf_ops *o, const struct cf_ops_handle *h);

/* ops_init.c: what is asked of the kernel */

/** cf_ops_negotiate - fill in the answer to the kernel's first request. */
void cf_ops_negotiate(struct cf_ops *o, struct fuse_conn_info *conn);

/** cf_ops_transport_option - what libfuse is to be told for it among the mount options, with a comma in front. */
const char *cf_ops_transport_option(enum cf_transport transport);

/** cf_ops_open_as - how the kernel shall treat a file that is being opened: cached, kept, or neither. */
void cf_ops_open_as(const struct cf_ops *o, enum cf_ops_pages pages, struct fuse_file_info *fi);

/** cf_ops_own_killpriv - tell the kernel that it need not ask for security.capability before each write. After the
 * mount, before the loop. 0 or -ENOMEM. */
int cf_ops_own_killpriv(struct cf_ops *o, struct fuse_session *se);

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
