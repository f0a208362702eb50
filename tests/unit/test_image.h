/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* test_image.h - a folder with a sparse image in it. */
#ifndef CRYPTFUSE_TEST_IMAGE_H
#define CRYPTFUSE_TEST_IMAGE_H

#include "cryptfuse/backing.h"

struct test_image {
	char dir[80];   /* in TMPDIR, if that is short enough for the name of a socket */
	char path[96];  /* the image */
	char other[96]; /* free for the test: removed at the end, as a file or an empty folder */
};

void test_image_make(struct test_image *i, uint64_t bytes);
void test_image_remove(struct test_image *i);

/** test_image_open - opened and locked; must succeed. */
int test_image_open(const struct test_image *i, enum cf_access access);
struct cf_backing *test_image_backing(const struct test_image *i, enum cf_access access);

#endif
