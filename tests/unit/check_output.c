/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_output.c - a file has its name only when all of it is on the disk: the order of the calls, and what is left
 * when any of them fails. The calls that matter are wrapped: recorded, and made to fail on request. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/output.h"
#include "run.h"

enum call {
	CALL_TMPFILE,
	CALL_CREATE,
	CALL_FTRUNCATE,
	CALL_FALLOCATE,
	CALL_FSYNC_FILE,
	CALL_FSYNC_DIR,
	CALL_LINK,
	CALL_RENAME,
	CALLS
};

static struct {
	char order[64];                 /* a letter a call, of letters[] */
	int fail[CALLS];                /* errno; 0: the call is made */
	enum { NAMELESS, NAMED } files; /* NAMED: there are no files without a name */
} w;
static const char letters[] = "TCLASDNR";

static int recorded(enum call call)
{
	const size_t len = strlen(w.order);
	ck_assert_uint_lt(len + 1, sizeof(w.order));
	w.order[len] = letters[call];
	errno = w.fail[call];
	return w.fail[call] ? -1 : 0;
}

int __real_openat64(int dir, const char *path, int flags, ...);
int __wrap_openat64(int dir, const char *path, int flags, ...);
int __real_ftruncate64(int fd, off_t len);
int __wrap_ftruncate64(int fd, off_t len);
int __real_fallocate64(int fd, int mode, off_t off, off_t len);
int __wrap_fallocate64(int fd, int mode, off_t off, off_t len);
int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __real_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags);
int __real_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
int __wrap_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);

int __wrap_openat64(int dir, const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	const mode_t mode = va_arg(args, mode_t);
	va_end(args);
	const bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
	if (nameless && w.files == NAMED) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return recorded(nameless ? CALL_TMPFILE : CALL_CREATE) ? -1 : __real_openat64(dir, path, flags, mode);
}

int __wrap_ftruncate64(int fd, off_t len)
{
	return recorded(CALL_FTRUNCATE) ? -1 : __real_ftruncate64(fd, len);
}

int __wrap_fallocate64(int fd, int mode, off_t off, off_t len)
{
	return recorded(CALL_FALLOCATE) ? -1 : __real_fallocate64(fd, mode, off, len);
}

int __wrap_fsync(int fd)
{
	struct stat st;
	ck_assert_int_eq(fstat(fd, &st), 0);
	return recorded(S_ISDIR(st.st_mode) ? CALL_FSYNC_DIR : CALL_FSYNC_FILE) ? -1 : __real_fsync(fd);
}

int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
	return recorded(CALL_LINK) ? -1 : __real_linkat(from_dir, from, to_dir, to, flags);
}

int __wrap_renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	return recorded(CALL_RENAME) ? -1 : __real_renameat2(from_dir, from, to_dir, to, flags);
}

/* ---- a folder for each test ---- */

static char folder[96], path[PATH_MAX];

