/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* aligned.h - a backing of whole blocks, made fit for any range. Within core/volume and its tests. */
#ifndef CRYPTFUSE_VOLUME_ALIGNED_H
#define CRYPTFUSE_VOLUME_ALIGNED_H

#include "cryptfuse/backing.h"

#define CF_ALIGNED_BLOCK_MAX 65536u /* bytes */

/** cf_aligned_tail_off - where the part begins that whole blocks cannot reach: @bytes if there is none. It is whole
 * pages, so that a page of the page cache never holds bytes of both parts. */
uint64_t cf_aligned_tail_off(uint64_t bytes, uint32_t block);

/** cf_aligned_new
 * @inner: takes ranges of whole blocks in aligned memory only; below the tail
 * @tail: takes any range, from cf_aligned_tail_off on; of the same store; NULL in it if there is no tail
 * @block, @memory: what offsets and lengths, and addresses, must be multiples of: bytes, powers of two, @memory at most
 * @block, @block at most CF_ALIGNED_BLOCK_MAX. Both backings are taken on success, untouched on failure. 0 or -ENOMEM.
 */
int cf_aligned_new(struct cf_backing **out, struct cf_backing **inner, struct cf_backing **tail, uint32_t block,
				   uint32_t memory, struct cf_err *err) CF_MUST_CHECK;

#endif
