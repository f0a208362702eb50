/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_place.c - where mount keeps its volumes: only in a directory that is the user's alone, found again by the
 * directory it belongs to; and which program mounts what, with which options. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/filesystems.h"
#include "cli/place.h"
#include "cryptfuse/err.h"
#include "cryptfuse/mounts.h"
#include "run.h"

static char home[64], base[80];

/* Root has one place for all, which a test must not touch. */
static void setup(void)
{
	snprintf(home, sizeof(home), "/tmp/check_place.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(home));
	snprintf(base, sizeof(base), "%s/cryptfuse", home);
	if (geteuid() == 0)
		ck_assert_int_eq(chown(home, 65534, 65534), 0);
	if (geteuid() == 0)
		ck_assert_int_eq(seteuid(65534), 0);
	setenv("XDG_RUNTIME_DIR", home, 1);
}

static void teardown(void)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", home);
	ck_assert_int_eq(system(command), 0);
	if (getuid() == 0)
		ck_assert_int_eq(seteuid(0), 0);
}

START_TEST(place__is_private_and_found_by_its_target)
{
	struct cf_err err = {0};
	struct cli_place p, q = {.lock = -1};
	struct stat st;
	char target[PATH_MAX];
	ck_assert_int_eq(cli_place_make("/some where/x", &p, &err), 0);
	ck_assert_int_eq(strncmp(p.dir, base, strlen(base)), 0);
	ck_assert_int_eq(stat(p.dir, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0700);
	ck_assert_int_eq(stat(p.volume, &st), 0);
	ck_assert_int_eq(cli_place_find("/some where/x", &q), 1);
	ck_assert_str_eq(q.dir, p.dir);
	cli_place_fini(&q);
	ck_assert_int_eq(cli_place_find("/some where", &q), 0);
	ck_assert_int_eq(cli_place_find("/some where/x/y", &q), 0);
	ck_assert_int_eq(cli_place_target(p.volume, target), 1);
	ck_assert_str_eq(target, "/some where/x");
	ck_assert_int_eq(cli_place_target(p.dir, target), 0);
	ck_assert_int_eq(cli_place_target("/volume", target), 0);
	ck_assert_int_eq(cli_place_target("volume", target), 0);
	cli_place_remove(&p);
	ck_assert_int_eq(cli_place_find("/some where/x", &q), 0);
	ck_assert_int_eq(rmdir(base), 0); /* nothing was left in it */
}
END_TEST

START_TEST(place__not_in_a_directory_that_others_can_enter)
{
	struct cf_err err = {0};
	struct cli_place p;
	ck_assert_int_eq(mkdir(base, 0755), 0);
	ck_assert_int_eq(cli_place_make("/x", &p, &err), -EPERM);
	ck_assert_ptr_nonnull(strstr(err.text, base));
}
END_TEST

START_TEST(place__not_behind_a_link)
{
	struct cf_err err = {0};
	struct cli_place p;
	char other[80];
	snprintf(other, sizeof(other), "%s/other", home);
	ck_assert_int_eq(mkdir(other, 0700), 0);
	ck_assert_int_eq(symlink("other", base), 0);
	ck_assert_int_eq(cli_place_make("/x", &p, &err), -EPERM);
}
END_TEST

START_TEST(place__of_a_directory_that_others_can_enter_is_not_found)
{
	struct cf_err err = {0};
	struct cli_place p, q;
	ck_assert_int_eq(cli_place_make("/x", &p, &err), 0);
	ck_assert_int_eq(chmod(base, 0711), 0);
	ck_assert_int_eq(cli_place_find("/x", &q), 0);
	cli_place_remove(&p);
}
END_TEST

START_TEST(place__is_found_by_where_it_is_mounted_instead)
{
	struct cf_err err = {0};
	char target[PATH_MAX], volume[PATH_MAX];
	struct cli_place p, q;
	ck_assert_int_eq(cli_place_make("/x", &p, &err), 0);
	cli_place_note(&p, "at", "/run/media/y");
	strcpy(volume, p.volume);
	ck_assert_int_eq(cli_place_find("/run/media/y", &q), 1);
	ck_assert_str_eq(q.target, "/x");
	cli_place_fini(&q);
	ck_assert_int_eq(cli_place_target(volume, target), 1);
	ck_assert_str_eq(target, "/run/media/y");
	cli_place_remove(&p);
	ck_assert_int_eq(cli_place_find("/run/media/y", &q), 0);
}
END_TEST

START_TEST(mounts__are_found_by_their_source)
{
	struct cf_mount proc, found;
	ck_assert_int_eq(cf_mounts_find_any("/proc", &proc), 1);
	ck_assert_int_eq(cf_mounts_find_source(proc.source, &found), 1);
	ck_assert_str_eq(found.source, proc.source);
	ck_assert_int_eq(cf_mounts_find_source("/dev/no such device", &found), 0);
}
END_TEST

START_TEST(place__knows_only_what_was_not_there_before)
{
	struct cf_err err = {0};
	struct cf_mount root;
	struct cli_place p;
	ck_assert_int_eq(cf_mounts_find_any("/", &root), 1);
	ck_assert_int_eq(cli_place_make("/", &p, &err), 0);
	ck_assert_int_eq(cli_place_record(&p, &root, &err), 0);
	ck_assert_int_eq(cli_place_is_device(&p, &root), 0);
	ck_assert_int_eq(cli_place_record(&p, &(struct cf_mount){0}, &err), 1);
	ck_assert_int_eq(cli_place_is_device(&p, &root), 1);
	ck_assert_int_eq(cli_place_record(&p, &(struct cf_mount){0}, &err), 1); /* again */
	root.dev_minor++;
	ck_assert_int_eq(cli_place_is_device(&p, &root), 0);
	cli_place_remove(&p);
}
END_TEST

/* ---- file systems ---- */

static const char *const not_mountable[] = {"LVM2_member", "crypto_LUKS", "swap",      "zfs_member",
											"BitLocker",   "apfs",        "ambiguous", "nonsense"};

START_TEST(filesystem__that_is_none_is_refused_in_words)
{
	struct cf_err err = {0};
	struct cli_mounter m;
	const struct cli_mount_job job = {.type = not_mountable[_i], .file = "/f", .directory = "/d"};
	ck_assert_int_eq(cli_mounter_find(&job, &m, &err), -EINVAL);
	ck_assert_uint_gt(strlen(err.text), 10);
}
END_TEST

START_TEST(filesystem__of_the_kernel_only_is_for_root)
{
	static const char *const types[] = {"xfs", "btrfs", "f2fs", "udf", "erofs", "hfsplus", "exfat"};
	struct cf_err err = {0};
	struct cli_mounter m;
	const struct cli_mount_job job = {.type = types[_i], .file = "/f", .directory = "/d"};
	const int rc = cli_mounter_find(&job, &m, &err);
	ck_assert(rc == -ENOENT || rc == -EPERM);
	ck_assert_ptr_nonnull(strstr(err.text, "root"));
}
END_TEST

/* Which words must be among the options, and which must not. */
static const struct {
	enum cf_access access;
	enum cf_mount_share share;
	const char *more, *options;
} ext4[] = {
	{CF_READ_WRITE, CF_SHARE_OWNER, NULL, "rw,fakeroot"},
	{CF_READ_ONLY, CF_SHARE_OWNER, NULL, "ro,norecovery,fakeroot"},
	{CF_READ_WRITE, CF_SHARE_OTHER, NULL, "rw,allow_other,default_permissions"},
	{CF_READ_ONLY, CF_SHARE_ROOT, "noexec", "ro,norecovery,allow_root,default_permissions,noexec"},
};

START_TEST(filesystem__options_let_in_only_who_was_asked_in)
{
	struct cf_err err = {0};
	struct cli_mounter m;
	const struct cli_mount_job job = {.type = "ext4",
									  .file = "/f",
									  .directory = "/d",
									  .access = ext4[_i].access,
									  .share = ext4[_i].share,
									  .more = ext4[_i].more};
	const int rc = cli_mounter_find(&job, &m, &err);
	if (rc == -ENOENT) { /* no fuse2fs here */
		ck_assert_ptr_nonnull(strstr(err.text, "apt install fuse2fs"));
		return;
	}
	ck_assert_int_eq(rc, 0);
	ck_assert_str_eq(m.options, ext4[_i].options);
	ck_assert_str_eq(m.mount.argv[1], "/f");
	ck_assert_str_eq(m.mount.argv[2], "/d");
	ck_assert_ptr_eq(m.mount.argv[4], m.options);
	ck_assert_ptr_null(m.mount.argv[5]);
	/* A journal is replayed for writing only. */
	ck_assert(job.access == CF_READ_WRITE || !m.before.path[0]);
}
END_TEST

START_TEST(filesystem__more_options_than_fit_are_refused)
{
	static char more[2 * CLI_MOUNTER_TEXT];
	struct cf_err err = {0};
	struct cli_mounter m;
	const struct cli_mount_job job = {.type = "ext4", .file = "/f", .directory = "/d", .more = more};
	memset(more, 'x', sizeof(more) - 1);
	const int rc = cli_mounter_find(&job, &m, &err);
	ck_assert(rc == -EINVAL || rc == -ENOENT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("place");
	TCase *tc = tcase_create("place");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, place__is_private_and_found_by_its_target);
	tcase_add_test(tc, place__not_in_a_directory_that_others_can_enter);
	tcase_add_test(tc, place__not_behind_a_link);
	tcase_add_test(tc, place__of_a_directory_that_others_can_enter_is_not_found);
	tcase_add_test(tc, place__knows_only_what_was_not_there_before);
	tcase_add_test(tc, place__is_found_by_where_it_is_mounted_instead);
	tcase_add_test(tc, mounts__are_found_by_their_source);
	tcase_add_loop_test(tc, filesystem__that_is_none_is_refused_in_words, 0, (int)CF_ARRAY_LEN(not_mountable));
	tcase_add_loop_test(tc, filesystem__of_the_kernel_only_is_for_root, 0, 7);
	tcase_add_loop_test(tc, filesystem__options_let_in_only_who_was_asked_in, 0, (int)CF_ARRAY_LEN(ext4));
	tcase_add_test(tc, filesystem__more_options_than_fit_are_refused);
	suite_add_tcase(s, tc);
	return test_run(s);
}
