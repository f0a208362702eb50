/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* run.h - run a suite as the environment says (CK_FORK, CK_VERBOSITY …) and turn its result into an exit status. */
#ifndef CRYPTFUSE_TEST_RUN_H
#define CRYPTFUSE_TEST_RUN_H

#include <check.h>
#include <stdlib.h>

static inline int test_run(Suite *s)
{
	SRunner *r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	int failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif
