/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* segments.c - where the pieces of a volume lie.
 *
 *     volume   | crypt      | crypt         | zero | crypt    |
 *     backing         ^ 2nd place    | ...  : 1st  |  same    |
 *
 * Most volumes are one piece; BitLocker keeps the first sectors of its file system elsewhere, and its own metadata in
 * the middle. Reads and writes go piece by piece, each under its own lock. Constant after it is set. */
#include <errno.h>

#include "cryptfuse/err.h"
#include "internal.h"

static bool lies_in(const struct cf_segment *s, const struct cf_backing *b)
{
	return b->bytes <= INT64_MAX && s->data_off <= b->bytes && s->bytes <= b->bytes - s->data_off;
}

/* @end: where the pieces before it end. */
static int check_piece(const struct cf_volume *v, const struct cf_backing *b, const struct cf_segment *s, uint64_t end,
					   struct cf_err *err)
{
	if (s->off != end || !s->bytes || s->bytes > v->bytes - end)
		return cf_fail(err, -EINVAL, "the pieces of the volume leave gaps, or overlap");
	if (s->bytes % v->du_bytes || s->iv_sector % (v->du_bytes / CF_SECTOR_BYTES))
		return cf_fail(err, -EINVAL, "a piece of the volume is not whole data units of %u bytes", v->du_bytes);
	if (s->kind == CF_SEGMENT_CRYPT && !lies_in(s, b))
		return cf_fail(err, -EINVAL, "a volume of %llu bytes at byte %llu does not lie in an image of %llu bytes",
					   (unsigned long long)s->bytes, (unsigned long long)s->data_off, (unsigned long long)b->bytes);
	return 0;
}

int cf_volume_set_segments(struct cf_volume *v, const struct cf_backing *b, const struct cf_volume_opts *o,
						   struct cf_err *err)
{
	const struct cf_segment whole = {.kind = CF_SEGMENT_CRYPT, .bytes = o->bytes, .data_off = o->data_off};
	const struct cf_segment *from = o->n_segments ? o->segment : &whole;
	uint64_t end = 0;
	if (o->n_segments > CF_SEGMENTS_MAX)
		return cf_fail(err, -EINVAL, "a volume of %u pieces; 1 to %u will do", o->n_segments, CF_SEGMENTS_MAX);
	if (o->n_segments > 1 && o->discards == CF_DISCARDS_ALLOWED)
		return cf_fail(err, -EINVAL, "a volume in several pieces takes no discards");
	v->n_segments = o->n_segments ? o->n_segments : 1;
	for (unsigned i = 0; i < v->n_segments; i++) {
		int rc = check_piece(v, b, &from[i], end, err);
		if (rc)
			return rc;
		v->segment[i] = from[i];
		end += from[i].bytes;
	}
	return end == v->bytes ? 0 : cf_fail(err, -EINVAL, "the pieces of the volume are shorter than the volume");
}
