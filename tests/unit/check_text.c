/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_text.c - what of a stranger's text reaches a terminal. */
#include <string.h>

#include "cryptfuse/text.h"
#include "run.h"

static const struct {
	const char *text, *shown;
} texts[] = {
	{"", ""},
	{"plain ~", "plain ~"},
	{"tab\tline\nreturn\rdelete\x7f", "tab?line?return?delete?"},
	{"\x1b[2J", "?[2J"},
	{"\xc2\x80 \xc2\x9b[2J \xc2\x9f", "?? ??[2J ??"}, /* the same commands of a terminal, as U+0080 to U+009F */
	{"\x9b[2J", "?[2J"},
	{"\xc2\xa0\xc3\xa9\xdf\xbf", "\xc2\xa0\xc3\xa9\xdf\xbf"},
	{"\xe0\xa0\x80\xe2\x82\xac\xef\xbf\xbd", "\xe0\xa0\x80\xe2\x82\xac\xef\xbf\xbd"},
	{"\xed\x9f\xbf\xee\x80\x80", "\xed\x9f\xbf\xee\x80\x80"},
	{"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"},
	{"\xe2\x80\xa8 \xe2\x80\xae \xe2\x81\xa6", "??? ??? ???"}, /* a line break, directions */
	{"\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5", "\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5"},
	{"\xc0\xaf \xc1\xbf \xe0\x9f\xbf \xf0\x8f\xbf\xbf", "?? ?? ??? ????"}, /* longer than it need be */
	{"\xed\xa0\x80 \xf4\x90\x80\x80 \xf5\x80\x80\x80 \xff", "??? ???? ???? ?"},
	{"cut \xc3", "cut ?"},
	{"cut \xe2\x82", "cut ??"},
	{"cut \xf0\x9f\x98", "cut ???"},
	{"\xc3[\xe2\x82[", "?[??["},
};

START_TEST(text__prints_or_is_a_question_mark)
{
	char text[64];
	strcpy(text, texts[_i].text);
	cf_text_make_printable(text);
	ck_assert_str_eq(text, texts[_i].shown);
	cf_text_make_printable(text);
	ck_assert_str_eq(text, texts[_i].shown);
}
END_TEST

START_TEST(char__ends_with_the_text)
{
	ck_assert_uint_eq(cf_text_char(""), 0);
	ck_assert_uint_eq(cf_text_char("a"), 1);
	ck_assert_uint_eq(cf_text_char("\xe2\x82\xac"), 3);
	ck_assert_uint_eq(cf_text_char("\xe2\x82"), 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("text");
	TCase *c = tcase_create("text");
	tcase_add_loop_test(c, text__prints_or_is_a_question_mark, 0, CF_ARRAY_LEN(texts));
	tcase_add_test(c, char__ends_with_the_text);
	suite_add_tcase(s, c);
	return test_run(s);
}
