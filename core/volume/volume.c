/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* volume.c - a volume's life: geometry, workers, locks, counters.
 *
 * All memory the data path needs is allocated here, once. A worker belongs to one thread from enter to leave. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "internal.h"

#define BUFFER_ALIGN 4096u /* bytes: a page, or a block of a device opened O_DIRECT */

static int check_geometry(const struct cf_backing *b, uint32_t du_bytes, const struct cf_volume_opts *o,
						  struct cf_err *err)
{
	if (!o->bytes || o->bytes % du_bytes)
		return cf_fail(err, -EINVAL, "a volume of %llu bytes is not a multiple of the data unit, %u bytes",
					   (unsigned long long)o->bytes, du_bytes);
	if (o->access == CF_READ_WRITE && b->access != CF_READ_WRITE)
		return cf_fail(err, -EINVAL, "the image was opened read-only");
	if (o->access == CF_READ_WRITE && o->bad_sectors == CF_BAD_ZERO)
		return cf_fail(err, -EINVAL, "zeros for what cannot be read would be written back: only for reading");
	if (!o->n_workers || o->n_workers > CF_WORKERS_MAX)
		return cf_fail(err, -EINVAL, "%u workers; 1 to %u will do", o->n_workers, CF_WORKERS_MAX);
	if (o->n_permits > o->n_workers)
		return cf_fail(err, -EINVAL, "%u compute permits for %u workers", o->n_permits, o->n_workers);
	return 0;
}

static int worker_init(const struct cf_volume *v, struct cf_worker *w, unsigned index)
{
	w->index = index;
	struct {
		uint8_t **buf;
		size_t len;
	} const want[] = {
		{&w->io, CF_IO_MAX}, {&w->crypt, v->chunk_bytes}, {&w->edge, v->du_bytes}, {&w->old, v->du_bytes}};
	for (size_t i = 0; i < CF_ARRAY_LEN(want); i++) {
		void *p;
		if (posix_memalign(&p, BUFFER_ALIGN, want[i].len) != 0)
			return -ENOMEM;
		*want[i].buf = p;
	}
	return 0;
}

/* Plaintext; ciphertext is no secret. A buffer that was never used is not touched: it has no memory yet. */
static void worker_wipe(struct cf_worker *w, uint32_t du_bytes)
{
	if (!w->n_transfers)
		return;
	cf_secret_wipe(w->io, CF_IO_MAX);
	cf_secret_wipe(w->edge, du_bytes);
}

static void worker_fini(struct cf_worker *w, uint32_t du_bytes)
{
	worker_wipe(w, du_bytes);
	free(w->io);
	free(w->crypt);
	free(w->edge);
	free(w->old);
}

static int workers_init(struct cf_volume *v)
{
	for (unsigned i = 0; i < v->n_workers; i++)
		if (worker_init(v, &v->workers[i], i) != 0)
			return -ENOMEM;
	return 0;
}

int cf_volume_new(struct cf_volume **out, struct cf_backing **b, struct cf_cipher **c,
				  const struct cf_volume_opts *opts, struct cf_err *err)
{
	uint32_t du_bytes = cf_cipher_du_bytes(*c);
	int rc = check_geometry(*b, du_bytes, opts, err);
	if (rc)
		return rc;
	CF_CLEANUP(cf_volume_free) struct cf_volume *v = calloc(1, sizeof(*v));
	if (!v)
		return cf_fail(err, -ENOMEM, "out of memory");
	v->bytes = opts->bytes;
	v->access = opts->access;
	v->discards = opts->discards;
	v->du_bytes = du_bytes;
	v->du_shift = cf_units_log2(du_bytes);
	v->n_workers = opts->n_workers;
	v->n_permits = opts->n_permits ? opts->n_permits : opts->n_workers;
	v->chunk_bytes = du_bytes * CF_CHUNK_DU > CF_CHUNK_MIN ? du_bytes * CF_CHUNK_DU : CF_CHUNK_MIN;
	cf_rangelock_init(&v->ranges);
	cf_slots_init(&v->pool, v->n_workers);
	cf_slots_init(&v->permits, v->n_permits);
	cf_volume_sync_init(v);
	cf_bad_init(&v->bad, opts->bad_sectors);
	rc = cf_volume_set_segments(v, *b, opts, err);
	if (rc)
		return rc;
	v->zeros = calloc(1, v->chunk_bytes);
	if (!v->zeros || workers_init(v) != 0)
		return cf_fail(err, -ENOMEM, "no memory for the buffers of %u workers", v->n_workers);
	v->backing = cf_take(*b);
	v->cipher = cf_take(*c);
	/* A discarded data unit is known by its ciphertext. */
	v->reads_in_place = v->discards == CF_DISCARDS_REFUSED && cf_cipher_in_place(v->cipher, CF_DECRYPT);
	*out = cf_take(v);
	return 0;
}

