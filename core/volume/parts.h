/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* parts.h - the names of a split image's parts. Inside core/volume only. */
#ifndef CRYPTFUSE_VOLUME_PARTS_H
#define CRYPTFUSE_VOLUME_PARTS_H

#include <limits.h>

#include "cryptfuse/base.h"

struct cf_err;

/** How the parts of an image are named. */
struct cf_parts {
	char path[PATH_MAX]; /* of one part: the name of each differs in the counter at its end only */
	size_t digits;       /* in the counter */
	char zero;           /* its lowest digit: '0' or 'a' */
	unsigned base;       /* 10 or 26 */
	unsigned first;      /* the first part's counter */
	unsigned n;          /* how many parts there are; 1: not split */
};

/** cf_parts_find - is @path the first part of a split image, and how many parts are there?
 * Names: anything with .000 or .001 and the like behind it (three digits or more; .00 with two, as split -d makes
 * them), .aa (two letters or more), or split's own xaa and x00. Returns 0, *out with n 1 for any other file and for a
 * part that stands alone; -ENODEV a part is missing between others, or in front of them; -EINVAL @path is a later part
 * of an image whose first is there; -E2BIG more parts than CF_IMAGE_PARTS_MAX. */
int cf_parts_find(const char *path, struct cf_parts *out, struct cf_err *err) CF_MUST_CHECK;

/** cf_parts_name - make p->path the name of part @i, counted from 0, and return it. */
const char *cf_parts_name(struct cf_parts *p, unsigned i);

#endif
