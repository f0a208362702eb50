/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* sandbox.h - the box that holds a daemon which has all it needs: its open descriptors, its memory, more threads.
 *
 * Three walls, each for itself: no privileges and none to be had, Landlock (no file, no network), seccomp (only the
 * system calls that serving needs). A kernel or a build that lacks one of the last two leaves the others. */
#ifndef CRYPTFUSE_SANDBOX_H
#define CRYPTFUSE_SANDBOX_H

#include <stdbool.h>

#include "cryptfuse/serve.h"

struct cf_err;

/** What is in force, for the status. */
struct cf_sandbox {
	enum cf_sandbox_use use;
	unsigned landlock; /* the version of its interface; 0: this kernel has none */
	bool seccomp;
};

/** cf_sandbox_drop_rights - no capabilities, no new ones by starting a program, no core dump. One thread, so that it
 * holds for all that come. 0 or -errno. */
int cf_sandbox_drop_rights(struct cf_err *err) CF_MUST_CHECK;

/** cf_sandbox_enter - shut the box, for good; after cf_sandbox_drop_rights, before any thread
 * @transport: what else may be needed   @out: what holds; what this kernel or build lacks does not, and is no error.
 * Afterwards: opening a file is -EACCES, most other calls -EPERM, clone3 -ENOSYS; starting a program, tracing a process
 * or making a socket ends the process. Returns 0; -errno a wall that is there could not be put up. */
int cf_sandbox_enter(struct cf_sandbox *out, enum cf_transport transport, struct cf_err *err) CF_MUST_CHECK;

/** cf_sandbox_files - Landlock alone: no file, no TCP, no signal or abstract socket to outside. The version of its
 * interface that is in force; 0 this kernel has none; -errno. */
int cf_sandbox_files(void) CF_MUST_CHECK;

/** cf_sandbox_filter - the seccomp filter alone. 1 it is in force; 0 this kernel or build has none; -errno. */
int cf_sandbox_filter(enum cf_transport transport) CF_MUST_CHECK;

#endif
