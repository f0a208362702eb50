/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* tsv.h - reads a file of vectors: one row a line, fields between tabs, lines with # in front are about the file.
 *
 * For tests only: what cannot be read ends the program. The table stays in memory until the end. */
#ifndef CRYPTFUSE_TEST_TSV_H
#define CRYPTFUSE_TEST_TSV_H

#include <stddef.h>

struct tsv {
	size_t n_rows, n_fields;
	char **fields; /* n_rows * n_fields */
};

/** tsv_load - read tests/vectors/@name, below $srcdir; every row must have @n_fields fields. */
struct tsv tsv_load(const char *name, size_t n_fields);

/** tsv_field - one field, "" where it is empty. */
const char *tsv_field(const struct tsv *t, size_t row, size_t field);

#endif
