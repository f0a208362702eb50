/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_crypttab.c - lines of /etc/crypttab, as the manual pages of Debian and systemd describe them, and odd ones. */
#include "cryptfuse/crypttab.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/err.h"
#include "run.h"

static struct cf_crypttab t;
static struct cf_err err;

static int find(const char *text, const char *name)
{
	memset(&err, 0, sizeof(err));
	return cf_crypttab_find(text, strlen(text), "tab", name, &t, &err);
}

START_TEST(line__all_options_of_a_plain_volume)
{
	ck_assert_int_eq(find("# comment\n\n  data\t/dev/sdb1 /root/key "
						  "plain,cipher=aes-xts-plain64,size=512,hash=sha512,offset=8,skip=16,sector-size=4096,"
						  "keyfile-offset=3,keyfile-size=64,tries=2,timeout=9,readonly,discard,verify\nx y\n",
						  "data"),
					 0);
	const struct cf_open_opts *v = &t.volume;
	ck_assert_str_eq(v->image, "/dev/sdb1");
	ck_assert_str_eq(v->key_file, "/root/key");
	ck_assert_int_eq(v->type, CF_TYPE_PLAIN);
	ck_assert_str_eq(v->cipher, "aes-xts-plain64");
	ck_assert_str_eq(v->hash, "sha512");
	ck_assert_uint_eq(v->key_bits, 512);
	ck_assert_uint_eq(v->offset_sectors, 8);
	ck_assert_uint_eq(v->skip_sectors, 16);
	ck_assert_uint_eq(v->sector_size_bytes, 4096);
	ck_assert_uint_eq(v->keyfile_offset_bytes, 3);
	ck_assert_uint_eq(v->keyfile_size_bytes, 64);
	ck_assert_uint_eq(v->tries, 2);
	ck_assert_uint_eq(t.timeout_s, 9);
	ck_assert_int_eq(v->access, CF_READ_ONLY);
	ck_assert_int_eq(v->discards, CF_DISCARDS_ALLOWED);
	ck_assert_uint_eq(t.verify, 1);
	ck_assert_str_eq(t.ignored, "");
}
END_TEST

START_TEST(line__two_fields_are_enough)
{
	ck_assert_int_eq(find("data /dev/sdb1", "data"), 0);
	ck_assert_ptr_null(t.volume.key_file);
	ck_assert_int_eq(t.volume.type, CF_TYPE_AUTO);
	ck_assert_int_eq(t.volume.access, CF_READ_WRITE);
	ck_assert_uint_eq(t.volume.tries, 0);
}
END_TEST

static const char *const asked[] = {"none", "-"};

START_TEST(key__none_is_asked_for)
{
	char text[64];
	snprintf(text, sizeof(text), "d /dev/sdb1 %s luks\n", asked[_i]);
	ck_assert_int_eq(find(text, "d"), 0);
	ck_assert_ptr_null(t.volume.key_file);
	ck_assert_int_eq(t.volume.type, CF_TYPE_LUKS);
}
END_TEST

static const struct {
	const char *word, *path;
} sources[] = {
	{"UUID=2b1c-77", "/dev/disk/by-uuid/2b1c-77"},
	{"PARTUUID=0a-0b", "/dev/disk/by-partuuid/0a-0b"},
	{"LABEL=my\\040disk", "/dev/disk/by-label/my\\x20disk"},
	{"LABEL=\"a/b\"", "/dev/disk/by-label/a\\x2fb"},
	{"PARTLABEL=x", "/dev/disk/by-partlabel/x"},
	{"/img/with\\040blank", "/img/with blank"},
	{"/img/with\\000more", "/img/with\\000more"}, /* no name holds a NUL */
};

START_TEST(source__is_a_path_or_a_tag)
{
	char text[128];
	snprintf(text, sizeof(text), "d %s none\n", sources[_i].word);
	ck_assert_int_eq(find(text, "d"), 0);
	ck_assert_str_eq(t.volume.image, sources[_i].path);
}
END_TEST

START_TEST(options__of_other_times_are_ignored_by_name)
{
	ck_assert_int_eq(find("d /x - noauto,nofail,_netdev,x-systemd.device-timeout=10,initramfs\n", "d"), 0);
	ck_assert_str_eq(t.ignored, "noauto, nofail, _netdev, x-systemd.device-timeout, initramfs");
}
END_TEST

START_TEST(options__a_header_says_how_it_is_encrypted)
{
	ck_assert_int_eq(find("d /x - luks,cipher=aes,hash=md5,size=128,skip=1,header=/h,key-slot=3,tries=0\n", "d"), 0);
	ck_assert_ptr_null(t.volume.cipher);
	ck_assert_ptr_null(t.volume.hash);
	ck_assert_uint_eq(t.volume.key_bits, 0);
	ck_assert_uint_eq(t.volume.skip_sectors, 0);
	ck_assert_str_eq(t.volume.header_file, "/h");
	ck_assert_str_eq(t.volume.key_slot, "3");
	ck_assert_uint_eq(t.volume.tries, 1000);
}
END_TEST

