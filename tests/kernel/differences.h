/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* differences.h - the written list of tables that cryptfuse and dm-crypt judge differently on purpose. */
#ifndef CRYPTFUSE_TEST_DIFFERENCES_H
#define CRYPTFUSE_TEST_DIFFERENCES_H

#include <regex.h>
#include <stdbool.h>

#include "cryptfuse/base.h"

enum taken_by { TAKEN_BY_KERNEL, TAKEN_BY_CRYPTFUSE };

#define RULES_MAX 64u
#define EXAMPLES_MAX 8u

/** One rule: who takes such a table, what the table looks like, and what the one who refuses says. */
struct rule {
	char *name, *why;
	enum taken_by taken_by;
	regex_t table, refusal;
	bool needs;                   /* true only where an engine is missing: may be out of use in a build that has it */
	char *examples[EXAMPLES_MAX]; /* "SECTORS PARAMS" */
	unsigned n_examples, hits;
};

struct rules {
	unsigned n;
	struct rule at[RULES_MAX];
};

/** rules_load - ends the program with a message on a file that cannot be read or says something else. */
void rules_load(struct rules *r, const char *path);
void rules_free(struct rules *r);

/** rules_find - the first rule for it, counted as hit; NULL: nobody meant this difference
 * @table: "SECTORS PARAMS"    @refusal: the message. */
struct rule *rules_find(struct rules *r, enum taken_by taken_by, const char *table, const char *refusal);

#endif
