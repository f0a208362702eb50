/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* helper.h - the unmount helper: a child of the daemon that can still do what the daemon gave up.
 *
 * It is forked before any secret exists and holds nothing but its end of a socketpair (HAZARDS 2). One letter a
 * message:
 *
 *     daemon -> helper   W about to mount   M mounted (with the device)   T stop   S say this in the system's log
 *                        F flush the files and hold them   P drop the kernel's clean pages of them, let go
 *                        end: the daemon has gone
 *     helper -> daemon   R ready, or why not   D detached, end now   F, P done
 *
 * On T it flushes the volume file and unmounts it while the daemon serves on; at the end it removes what is left. */
#ifndef CRYPTFUSE_HELPER_H
#define CRYPTFUSE_HELPER_H

#include "cryptfuse/mounts.h"
#include "cryptfuse/serve.h"

enum cf_helper_word {
	CF_HELPER_READY = 'R',
	CF_HELPER_MOUNTING = 'W',
	CF_HELPER_MOUNTED = 'M',
	CF_HELPER_STOP = 'T',
	CF_HELPER_SAY = 'S',
	CF_HELPER_FLUSH = 'F',
	CF_HELPER_DROP = 'P',
	CF_HELPER_DETACHED = 'D',
};

/** cf_helper_fork - start it, and wait until it is ready
 * @sock: out, the daemon's end, close-on-exec. The child never returns. Call while the process has one thread and no
 * secret. 0 or -errno. */
int cf_helper_fork(const struct cf_serve_opts *opts, int *sock) CF_MUST_CHECK;

/** cf_helper_tell - one word; @mount only with CF_HELPER_MOUNTED. Any thread. 0, or -errno: -EPIPE it has gone. */
int cf_helper_tell(int sock, enum cf_helper_word word, const struct cf_mount *mount);

/** cf_helper_say - have it tell the system's log; dropped while the helper has too much to do. Any thread, never waits.
 */
void cf_helper_say(int sock, const char *text);

/** cf_helper_hear - wait for its word; 0 it has gone. */
int cf_helper_hear(int sock);

/** cf_helper_end - let it remove a mount that is left, and wait until it has ended; the connection to the kernel must
 * be closed already. @sock: closed, left -1; -1 is fine. */
void cf_helper_end(int *sock);

#endif
