/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* crashfs.c - a disk with a volatile cache: what was not synced is lost when it is killed.
 *
 * kill -9 of cryptfuse proves nothing about fsync, since the kernel's page cache survives it. This FUSE file keeps all
 * writes to itself and brings them to the backing file only at fsync, so kill -9 of *this* program is the power cut.
 * It can also have bytes that cannot be read. Single-threaded.
 * Usage: crashfs FILE DIRECTORY [BAD_OFFSET BAD_LENGTH]…     shows DIRECTORY/image
 *
 * For many power cuts in a row it lives on: what is written to DIRECTORY/power is an order. "cut drop": the image fails
 * from now on, and unsynced writes are gone; "cut tear N": some of their pieces of 512 bytes have reached the file, N
 * says which; "cut keep": all have; "on": back, with what the file holds. */
#include "config.h"

#define FUSE_USE_VERSION 312
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_INO 2u
#define FILE_NAME "image"
#define POWER_INO 3u
#define POWER_NAME "power"
#define PIECE 512u

#define BAD_MAX 8

struct bad {
	size_t off, len;
};

struct disk {
	int fd;
	unsigned n_bad;
	struct bad bad[BAD_MAX];
	size_t bytes;
	uint8_t *data, *dirty; /* dirty: one flag a piece */
	struct stat dir, file, power;
	int off; /* -EIO for everything */
};

static struct disk *disk_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	const struct disk *d = disk_of(req);
	struct fuse_entry_param e = {.attr_timeout = 60, .entry_timeout = 60};
	if (parent == FUSE_ROOT_ID && strcmp(name, FILE_NAME) == 0)
		e.attr = d->file;
	else if (parent == FUSE_ROOT_ID && strcmp(name, POWER_NAME) == 0)
		e.attr = d->power;
	e.ino = e.attr.st_ino;
	if (e.ino)
		fuse_reply_entry(req, &e);
	else
		fuse_reply_err(req, ENOENT);
}

static void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)fi;
	const struct disk *d = disk_of(req);
	fuse_reply_attr(req, ino == FILE_INO ? &d->file : ino == POWER_INO ? &d->power : &d->dir, 60);
}

static void on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	fi->direct_io = ino == POWER_INO;
	if (ino == FUSE_ROOT_ID)
		fuse_reply_err(req, EISDIR);
	else
		fuse_reply_open(req, fi);
}

static size_t clip(const struct disk *d, size_t len, off_t off)
{
	size_t at = (size_t)off;
	return at >= d->bytes ? 0 : len < d->bytes - at ? len : d->bytes - at;
}

static void on_read(fuse_req_t req, fuse_ino_t ino, size_t len, off_t off, struct fuse_file_info *fi)
{
	(void)fi;
	const struct disk *d = disk_of(req);
	const size_t n = ino == FILE_INO ? clip(d, len, off) : 0, at = (size_t)off;
	if (d->off) {
		fuse_reply_err(req, EIO);
		return;
	}
	for (unsigned i = 0; i < d->n_bad; i++)
		if (at < d->bad[i].off + d->bad[i].len && d->bad[i].off < at + n) {
			fuse_reply_err(req, EIO);
			return;
		}
	fuse_reply_buf(req, (const char *)d->data + off, n);
}

/* One piece to the file. */
static int settle(struct disk *d, size_t i)
{
	size_t len = d->bytes - i * PIECE < PIECE ? d->bytes - i * PIECE : PIECE;
	if (d->dirty[i] && pwrite(d->fd, d->data + i * PIECE, len, (off_t)(i * PIECE)) != (ssize_t)len)
		return EIO;
	d->dirty[i] = 0;
	return 0;
}

static int settle_all(struct disk *d)
{
	int rc = d->off ? EIO : 0;
	for (size_t i = 0; i * PIECE < d->bytes && !rc; i++)
		rc = settle(d, i);
	return rc;
}

static int settle_some(struct disk *d, unsigned seed)
{
	int rc = 0;
	const long odds = rand_r(&seed) % 17;
	for (size_t i = 0; i * PIECE < d->bytes && !rc; i++)
		if (rand_r(&seed) / 64 % 16 < odds)
			rc = settle(d, i);
	return rc;
}

