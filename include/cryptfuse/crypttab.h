/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* crypttab.h - a line of /etc/crypttab as options: "NAME SOURCE [KEYFILE [OPTION,…]]". Names files, holds no key. */
#ifndef CRYPTFUSE_CRYPTTAB_H
#define CRYPTFUSE_CRYPTTAB_H

#include <limits.h>

#include "cryptfuse/open.h"

#define CF_CRYPTTAB_PATH "/etc/crypttab"
#define CF_CRYPTTAB_LINE_MAX 4096u /* bytes, NUL included */

/** What a line says. Points into itself: not to be copied. */
struct cf_crypttab {
	struct cf_open_opts volume; /* image, key_file and what the options say; tries 0: not said */
	uint64_t timeout_s;         /* 0: not said */
	unsigned verify;
	char line[CF_CRYPTTAB_LINE_MAX]; /* cut into words */
	char source[PATH_MAX];
	char ignored[512]; /* the options that mean nothing here, with ", " between; "" none */
};

/** cf_crypttab_find - the line of that name in a crypttab's text
 * @text: @len bytes   @where: what messages call it   @out: as a whole, set on success
 * Lines of other names are not judged. Returns 0; -ENOENT no such line; -EINVAL it stands there twice, is malformed, or
 * has an option that is unknown or cannot be had (volumes for swap, TrueCrypt, scripts and tokens that give the key).
 */
int cf_crypttab_find(const char *text, size_t len, const char *where, const char *name, struct cf_crypttab *out,
					 struct cf_err *err) CF_MUST_CHECK;

/** cf_crypttab_read - the same from a file. Also -EACCES, -EIO … */
int cf_crypttab_read(const char *path, const char *name, struct cf_crypttab *out, struct cf_err *err) CF_MUST_CHECK;

/** cf_crypttab_apply - let a line fill in what @opts leaves open: what stands in @opts wins. With a key file or volume
 * key in @opts, all that the line says of its key file is left out. @opts borrows from @t. */
void cf_crypttab_apply(const struct cf_crypttab *t, struct cf_open_opts *opts);

#endif
