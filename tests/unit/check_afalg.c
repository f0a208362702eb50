/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_afalg.c - what can be said of the kernel's drivers without a kernel that has AF_ALG: which one is taken, and
 * which are devices. The rest is tests/kernel/part-afalg-faults.sh and part-engines.sh. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/engine/afalg.h"
#include "cryptfuse/engine.h"
#include "cryptfuse/err.h"
#include "run.h"

/* As /proc/crypto shows them. */
static const char listing[] = "name         : ecb(aes)\n"
							  "driver       : ecb(aes-generic)\n"
							  "module       : ecb\n"
							  "priority     : 100\n"
							  "refcnt       : 1\n"
							  "selftest     : passed\n"
							  "internal     : no\n"
							  "type         : skcipher\n"
							  "async        : no\n"
							  "blocksize    : 16\n"
							  "\n"
							  "name         : ecb(aes)\n"
							  "driver       : ecb-aes-caam\n"
							  "priority     : 3000\n"
							  "selftest     : passed\n"
							  "internal     : no\n"
							  "async        : yes\n"
							  "\n"
							  "name         : ecb(aes)\n"
							  "driver       : __ecb-aes-aesni\n"
							  "priority     : 4000\n"
							  "selftest     : passed\n"
							  "internal     : yes\n"
							  "async        : no\n"
							  "\n"
							  "name         : ecb(aes)\n"
							  "driver       : ecb-aes-broken\n"
							  "priority     : 5000\n"
							  "selftest     : unknown\n"
							  "internal     : no\n"
							  "async        : yes\n"
							  "\n"
							  "name         : xts(aes)\n"
							  "driver       : xts-aes-aesni\n"
							  "priority     : 401\n"
							  "selftest     : passed\n"
							  "internal     : no\n"
							  "async        : yes\n"
							  "\n"
							  "name         : hctr2(aes)\n"
							  "driver       : hctr2_base(xctr-aes-aesni,polyval-clmulni)\n"
							  "priority     : 400\n"
							  "selftest     : passed\n"
							  "internal     : no\n"
							  "type         : skcipher\n"
							  "async        : no\n"
							  "blocksize    : 16\n"
							  "min keysize  : 24\n"
							  "max keysize  : 33\n"
							  "ivsize       : 32\n"
							  "chunksize    : 16\n"
							  "\n"
							  "name         : hctr2(aes)\n"
							  "driver       : hctr2_base(xctr(aes-generic),polyval-generic)\n"
							  "priority     : 100\n"
							  "selftest     : passed\n"
							  "internal     : no\n"
							  "type         : skcipher\n"
							  "blocksize    : 8\n"
							  "min keysize  : 1\n"
							  "max keysize  : 2\n"
							  "ivsize       : 12"; /* no newline: the end of the file ends an entry */

static int read_listing(const char *text, const char *alg, struct cf_afalg_driver *d)
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	ck_assert_ptr_nonnull(f);
	int rc = cf_afalg_driver_read(f, alg, d);
	fclose(f);
	return rc;
}

START_TEST(driver__highest_priority_that_is_usable)
{
	struct cf_afalg_driver d;
	ck_assert_int_eq(read_listing(listing, "ecb(aes)", &d), 0);
	ck_assert_str_eq(d.name, "ecb-aes-caam");
	ck_assert_int_eq(d.priority, 3000);
	ck_assert(d.async);
}
END_TEST

START_TEST(driver__the_last_entry_counts)
{
	struct cf_afalg_driver d;
	ck_assert_int_eq(read_listing(listing, "xts(aes)", &d), 0);
	ck_assert_str_eq(d.name, "xts-aes-aesni");
	ck_assert(d.async);
	ck_assert(!cf_afalg_driver_is_hardware(&d));
}
END_TEST

START_TEST(driver__sizes_by_either_name)
{
	struct cf_afalg_driver d;
	ck_assert_int_eq(read_listing(listing, "hctr2(aes)", &d), 0);
	ck_assert(d.has_sizes && d.block_bytes == 16 && d.key_min == 24 && d.key_max == 33 && d.iv_bytes == 32);
	ck_assert_int_eq(read_listing(listing, "hctr2_base(xctr(aes-generic),polyval-generic)", &d), 0);
	ck_assert(d.has_sizes && d.block_bytes == 8 && d.key_min == 1 && d.key_max == 2 && d.iv_bytes == 12);
	ck_assert_int_eq(read_listing(listing, "xts(aes)", &d), 0);
	ck_assert(!d.has_sizes);
}
END_TEST

