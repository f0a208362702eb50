/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* segment.h - a volume in pieces: what device-mapper would make several targets of.
 *
 * Plain data. Pieces stand in order and without gaps, and each is whole data units long. */
#ifndef CRYPTFUSE_SEGMENT_H
#define CRYPTFUSE_SEGMENT_H

#include "cryptfuse/base.h"

#define CF_SEGMENTS_MAX 16u

enum cf_segment_kind {
	CF_SEGMENT_CRYPT,
	CF_SEGMENT_ZERO, /* reads as zeros; takes zeros, and nothing else */
};

struct cf_segment {
	enum cf_segment_kind kind;
	uint64_t off, bytes; /* in the volume */
	uint64_t data_off;   /* bytes into the backing; 0 with CF_SEGMENT_ZERO */
	uint64_t iv_sector;  /* of its first sector, before the cipher's iv_offset; a multiple of the DU */
};

#endif
