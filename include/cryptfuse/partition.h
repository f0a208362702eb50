/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* partition.h - the partitions of a disk image or of a volume, as libblkid lists them.
 *
 * Hostile input is parsed here, so it runs in the parent, never in the daemon. One thread. */
#ifndef CRYPTFUSE_PARTITION_H
#define CRYPTFUSE_PARTITION_H

#include "cryptfuse/open.h"
#include "cryptfuse/probe.h"

#define CF_PARTITIONS_MAX 128u
#define CF_PARTITION_TEXT 128u

enum cf_partition_kind { CF_PARTITION_PLAIN, CF_PARTITION_EXTENDED /* only holds others */ };

/** One partition. Texts are printable, "" where there is none. */
struct cf_partition {
	unsigned number; /* 1 …, as in /dev/sda1 */
	enum cf_partition_kind kind;
	struct cf_extent place;       /* bytes of the image */
	char type[40];                /* "0x83", or a GUID in small letters */
	const char *type_name;        /* "Linux LUKS"; NULL unknown */
	char name[CF_PARTITION_TEXT]; /* GPT only */
	char uuid[40];                /* PARTUUID */
	struct cf_content content;    /* of cf_partitions_probe */
};

struct cf_partitions {
	char table[16]; /* "gpt", "dos" …; "" no table */
	char uuid[40];
	unsigned n;
	struct cf_partition at[CF_PARTITIONS_MAX];
};

/** cf_partitions_list_fd - list the partitions of an open file or device. Returns 1 there is a table; 0 none; -EIO;
 * -ENOMEM. */
int cf_partitions_list_fd(int fd, struct cf_partitions *out, struct cf_err *err) CF_MUST_CHECK;

/** cf_partitions_list - the same of an image, also a split one. */
int cf_partitions_list(const struct cf_image *image, struct cf_partitions *out, struct cf_err *err) CF_MUST_CHECK;

/** cf_partitions_probe - fill in what is in each partition. 0; -EIO; -ENOMEM. */
int cf_partitions_probe(const struct cf_image *image, struct cf_partitions *list, struct cf_err *err) CF_MUST_CHECK;

/** cf_image_probe - what a range of an image holds; returns as cf_probe_content. */
int cf_image_probe(const struct cf_image *image, const struct cf_extent *e, struct cf_content *out,
				   struct cf_err *err) CF_MUST_CHECK;

/** cf_partition_find - the partition with this number, name or PARTUUID (in any case)
 * Returns 0 and *out, borrowed from @list; -EINVAL none, or several of that name: says which there are. */
int cf_partition_find(const struct cf_partitions *list, const char *text, const struct cf_partition **out,
					  struct cf_err *err) CF_MUST_CHECK;

/** cf_partition_encrypted - how many partitions hold something encrypted that libblkid knows; *first: the first of
 * them, or NULL. After cf_partitions_probe. */
unsigned cf_partition_encrypted(const struct cf_partitions *list, const struct cf_partition **first);

/** What to do about a partition table when no --partition is given. */
enum cf_partition_search {
	CF_PARTITION_ASKED,  /* nothing: the volume is all of the image */
	CF_PARTITION_SEARCH, /* take the one partition that is encrypted */
};

/** cf_partition_choose - in which part of an image the volume lies
 * @opts: opts->partition, NULL: as @search says   @where: out; all of the image when it has no partition table
 * @number: out; of the partition, 0 all of the image
 * Says through @ui when it chose by itself, or when a partition is cut off by the end of the image (refused for
 * writing). Returns 0; -EINVAL no such partition, or not exactly one to choose: says which there are; -EIO. */
int cf_partition_choose(const struct cf_open_opts *opts, enum cf_partition_search search, const struct cf_open_ui *ui,
						const struct cf_image *image, struct cf_extent *where, unsigned *number,
						struct cf_err *err) CF_MUST_CHECK;

/** cf_partition_type_name - what a type of partition is called: "Linux LUKS"; NULL unknown. */
const char *cf_partition_type_name(const char *type);

#endif
