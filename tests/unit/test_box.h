/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* test_box.h - a forked child enters the daemon's sandbox, or one of its walls, and tries something. */
#ifndef CRYPTFUSE_TEST_BOX_H
#define CRYPTFUSE_TEST_BOX_H

#include <stdbool.h>

#include "cryptfuse/sandbox.h"

enum test_walls { TEST_BOX, TEST_FILES /* Landlock alone */, TEST_FILTER /* seccomp alone */ };

#define TEST_NO_BOX 200 /* exit statuses of a child that could not enter, or found the wall missing */
#define TEST_LACKING 201

/** What the child was told, for the child. */
extern struct cf_sandbox test_box;

/** Made before the child is: a file of one byte, and a socket that listens and does not wait. */
struct test_box_fds {
	int file, listening;
};
extern struct test_box_fds test_box_fds;
void test_box_descriptors(void);

/** test_boxed - how @try ends inside: what it returns becomes the exit status. */
int test_boxed(int (*try)(void), enum test_walls walls);

/** test_box_has - is that wall here? It must be, where the kernel says in another way that it has it. */
bool test_box_has(enum test_walls wall);

long test_landlock_version(void);

/** test_code - the error of a call that failed; 0 it did not. */
int test_code(long r);

#endif
