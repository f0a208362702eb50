/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* output.h - a file that is made: it gets its name when all of it is there and on the disk, never before.
 *
 * Until then it has no name at all (O_TMPFILE), or, where the file system cannot do that, the name NAME.partial: a
 * process that is killed leaves nothing that looks finished. Devices and streams, which have no such state, are
 * told apart. One thread. */
#ifndef CRYPTFUSE_CLI_OUTPUT_H
#define CRYPTFUSE_CLI_OUTPUT_H

#include <limits.h>
#include <sys/stat.h>

#include "cryptfuse/copy.h"
#include "cryptfuse/image.h"

struct cf_err;

enum cli_output_kind {
	CLI_OUTPUT_FILE,   /* a new one, or one that is replaced */
	CLI_OUTPUT_DEVICE, /* a block device */
	CLI_OUTPUT_STREAM, /* standard output, a FIFO, /dev/null */
};

struct cli_output {
	const char *shown; /* as the user named it */
	enum cli_output_kind kind;
	unsigned force, is_stdout;
	struct stat st; /* of what is there; st_nlink 0: nothing */
	int dir;        /* the folder of a file */
	char name[NAME_MAX + 1], partial[NAME_MAX + 1];
	unsigned has_partial; /* the file has the name NAME.partial now */
	int fd;               /* -1: not made yet */
};

#define CLI_OUTPUT_NONE     \
	{                       \
		.dir = -1, .fd = -1 \
	}

/** cli_output_plan - what would be written to, and may it be? Makes nothing and changes nothing
 * @path: "-" is standard output   @force: what exists may be replaced or, if a device, overwritten
 * Returns 0; -EEXIST without @force; -EBUSY something uses it; -EINVAL; -EACCES … */
int cli_output_plan(struct cli_output *out, const char *path, unsigned force, struct cf_err *err) CF_MUST_CHECK;

/** cli_output_differs - what would be written is no part of @image, called @name. 0 or -EINVAL. */
int cli_output_differs(const struct cli_output *out, const struct cf_image *image, const char *name,
					   struct cf_err *err) CF_MUST_CHECK;

/** cli_output_room - is there room for @bytes? What can be known: free space, a device's size. -ENOSPC with both sizes.
 */
int cli_output_room(const struct cli_output *out, uint64_t bytes, struct cf_err *err) CF_MUST_CHECK;

/** cli_output_make - make or open it
 * @bytes: how long a file will be: it has that length at once, and the room is reserved unless @zeros are skipped
 * A FIFO waits for its reader. Returns 0 with @out->fd open for reading and writing (a stream: for writing); -ENOSPC;
 * -EFBIG; -EBUSY … */
int cli_output_make(struct cli_output *out, uint64_t bytes, enum cf_copy_zeros zeros, struct cf_err *err) CF_MUST_CHECK;

/** cli_output_unmake - as if it had not been made; for another try. */
void cli_output_unmake(struct cli_output *out);

/** cli_output_finish - everything to the disk, and then the name. 0 or -errno: then nothing has the name. */
int cli_output_finish(struct cli_output *out, struct cf_err *err) CF_MUST_CHECK;

/** cli_output_fini - closes; what was not finished goes away. CF_CLEANUP helper, idempotent. */
void cli_output_fini(struct cli_output *out);

#endif
