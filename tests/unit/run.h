/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* run.h - run a suite as the environment says (CK_FORK, CK_VERBOSITY …) and turn its result into an exit status. */
#ifndef CRYPTFUSE_TEST_RUN_H
#define CRYPTFUSE_TEST_RUN_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"

static inline int test_run(Suite *s)
{
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

/** test_one_arena - for programs whose tests share one secret arena, which does not survive a fork: run them in this
 * process. Call it first; ends the program where there is no arena. */
static inline void test_one_arena(void)
{
	struct cf_err err = {0};
	setenv("CK_FORK", "no", 0);
	if (cf_secret_init(&err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		exit(99);
	}
}

#endif
