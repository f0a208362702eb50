/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ops_attr.c - what the mount looks like: a file by itself, or files in a directory, that never change their size.
 *
 * Nothing here changes while it is mounted but that files come, so the kernel may keep all of it. Reads no volume data;
 * any thread. */
#include "config.h"

#include "cryptfuse/ops_slots.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define DOTS 2
#define KEEP_S 86400.0
#define MIN_BLOCK 4096u
#define STATUS_XATTR "user.cryptfuse.status"
#define STATUS_SLACK 256u /* counters may grow between the question for the size and the one for the value */

static bool is_dir(const struct cf_ops *o, fuse_ino_t ino)
{
	return o->opts->kind == CF_MOUNT_DIRECTORY && ino == FUSE_ROOT_ID;
}

/* What callers should read, write and discard in: the loop driver takes it as its discard granularity. */
static uint32_t block_bytes(const struct cf_ops *o)
{
	uint32_t du = cf_volume_du_bytes(o->volume);
	return du > MIN_BLOCK ? du : MIN_BLOCK;
}

/* Whoever may use the file may reach it. */
static mode_t dir_mode(mode_t file_mode)
{
	mode_t m = S_IRWXU;
	if (file_mode & S_IRWXG)
		m |= S_IRGRP | S_IXGRP;
	if (file_mode & S_IRWXO)
		m |= S_IROTH | S_IXOTH;
	return m;
}

/* 0, or -ENOENT for an inode that never was. */
static int fill_attr(const struct cf_ops *o, fuse_ino_t ino, struct stat *st)
{
	*st = (struct stat){.st_ino = ino,
						.st_uid = o->uid,
						.st_gid = o->gid,
						.st_atim = o->since,
						.st_mtim = o->since,
						.st_ctim = o->since};
	if (is_dir(o, ino)) {
		st->st_mode = S_IFDIR | dir_mode(o->opts->mode);
		st->st_nlink = 2;
		return 0;
	}
	int i = cf_ops_index(o, ino);
	if (i < 0)
		return i;
	uint64_t bytes = o->file[i].bytes;
	st->st_mode = S_IFREG | (o->opts->mode & 0777);
	st->st_nlink = 1;
	st->st_size = (off_t)bytes;
	st->st_blocks = (blkcnt_t)(bytes / CF_SECTOR_BYTES);
	st->st_blksize = (blksize_t)block_bytes(o);
	return 0;
}

/* ---- names ---- */

void cf_op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct cf_ops *o = cf_ops_of(req);
	struct fuse_entry_param e = {.generation = 1, .attr_timeout = KEEP_S, .entry_timeout = KEEP_S};
	int i = is_dir(o, parent) ? cf_ops_named(o, name) : -ENOENT;
	e.ino = i < 0 ? 0 : cf_ops_ino(o, (unsigned)i);
	if (i < 0 || fill_attr(o, e.ino, &e.attr) < 0)
		fuse_reply_err(req, ENOENT);
	else
		fuse_reply_entry(req, &e);
}

/* Inodes are not counted: they live as long as the mount. */
void cf_op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t n)
{
	(void)ino;
	(void)n;
	fuse_reply_none(req);
}

/* The entries of the directory: ".", "..", then the files. */
static void entry(const struct cf_ops *o, off_t i, char name[static CF_OPS_NAME_MAX], struct stat *st)
{
	fuse_ino_t ino = FUSE_ROOT_ID;
	if (i < DOTS) {
		strcpy(name, i == 0 ? "." : "..");
	} else {
		ino = cf_ops_ino(o, (unsigned)(i - DOTS));
		cf_ops_file_name(o, (unsigned)(i - DOTS), name);
	}
	(void)fill_attr(o, ino, st);
}

void cf_op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	(void)fi;
	struct cf_ops *o = cf_ops_of(req);
	if (!is_dir(o, ino)) {
		fuse_reply_err(req, ENOTDIR);
		return;
	}
	char buf[4096];
	size_t n = 0, room = size < sizeof(buf) ? size : sizeof(buf);
	for (off_t i = off < 0 ? 0 : off; i < DOTS + (off_t)cf_ops_n_files(o); i++) {
		struct stat st;
		char name[CF_OPS_NAME_MAX];
		entry(o, i, name, &st);
		size_t need = fuse_add_direntry(req, buf + n, room - n, name, &st, i + 1);
		if (need > room - n)
			break;
		n += need;
	}
	fuse_reply_buf(req, buf, n);
}

/* ---- attributes ---- */

void cf_op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)fi;
	struct stat st;
	if (fill_attr(cf_ops_of(req), ino, &st) < 0)
		fuse_reply_err(req, ENOENT);
	else
		fuse_reply_attr(req, &st, KEEP_S);
}

/* May the length be set to this? Under the writeback cache O_TRUNC arrives as a length of 0 without a handle, and takes
 * the length that is answered; nothing is cut off (ops_init.c). */
static bool may_set_size(const struct cf_ops *o, off_t asked, off_t is, const struct fuse_file_info *fi)
{
	return asked == is || (o->opts->cache == CF_CACHE_WRITEBACK && asked == 0 && !fi);
}

/* Setting what is so already is fine, times are ignored, all else is refused. */
void cf_op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
	const struct cf_ops *o = cf_ops_of(req);
	struct stat st;
	if (fill_attr(o, ino, &st) < 0)
		fuse_reply_err(req, ENOENT);
	else if (((to_set & FUSE_SET_ATTR_SIZE) && !may_set_size(o, attr->st_size, st.st_size, fi)) ||
			 ((to_set & FUSE_SET_ATTR_MODE) && (attr->st_mode & 07777) != (st.st_mode & 07777)) ||
			 ((to_set & FUSE_SET_ATTR_UID) && attr->st_uid != st.st_uid) ||
			 ((to_set & FUSE_SET_ATTR_GID) && attr->st_gid != st.st_gid))
		fuse_reply_err(req, EPERM);
	else
		fuse_reply_attr(req, &st, KEEP_S);
}

void cf_op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	(void)ino;
	struct cf_ops *o = cf_ops_of(req);
	uint32_t block = block_bytes(o);
	struct statvfs s = {.f_bsize = block,
						.f_frsize = block,
						.f_blocks = cf_volume_bytes(o->volume) / block,
						.f_files = cf_ops_n_files(o),
						.f_namemax = NAME_MAX};
	fuse_reply_statfs(req, &s);
}

/* ---- the status ---- */

/* The kernel asks for security.capability before writes: refuse foreign names before making any text. */
void cf_op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
	(void)ino;
	if (strcmp(name, STATUS_XATTR) != 0) {
		fuse_reply_err(req, ENODATA);
		return;
	}
	CF_CLEANUP(cf_freep) char *json = cf_status_json(cf_ops_of(req));
	size_t len = json ? strlen(json) : 0;
	if (!json)
		fuse_reply_err(req, ENOMEM);
	else if (size == 0)
		fuse_reply_xattr(req, len + STATUS_SLACK);
	else if (size < len)
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, json, len);
}

void cf_op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t size)
{
	(void)ino;
	static const char names[] = STATUS_XATTR; /* with its NUL */
	if (size == 0)
		fuse_reply_xattr(req, sizeof(names));
	else if (size < sizeof(names))
		fuse_reply_err(req, ERANGE);
	else
		fuse_reply_buf(req, names, sizeof(names));
}
