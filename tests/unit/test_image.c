/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* test_image.c - images on disk for tests. */
#include "config.h"

#include "test_image.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cryptfuse/err.h"

void test_image_make(struct test_image *i, uint64_t bytes)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(i->dir, sizeof(i->dir), "%s/cryptfuse-unit.XXXXXX", tmp && strlen(tmp) < 56 ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(i->dir));
	snprintf(i->path, sizeof(i->path), "%s/image", i->dir);
	snprintf(i->other, sizeof(i->other), "%s/other", i->dir);
	int fd = open(i->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, (off_t)bytes), 0);
	close(fd);
}

void test_image_remove(struct test_image *i)
{
	unlink(i->path);
	unlink(i->other);
	rmdir(i->other);
	rmdir(i->dir);
}

int test_image_open(const struct test_image *i, enum cf_access access)
{
	int fd = -1;
	struct cf_err err = {.code = 0};
	ck_assert_msg(cf_backing_open_fd(i->path, access, CF_LOCK, &fd, &err) == 0, "%s", err.text);
	return fd;
}

struct cf_backing *test_image_backing(const struct test_image *i, enum cf_access access)
{
	struct cf_backing *b = NULL;
	struct cf_err err = {.code = 0};
	ck_assert_msg(cf_backing_from_fd(&b, test_image_open(i, access), access, &err) == 0, "%s", err.text);
	return b;
}
