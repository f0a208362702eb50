/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* copying.h - long copies as a person sees them: progress, digests, an end by signal. */
#ifndef CRYPTFUSE_CLI_COPYING_H
#define CRYPTFUSE_CLI_COPYING_H

#include "cli.h"
#include "cryptfuse/copy.h"
#include "cryptfuse/digest.h"

/** Digests of what is copied, in the order they were asked for. */
struct cli_digests {
	unsigned n;
	struct {
		char name[CF_NAME_MAX];
		struct cf_digest_run *run;
	} at[CF_COPY_TAPS_MAX];
};

/** cli_digests_start - @list: "sha256,md5", or NULL for none. -EINVAL one is not known. */
int cli_digests_start(struct cli_digests *d, const char *list, struct cf_err *err) CF_MUST_CHECK;

/** cli_digests_print - a line each, as sha256sum prints them
 * @to_stderr: standard output carries the data itself. */
int cli_digests_print(struct cli_digests *d, const char *file, unsigned to_stderr, struct cf_err *err) CF_MUST_CHECK;

/** cli_digests_fini - CF_CLEANUP helper, idempotent. */
void cli_digests_fini(struct cli_digests *d);

/** A copy, and what its ends are called. */
struct cli_copying {
	struct cf_copy_source source;
	struct cf_copy_sink sink;
	const char *from, *to;
	struct cli_digests *digests;       /* NULL: none */
	const struct cli_signals *signals; /* held: they end the copy */
	uint64_t bytes;                    /* out: copied */
};

/** cli_copy - run it, with a line of progress on a terminal
 * Returns 0; -EINTR a signal came; what failed, with a line that says where. */
int cli_copy(struct cli_copying *copying, struct cf_err *err) CF_MUST_CHECK;

#endif
