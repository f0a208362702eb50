/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_mounts.c - mountinfo as the kernel writes it, and names of mount points. The lines were written by hand after
 * proc.rst and by real kernels; nothing here needs a mount. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cryptfuse/mounts.h"
#include "cryptfuse/err.h"
#include "run.h"

static char dir[] = "/tmp/check_mounts.XXXXXX";
static char real_dir[PATH_MAX];

static void setup(void)
{
	strcpy(dir + sizeof(dir) - 7, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	ck_assert_ptr_nonnull(realpath(dir, real_dir));
	ck_assert_int_eq(chdir(dir), 0);
}

static void teardown(void)
{
	char cmd[64];
	ck_assert_int_eq(chdir("/"), 0);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	ck_assert_int_eq(system(cmd), 0);
}

/* ---- mountinfo ---- */

static const char *write_info(const char *text)
{
	FILE *f = fopen("mountinfo", "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
	return "mountinfo";
}

struct seen {
	int n, stop_at;
	struct cf_mount m[4];
};

static int collect(void *ctx, const struct cf_mount *m)
{
	struct seen *s = ctx;
	ck_assert_int_lt(s->n, 4);
	s->m[s->n++] = *m;
	return s->n == s->stop_at ? 7 : 0;
}

#define OURS "77 27 0:51 / /mnt/a rw,nosuid,nodev,relatime shared:9 - fuse.cryptfuse /img rw,user_id=1000,group_id=5\n"

START_TEST(each__reads_every_field)
{
	struct seen s = {0};
	ck_assert_int_eq(cf_mounts_each_in(write_info(OURS), collect, &s), 0);
	ck_assert_int_eq(s.n, 1);
	ck_assert_str_eq(s.m[0].mountpoint, "/mnt/a");
	ck_assert_str_eq(s.m[0].source, "/img");
	ck_assert_uint_eq(s.m[0].dev_major, 0);
	ck_assert_uint_eq(s.m[0].dev_minor, 51);
	ck_assert_uint_eq(s.m[0].uid, 1000);
}
END_TEST

/* A space, a tab, a newline, a backslash, a number sign; a dash between spaces must not look like the separator. */
START_TEST(each__undoes_octal_escapes)
{
	struct seen s = {0};
	ck_assert_int_eq(
		cf_mounts_each_in(write_info("77 27 8:1 / /mnt/a\\040-\\040b\\011c\\012d\\134e rw - fuse.cryptfuse "
									 "/x\\040-\\040y\\043z,\\303\\244 rw,user_id=0\n"),
						  collect, &s),
		0);
	ck_assert_int_eq(s.n, 1);
	ck_assert_str_eq(s.m[0].mountpoint, "/mnt/a - b\tc\nd\\e");
	ck_assert_str_eq(s.m[0].source, "/x - y#z,\303\244");
}
END_TEST

START_TEST(each__takes_a_broken_escape_as_it_is)
{
	struct seen s = {0};
	const char *info =
		"1 2 0:3 / /a\\04 rw - fuse.cryptfuse /b\\9 rw\n1 2 0:3 / /c\\000d rw - fuse.cryptfuse \\000 rw\n";
	ck_assert_int_eq(cf_mounts_each_in(write_info(info), collect, &s), 0);
	ck_assert_int_eq(s.n, 2);
	ck_assert_str_eq(s.m[0].mountpoint, "/a\\04");
	ck_assert_str_eq(s.m[0].source, "/b\\9");
	ck_assert_str_eq(s.m[1].mountpoint, "/c\\000d"); /* no name holds a NUL */
	ck_assert_str_eq(s.m[1].source, "\\000");
}
END_TEST

/* No optional field, one, three; the last line without its newline. */
START_TEST(each__allows_any_number_of_optional_fields)
{
	struct seen s = {0};
	ck_assert_int_eq(cf_mounts_each_in(write_info("1 2 0:3 / /none rw - fuse.cryptfuse a rw,user_id=1\n"
												  "1 2 0:4 / /one rw shared:1 - fuse.cryptfuse b rw,user_id=2\n"
												  "1 2 0:5 / /three rw shared:1 master:2 unbindable - fuse.cryptfuse c "
												  "rw,user_id=3"),
									   collect, &s),
					 0);
	ck_assert_int_eq(s.n, 3);
	ck_assert_str_eq(s.m[0].mountpoint, "/none");
	ck_assert_str_eq(s.m[1].mountpoint, "/one");
	ck_assert_str_eq(s.m[2].mountpoint, "/three");
	ck_assert_uint_eq(s.m[2].uid, 3);
}
END_TEST

static const char *const not_ours[] = {
	"",
	"\n",
	"22 27 0:21 / /proc rw,relatime - proc proc rw\n",
	"1 2 0:3 / /a rw - fuse.sshfs host: rw,user_id=1\n",
	"1 2 0:3 / /a rw - fuse.cryptfuse2 x rw,user_id=1\n",
	"1 2 0:3 / /a rw - fuse x rw,user_id=1\n",
	"1 2 0:3 / /a rw fuse.cryptfuse x rw\n",
	"1 2 0:3 / - fuse.cryptfuse x rw\n",
	"1 2 zero / /a rw - fuse.cryptfuse x rw\n",
	"1 2 0:3 / /a rw - fuse.cryptfuse\n",
	"1 2 0:3 / /fuse.cryptfuse rw - ext4 fuse.cryptfuse rw\n",
};

START_TEST(each__skips_other_and_malformed_lines)
{
	struct seen s = {0};
	char text[512];
	snprintf(text, sizeof(text), "%s%s", not_ours[_i], OURS);
	ck_assert_int_eq(cf_mounts_each_in(write_info(text), collect, &s), 0);
	ck_assert_int_eq(s.n, 1);
	ck_assert_str_eq(s.m[0].mountpoint, "/mnt/a");
}
END_TEST

START_TEST(each__skips_a_name_that_does_not_fit)
{
	struct seen s = {0};
	FILE *f = fopen("mountinfo", "w");
	ck_assert_ptr_nonnull(f);
	for (int len = PATH_MAX - 1; len <= PATH_MAX; len++)
		fprintf(f, "1 2 0:3 / /%0*d rw - fuse.cryptfuse x rw\n", len - 1, 0);
	ck_assert_int_eq(fclose(f), 0);
	ck_assert_int_eq(cf_mounts_each_in("mountinfo", collect, &s), 0);
	ck_assert_int_eq(s.n, 1);
	ck_assert_uint_eq(strlen(s.m[0].mountpoint), PATH_MAX - 1);
}
END_TEST

START_TEST(each__stops_when_told)
{
	struct seen s = {.stop_at = 2};
	ck_assert_int_eq(cf_mounts_each_in(write_info(OURS OURS OURS), collect, &s), 7);
	ck_assert_int_eq(s.n, 2);
}
END_TEST

START_TEST(each__says_when_there_is_no_file)
{
	struct seen s = {0};
	ck_assert_int_eq(cf_mounts_each_in("absent", collect, &s), -ENOENT);
}
END_TEST

/* ---- what is mounted here ---- */

START_TEST(top__tells_nothing_from_something_else)
{
	struct cf_mount m;
	ck_assert_int_eq(cf_mounts_top(real_dir), CF_TOP_NONE);
	ck_assert_int_eq(cf_mounts_top("/proc"), CF_TOP_OTHER);
	ck_assert_int_eq(cf_mounts_find("/proc", &m), 0);
	ck_assert_int_eq(cf_mounts_find(real_dir, &m), 0);
}
END_TEST

START_TEST(unmount__takes_only_what_is_ours)
{
	struct cf_err err = {0};
	ck_assert_int_eq(cf_mounts_unmount(real_dir, CF_UNMOUNT_NORMAL, &err), -EINVAL);
	ck_assert_str_eq(err.text, "it is not mounted");
	ck_assert_int_eq(cf_mounts_unmount(real_dir, CF_UNMOUNT_DETACH, NULL), -EINVAL);
	err = (struct cf_err){0};
	ck_assert_int_eq(cf_mounts_unmount("/proc", CF_UNMOUNT_NORMAL, &err), -EBUSY);
	ck_assert_str_eq(err.text, "something else is mounted over it");
	ck_assert_int_eq(cf_mounts_top("/proc"), CF_TOP_OTHER);
}
END_TEST

/* ---- names ---- */

static void make_tree(void)
{
	ck_assert_int_eq(mkdir("d", 0700), 0);
	ck_assert_int_eq(mkdir("d/m", 0700), 0);
	int fd = open("d/f", O_CREAT | O_WRONLY, 0600);
	ck_assert_int_ge(fd, 0);
	close(fd);
	ck_assert_int_eq(symlink("d", "link_to_folder"), 0);
	ck_assert_int_eq(symlink("d/m", "link"), 0);
	ck_assert_int_eq(symlink("link", "link_to_link"), 0);
	ck_assert_int_eq(symlink("loop", "loop"), 0);
	ck_assert_int_eq(symlink("/proc", "absolute"), 0);
}

static const struct {
	const char *path, *want; /* below the test's folder, or absolute */
} names[] = {
	{"d/m", "d/m"},
	{"d/m///", "d/m"},
	{"./d//m", "d/m"},
	{"d/../d/m", "d/m"},
	{"d/f", "d/f"},
	{"d", "d"},
	{"link_to_folder/m", "d/m"},
	{"link", "d/m"},
	{"link/", "d/m"},
	{"link_to_link", "d/m"},
	{"d/m/.", "d/m"},
	{"d/m/..", "d"},
	{"absolute", "/proc"},
	{"/", "/"},
	{"//", "/"},
	{"/proc", "/proc"},
	{"/./proc/", "/proc"},
};

START_TEST(resolve__keeps_the_last_name)
{
	char out[PATH_MAX], want[2 * PATH_MAX];
	make_tree();
	ck_assert_int_eq(cf_mounts_resolve(names[_i].path, out), 0);
	snprintf(want, sizeof(want), "%s%s%s", names[_i].want[0] == '/' ? "" : real_dir,
			 names[_i].want[0] == '/' ? "" : "/", names[_i].want);
	ck_assert_str_eq(out, want);
}
END_TEST

START_TEST(resolve__takes_an_absolute_path)
{
	char path[2 * PATH_MAX], out[PATH_MAX], want[2 * PATH_MAX];
	make_tree();
	snprintf(path, sizeof(path), "%s/link_to_folder/m", dir);
	snprintf(want, sizeof(want), "%s/d/m", real_dir);
	ck_assert_int_eq(cf_mounts_resolve(path, out), 0);
	ck_assert_str_eq(out, want);
}
END_TEST

START_TEST(resolve__says_what_is_wrong)
{
	char out[PATH_MAX], long_path[2 * PATH_MAX];
	make_tree();
	memset(long_path, 'a', sizeof(long_path) - 1);
	long_path[sizeof(long_path) - 1] = '\0';
	ck_assert_int_eq(cf_mounts_resolve("", out), -ENOENT);
	ck_assert_int_eq(cf_mounts_resolve("absent", out), -ENOENT);
	ck_assert_int_eq(cf_mounts_resolve("absent/m", out), -ENOENT);
	ck_assert_int_eq(cf_mounts_resolve("d/f/m", out), -ENOTDIR);
	ck_assert_int_eq(cf_mounts_resolve("loop", out), -ELOOP);
	ck_assert_int_eq(cf_mounts_resolve(long_path, out), -ENAMETOOLONG);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("mounts");
	TCase *t = tcase_create("mounts");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, each__reads_every_field);
	tcase_add_test(t, each__undoes_octal_escapes);
	tcase_add_test(t, each__takes_a_broken_escape_as_it_is);
	tcase_add_test(t, each__allows_any_number_of_optional_fields);
	tcase_add_loop_test(t, each__skips_other_and_malformed_lines, 0, (int)CF_ARRAY_LEN(not_ours));
	tcase_add_test(t, each__skips_a_name_that_does_not_fit);
	tcase_add_test(t, each__stops_when_told);
	tcase_add_test(t, each__says_when_there_is_no_file);
	tcase_add_test(t, top__tells_nothing_from_something_else);
	tcase_add_test(t, unmount__takes_only_what_is_ours);
	tcase_add_loop_test(t, resolve__keeps_the_last_name, 0, (int)CF_ARRAY_LEN(names));
	tcase_add_test(t, resolve__takes_an_absolute_path);
	tcase_add_test(t, resolve__says_what_is_wrong);
	suite_add_tcase(s, t);
	return test_run(s);
}
