/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* image.h - a disk image out of an input: few bytes, far apart, in a file in memory.
 *
 *     flags (1) | size (fuzz_odd_number) | { offset (4), length (2), bytes } …
 *
 * A length of 0xffff is all that is left. tests/fuzz/pack makes such inputs of images. */
#ifndef CRYPTFUSE_FUZZ_IMAGE_H
#define CRYPTFUSE_FUZZ_IMAGE_H

#include "fuzz.h"

/** What the flags ask for besides; the other bits are the target's. */
enum fuzz_image_flags {
	FUZZ_SEAL = 1,   /* make the checksum of a LUKS2 header right, so that what it says is looked at */
	FUZZ_SECOND = 2, /* and put its second copy behind it */
	FUZZ_MORE = 4,   /* do what takes long, too: unlock, or compare with a split image */
};

struct fuzz_image {
	int fd; /* the caller's, read-only */
	uint64_t bytes;
	unsigned flags;
};

void fuzz_image(struct fuzz_in *in, struct fuzz_image *out);

#endif
