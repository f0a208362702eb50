/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* mkfs.h - makes a file system in a file in memory, with the system's own programs: no mount, no rights. */
#ifndef CRYPTFUSE_CLI_MKFS_H
#define CRYPTFUSE_CLI_MKFS_H

#include <stddef.h>
#include <stdint.h>

#include "cryptfuse/base.h"

struct cf_err;
struct cli_mkfs; /* a file system that can be made */

/** cli_mkfs_find - by its name; is its program there? Returns 0; -EINVAL not known, names those that are; -ENOENT names
 * the package. */
int cli_mkfs_find(const char *name, const struct cli_mkfs **out, struct cf_err *err) CF_MUST_CHECK;

/** cli_mkfs_name - what --mkfs takes, one after the other; NULL past the last. */
const char *cli_mkfs_name(size_t i);

/** cli_mkfs_run - make it
 * @bytes: how long it is to be   @verbose: let the program talk
 * @out_fd: owned; a file in memory that has holes where the program wrote nothing. Returns 0; -EIO the program failed.
 */
int cli_mkfs_run(const struct cli_mkfs *fs, uint64_t bytes, unsigned verbose, int *out_fd,
				 struct cf_err *err) CF_MUST_CHECK;

#endif
