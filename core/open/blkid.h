/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* blkid.h - what those share that ask libblkid. Inside core/open only. */
#ifndef CRYPTFUSE_OPEN_BLKID_H
#define CRYPTFUSE_OPEN_BLKID_H

#include <blkid.h>

#include "cryptfuse/base.h"

struct cf_err;

/** cf_blkid_new - a probe of a range of an open file or device
 * @bytes: 0: to the end. Returns 0 and *out, for cf_blkid_free; -ENOMEM; -EIO. */
int cf_blkid_new(blkid_probe *out, int fd, uint64_t off, uint64_t bytes, struct cf_err *err) CF_MUST_CHECK;

/** cf_blkid_free - CF_CLEANUP helper. */
void cf_blkid_free(blkid_probe *probe);

/** cf_blkid_append - put a name from the image behind @text: well-formed UTF-8 that prints; '?' for anything else.
 * @s: NULL appends nothing. Cut to @size at a character. */
void cf_blkid_append(char *text, size_t size, const char *s);

#endif
