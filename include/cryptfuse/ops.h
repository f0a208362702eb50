/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ops.h - what the FUSE operations work on. All of the daemon's shared state but its processes. */
#ifndef CRYPTFUSE_OPS_H
#define CRYPTFUSE_OPS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "cryptfuse/gate.h"
#include "cryptfuse/lane.h"
#include "cryptfuse/sandbox.h"
#include "cryptfuse/serve.h"
#include "cryptfuse/volume.h"

struct cf_voice;
struct fuse_lowlevel_ops;

/** A file of the mount: a range of the volume. */
struct cf_ops_file {
	unsigned number; /* of the partition; 0 the volume itself */
	uint64_t off, bytes;
	/* below: under the mutex */
	unsigned n_open, n_write; /* handles, and those of them that may write */
	unsigned changes;         /* how often another file over the same bytes was closed by a writer; may wrap */
	unsigned dropped;         /* which of them the kernel has surely dropped its pages after */
};

struct cf_ops {
	struct cf_volume *volume; /* borrowed */
	const struct cf_serve_opts *opts;
	const struct cf_open_plan *plan;
	struct cf_voice *voice;    /* borrowed */
	struct cf_sandbox sandbox; /* what is in force; before the threads */
	struct timespec since;     /* every time stamp of the mount */
	uid_t uid;
	gid_t gid;
	void (*ready)(void *ctx); /* called once, when the kernel has shaken hands; from a worker thread */
	void *ready_ctx;
	enum cf_transport transport; /* what the kernel granted */
	unsigned readahead_kib;      /* as far as is known; 0: it is not */

	uint64_t init_unique;              /* killpriv.c: the kernel's first request */
	atomic_bool init_seen, init_waits; /* it has come; its answer is to be completed */
	atomic_uint page_writes;   /* writes that came out of the page cache: of mappings, of no handle in particular */
	struct cf_gate gate;       /* reads, writes, changes of space */
	struct cf_lane space_lane; /* one thread changes space at a time */
	pthread_mutex_t mutex;     /* who has what open */
	pthread_cond_t released;
	atomic_uint n_files; /* 1, and more once partitions are shown */
	struct cf_ops_file file[1 + CF_SERVE_PARTS_MAX];
};

/** cf_ops_init - @plan is read for the status only. */
void cf_ops_init(struct cf_ops *o, struct cf_volume *v, const struct cf_serve_opts *opts,
				 const struct cf_open_plan *plan);
void cf_ops_fini(struct cf_ops *o);

/** cf_ops_publish - show parts of the volume as files of their own, once; one thread, while others serve
 * Returns 0; -EINVAL a part lies outside, two have one number, or the mount is no directory: then none is shown. */
int cf_ops_publish(struct cf_ops *o, const struct cf_serve_part *parts, unsigned n) CF_MUST_CHECK;

/** cf_ops_io_bytes - the longest single read and write request. The kernel cuts what is longer into several, and hands
 * them to as many threads. */
uint32_t cf_ops_io_bytes(const struct cf_ops *o);

/** cf_ops_table - the operations; their userdata is the struct cf_ops. */
extern const struct fuse_lowlevel_ops cf_ops_table;

/** cf_status_json - the status as JSON text, owned by the caller (free); NULL: no memory. Never holds a key. Any
 * thread. */
char *cf_status_json(struct cf_ops *o);

#endif
