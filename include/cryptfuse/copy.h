/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* copy.h - bytes from a source to a sink, by several threads, past taps that see them in order.
 *
 *     source --> slot 0 … slot n-1 --> sink      workers: each carries one chunk from source to sink
 *                      |
 *                      +-> tap 0, tap 1 …        a thread each, chunk after chunk: digests
 *
 * The engine knows no files, keys or terminals: source, sink and taps are callbacks. What may be read or written in any
 * order is, by all workers at once; what may not (a pipe) takes turns. */
#ifndef CRYPTFUSE_COPY_H
#define CRYPTFUSE_COPY_H

#include <stdbool.h>
#include <sys/types.h>

#include "cryptfuse/base.h"

struct cf_copy; /* one that runs */
struct cf_volume;

#define CF_COPY_CHUNK (256u * 1024u) /* bytes; stays in the L2 cache between source and sink */
#define CF_COPY_UNKNOWN UINT64_MAX   /* bytes of a source that tells its end by ending */
#define CF_COPY_TAPS_MAX 8u
#define CF_COPY_THREADS_MAX 16u

enum cf_copy_order { CF_COPY_ANY_ORDER, CF_COPY_IN_ORDER };

struct cf_copy_source {
	void *ctx;
	enum cf_copy_order order;
	uint64_t bytes; /* or CF_COPY_UNKNOWN, then in order only */
	/** All @len bytes at @off; fewer only where a source of unknown length ends. Any thread, one at a time when in
	 * order. Returns bytes or -errno. */
	ssize_t (*read)(void *ctx, const struct cf_copy *c, uint8_t *buf, size_t len, uint64_t off);
};

struct cf_copy_sink {
	void *ctx;
	enum cf_copy_order order;
	/** All @len bytes, to @off. Any thread, one at a time when in order. 0 or -errno. */
	int (*write)(void *ctx, const struct cf_copy *c, const uint8_t *buf, size_t len, uint64_t off);
};

/** Sees every byte once, in order, in a thread of its own. */
struct cf_copy_tap {
	void *ctx;
	int (*take)(void *ctx, const uint8_t *buf, size_t len); /* 0 or -errno */
};

struct cf_copy_opts {
	struct cf_copy_source source;
	struct cf_copy_sink sink;
	struct cf_copy_tap taps[CF_COPY_TAPS_MAX];
	unsigned n_taps;
	unsigned n_threads; /* 1 to CF_COPY_THREADS_MAX, beside those of the taps */
	size_t chunk_bytes; /* of one read and one write; 0: CF_COPY_CHUNK */
	void *step_ctx;
	/** How far it is: called by the thread that called cf_copy_run, some ten times a second; @total may be
	 * CF_COPY_UNKNOWN. NULL: nobody looks. Returns 0, or -errno to end the copy. */
	int (*step)(void *ctx, uint64_t done, uint64_t total);
};

/** Who ended a copy that failed. */
enum cf_copy_part { CF_COPY_NOBODY, CF_COPY_SOURCE, CF_COPY_SINK, CF_COPY_TAP, CF_COPY_STEP, CF_COPY_ENGINE };

struct cf_copy_result {
	uint64_t bytes; /* read and written; after a failure some later ones may be too */
	enum cf_copy_part failed;
	uint64_t failed_off; /* of the chunk that failed, for source and sink */
};

/** cf_copy_run - copy to the end, or to the first failure; no thread is left
 * The buffers, which hold plaintext, are wiped. Signals: the threads inherit the caller's mask.
 * Returns 0; -errno of the first that failed: -EIO also when a source of known length ends early; -ENOMEM, -EAGAIN no
 * buffers or threads. @out is filled either way. */
int cf_copy_run(const struct cf_copy_opts *opts, struct cf_copy_result *out) CF_MUST_CHECK;

/** cf_copy_stopped - for callbacks that wait for somebody else: has the copy failed elsewhere? Any thread. */
bool cf_copy_stopped(const struct cf_copy *c);

/* ---- ends that others need too ---- */

/** cf_copy_from_volume, cf_copy_to_volume - a volume, by any number of threads; the sink never writes past its end
 * (-ENOSPC). */
struct cf_copy_source cf_copy_from_volume(struct cf_volume *v);
struct cf_copy_sink cf_copy_to_volume(struct cf_volume *v);

/** What a sink does with blocks of zeros. */
enum cf_copy_zeros { CF_COPY_ZEROS_WRITTEN, CF_COPY_ZEROS_SKIPPED /* the file is new, or has holes there */ };

/** A file or block device by offset. */
struct cf_copy_file {
	int fd;
	enum cf_copy_zeros zeros; /* of a sink */
};
struct cf_copy_source cf_copy_from_file(struct cf_copy_file *f, uint64_t bytes);
struct cf_copy_sink cf_copy_to_file(struct cf_copy_file *f);

/** A pipe, socket, terminal or whatever only goes forward: in order, and the end of the copy is noticed while waiting.
 */
struct cf_copy_stream {
	int fd; /* a sink that may block for long should be O_NONBLOCK */
};
struct cf_copy_source cf_copy_from_stream(struct cf_copy_stream *s);
struct cf_copy_sink cf_copy_to_stream(struct cf_copy_stream *s);

/** cf_copy_from_zeros - @bytes of zeros. */
struct cf_copy_source cf_copy_from_zeros(uint64_t bytes);

#endif
