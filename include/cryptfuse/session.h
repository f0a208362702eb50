/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* session.h - the FUSE session: its mount options and the mount itself. Its requests are taken by loop.h. */
#ifndef CRYPTFUSE_SESSION_H
#define CRYPTFUSE_SESSION_H

#include "cryptfuse/ops.h"

struct cf_mount;
struct fuse_session;

/** cf_session_mount - make a session and mount it
 * One thread only: standard error is redirected meanwhile, so that what fusermount3 says becomes the message.
 * Returns 0 and *out, to be given to cf_session_free; -EPERM, -EACCES, -ENODEV, -EBUSY …, with a line that says what to
 * do. */
int cf_session_mount(struct fuse_session **out, struct cf_ops *ops, struct cf_err *err) CF_MUST_CHECK;

/** cf_session_readahead - let the kernel read ahead so far; 0: as far as it does by itself. Before the loop.
 * Returns how far it will, in KiB, which is less than @kib where raising it is not permitted; 0 if that cannot be told.
 */
unsigned cf_session_readahead(const struct cf_mount *m, unsigned kib);

/** cf_session_check_transport - does this build's libfuse, and this kernel, have it? 0; -EINVAL with a line. */
int cf_session_check_transport(enum cf_transport transport, struct cf_err *err) CF_MUST_CHECK;

/** cf_session_loop - libfuse's own loop, which alone ends the threads that CF_TRANSPORT_IO_URING has. 0 or -errno. */
int cf_session_loop(struct fuse_session *se, unsigned n_threads) CF_MUST_CHECK;

/** cf_session_free - gives the connection back; does not unmount. Takes NULL, leaves NULL. */
void cf_session_free(struct fuse_session **se);

#endif