static void setup(void)
{
	const char *tmp = getenv("TMPDIR");
	snprintf(folder, sizeof(folder), "%s/check_output.XXXXXX", tmp && strlen(tmp) < 64 ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/out", folder);
	memset(&w, 0, sizeof(w));
}

static unsigned n_files(void)
{
	DIR *d = opendir(folder);
	unsigned n = 0;
	ck_assert_ptr_nonnull(d);
	for (const struct dirent *e; (e = readdir(d));)
		n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
	closedir(d);
	return n;
}

static void put(const char *text)
{
	FILE *f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	fputs(text, f);
	fclose(f);
}

static void expect(const char *text)
{
	char got[64] = "";
	FILE *f = fopen(path, "r");
	ck_assert_msg(f != NULL, "no file");
	ck_assert_ptr_nonnull(fgets(got, sizeof(got), f));
	ck_assert_str_eq(got, text);
	fclose(f);
}

static void teardown(void)
{
	char partial[PATH_MAX];
	snprintf(partial, sizeof(partial), "%s/out.partial", folder);
	unlink(path);
	unlink(partial);
	rmdir(folder);
}

/* The whole life of an output that gets "new" written to it. */
static int make(unsigned force, struct cf_err *err)
{
	struct cli_output out = CLI_OUTPUT_NONE;
	int rc = cli_output_plan(&out, path, force, err);
	if (!rc)
		rc = cli_output_make(&out, 3, CF_COPY_ZEROS_WRITTEN, err);
	if (!rc) {
		ck_assert_int_eq(pwrite(out.fd, "new", 3, 0), 3);
		rc = cli_output_finish(&out, err);
	}
	cli_output_fini(&out);
	cli_output_fini(&out);
	return rc;
}

static int kind_of_files(int i)
{
	return w.files = i ? NAMED : NAMELESS;
}

START_TEST(new__is_on_the_disk_before_it_has_a_name)
{
	struct cf_err err = {0};
	kind_of_files(_i);
	ck_assert_msg(make(0, &err) == 0, "%s", err.text);
	expect("new");
	ck_assert_uint_eq(n_files(), 1);
	const char *sync = strchr(w.order, 'S'), *name = strpbrk(w.order, "NR"), *dir = strchr(w.order, 'D');
	ck_assert_msg(sync && name && dir && sync < name && name < dir, "order: %s", w.order);
	ck_assert(!strpbrk(sync + 1, "S") && strrchr(w.order, 'D') == w.order + strlen(w.order) - 1);
}
END_TEST

START_TEST(force__replaces_by_one_that_is_on_the_disk)
{
	struct cf_err err = {0};
	kind_of_files(_i);
	put("old");
	ck_assert_msg(make(1, &err) == 0, "%s", err.text);
	expect("new");
	ck_assert_uint_eq(n_files(), 1);
	ck_assert_msg(strchr(w.order, 'S') < strpbrk(w.order, "NR"), "order: %s", w.order);
}
END_TEST

START_TEST(existing__is_not_touched_without_force)
{
	struct cf_err err = {0};
	kind_of_files(_i);
	put("old");
	ck_assert_int_eq(make(0, &err), -EEXIST);
	expect("old");
	ck_assert_uint_eq(n_files(), 1);
	ck_assert_str_eq(w.order, "");
}
END_TEST

/* It appears between the plan and the name. */
START_TEST(appearing__is_not_touched_without_force)
{
	struct cf_err err = {0};
	struct cli_output out = CLI_OUTPUT_NONE;
	kind_of_files(_i);
	ck_assert_int_eq(cli_output_plan(&out, path, 0, &err), 0);
	ck_assert_int_eq(cli_output_make(&out, 3, CF_COPY_ZEROS_WRITTEN, &err), 0);
	put("old");
	ck_assert_int_eq(cli_output_finish(&out, &err), -EEXIST);
	cli_output_fini(&out);
	expect("old");
	ck_assert_uint_eq(n_files(), 1);
}
END_TEST

static const struct {
	enum call call;
	int code, rc; /* rc 0: it goes on without */
	int force;
} faults[] = {
	{CALL_TMPFILE, EACCES, -EACCES, 0},
	{CALL_CREATE, EACCES, -EACCES, 0},
	{CALL_TMPFILE, ENOSPC, -ENOSPC, 1},
	{CALL_CREATE, EDQUOT, -ENOSPC, 0},
	{CALL_FTRUNCATE, EFBIG, -EFBIG, 0},
	{CALL_FTRUNCATE, ENOSPC, -ENOSPC, 1},
	{CALL_FALLOCATE, ENOSPC, -ENOSPC, 0},
	{CALL_FALLOCATE, EOPNOTSUPP, 0, 0},
	{CALL_FALLOCATE, EFBIG, -EFBIG, 0},
	{CALL_FSYNC_FILE, EIO, -EIO, 0},
	{CALL_FSYNC_FILE, ENOSPC, -ENOSPC, 1},
	{CALL_LINK, EIO, -EIO, 0},
	{CALL_LINK, EIO, -EIO, 1},
	{CALL_RENAME, EIO, -EIO, 0},
	{CALL_RENAME, EIO, -EIO, 1},
};
#define N_FAULTS ((int)CF_ARRAY_LEN(faults))

/* With both kinds of file; a call that this kind does not need does not fail it. */
START_TEST(fault__leaves_what_was_there)
{
	struct cf_err err = {0};
	const int i = _i / 2, force = faults[i].force;
	kind_of_files(_i % 2);
	w.fail[faults[i].call] = faults[i].code;
	if (force)
		put("old");
	const int rc = make((unsigned)force, &err);
	const bool called = strchr(w.order, letters[faults[i].call]) != NULL;
	ck_assert_msg(rc == (called ? faults[i].rc : 0), "%d: %s (%s)", rc, err.text, w.order);
	ck_assert_uint_eq(n_files(), force || !rc);
	if (force || !rc)
		expect(rc ? "old" : "new");
	ck_assert(rc == 0 || (err.code == rc && *err.text));
}
END_TEST

/* No renaming without replacing: a link does it, and the other name goes. */
START_TEST(rename__without_noreplace)
{
	struct cf_err err = {0};
	w.files = NAMED;
	w.fail[CALL_RENAME] = EINVAL;
	ck_assert_msg(make(0, &err) == 0, "%s", err.text);
	expect("new");
	ck_assert_uint_eq(n_files(), 1);
}
END_TEST

START_TEST(partial__of_another_run_stays)
{
	struct cf_err err = {0};
	char partial[PATH_MAX];
	struct stat st;
	snprintf(partial, sizeof(partial), "%s/out.partial", folder);
	close(__real_openat64(AT_FDCWD, partial, O_CREAT | O_WRONLY, 0600));
	w.files = NAMED;
	ck_assert_int_eq(make(1, &err), -EEXIST);
	ck_assert_int_eq(stat(partial, &st), 0);
	ck_assert_int_ne(stat(path, &st), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("output");
	TCase *t = tcase_create("output");
	suite_add_tcase(s, t);
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, new__is_on_the_disk_before_it_has_a_name, 0, 2);
	tcase_add_loop_test(t, force__replaces_by_one_that_is_on_the_disk, 0, 2);
	tcase_add_loop_test(t, existing__is_not_touched_without_force, 0, 2);
	tcase_add_loop_test(t, appearing__is_not_touched_without_force, 0, 2);
	tcase_add_loop_test(t, fault__leaves_what_was_there, 0, 2 * N_FAULTS);
	tcase_add_test(t, rename__without_noreplace);
	tcase_add_test(t, partial__of_another_run_stays);
	return test_run(s);
}
