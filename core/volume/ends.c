/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ends.c - the usual ends of a copy: volumes, files, streams, zeros. No state but what the caller holds. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/copy.h"
#include "cryptfuse/volume.h"

#define HOLE_BYTES 4096u /* the smallest hole that a file system makes, as a rule */
#define WAIT_MS 100      /* between two looks whether the copy has ended meanwhile */

/* ---- volumes ---- */

static ssize_t read_volume(void *ctx, const struct cf_copy *c, uint8_t *buf, size_t len, uint64_t off)
{
	(void)c;
	struct cf_worker *w = cf_volume_enter(ctx);
	const ssize_t n = cf_volume_read(ctx, w, buf, len, off);
	cf_volume_leave(ctx, w);
	return n;
}

static int write_volume(void *ctx, const struct cf_copy *c, const uint8_t *buf, size_t len, uint64_t off)
{
	(void)c;
	struct cf_worker *w = cf_volume_enter(ctx);
	ssize_t n = 0;
	for (size_t done = 0; n >= 0 && done<len; done += n> 0 ? (size_t)n : 0)
		n = cf_volume_write(ctx, w, buf + done, len - done, off + done);
	cf_volume_leave(ctx, w);
	return n < 0 ? (int)n : 0;
}

struct cf_copy_source cf_copy_from_volume(struct cf_volume *v)
{
	return (struct cf_copy_source){.ctx = v, .bytes = cf_volume_bytes(v), .read = read_volume};
}

struct cf_copy_sink cf_copy_to_volume(struct cf_volume *v)
{
	return (struct cf_copy_sink){.ctx = v, .write = write_volume};
}

/* ---- files and block devices ---- */

static ssize_t read_file(void *ctx, const struct cf_copy *c, uint8_t *buf, size_t len, uint64_t off)
{
	(void)c;
	const struct cf_copy_file *f = ctx;
	size_t done = 0;
	while (done < len) {
		const ssize_t n = pread(f->fd, buf + done, len - done, (off_t)(off + done));
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			break;
		done += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)done;
}

static int write_range(int fd, const uint8_t *buf, size_t len, uint64_t off)
{
	for (size_t done = 0; done < len;) {
		const ssize_t n = pwrite(fd, buf + done, len - done, (off_t)(off + done));
		if (n == 0 || (n < 0 && errno != EINTR))
			return n ? -errno : -EIO;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* How far from @at the blocks are all of one sort: zeros, or not. */
static size_t run_length(const uint8_t *buf, size_t len, size_t at, bool *zeros)
{
	size_t end = at, take;
	for (; end < len; end += take) {
		take = len - end < HOLE_BYTES ? len - end : HOLE_BYTES;
		const bool is_zero = cf_is_zero(buf + end, take);
		if (end == at)
			*zeros = is_zero;
		else if (is_zero != *zeros)
			break;
	}
	return end - at;
}

static int write_data(int fd, const uint8_t *buf, size_t len, uint64_t off)
{
	int rc = 0;
	for (size_t at = 0, run; !rc && at < len; at += run) {
		bool zeros = false;
		run = run_length(buf, len, at, &zeros);
		if (!zeros)
			rc = write_range(fd, buf + at, run, off + at);
	}
	return rc;
}

static int write_file(void *ctx, const struct cf_copy *c, const uint8_t *buf, size_t len, uint64_t off)
{
	(void)c;
	const struct cf_copy_file *f = ctx;
	return f->zeros == CF_COPY_ZEROS_SKIPPED ? write_data(f->fd, buf, len, off) : write_range(f->fd, buf, len, off);
}

struct cf_copy_source cf_copy_from_file(struct cf_copy_file *f, uint64_t bytes)
{
	return (struct cf_copy_source){.ctx = f, .bytes = bytes, .read = read_file};
}

struct cf_copy_sink cf_copy_to_file(struct cf_copy_file *f)
{
	return (struct cf_copy_sink){.ctx = f, .write = write_file};
}

/* ---- streams ---- */

/* Until the stream can go on. 0; -ECANCELED the copy has ended; -errno. */
static int wait_stream(int fd, short events, const struct cf_copy *c)
{
	struct pollfd p = {.fd = fd, .events = events};
	while (!cf_copy_stopped(c)) {
		const int n = poll(&p, 1, WAIT_MS);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
	return -ECANCELED;
}

static ssize_t read_stream(void *ctx, const struct cf_copy *c, uint8_t *buf, size_t len, uint64_t off)
{
	(void)off;
	const struct cf_copy_stream *s = ctx;
	size_t done = 0;
	while (done < len) {
		const int rc = wait_stream(s->fd, POLLIN, c);
		const ssize_t n = rc ? rc : read(s->fd, buf + done, len - done);
		if (rc || (n < 0 && errno != EINTR && errno != EAGAIN))
			return rc ? rc : -errno;
		if (n == 0)
			break;
		done += n > 0 ? (size_t)n : 0;
	}
	return (ssize_t)done;
}

static int write_stream(void *ctx, const struct cf_copy *c, const uint8_t *buf, size_t len, uint64_t off)
{
	(void)off;
	const struct cf_copy_stream *s = ctx;
	for (size_t done = 0; done < len;) {
		const int rc = wait_stream(s->fd, POLLOUT, c);
		const ssize_t n = rc ? rc : write(s->fd, buf + done, len - done);
		if (rc || (n < 0 && errno != EINTR && errno != EAGAIN))
			return rc ? rc : -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

struct cf_copy_source cf_copy_from_stream(struct cf_copy_stream *s)
{
	return (struct cf_copy_source){.ctx = s, .order = CF_COPY_IN_ORDER, .bytes = CF_COPY_UNKNOWN, .read = read_stream};
}

struct cf_copy_sink cf_copy_to_stream(struct cf_copy_stream *s)
{
	return (struct cf_copy_sink){.ctx = s, .order = CF_COPY_IN_ORDER, .write = write_stream};
}

/* ---- zeros ---- */

static ssize_t read_zeros(void *ctx, const struct cf_copy *c, uint8_t *buf, size_t len, uint64_t off)
{
	(void)ctx;
	(void)c;
	(void)off;
	memset(buf, 0, len);
	return (ssize_t)len;
}

struct cf_copy_source cf_copy_from_zeros(uint64_t bytes)
{
	return (struct cf_copy_source){.bytes = bytes, .read = read_zeros};
}
