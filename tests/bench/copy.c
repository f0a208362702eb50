/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* copy.c - the limit: a FUSE file that copies a backing file, without cryptography.
 *
 * What cryptfuse is measured against: a separate program with the same settings (low-level libfuse, requests of 128
 * KiB, asynchronous direct I/O, no FOPEN_DIRECT_IO, as many threads), that does nothing but pread and pwrite. Usage:
 * copy [-t THREADS] BACKING DIRECTORY     shows DIRECTORY/volume; stays in the foreground until unmounted. */
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
#define FILE_NAME "volume"
#define REQUEST_MAX (128u * 1024u) /* as cryptfuse: request_bytes of its status */
#define CACHE_S 3600.0             /* seconds: nothing changes behind the kernel's back */

struct copy {
	int fd;
	struct stat dir, file;
};

static const struct copy *copy_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static void on_init(void *data, struct fuse_conn_info *conn)
{
	(void)data;
	conn->max_write = REQUEST_MAX;
	conn->max_read = REQUEST_MAX; /* as the mount option says: libfuse wants both */
	conn->max_readahead = REQUEST_MAX;
	conn->max_background = 64; /* as cryptfuse has it; the kernel's own 12 would hold back a depth of 16 */
	conn->congestion_threshold = 48;
	conn->want |= conn->capable & FUSE_CAP_ASYNC_DIO;
}

static void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fuse_entry_param e = {
		.ino = FILE_INO, .attr = copy_of(req)->file, .attr_timeout = CACHE_S, .entry_timeout = CACHE_S};
	if (parent != FUSE_ROOT_ID || strcmp(name, FILE_NAME) != 0)
		fuse_reply_err(req, ENOENT);
	else
		fuse_reply_entry(req, &e);
}

static void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)fi;
	fuse_reply_attr(req, ino == FILE_INO ? &copy_of(req)->file : &copy_of(req)->dir, CACHE_S);
}

static void on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	if (ino != FILE_INO)
		fuse_reply_err(req, EISDIR);
	else
		fuse_reply_open(req, fi);
}

/* A buffer for each thread, kept: neither program allocates for a request. */
static uint8_t *thread_buffer(void)
{
	static _Thread_local uint8_t *buf;
	if (!buf && posix_memalign((void **)&buf, 4096, REQUEST_MAX) != 0)
		buf = NULL;
	return buf;
}

static void on_read(fuse_req_t req, fuse_ino_t ino, size_t len, off_t off, struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	uint8_t *buf = thread_buffer();
	ssize_t n = buf ? pread(copy_of(req)->fd, buf, len < REQUEST_MAX ? len : REQUEST_MAX, off) : -1;
	if (n < 0)
		fuse_reply_err(req, EIO);
	else
		fuse_reply_buf(req, (const char *)buf, (size_t)n);
}

static void on_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t len, off_t off, struct fuse_file_info *fi)
{
	(void)ino;
	(void)fi;
	ssize_t n = pwrite(copy_of(req)->fd, buf, len, off);
	if (n < 0)
		fuse_reply_err(req, EIO);
	else
		fuse_reply_write(req, (size_t)n);
}

static void on_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	(void)datasync;
	(void)fi;
	fuse_reply_err(req, fdatasync(copy_of(req)->fd) == 0 ? 0 : EIO);
}

static const struct fuse_lowlevel_ops ops = {
	.init = on_init,
	.lookup = on_lookup,
	.getattr = on_getattr,
	.open = on_open,
	.read = on_read,
	.write = on_write,
	.fsync = on_fsync,
};

static void attributes(struct copy *c, const char *path)
{
	if (fstat(c->fd, &c->file) != 0)
		err(2, "%s", path);
	c->file.st_ino = FILE_INO;
	c->file.st_mode = S_IFREG | 0600;
	c->file.st_blksize = 4096;
	c->dir = (struct stat){
		.st_ino = FUSE_ROOT_ID, .st_mode = S_IFDIR | 0700, .st_nlink = 2, .st_uid = getuid(), .st_gid = getgid()};
}

int main(int argc, char **argv)
{
	unsigned n_threads = (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
	for (int opt; (opt = getopt(argc, argv, "t:")) != -1;) {
		if (opt != 't')
			return 2;
		n_threads = (unsigned)atoi(optarg);
	}
	if (argc - optind != 2)
		errx(2, "usage: copy [-t THREADS] BACKING DIRECTORY");
	struct copy c = {.fd = open(argv[optind], O_RDWR | O_CLOEXEC)};
	if (c.fd < 0)
		err(2, "%s", argv[optind]);
	attributes(&c, argv[optind]);

	char max_read[64];
	snprintf(max_read, sizeof(max_read), "max_read=%u,default_permissions,nosuid,nodev,fsname=copy", REQUEST_MAX);
	char *fuse_argv[] = {argv[0], "-o", max_read, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, fuse_argv);
	struct fuse_session *se = fuse_session_new(&args, &ops, sizeof(ops), &c);
	if (!se || fuse_set_signal_handlers(se) != 0 || fuse_session_mount(se, argv[optind + 1]) != 0)
		errx(2, "cannot mount on %s", argv[optind + 1]);
	struct fuse_loop_config *config = fuse_loop_cfg_create();
	fuse_loop_cfg_set_max_threads(config, n_threads);
	fuse_loop_cfg_set_idle_threads(config, n_threads);
	int rc = fuse_session_loop_mt(se, config);
	fuse_loop_cfg_destroy(config);
	fuse_session_unmount(se);
	fuse_remove_signal_handlers(se);
	fuse_session_destroy(se);
	fuse_opt_free_args(&args);
	return rc == 0 ? 0 : 1;
}
