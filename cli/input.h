/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* input.h - a file that is read from one end to the other: a file or device by offset, anything else as a stream. */
#ifndef CRYPTFUSE_CLI_INPUT_H
#define CRYPTFUSE_CLI_INPUT_H

#include "cryptfuse/copy.h"
#include "cryptfuse/image.h"

struct cf_err;

struct cli_input {
	const char *shown;
	struct cf_image image; /* a file or device: locked, and what an output must differ from */
	uint64_t bytes;        /* CF_COPY_UNKNOWN: a stream */
	struct cf_copy_file file;
	struct cf_copy_stream stream;
};

#define CLI_INPUT_NONE                            \
	{                                             \
		.file = {.fd = -1}, .stream = {.fd = -1 } \
	}

/** cli_input_open - @path: "-" is standard input. 0; -EINVAL a directory, a terminal, empty; -EACCES; -EBUSY. */
int cli_input_open(struct cli_input *in, const char *path, struct cf_err *err) CF_MUST_CHECK;

/** cli_input_source - @in must stay where it is. */
struct cf_copy_source cli_input_source(struct cli_input *in);

/** cli_input_fini - CF_CLEANUP helper, idempotent. */
void cli_input_fini(struct cli_input *in);

#endif
