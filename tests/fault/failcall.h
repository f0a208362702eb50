/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* failcall.h - what failcall.so and its driver share: a file that both map.
 *
 * The driver writes the order, the library the counts. Numbers only, all of one size, so that Python's ctypes reads it.
 */
#ifndef CRYPTFUSE_FAILCALL_H
#define CRYPTFUSE_FAILCALL_H

#include <stdatomic.h>
#include <stdint.h>

#define FAILCALL_DEPTHS 5u /* forks between the first process and the one that calls; the last: that many and more */
#define FAILCALL_ORIGINS 10u
#define FAILCALL_CALLS_MAX 160u
#define FAILCALL_FRAMES 12u
#define FAILCALL_SHORT UINT32_MAX /* instead of an errno: half of what was asked is transferred */

struct failcall_state {
	/* The order: the n-th use of a call, by one depth and one origin, and if asked all uses after it. */
	_Atomic uint32_t call; /* its index + 1; 0: nothing fails */
	_Atomic uint32_t depth, origin, n, all_after, code;
	/* What came of it. */
	_Atomic uint32_t seen, fired;
	_Atomic uint32_t crashed;                   /* the signal */
	_Atomic uint32_t frame[FAILCALL_FRAMES][2]; /* where: origin + 1, offset in it; 0 ends */
	_Atomic uint32_t used[FAILCALL_DEPTHS][FAILCALL_ORIGINS][FAILCALL_CALLS_MAX];
};

#pragma GCC visibility push(default)
/** failcall_name - of a call; NULL after the last. failcall_code - the k-th way it can fail; 0 after the last. */
const char *failcall_name(unsigned call);
uint32_t failcall_code(unsigned call, unsigned k);
/** failcall_origin - who calls: the program, or one of its libraries; NULL after the last. */
const char *failcall_origin(unsigned origin);
#pragma GCC visibility pop

#endif
