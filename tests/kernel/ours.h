/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ours.h - cryptfuse's side of a comparison, from a table to an open volume, without FUSE. */
#ifndef CRYPTFUSE_TEST_OURS_H
#define CRYPTFUSE_TEST_OURS_H

#include "cryptfuse/err.h"
#include "cryptfuse/table.h"
#include "cryptfuse/volume.h"

/** A table that cryptfuse can read. */
struct ours {
	struct cf_table table;
	uint8_t *key;
};

/** ours_parse - "0 @sectors crypt @params". Returns what cf_table_parse said. */
int ours_parse(struct ours *o, uint64_t sectors, const char *params, struct cf_err *err) CF_MUST_CHECK;
void ours_fini(struct ours *o);

/** ours_open - a volume over the file @fd (borrowed), by that engine (NULL: any) on that path. */
int ours_open(struct cf_volume **out, const struct ours *o, int fd, const char *engine, enum cf_path path,
			  struct cf_err *err) CF_MUST_CHECK;

/** ours_read, ours_write - any range inside the volume; 0, or -errno (-EIO if short). */
int ours_read(struct cf_volume *v, void *buf, size_t len, uint64_t off) CF_MUST_CHECK;
int ours_write(struct cf_volume *v, const void *buf, size_t len, uint64_t off) CF_MUST_CHECK;

#endif
