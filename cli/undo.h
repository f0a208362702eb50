/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* undo.h - undoes what `mount` did, all of it or as much as there is. One thread. */
#ifndef CRYPTFUSE_CLI_UNDO_H
#define CRYPTFUSE_CLI_UNDO_H

#include "place.h"

/** cli_undo - unmount the file system, wait until its daemon has written all it had, close the volume, remove the place
 * Never by force. Returns 0; -EBUSY who holds it is said, and a second call goes on from there; -ETIMEDOUT the same;
 * -EIO all is undone, but something did not reach the image. */
int cli_undo(struct cli_place *p, struct cf_err *err) CF_MUST_CHECK;

/** cli_undo_volume - the last step of it alone, once nothing is mounted on the volume: a loop device may let go of it a
 * moment later, which is waited for. 0, also when it is closed already; -EBUSY; -EIO; -ETIMEDOUT. */
int cli_undo_volume(const struct cli_place *p, struct cf_err *err) CF_MUST_CHECK;

#endif
