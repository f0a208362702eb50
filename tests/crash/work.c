/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* work.c - see work.h. */
#include "work.h"

#include <err.h>
#include <stdlib.h>
#include <string.h>

uint64_t crash_random(uint64_t *state)
{
	uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Every other one ends with a data unit, so that whole ones are written too. None is so long that a thread would get
 * none. */
void crash_work_init(struct crash_work *w)
{
	const uint64_t du = w->du_bytes, longest[] = {1, 50, 512, du, 2 * du, 4 * du};
	uint64_t random = w->seed;
	size_t room = 0;
	if (!w->n_threads || w->n_threads > CRASH_THREADS_MAX || w->bytes < 2 * (uint64_t)w->n_threads)
		errx(2, "%u threads on %llu bytes", w->n_threads, (unsigned long long)w->bytes);
	w->n_extents = 0;
	w->extents = NULL;
	for (uint64_t off = 0; off < w->bytes;) {
		uint64_t len = 1 + crash_random(&random) % longest[crash_random(&random) % 6];
		if (crash_random(&random) % 2)
			len = (off + len + du - 1) / du * du - off;
		len = min_u64(min_u64(len, w->bytes - off), w->bytes / (2 * (uint64_t)w->n_threads));
		if (w->n_extents == room) {
			room = room ? 2 * room : 64;
			w->extents = realloc(w->extents, room * sizeof(*w->extents));
			if (!w->extents)
				errx(2, "no memory");
		}
		w->extents[w->n_extents++] = (struct crash_extent){off, len};
		off += len;
	}
}

void crash_work_fini(struct crash_work *w)
{
	free(w->extents);
	w->extents = NULL;
}

void crash_op_get(const struct crash_work *w, unsigned thread, uint64_t n, struct crash_op *op)
{
	uint64_t random = w->seed ^ (uint64_t)(thread + 1) << 48 ^ (n + 1) * UINT64_C(0xd1342543de82ef95);
	size_t n_own = (w->n_extents - thread - 1) / w->n_threads + 1;
	const struct crash_extent *e = &w->extents[crash_random(&random) % n_own * w->n_threads + thread];
	uint64_t kind = crash_random(&random) % 8;
	*op = (struct crash_op){.off = e->off, .len = (size_t)e->len};
	if (crash_random(&random) % 2) {
		op->off += crash_random(&random) % e->len;
		op->len = 1 + (size_t)(crash_random(&random) % (e->off + e->len - op->off));
	}
	if (kind == 0)
		op->kind = CRASH_ZERO;
	else if (kind < 3 && w->holes == CRASH_HOLES)
		op->kind = CRASH_PUNCH;
	op->sync = crash_random(&random) % 4 == 0;
	op->random = random;
}

void crash_op_bytes(const struct crash_op *op, uint8_t *out)
{
	if (op->kind != CRASH_WRITE) {
		memset(out, 0, op->len);
		return;
	}
	uint64_t random = op->random;
	for (size_t i = 0; i < op->len; i += 8) {
		uint64_t r = crash_random(&random);
		memcpy(out + i, &r, (size_t)min_u64(8, op->len - i));
	}
}

void crash_model_init(struct crash_model *m, const struct crash_work *w, const uint8_t *plain)
{
	*m = (struct crash_model){.work = w, .synced = malloc((size_t)w->bytes)};
	if (!m->synced)
		errx(2, "no memory");
	memcpy(m->synced, plain, (size_t)w->bytes);
}

void crash_model_fini(struct crash_model *m)
{
	for (size_t i = 0; i < m->n_pending; i++)
		free(m->pending[i].bytes);
	m->n_pending = 0;
	free(m->synced);
	m->synced = NULL;
}

void crash_model_begin(struct crash_model *m, unsigned thread)
{
	if (m->n_pending == CRASH_PENDING_MAX)
		errx(2, "too many operations without a sync");
	struct crash_pending *p = &m->pending[m->n_pending++];
	p->thread = thread;
	crash_op_get(m->work, thread, m->begun[thread]++, &p->op);
	p->bytes = malloc(p->op.len);
	if (!p->bytes)
		errx(2, "no memory");
	crash_op_bytes(&p->op, p->bytes);
}

void crash_model_ack(struct crash_model *m, unsigned thread, uint64_t n)
{
	size_t kept = 0;
	for (size_t i = 0; i < m->n_pending; i++) {
		struct crash_pending *p = &m->pending[i];
		if (p->thread != thread || m->acked[thread] >= n) {
			m->pending[kept++] = *p;
			continue;
		}
		memcpy(m->synced + p->op.off, p->bytes, p->op.len);
		free(p->bytes);
		m->acked[thread]++;
	}
	m->n_pending = kept;
}

size_t crash_model_unexplained(const struct crash_model *m, uint64_t off, const uint8_t *bytes, size_t len,
							   uint8_t *bad)
{
	memset(bad, 0, len);
	if (memcmp(bytes, m->synced + off, len) == 0)
		return 0;
	for (size_t i = 0; i < len; i++)
		bad[i] = bytes[i] != m->synced[off + i];
	for (const struct crash_pending *p = m->pending; p < m->pending + m->n_pending; p++) {
		uint64_t from = p->op.off > off ? p->op.off : off, end = min_u64(p->op.off + p->op.len, off + len);
		for (uint64_t at = from; at < end; at++)
			bad[at - off] &= bytes[at - off] != p->bytes[at - p->op.off];
	}
	size_t n = 0;
	for (size_t i = 0; i < len; i++)
		n += bad[i];
	return n;
}
