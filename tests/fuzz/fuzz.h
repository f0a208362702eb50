/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* fuzz.h - what the fuzz targets share. A target is one file, fuzz_NAME.c, whose LLVMFuzzerTestOneInput takes any bytes
 * and holds what it tests to its contract. libFuzzer brings main(); without clang main.c runs the corpus, so that the
 * same file is a regression test. */
#ifndef CRYPTFUSE_FUZZ_H
#define CRYPTFUSE_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cryptfuse/err.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/** fuzz_must - an invariant: where it does not hold the target ends as a crash does. */
#define fuzz_must(what)                                                               \
	do {                                                                              \
		if (!(what)) {                                                                \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #what); \
			abort();                                                                  \
		}                                                                             \
	} while (0)

/** An input that is eaten from its front; past its end it is zeros. */
struct fuzz_in {
	const uint8_t *at;
	size_t left;
};

/** fuzz_number - the next @bytes, 1 to 8, as a little-endian number. */
uint64_t fuzz_number(struct fuzz_in *in, size_t bytes);

/** fuzz_odd_number - a number near what arithmetic trips over: 0, powers of two up to 2^64, each with some added. */
uint64_t fuzz_odd_number(struct fuzz_in *in);

/** fuzz_take - the next @len bytes, or as many as there are: *len says. */
const uint8_t *fuzz_take(struct fuzz_in *in, size_t *len);

/** fuzz_line - the next line, without its newline, NUL-terminated, in memory of its own length so that a sanitizer sees
 * each byte too many; cut at a NUL. The caller frees it. */
char *fuzz_line(struct fuzz_in *in);

/** fuzz_text - all that is left, as fuzz_line. */
char *fuzz_text(struct fuzz_in *in);

/** fuzz_copy - bytes in memory of exactly that length. The caller frees it. */
void *fuzz_copy(const void *bytes, size_t len);

/** fuzz_judged - a result and its message: a failure has a line of text that prints, success has none. */
void fuzz_judged(int rc, const struct cf_err *err);

/** fuzz_file - a file in memory with that content, and its path. The caller closes the descriptor. */
int fuzz_file(const void *bytes, size_t len, char path[static 32]);

/** fuzz_read_only - takes a descriptor, and gives one that only reads. */
int fuzz_read_only(int fd);

#endif