static const struct {
	const char *text, *message;
	int rc;
} refused[] = {
	{"", "tab has no line 'd'", -ENOENT},
	{"#d /x\ne /x\n", "tab has no line 'd'", -ENOENT},
	{"\nd\n", "tab:2: d has no source", -EINVAL},
	{"d /x\nd /y\n", "tab: d stands in lines 1 and 2", -EINVAL},
	{"d /x none luks extra\n", "more than four fields", -EINVAL},
	{"d /x none luks,frobnicate=passphrase\n", "not known here: 'frobnicate'", -EINVAL},
	{"d /x none x-systemd\n", "not known here: 'x-systemd'", -EINVAL},
	{"d /x /dev/urandom plain\n", "random key", -EINVAL},
	{"d /x none swap\n", "'swap': its volume gets a new random key", -EINVAL},
	{"d /x none tmp=ext4\n", "'tmp'", -EINVAL},
	{"d /x none tcrypt-hidden\n", "'tcrypt-hidden': TrueCrypt", -EINVAL},
	{"d /x none keyscript=/bin/true\n", "give --key-file", -EINVAL},
	{"d /x /key:UUID=12\n", "on another device", -EINVAL},
	{"d /x none offset=1M\n", "'offset' needs a decimal number", -EINVAL},
	{"d /x none cipher=\n", "'cipher' needs a value", -EINVAL},
	{"d /x none cipher\n", "'cipher' needs a value", -EINVAL},
	{"d /x none luks=yes\n", "'luks' takes no value", -EINVAL},
	{"d UUID=\n", "names nothing", -EINVAL},
};

START_TEST(line__is_refused)
{
	ck_assert_int_eq(find(refused[_i].text, "d"), refused[_i].rc);
	ck_assert_msg(strstr(err.text, refused[_i].message) != NULL, "%s", err.text);
	ck_assert_ptr_null(strstr(err.text, "passphrase"));
}
END_TEST

START_TEST(line__of_another_name_is_not_judged)
{
	ck_assert_int_eq(find("bad\nworse a b c d e f\nd /x\n", "d"), 0);
}
END_TEST

START_TEST(text__with_a_nul_is_refused)
{
	ck_assert_int_eq(cf_crypttab_find("d /x\0\n", 6, "tab", "d", &t, &err), -EINVAL);
}
END_TEST

START_TEST(apply__what_was_given_wins)
{
	struct cf_open_opts o = {.cipher = "mine", .key_file = "my key", .access = CF_READ_WRITE};
	ck_assert_int_eq(find("d /x /key plain,cipher=a,hash=b,keyfile-offset=7,keyfile-size=8,readonly\n", "d"), 0);
	cf_crypttab_apply(&t, &o);
	ck_assert_str_eq(o.image, "/x");
	ck_assert_str_eq(o.cipher, "mine");
	ck_assert_str_eq(o.hash, "b");
	ck_assert_str_eq(o.key_file, "my key");
	ck_assert_uint_eq(o.keyfile_offset_bytes, 0);
	ck_assert_uint_eq(o.keyfile_size_bytes, 0);
	ck_assert_int_eq(o.access, CF_READ_ONLY);
}
END_TEST

START_TEST(read__a_file_that_is_not_there)
{
	ck_assert_int_eq(cf_crypttab_read("/nonexistent/crypttab", "d", &t, &err), -ENOENT);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("crypttab");
	TCase *c = tcase_create("crypttab");
	tcase_add_test(c, line__all_options_of_a_plain_volume);
	tcase_add_test(c, line__two_fields_are_enough);
	tcase_add_loop_test(c, key__none_is_asked_for, 0, (int)CF_ARRAY_LEN(asked));
	tcase_add_loop_test(c, source__is_a_path_or_a_tag, 0, (int)CF_ARRAY_LEN(sources));
	tcase_add_test(c, options__of_other_times_are_ignored_by_name);
	tcase_add_test(c, options__a_header_says_how_it_is_encrypted);
	tcase_add_loop_test(c, line__is_refused, 0, (int)CF_ARRAY_LEN(refused));
	tcase_add_test(c, line__of_another_name_is_not_judged);
	tcase_add_test(c, text__with_a_nul_is_refused);
	tcase_add_test(c, apply__what_was_given_wins);
	tcase_add_test(c, read__a_file_that_is_not_there);
	suite_add_tcase(s, c);
	return test_run(s);
}