START_TEST(driver__of_no_such_algorithm)
{
	struct cf_afalg_driver d;
	ck_assert_int_eq(read_listing(listing, "ecb(ae", &d), -ENOENT);
	ck_assert_int_eq(read_listing(listing, "ecb(aes) ", &d), -ENOENT);
	ck_assert_int_eq(read_listing(":\n\n:::\nname\nname:\n", "ecb(aes)", &d), -ENOENT);
}
END_TEST

/* Names of drivers in Linux 5.10 to 6.18; those of software are asynchronous where they are or were. */
static const struct kind {
	const char *driver;
	bool async, hardware, constant_time;
} kinds[] = {
	{"ecb(aes-generic)", false, false, false},
	{"xts(ecb(aes-generic))", false, false, false},
	{"ecb(aes-fixed-time)", false, false, true},
	{"ecb-aes-aesni", false, false, true},
	{"xts-aes-aesni", true, false, true},
	{"xts-aes-vaes-avx512", false, false, true},
	{"cryptd(ecb(aes-generic))", true, false, false},
	{"pcrypt(xts(ecb(aes-generic)))", true, false, false},
	{"cryptd(__ecb-aes-aesni)", true, false, true},
	{"xts-aes-neonbs", true, false, true},
	{"ecb-aes-ce", false, false, true},
	{"cts-cbc-aes-ce", true, false, true},
	{"ecb-serpent-avx2", true, false, false},
	{"ecb-twofish-3way", false, false, false},
	{"cbc-aes-s390", false, false, true},
	{"ecb-aes-padlock", false, false, true},
	{"ecb-aes-caam", true, true, true},
	{"xts-aes-caam-qi2", true, true, true},
	{"ecb-aes-sun8i-ce", true, true, true},
	{"cbc-aes-ccp", true, true, true},
	{"qat_aes_xts", true, true, true},
	{"safexcel-ecb-aes", true, true, true},
	{"hisi_sec_xts_aes", true, true, true},
	{"mv-ecb-aes", true, true, true},
	{"virtio_crypto_aes_cbc", true, true, true},
	{"xts(ecb-aes-rk)", true, true, true},
};

START_TEST(driver__is_a_device_or_software)
{
	const struct kind *k = &kinds[_i];
	struct cf_afalg_driver d = {.async = k->async};
	snprintf(d.name, sizeof(d.name), "%s", k->driver);
	ck_assert_msg(cf_afalg_driver_is_hardware(&d) == k->hardware, "%s", k->driver);
	ck_assert_msg(cf_afalg_driver_is_constant_time(&d) == k->constant_time, "%s", k->driver);
}
END_TEST

START_TEST(engine__without_af_alg_says_so_when_asked)
{
	struct cf_err err = {0};
	const struct cf_engine *e = NULL;
	int fd = cf_afalg_bind("ecb(aes)"), rc = cf_engine_find("afalg", &e, &err);
	if (fd >= 0) {
		cf_close_fd(&fd);
		ck_assert_int_eq(rc, 0);
		return;
	}
	ck_assert_int_eq(rc, -ENODEV);
	ck_assert_msg(strstr(err.text, "this kernel offers no AF_ALG") != NULL, "%s", err.text);
}
END_TEST

START_TEST(bind__a_name_too_long_for_the_kernel)
{
	char name[CF_AFALG_NAME + 1];
	memset(name, 'x', CF_AFALG_NAME);
	name[CF_AFALG_NAME] = '\0';
	ck_assert_int_eq(cf_afalg_bind(name), -ENOENT);
	ck_assert_int_eq(cf_afalg_bind(""), -ENOENT);
}
END_TEST

static Suite *suite(void)
{
	Suite *s = suite_create("afalg");
	TCase *tc = tcase_create("drivers");
	tcase_add_test(tc, driver__highest_priority_that_is_usable);
	tcase_add_test(tc, driver__the_last_entry_counts);
	tcase_add_test(tc, driver__sizes_by_either_name);
	tcase_add_test(tc, driver__of_no_such_algorithm);
	tcase_add_loop_test(tc, driver__is_a_device_or_software, 0, CF_ARRAY_LEN(kinds));
	tcase_add_test(tc, engine__without_af_alg_says_so_when_asked);
	tcase_add_test(tc, bind__a_name_too_long_for_the_kernel);
	suite_add_tcase(s, tc);
	return s;
}

int main(void)
{
	return test_run(suite());
}
