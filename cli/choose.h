/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* choose.h - which of the files of an open volume holds the file system that is to be mounted. One thread. */
#ifndef CRYPTFUSE_CLI_CHOOSE_H
#define CRYPTFUSE_CLI_CHOOSE_H

#include <limits.h>

#include "cryptfuse/base.h"

struct cf_err;
struct cli_opts;

struct cli_choice {
	char name[NAME_MAX + 1]; /* "volume", "volume.p2" */
	char type[32];           /* as libblkid calls it, or as --fs said */
	char label[128];         /* "" none */
	unsigned partition;      /* of the volume; 0: the whole volume */
};

/** cli_choose - look into the volume at @path
 * @name: of its file. Returns 0; -EINVAL nothing that could be mounted, or several: says which; -EIO. */
int cli_choose(const struct cli_opts *o, const char *path, const char *name, struct cli_choice *out,
			   struct cf_err *err) CF_MUST_CHECK;

#endif
