/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* crypttab.h - what the two files that read a crypttab line share. Inside core/open only. */
#ifndef CRYPTFUSE_OPEN_CRYPTTAB_H
#define CRYPTFUSE_OPEN_CRYPTTAB_H

#include "cryptfuse/crypttab.h"

struct cf_err;

#define CF_CRYPTTAB_RANDOM_KEY "its volume gets a new random key each time, so there is nothing to be opened"

/** Where a message is about. */
struct cf_crypttab_place {
	const char *where, *name;
	unsigned line; /* from 1 */
};

/** cf_crypttab_take_options - the fourth field into @t, which goes on pointing into @words; these are cut at the commas
 * Returns 0; -EINVAL an option is unknown, cannot be had, or has no value or a wrong one. */
int cf_crypttab_take_options(struct cf_crypttab *t, const struct cf_crypttab_place *p, char *words,
							 struct cf_err *err) CF_MUST_CHECK;

#endif
