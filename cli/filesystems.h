/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* filesystems.h - which program mounts a file system for whom.
 *
 * A file system is one row of one table in filesystems.c. One thread. */
#ifndef CRYPTFUSE_CLI_FILESYSTEMS_H
#define CRYPTFUSE_CLI_FILESYSTEMS_H

#include <limits.h>

#include "options.h"

#define CLI_PROGRAM_ARGS 10
#define CLI_MOUNTER_TEXT (2 * PATH_MAX)

/** One program with its arguments. */
struct cli_program {
	enum { CLI_ENDS, CLI_MOUNTS } purpose;
	char path[PATH_MAX];                /* "" none */
	const char *argv[CLI_PROGRAM_ARGS]; /* constants, and texts of the job and the mounter */
	const char *mark; /* what says why it failed begins so, somewhere in a line; NULL, or nowhere: the first line */
	int ok_status;    /* up to this one it did what it should */
	enum cf_access access; /* a daemon that only reads can lose nothing: no exit status is bad */
};

struct filesystem;

/** What mounts something. */
struct cli_mounter {
	struct cli_program before; /* makes the file system fit to be written; none needed: "" */
	struct cli_program mount;
	const struct filesystem *by_kernel; /* its row, if it is the kernel's own; else NULL */
	char options[CLI_MOUNTER_TEXT];
};

/** What is to be mounted, and where. */
struct cli_mount_job {
	const char *type; /* of the file system, as libblkid calls it */
	const char *file, *directory;
	enum cf_access access;
	enum cf_mount_share share;
	const char *more; /* options that the user added; NULL none */
};

/** cli_mounter_find - how this user mounts it
 * @out: refers to itself and to @job's texts, so it must not be moved. Returns 0; -EINVAL this is no file system, or
 * one that nobody can mount; -ENOENT the program is missing: says the package; -EPERM needs what this user lacks. */
int cli_mounter_find(const struct cli_mount_job *job, struct cli_mounter *out, struct cf_err *err) CF_MUST_CHECK;

/** cli_program_locate - @path: where distributions keep such a program; -ENOENT. */
int cli_program_locate(const char *program, char path[static PATH_MAX]) CF_MUST_CHECK;

/** cli_mounter_explain - in @err, and returned: why @m failed with @rc, as @why says; -ENODEV the kernel lacks this
 * file system, also now that mount(8) has looked for a module. */
int cli_mounter_explain(const struct cli_mounter *m, int rc, const struct cf_err *why, struct cf_err *err);

/** cli_mounter_kernel_type - what the kernel calls the job's file system. @type: out, a constant. 0; -EINVAL as above.
 */
int cli_mounter_kernel_type(const struct cli_mount_job *job, const char **type, struct cf_err *err) CF_MUST_CHECK;

#endif
