/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ops_init.c - the handshake: what is asked of the kernel, and how it shall treat the file.
 *
 * What the releases of libfuse do not have in common stands here, and nowhere else. Negotiated once, by the first
 * worker, before anything else is answered; cf_ops_open_as runs in any thread. */
#include "config.h"

#include "cryptfuse/ops_slots.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "cryptfuse/session.h"

#define URING_SETTING "/sys/module/fuse/parameters/enable_uring"
#define MAX_BACKGROUND 64
#define CONGESTION 48

uint32_t cf_ops_io_bytes(const struct cf_ops *o)
{
	/* With direct I/O the kernel sends the parts of a long request one after the other. */
	return o->opts->cache == CF_CACHE_DIRECT ? CF_REQUEST_MAX : cf_cipher_request_bytes(&o->plan->cipher);
}

/* One flag at a time: libfuse 3.17 and later keep their own account of what was changed. */
static void ask(struct fuse_conn_info *conn, uint64_t flag)
{
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
	fuse_set_feature_flag(conn, flag);
#else
	conn->want |= conn->capable & (unsigned)flag;
#endif
}

static void do_without(struct fuse_conn_info *conn, uint64_t flag)
{
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 17)
	fuse_unset_feature_flag(conn, flag);
#else
	conn->want &= ~(unsigned)flag;
#endif
}

/* Under the writeback cache the kernel trusts its own idea of the length (HAZARDS 11), and an O_TRUNC that came with
 * the open would leave it at 0. As a request of its own, O_TRUNC takes the length that cf_op_setattr answers. */
static void ask_caching(const struct cf_ops *o, struct fuse_conn_info *conn)
{
	if (o->opts->cache == CF_CACHE_WRITEBACK) {
		ask(conn, FUSE_CAP_WRITEBACK_CACHE);
		do_without(conn, FUSE_CAP_ATOMIC_O_TRUNC);
	} else {
		do_without(conn, FUSE_CAP_WRITEBACK_CACHE);
		ask(conn, FUSE_CAP_ATOMIC_O_TRUNC);
	}
#ifdef FUSE_CAP_DIRECT_IO_ALLOW_MMAP
	if (o->opts->cache == CF_CACHE_DIRECT) /* shared mappings all the same: they alone go through the page cache */
		ask(conn, FUSE_CAP_DIRECT_IO_ALLOW_MMAP);
#endif
}

/* Without the option it is off whatever the environment says, which libfuse asks too. If the ring cannot be set up
 * after all libfuse goes on with /dev/fuse. */
static void ask_transport(struct cf_ops *o, struct fuse_conn_info *conn)
{
	(void)conn;
	o->transport = CF_TRANSPORT_DEVICE;
#ifdef FUSE_CAP_OVER_IO_URING
	if (o->opts->transport == CF_TRANSPORT_DEVICE)
		do_without(conn, FUSE_CAP_OVER_IO_URING);
	else if (fuse_set_feature_flag(conn, FUSE_CAP_OVER_IO_URING))
		o->transport = CF_TRANSPORT_IO_URING;
#endif
}

const char *cf_ops_transport_option(enum cf_transport transport)
{
#ifdef FUSE_CAP_OVER_IO_URING
	if (transport == CF_TRANSPORT_IO_URING)
		return ",io_uring";
#endif
	(void)transport;
	return "";
}

#ifdef FUSE_CAP_OVER_IO_URING

int cf_session_check_transport(enum cf_transport transport, struct cf_err *err)
{
	char setting[2] = "N";
	CF_CLEANUP(cf_close_fd) int fd = open(URING_SETTING, O_RDONLY | O_CLOEXEC);
	if (transport == CF_TRANSPORT_DEVICE || (fd >= 0 && read(fd, setting, 1) == 1 && *setting == 'Y'))
		return 0;
	return cf_fail(err, -EINVAL,
				   "--io-uring: the kernel does not offer it; where it can, root turns it on by writing Y to %s",
				   URING_SETTING);
}

#else

int cf_session_check_transport(enum cf_transport transport, struct cf_err *err)
{
	if (transport == CF_TRANSPORT_DEVICE)
		return 0;
	return cf_fail(err, -EINVAL, "--io-uring: this build's libfuse (%d.%d) has no FUSE over io_uring: it needs 3.18",
				   FUSE_MAJOR_VERSION, FUSE_MINOR_VERSION);
}

#endif

/* With FUSE_CAP_ASYNC_DIO the parts of one long request are under way at once. */
void cf_ops_negotiate(struct cf_ops *o, struct fuse_conn_info *conn)
{
	conn->max_write = conn->max_read = cf_ops_io_bytes(o);
	if (o->opts->readahead_kib)
		conn->max_readahead = o->opts->readahead_kib * 1024u;
	conn->max_background = MAX_BACKGROUND;
	conn->congestion_threshold = CONGESTION;
	ask(conn, FUSE_CAP_ASYNC_READ);
	ask(conn, FUSE_CAP_ASYNC_DIO);
#ifdef FUSE_CAP_HANDLE_KILLPRIV_V2
	ask(conn, FUSE_CAP_HANDLE_KILLPRIV_V2); /* killpriv.c */
#endif
	ask_caching(o, conn);
	ask_transport(o, conn);
}

/* The kernel may keep decrypted pages from one open to the next only as long as nobody else can change the image, and
 * no other file of the mount did. */
void cf_ops_open_as(const struct cf_ops *o, enum cf_ops_pages pages, struct fuse_file_info *fi)
{
	fi->direct_io = o->opts->cache == CF_CACHE_DIRECT;
	fi->keep_cache = !fi->direct_io && o->plan->lock == CF_LOCK && pages == CF_OPS_PAGES_GOOD;
#ifdef HAVE_STRUCT_FUSE_FILE_INFO_PARALLEL_DIRECT_WRITES
	fi->parallel_direct_writes = fi->direct_io; /* the volume's range lock keeps them apart */
#endif
}