void cf_volume_free(struct cf_volume **v)
{
	struct cf_volume *old = *v;
	if (!old)
		return;
	cf_cipher_free(&old->cipher);
	cf_backing_free(&old->backing);
	for (unsigned i = 0; i < old->n_workers; i++)
		worker_fini(&old->workers[i], old->du_bytes);
	free(old->zeros);
	cf_rangelock_fini(&old->ranges);
	cf_slots_fini(&old->pool);
	cf_slots_fini(&old->permits);
	cf_volume_sync_fini(old);
	cf_bad_fini(&old->bad);
	free(old);
	*v = NULL;
}

bool cf_volume_can_suspend(const struct cf_volume *v)
{
	return cf_cipher_can_rekey(v->cipher);
}

void cf_volume_suspend(struct cf_volume *v)
{
	cf_cipher_forget(v->cipher);
	for (unsigned i = 0; i < v->n_workers; i++)
		worker_wipe(&v->workers[i], v->du_bytes);
}

int cf_volume_resume(struct cf_volume *v, const uint8_t *key, struct cf_err *err)
{
	return cf_cipher_rekey(v->cipher, key, err);
}

uint64_t cf_volume_bytes(const struct cf_volume *v)
{
	return v->bytes;
}

uint32_t cf_volume_du_bytes(const struct cf_volume *v)
{
	return v->du_bytes;
}

enum cf_access cf_volume_access(const struct cf_volume *v)
{
	return v->access;
}

const struct cf_cipher *cf_volume_cipher(const struct cf_volume *v)
{
	return v->cipher;
}

void cf_volume_stats(struct cf_volume *v, struct cf_volume_stats *out)
{
	uint64_t n[CF_COUNTERS];
	for (size_t i = 0; i < CF_COUNTERS; i++)
		n[i] = atomic_load_explicit(&v->counters[i], memory_order_relaxed);
	*out = (struct cf_volume_stats){
		.reads = n[CF_COUNT_READS],
		.read_bytes = n[CF_COUNT_READ_BYTES],
		.writes = n[CF_COUNT_WRITES],
		.write_bytes = n[CF_COUNT_WRITE_BYTES],
		.rmw = n[CF_COUNT_RMW],
		.syncs = n[CF_COUNT_SYNCS],
		.punched_bytes = n[CF_COUNT_PUNCHED_BYTES],
		.zeroed_bytes = n[CF_COUNT_ZEROED_BYTES],
		.read_errors = n[CF_COUNT_READ_ERRORS],
		.write_errors = n[CF_COUNT_WRITE_ERRORS],
		.sync_errors = n[CF_COUNT_SYNC_ERRORS],
		.undo_failures = n[CF_COUNT_UNDO_FAILURES],
	};
}

struct cf_worker *cf_volume_enter(struct cf_volume *v)
{
	return &v->workers[cf_slots_take(&v->pool)];
}

void cf_volume_leave(struct cf_volume *v, struct cf_worker *w)
{
	cf_slots_give(&v->pool, w->index);
}

/* To data units in the volume's coordinates first: with a data offset that is no multiple of the DU, the two ends of
 * one DU lie in different granules of the backing. */
void cf_volume_lock(struct cf_volume *v, struct cf_range *r, uint64_t off, uint64_t len, enum cf_range_mode mode)
{
	assert(len && cf_volume_clamp(v, off, len) == len);
	assert(cf_volume_piece(v, off, len) == len);
	uint64_t from = cf_volume_at(v, cf_units_round_down(off, v->du_bytes));
	uint64_t end = cf_volume_at(v, cf_units_round_down(off + len - 1, v->du_bytes)) + v->du_bytes;
	from = cf_units_round_down(from, v->backing->granule);
	end = cf_units_round_up(end, v->backing->granule);
	cf_rangelock_acquire(&v->ranges, r, from, end - from, mode);
}

void cf_volume_unlock(struct cf_volume *v, struct cf_range *r)
{
	cf_rangelock_release(&v->ranges, r);
}

static int allocate(struct cf_volume *v, uint64_t off, uint64_t len)
{
	int rc = 0;
	for (uint64_t take; len && !rc; off += take, len -= take) {
		take = cf_volume_piece(v, off, len);
		if (cf_volume_segment(v, off)->kind == CF_SEGMENT_CRYPT)
			rc = v->backing->ops->allocate(v->backing, cf_volume_at(v, off), take);
	}
	return rc;
}

int cf_volume_allocate(struct cf_volume *v, uint64_t off, uint64_t len)
{
	if (v->access == CF_READ_ONLY)
		return -EROFS;
	if (cf_volume_clamp(v, off, len) < len)
		return -ENOSPC;
	if (!len)
		return 0;
	if (!v->backing->ops->allocate)
		return -EOPNOTSUPP;
	cf_volume_long_begin(v);
	int rc = allocate(v, off, len);
	cf_volume_long_end(v);
	return rc;
}
