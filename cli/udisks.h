/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* udisks.h - the kernel's file systems for an ordinary user, where udisks lends its rights to a session.
 *
 * udisksd gets the open file from udisksctl, so it needs no leave to look into the user's FUSE mount. It chooses the
 * mount point; the place remembers it as "at". One thread. */
#ifndef CRYPTFUSE_CLI_UDISKS_H
#define CRYPTFUSE_CLI_UDISKS_H

#include "filesystems.h"
#include "mounter.h"
#include "place.h"

/** cli_udisks_check - is there a udisksctl, and does --udisks go with the other options? Before any secret.
 * 0; -ENOENT; -EINVAL. */
int cli_udisks_check(enum cf_mount_share share, struct cf_err *err) CF_MUST_CHECK;

/** cli_udisks_mount - a loop device on @job's file, and its file system mounted
 * @type: the kernel's name of the file system; NULL what udisks finds. @job: its directory and share are not used.
 * Not interrupted half way: what udisksd has begun it would go on with. Returns 0; -EPERM udisks does not let this
 * user, or the kernel wants user_allow_other; -EIO it failed. What was done is cli_udisks_undo's to undo. */
int cli_udisks_mount(const struct cli_place *place, const struct cli_mount_job *job, const char *type,
					 enum cli_verbosity verbosity, struct cf_err *err) CF_MUST_CHECK;

/** cli_udisks_undo - unmount, and take away, every loop device on a file in the place. Nothing there: 0.
 * -EBUSY in use, says by whom; -EPERM, -EIO udisks failed: says what is left. */
int cli_udisks_undo(const struct cli_place *place, struct cf_err *err) CF_MUST_CHECK;

#endif
