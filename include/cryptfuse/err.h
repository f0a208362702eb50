/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* err.h - what went wrong, as one line for a person and one code for a caller.
 *
 * Used on the control path only (parse, open, key, mount). The caller owns the struct, usually on its stack; the first
 * message wins, since it is the one nearest the cause. The data path returns -errno and no text. */
#ifndef CRYPTFUSE_ERR_H
#define CRYPTFUSE_ERR_H

#include "cryptfuse/base.h"

#define CF_ERR_TEXT 512

struct cf_err {
	int code;               /* -errno, 0 while nothing failed */
	char text[CF_ERR_TEXT]; /* one line, no newline, no program name, never key material */
};

/** cf_fail - record a failure and return its code
 * @err: the caller's; NULL drops the text     @code: -errno, below 0
 * @fmt: what failed, on what, what to do: one line; cut at CF_ERR_TEXT
 * Keeps an earlier message. Returns @code, so that `return cf_fail(err, -EINVAL, …)` is the whole error path. */
int cf_fail(struct cf_err *err, int code, const char *fmt, ...) CF_PRINTF(3, 4);
#ifdef CF_ANALYSIS /* tools that do not look into other files: what it returns */
#define cf_fail(err, code, ...) ((void)cf_fail(err, code, __VA_ARGS__), (code))
#endif

/** cf_err_exit_code - cryptsetup's exit code for a -errno
 * 0 ok · 1 wrong parameters (and all else) · 2 no permission (EPERM, EACCES) · 3 out of memory (ENOMEM) ·
 * 4 wrong device, unknown cipher (ENODEV, ENOENT, ENOTBLK, ENXIO) · 5 busy (EBUSY, EEXIST). Source: cryptsetup(8). */
int cf_err_exit_code(int code);

#endif
