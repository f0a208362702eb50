/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* newimage.h - an image that is made: plain, or with a LUKS2 header in front; for create and encrypt.
 *
 * It is a volume that can be written as soon as cli_new_open is done, and an image with a name only after
 * cli_new_finish. */
#ifndef CRYPTFUSE_CLI_NEWIMAGE_H
#define CRYPTFUSE_CLI_NEWIMAGE_H

#include "cli.h"
#include "cryptfuse/format.h"
#include "output.h"

struct cli_new {
	struct cli_opts o; /* a copy, with what goes without saying filled in */
	const char *path;
	struct cli_output out;
	struct cf_opening opening;
	struct cf_format format; /* of a LUKS2 image */
	struct cf_volume *volume;
};

/** cli_new_plan - is it possible, as far as can be told without a key? Replaces an existing file only with --force, and
 * never a device. Returns 0 or -errno; cli_new_fini in either case. */
int cli_new_plan(struct cli_new *n, const struct cli_opts *o, const char *path, struct cf_err *err) CF_MUST_CHECK;

/** cli_new_du_bytes - its data unit: --sector-size, or what goes with volumes of @bytes. */
uint32_t cli_new_du_bytes(const struct cli_new *n, uint64_t bytes);

/** cli_new_header_bytes - how much of the image comes before the volume. */
uint64_t cli_new_header_bytes(const struct cli_new *n);

/** cli_new_open - ask for the passphrase, make the file and open the volume in it
 * @bytes: of the volume   @zeros: CF_COPY_ZEROS_SKIPPED leaves holes where nothing is written. */
int cli_new_open(struct cli_new *n, uint64_t bytes, enum cf_copy_zeros zeros, struct cf_err *err) CF_MUST_CHECK;

/** cli_new_finish - the header, everything to the disk, and the name. */
int cli_new_finish(struct cli_new *n, struct cf_err *err) CF_MUST_CHECK;

/** cli_new_fini - what is not finished goes away; idempotent. */
void cli_new_fini(struct cli_new *n);

#endif
