/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* info.h - what `cryptfuse info` found, and the two ways to print it. Plain data, printable text. */
#ifndef CRYPTFUSE_CLI_INFO_H
#define CRYPTFUSE_CLI_INFO_H

#include "cryptfuse/header.h"
#include "cryptfuse/partition.h"

#define INFO_COMMANDS_MAX 8u
#define INFO_COMMAND (2 * PATH_MAX + 256)

/** What lies in an image or a partition. */
struct info_volume {
	struct cf_content content;    /* as libblkid sees it */
	struct cf_header_info header; /* kind CF_HEADER_NONE: none */
	uint64_t missing_bytes;       /* of a partition: how much of it lies beyond the end of the image */
};

struct info {
	const char *image;
	const char *header_file; /* --header; NULL */
	uint64_t bytes;
	unsigned n_parts; /* of a split image; 1: not split */
	struct info_volume whole;
	struct cf_partitions list;                  /* with --partition: that one alone */
	struct info_volume part[CF_PARTITIONS_MAX]; /* content is in the list */
	unsigned n_commands, n_mount_commands;
	char command[INFO_COMMANDS_MAX][INFO_COMMAND]; /* how to open it: suggestions */
	char mount_command[INFO_COMMANDS_MAX][INFO_COMMAND];
};

/** info_is_known - was anything found there? */
static inline int info_is_known(const struct info_volume *v)
{
	return v->content.type[0] || v->header.kind != CF_HEADER_NONE || v->header.problem[0];
}

/** info_suggest - fill in the commands, once all else is there. */
void info_suggest(struct info *i);

/** info_print_text, info_print_json - to standard output. -ENOMEM. */
void info_print_text(const struct info *i);
int info_print_json(const struct info *i, struct cf_err *err) CF_MUST_CHECK;

#endif