static int power_on(struct disk *d)
{
	d->off = 0;
	memset(d->dirty, 0, d->bytes / PIECE + 1);
	return pread(d->fd, d->data, d->bytes, 0) == (ssize_t)d->bytes ? 0 : EIO;
}

static int order(struct disk *d, const char *buf, size_t len)
{
	char text[64];
	unsigned seed;
	int rc = 0;
	snprintf(text, sizeof(text), "%.*s", (int)len, buf);
	if (strncmp(text, "on", 2) == 0)
		return power_on(d);
	if (strncmp(text, "cut keep", 8) == 0)
		rc = settle_all(d);
	else if (sscanf(text, "cut tear %u", &seed) == 1)
		rc = settle_some(d, seed);
	else if (strncmp(text, "cut drop", 8) != 0)
		return EINVAL;
	d->off = 1;
	return rc;
}

static void on_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t len, off_t off, struct fuse_file_info *fi)
{
	(void)fi;
	struct disk *d = disk_of(req);
	size_t n = ino == FILE_INO ? clip(d, len, off) : len, at = (size_t)off;
	int rc = ino == POWER_INO ? order(d, buf, len) : d->off ? EIO : len && !n ? ENOSPC : 0;
	if (rc) {
		fuse_reply_err(req, rc);
		return;
	}
	if (ino == FILE_INO) {
		memcpy(d->data + at, buf, n);
		for (size_t i = at / PIECE; i * PIECE < at + n; i++)
			d->dirty[i] = 1;
	}
	fuse_reply_write(req, n);
}

static void on_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)datasync;
	(void)fi;
	fuse_reply_err(req, ino == FILE_INO ? settle_all(disk_of(req)) : 0);
}

static const struct fuse_lowlevel_ops ops = {
	.lookup = on_lookup,
	.getattr = on_getattr,
	.open = on_open,
	.read = on_read,
	.write = on_write,
	.fsync = on_fsync,
};

static void take_bad(struct disk *d, int argc, char **argv)
{
	for (int i = 0; i + 1 < argc; i += 2) {
		if (d->n_bad == BAD_MAX)
			errx(2, "too many bad places");
		d->bad[d->n_bad++] = (struct bad){strtoul(argv[i], NULL, 10), strtoul(argv[i + 1], NULL, 10)};
	}
}

static void load(struct disk *d, const char *path)
{
	d->fd = open(path, O_RDWR | O_CLOEXEC);
	if (d->fd < 0 || fstat(d->fd, &d->file) != 0)
		err(2, "%s", path);
	d->bytes = (size_t)d->file.st_size;
	d->data = malloc(d->bytes + 1);
	d->dirty = calloc(d->bytes / PIECE + 1, 1);
	if (!d->data || !d->dirty || pread(d->fd, d->data, d->bytes, 0) != (ssize_t)d->bytes)
		err(2, "cannot load %s", path);
	d->file.st_ino = FILE_INO;
	d->file.st_mode = S_IFREG | 0600;
	d->power = (struct stat){
		.st_ino = POWER_INO, .st_mode = S_IFREG | 0600, .st_nlink = 1, .st_uid = getuid(), .st_gid = getgid()};
	d->dir = (struct stat){
		.st_ino = FUSE_ROOT_ID, .st_mode = S_IFDIR | 0700, .st_nlink = 2, .st_uid = getuid(), .st_gid = getgid()};
}

int main(int argc, char **argv)
{
	if (argc < 3 || argc % 2 == 0)
		errx(2, "usage: crashfs FILE DIRECTORY [BAD_OFFSET BAD_LENGTH]...");
	struct disk d = {.n_bad = 0};
	take_bad(&d, argc - 3, argv + 3);
	load(&d, argv[1]);
	char *fuse_argv[] = {argv[0], "-o", "default_permissions,nosuid,nodev,fsname=crashfs", NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, fuse_argv);
	struct fuse_session *se = fuse_session_new(&args, &ops, sizeof(ops), &d);
	if (!se || fuse_set_signal_handlers(se) != 0 || fuse_session_mount(se, argv[2]) != 0)
		errx(2, "cannot mount on %s", argv[2]);
	int rc = fuse_session_loop(se);
	fuse_session_unmount(se);
	fuse_remove_signal_handlers(se);
	fuse_session_destroy(se);
	fuse_opt_free_args(&args);
	free(d.data);
	free(d.dirty);
	return rc == 0 ? 0 : 1;
}
