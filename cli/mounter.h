/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* mounter.h - runs the program that mounts the file system in a volume, and learns how its daemon ended.
 *
 *     mount                keeper                       program
 *     fork  ------------>  lock, adopts orphans  ---->  mounts, leaves a daemon behind, ends
 *     waits for one int <- its exit status
 *     exits                waits for the daemon (after an unmount it may still write for long), and for the
 *                          unmount; writes "ended" if the daemon did not end well, lets go of the lock
 *                          and closes the volume, unless `umount` is there to do it
 *
 * One thread. */
#ifndef CRYPTFUSE_CLI_MOUNTER_H
#define CRYPTFUSE_CLI_MOUNTER_H

#include "filesystems.h"
#include "place.h"

struct cli_signals;

enum cli_verbosity { CLI_QUIET, CLI_VERBOSE };

/** cli_mounter_run - run a program, to the end of its first process
 * @before: what lay on the target of the place; not used of a program that ends   @verbosity: CLI_VERBOSE: what it says
 * is said, too; on failure its reason always is.
 * @signals: one that comes ends the program. 0; -EIO it failed; -EINTR. */
int cli_mounter_run(const struct cli_program *program, const struct cli_place *place, const struct cf_mount *before,
					enum cli_verbosity verbosity, const struct cli_signals *signals, struct cf_err *err) CF_MUST_CHECK;

/** cli_mounter_wait - wait until nobody holds the place's lock: the file system's daemon has written all it had
 * Returns 0; 1 it has not ended well, as @how says; -ETIMEDOUT. */
int cli_mounter_wait(const struct cli_place *place, unsigned timeout_s, char how[static PATH_MAX]) CF_MUST_CHECK;

#endif
