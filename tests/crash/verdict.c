/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* verdict.c - see verdict.h.
 *
 * Data units that nobody was writing must be as they were, byte by byte. One that was being written is compared, piece
 * by piece, with all it may have been since the last sync: where two neighbouring pieces come from different writes it
 * is torn there, and loses what its mode loses. Every byte that is not excused so must be one that the model explains.
 */
#include "verdict.h"

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK 16u /* bytes of a cipher block */
#define PIECES_MAX (REF_DU_MAX / CRASH_PIECE)
#define MESSAGES_MAX 8u

static const uint8_t zeros[REF_DU_MAX];

/* How the pieces of a data unit that was found agree with what it may have been. */
struct match {
	bool written;            /* somebody was writing it */
	bool whole;              /* it is one of them */
	bool had_hole;           /* one of them is a hole */
	bool joined[PIECES_MAX]; /* this piece and the one before come from the same write */
};

/* As the volume reads it: a hole is zeros. */
static void decrypt(struct crash_judge *j, uint64_t off)
{
	if (j->holes == CRASH_HOLES && memcmp(j->seen + off, zeros, j->du_bytes) == 0)
		memset(j->plain + off, 0, j->du_bytes);
	else
		j->decrypt(j->ctx, off / j->du_bytes, j->seen + off, j->plain + off);
}

void crash_judge_init(struct crash_judge *j)
{
	j->seen = calloc(1, (size_t)j->bytes);
	j->plain = malloc((size_t)j->bytes);
	if (!j->seen || !j->plain)
		errx(2, "no memory");
	for (uint64_t off = 0; off < j->bytes; off += j->du_bytes)
		decrypt(j, off);
}

void crash_judge_fini(struct crash_judge *j)
{
	free(j->seen);
	free(j->plain);
}

static void violation(struct crash_judge *j, const char *what, size_t upto, uint64_t off, const char *why)
{
	if (j->n_violations++ < MESSAGES_MAX && j->name)
		printf("%s: %s after event %zu: data unit %" PRIu64 ", byte %" PRIu64 " of it: %s\n", j->name, what, upto,
			   off / j->du_bytes, off % j->du_bytes, why);
}

void crash_judge_refuse(struct crash_judge *j, size_t upto, const char *what, const char *why)
{
	violation(j, what, upto, 0, why);
}

static void compare(const struct crash_judge *j, const uint8_t *found, const uint8_t *was, struct match *m)
{
	const size_t n = j->du_bytes / CRASH_PIECE;
	bool same[PIECES_MAX];
	m->whole = m->whole || memcmp(found, was, j->du_bytes) == 0;
	m->had_hole = m->had_hole || memcmp(was, zeros, j->du_bytes) == 0;
	for (size_t i = 0; i < n && !m->whole; i++) {
		same[i] = memcmp(found + i * CRASH_PIECE, was + i * CRASH_PIECE, CRASH_PIECE) == 0;
		if (i && same[i] && same[i - 1])
			m->joined[i] = true;
	}
}

/* The volume writes whole data units only; a hole is as long as it likes. */
static void compare_all(struct crash_judge *j, size_t upto, uint64_t at, const uint8_t *found, struct match *m)
{
	const struct crash_event *e;
	size_t i = 0;
	*m = (struct match){.written = false};
	compare(j, found, j->top->durable + at, m);
	while ((e = crash_disk_unsure(j->top, j->trace, upto, &i))) {
		if (at + j->du_bytes <= e->off || e->off + e->len <= at)
			continue;
		if (at < e->off || at + j->du_bytes > e->off + e->len)
			errx(1, "the volume wrote %zu bytes at %" PRIu64 ", a part of a data unit", e->len, e->off);
		m->written = true;
		compare(j, found, e->data == CRASH_ZEROS ? zeros : j->trace->bytes + e->data + (at - e->off), m);
	}
}

/* Which bytes of a torn data unit are lost. */
static void excuse(const struct crash_judge *j, const struct match *m, const uint8_t *found, uint8_t *lost)
{
	bool torn = false;
	memset(lost, 0, j->du_bytes);
	for (size_t i = 0; i < j->du_bytes / CRASH_PIECE; i++) {
		uint8_t *piece = lost + i * CRASH_PIECE;
		torn = torn || (i && !m->joined[i]);
		if (j->tear == CRASH_TEAR_UNIT || j->tear == CRASH_TEAR_NEVER || (j->tear == CRASH_TEAR_REST && torn))
			memset(piece, 1, CRASH_PIECE);
		else if (j->tear == CRASH_TEAR_BLOCK && i && !m->joined[i])
			memset(piece, 1, BLOCK);
		if (m->had_hole && memcmp(found + i * CRASH_PIECE, zeros, CRASH_PIECE) == 0)
			memset(piece, 1, CRASH_PIECE); /* a piece of a hole is noise */
	}
}

static void judge_unit(struct crash_judge *j, size_t upto, uint64_t off, const uint8_t *found, const char *what)
{
	static uint8_t bad[REF_DU_MAX], lost[REF_DU_MAX];
	struct match m;
	compare_all(j, upto, j->data_off + off, found, &m);
	const bool torn = !m.whole;
	j->n_torn += torn;
	if (torn && !m.written)
		violation(j, what, upto, off, "changed, and nobody was writing there");
	else if (torn && j->tear == CRASH_TEAR_NEVER && !m.had_hole)
		violation(j, what, upto, off, "torn");
	if (memcmp(j->seen + off, found, j->du_bytes) != 0) {
		memcpy(j->seen + off, found, j->du_bytes);
		decrypt(j, off);
	}
	if (!crash_model_unexplained(j->model, off, j->plain + off, j->du_bytes, bad))
		return;
	memset(lost, 0, j->du_bytes);
	if (torn)
		excuse(j, &m, found, lost);
	for (size_t i = 0; i < j->du_bytes; i++)
		if (bad[i] && !lost[i]) {
			violation(j, what, upto, off + i, "neither what was synced nor what was being written");
			return;
		}
}

void crash_judge_image(struct crash_judge *j, size_t upto, const uint8_t *image, const char *what)
{
	const uint64_t end = j->data_off + j->bytes;
	if (memcmp(image, j->top->durable, (size_t)j->data_off) != 0 ||
		memcmp(image + end, j->top->durable + end, (size_t)(j->top->bytes - end)) != 0)
		violation(j, what, upto, 0, "the image changed outside of the volume");
	for (uint64_t off = 0; off < j->bytes; off += j->du_bytes)
		judge_unit(j, upto, off, image + j->data_off + off, what);
}
