/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* runtime.h - the directory of a user's running volumes: control sockets, and the places of `mount`.
 *
 * $XDG_RUNTIME_DIR/cryptfuse, where that is private; else /run/user/UID/cryptfuse, else /tmp/cryptfuse-UID; of root
 * /run/cryptfuse. Each belongs to its user alone, or is not used. No state. */
#ifndef CRYPTFUSE_RUNTIME_H
#define CRYPTFUSE_RUNTIME_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cryptfuse/base.h"

struct cf_err;

#define CF_RUNTIME_BASES 3u

/** cf_runtime_bases - where it may be, the best one first; "" for one that @uid cannot have, or that is not known of
 * another user. The last one is never "". */
void cf_runtime_bases(uid_t uid, char base[static CF_RUNTIME_BASES][PATH_MAX]);

/** cf_runtime_is_private - a directory of @uid that nobody else can enter. */
bool cf_runtime_is_private(const char *dir, uid_t uid);

/** cf_runtime_make - have @base there, for the caller's own user. 0; -EPERM it is not private; -errno. */
int cf_runtime_make(const char *base, struct cf_err *err) CF_MUST_CHECK;

#endif
