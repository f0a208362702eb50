/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_err.c - one line a failure, and cryptsetup's exit codes. */
#include "cryptfuse/err.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

START_TEST(fail__records_code_and_text)
{
	struct cf_err err = {0};
	ck_assert_int_eq(cf_fail(&err, -EINVAL, "unknown %s %d", "thing", 7), -EINVAL);
	ck_assert_int_eq(err.code, -EINVAL);
	ck_assert_str_eq(err.text, "unknown thing 7");
}
END_TEST

START_TEST(fail__first_message_wins_but_own_code_is_returned)
{
	struct cf_err err = {0};
	ck_assert_int_eq(cf_fail(&err, -EIO, "the cause"), -EIO);
	ck_assert_int_eq(cf_fail(&err, -EINVAL, "a consequence"), -EINVAL);
	ck_assert_int_eq(err.code, -EIO);
	ck_assert_str_eq(err.text, "the cause");
}
END_TEST

START_TEST(fail__without_err_gives_the_code)
{
	ck_assert_int_eq(cf_fail(NULL, -ENOMEM, "dropped"), -ENOMEM);
}
END_TEST

START_TEST(fail__is_one_line_without_escapes)
{
	struct cf_err err = {0};
	cf_fail(&err, -EINVAL, "%s", "a\nb\033[2Jc\177d\te");
	ck_assert_str_eq(err.text, "a?b?[2Jc?d?e");
}
END_TEST

START_TEST(fail__cuts_long_text)
{
	struct cf_err err = {0};
	char name[2 * CF_ERR_TEXT];
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	cf_fail(&err, -EINVAL, "%s", name);
	ck_assert_uint_eq(strlen(err.text), CF_ERR_TEXT - 1);
}
END_TEST

static const struct {
	int code, exit_code;
} codes[] = {
	{0, 0},       {-EINVAL, 1}, {-EIO, 1},    {-ENOSPC, 1}, {-ERANGE, 1},  {-ENOKEY, 1}, {-EPERM, 2},  {-EACCES, 2},
	{-ENOMEM, 3}, {-ENODEV, 4}, {-ENOENT, 4}, {-ENXIO, 4},  {-ENOTBLK, 4}, {-EBUSY, 5},  {-EEXIST, 5},
};

START_TEST(exit_code__is_cryptsetups)
{
	ck_assert_int_eq(cf_err_exit_code(codes[_i].code), codes[_i].exit_code);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("err");
	TCase *t = tcase_create("err");
	tcase_add_test(t, fail__records_code_and_text);
	tcase_add_test(t, fail__first_message_wins_but_own_code_is_returned);
	tcase_add_test(t, fail__without_err_gives_the_code);
	tcase_add_test(t, fail__is_one_line_without_escapes);
	tcase_add_test(t, fail__cuts_long_text);
	tcase_add_loop_test(t, exit_code__is_cryptsetups, 0, (int)CF_ARRAY_LEN(codes));
	suite_add_tcase(s, t);
	return test_run(s);
}
