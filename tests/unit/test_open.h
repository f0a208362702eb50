/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* test_open.h - what a command line would do, for the tests of core/open: a scratch image and file, standard input, and
 * options through cf_open_plan and cf_open_key with what was said and asked. For programs of one source file; call
 * test_open_run. */
#ifndef CRYPTFUSE_TEST_OPEN_H
#define CRYPTFUSE_TEST_OPEN_H

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "cryptfuse/open.h"
#include "cryptfuse/secret.h"
#include "run.h"

#define IMAGE_BYTES ((off_t)4 << 20) /* as for the vectors */

/* ---- scratch ---- */

static char dir[] = "/tmp/cryptfuse-check-XXXXXX", image[64], file[64];

static inline void put_file(const char *path, const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	ck_assert(fd >= 0);
	ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
	close(fd);
}

/* A test that fails is cut short and tidies nothing: main() does, and each test starts anew. */
static inline void make_dir(void)
{
	if (!mkdtemp(dir))
		exit(99);
	snprintf(image, sizeof(image), "%s/image", dir);
	snprintf(file, sizeof(file), "%s/file", dir);
}

static inline void remove_dir(void)
{
	unlink(image);
	unlink(file);
	rmdir(dir);
}

static inline void start(void)
{
	struct cf_err err = {0};
	ck_assert_msg(cf_secret_init(&err) == 0, "%s", err.text);
	unlink(image);
	unlink(file);
	put_file(image, "", 0);
	ck_assert_int_eq(truncate(image, IMAGE_BYTES), 0);
}

/* ---- what a command line would do ---- */

struct said {
	char text[4096];
	int n_asked;
};

static inline void hear(void *ctx, const char *text)
{
	struct said *said = ctx;
	size_t len = strlen(said->text);
	snprintf(said->text + len, sizeof(said->text) - len, "%s\n", text);
}

/* A line of standard input, which in these tests is never a terminal. */
static inline int ask(void *ctx, const struct cf_open_opts *opts, unsigned attempt, struct cf_secret_buf *out,
					  struct cf_err *err)
{
	ck_assert_uint_eq(attempt, 0);
	((struct said *)ctx)->n_asked++;
	return cf_key_read_fd(STDIN_FILENO, CF_KEY_READ_LINE, opts->keyfile_offset_bytes, opts->keyfile_size_bytes,
						  "standard input", out, err);
}

static inline void feed_stdin(const void *bytes, size_t len)
{
	int fds[2];
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(write(fds[1], bytes, len), (ssize_t)len);
	close(fds[1]);
	ck_assert_int_eq(dup2(fds[0], STDIN_FILENO), STDIN_FILENO);
	close(fds[0]);
}

struct outcome {
	struct cf_opening opening;
	struct said said;
	struct cf_err err;
};

static inline void outcome_fini(struct outcome *o)
{
	cf_opening_fini(&o->opening);
}

/* Everything here is about plain volumes; check_header.c is about the others. */
static inline struct cf_open_opts as_plain(const struct cf_open_opts *opts)
{
	struct cf_open_opts plain = *opts;
	plain.type = CF_TYPE_PLAIN;
	return plain;
}

static inline int run(const struct cf_open_opts *opts, struct outcome *o)
{
	const struct cf_open_opts plain = as_plain(opts);
	const struct cf_open_ui ui = {.ctx = &o->said, .note = hear, .warn = hear, .passphrase = ask};
	*o = (struct outcome){0};
	int rc = cf_open_plan(&plain, &ui, &o->opening, &o->err);
	if (!rc)
		rc = cf_open_key(&plain, &ui, &o->opening, &o->err);
	ck_assert(rc == o->err.code && (rc == 0) == (o->err.text[0] == '\0'));
	return rc;
}

static inline int run_plan(const struct cf_open_opts *opts, struct outcome *o)
{
	const struct cf_open_opts plain = as_plain(opts);
	const struct cf_open_ui ui = {.ctx = &o->said, .note = hear, .warn = hear, .passphrase = ask};
	*o = (struct outcome){0};
	int rc = cf_open_plan(&plain, &ui, &o->opening, &o->err);
	ck_assert(rc == o->err.code && (rc == 0) == (o->err.text[0] == '\0'));
	ck_assert_int_eq(o->said.n_asked, 0);
	if (rc)
		ck_assert(!o->opening.image.n_parts && !o->opening.key);
	return rc;
}

/** test_open_run - the test case with its scratch folder; returns an exit status. */
static inline int test_open_run(Suite *s, TCase *t)
{
	tcase_add_checked_fixture(t, start, NULL);
	tcase_set_timeout(t, 60);
	suite_add_tcase(s, t);
	make_dir();
	int status = test_run(s);
	remove_dir();
	return status;
}

#endif
