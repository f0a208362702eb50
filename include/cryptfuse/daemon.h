/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* daemon.h - the process that serves. */
#ifndef CRYPTFUSE_DAEMON_H
#define CRYPTFUSE_DAEMON_H

#include "cryptfuse/serve.h"

/** cf_daemon_main - be the daemon, in a process that was just forked
 * @sock: the end of the socketpair to the parent. Never returns; exits 0, or 1 if it did not start or the last writes
 * did not reach the image. */
_Noreturn void cf_daemon_main(int sock, const struct cf_serve_opts *opts);

#endif
