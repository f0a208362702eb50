/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ops_long.c - the operations that may take seconds: making bytes durable, and changing the space behind them.
 *
 * Invariant: however many of them are asked for at once, they hold two of libfuse's threads at most, one that syncs and
 * one that changes space (HAZARDS 17). The others are parked as requests, not as threads, and answered by those two.
 * Where there is no memory to park one, its thread waits. A handle lives until what was asked of it is answered. */
#include "config.h"

#include "cryptfuse/ops_slots.h"

#include <errno.h>
#include <linux/falloc.h>
#include <stdlib.h>

/* ---- making it durable ---- */

struct parked_sync {
	struct cf_sync sync; /* first */
	fuse_req_t req;
	struct cf_ops_handle *handle; /* that is flushed; NULL: fsync */
	unsigned page_writes;         /* of struct cf_ops, before the sync */
};

/* After a failed sync the handle says so every time (HAZARDS 15). */
static void note_synced(struct cf_ops_handle *h, unsigned page_writes, int rc)
{
	if (rc < 0)
		atomic_store(&h->wrote, true);
	else
		atomic_store(&h->page_writes, page_writes);
}

static void answer_sync(struct cf_sync *sync, int rc)
{
	struct parked_sync *p = (struct parked_sync *)sync;
	if (p->handle)
		note_synced(p->handle, p->page_writes, rc);
	fuse_reply_err(p->req, -rc);
	free(p);
}

static void sync_and_answer(fuse_req_t req, struct cf_ops_handle *h, unsigned page_writes)
{
	struct cf_volume *v = cf_ops_of(req)->volume;
	struct parked_sync *p = calloc(1, sizeof(*p));
	if (p) {
		*p = (struct parked_sync){{.done = answer_sync}, req, h, page_writes};
		cf_volume_sync_start(v, &p->sync);
		return;
	}
	int rc = cf_volume_sync(v);
	if (h)
		note_synced(h, page_writes, rc);
	fuse_reply_err(req, -rc);
}

void cf_op_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	(void)datasync;
	(void)fi;
	sync_and_answer(req, NULL, 0);
}

/* close(2): only a handle that wrote pays for a sync. */
void cf_op_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	struct cf_ops *o = cf_ops_of(req);
	struct cf_ops_handle *h = cf_ops_handle_of(fi);
	unsigned page_writes = atomic_load(&o->page_writes);
	bool pages = h->access == CF_READ_WRITE && page_writes != atomic_load(&h->page_writes);
	if (atomic_exchange(&h->wrote, false) || pages)
		sync_and_answer(req, h, page_writes);
	else
		fuse_reply_err(req, 0);
}

/* ---- changing space ---- */

struct parked_space {
	struct cf_lane_job job; /* first */
	fuse_req_t req;
	struct cf_ops_handle *handle;
	int mode;
	uint64_t off, len; /* in the file */
};

/* Never -ENOSYS: the kernel would not ask again for as long as it is mounted (HAZARDS 8). */
static int change_space(struct cf_volume *v, const struct cf_ops_file *f, int mode, uint64_t off, uint64_t len)
{
	const uint64_t inside = cf_ops_clip(f, off, len), at = f->off + off;
	struct cf_worker *w;
	int r;
	switch (mode) {
	case 0:
	case FALLOC_FL_KEEP_SIZE:
		return inside < len ? -ENOSPC : cf_volume_allocate(v, at, len);
	case FALLOC_FL_ZERO_RANGE:
	case FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE:
		if (inside < len)
			return -ENOSPC;
		w = cf_volume_enter(v);
		r = cf_volume_zero(v, w, at, len);
		break;
	case FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE:
		w = cf_volume_enter(v);
		r = cf_volume_punch(v, w, at, inside);
		break;
	default:
		return -EOPNOTSUPP;
	}
	cf_volume_leave(v, w);
	return r;
}

void cf_ops_change_space(void *ops, struct cf_lane_job *jobs)
{
	struct cf_ops *o = ops;
	for (struct cf_lane_job *next; jobs; jobs = next) {
		struct parked_space *p = (struct parked_space *)jobs;
		next = jobs->next;
		int r = change_space(o->volume, p->handle->file, p->mode, p->off, p->len);
		atomic_store(&p->handle->wrote, true); /* only now: see note_write in ops_io.c */
		fuse_reply_err(p->req, r == -ENOSYS ? EOPNOTSUPP : -r);
		free(p);
		cf_gate_leave(&o->gate);
	}
}

void cf_op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len, struct fuse_file_info *fi)
{
	struct cf_ops *o = cf_ops_of(req);
	if (cf_volume_access(o->volume) == CF_READ_ONLY) {
		fuse_reply_err(req, EROFS);
		return;
	}
	if (!cf_gate_enter(&o->gate)) {
		cf_gate_park(&o->gate, req,
					 &(struct cf_gate_call){CF_CALL_FALLOCATE, ino, fi, (uint64_t)off, (uint64_t)len, mode, NULL});
		return;
	}
	struct parked_space *p = calloc(1, sizeof(*p));
	if (!p) {
		cf_gate_leave(&o->gate);
		fuse_reply_err(req, ENOMEM);
		return;
	}
	*p = (struct parked_space){
		.req = req, .handle = cf_ops_handle_of(fi), .mode = mode, .off = (uint64_t)off, .len = (uint64_t)len};
	cf_lane_submit(&o->space_lane, &p->job);
}
