/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_spec.c - cipher strings of both forms. What dm-crypt makes of them follows from crypt_ctr_cipher_old() and
 * crypt_ctr_cipher_new(); the rows of tests/vectors/ run through check_table and check_cipher. */
#include "cryptfuse/spec.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/err.h"
#include "run.h"

static const struct {
	const char *text, *cipher, *mode, *iv, *essiv_hash;
	uint32_t keycount;
} good[] = {
	{"aes-xts-plain64", "aes", "xts", "plain64", "", 1},
	{"aes", "aes", "cbc", "plain", "", 1},
	{"aes-plain", "aes", "cbc", "plain", "", 1},
	{"aes:2", "aes", "cbc", "plain", "", 2},
	{"serpent:4-plain", "serpent", "cbc", "plain", "", 4},
	{"aes-cbc-essiv:sha256", "aes", "cbc", "plain64", "sha256", 1},
	{"aes-cbc-essiv:rmd160", "aes", "cbc", "plain64", "rmd160", 1},
	{"aes-xts-plain64:sha256", "aes", "xts", "plain64", "", 1},
	{"aes-xts-plain64:", "aes", "xts", "plain64", "", 1},
	{"aes-ecb", "aes", "ecb", "", "", 1},
	{"aes-ecb-", "aes", "ecb", "", "", 1},
	{"aes-ecb-null", "aes", "ecb", "", "", 1},
	{"aes-ecb-nonsense:x", "aes", "ecb", "", "", 1},
	{"cipher_null-ecb", "cipher_null", "ecb", "", "", 1},
	{"aes:64-cbc-lmk", "aes", "cbc", "lmk", "", 64},
	{"aes:0064-cbc-lmk", "aes", "cbc", "lmk", "", 64},
	{"aes:00000000000000000000000000002-cbc-plain", "aes", "cbc", "plain", "", 2},
	{"aes:256-xts-plain64", "aes", "xts", "plain64", "", 256},
	{"aes-xts-plain65", "aes", "xts", "plain65", "", 1}, /* names are judged by cf_cipher_check */
	{"AES-XTS-PLAIN64", "XTS(AES)", "capi", "PLAIN64", "", 1},
	{"aes-cbc-plain64-x", "aes", "cbc", "plain64-x", "", 1},
	{"xchacha12,aes-adiantum-plain64", "xchacha12,aes", "adiantum", "plain64", "", 1},
	{"xchacha20,aes,nhpoly1305-adiantum-plain64", "xchacha20,aes", "adiantum", "plain64", "", 1},
	{"des3_ede-cbc-plain", "des3_ede", "cbc", "plain", "", 1},

	{"capi:xts(aes)-plain64", "aes", "xts", "plain64", "", 1},
	{"capi:xts(aes)-plain64:sha256", "aes", "xts", "plain64", "", 1},
	{"capi:xts(ecb(aes))-plain64", "aes", "xts", "plain64", "", 1},
	{"capi:xts(ecb(aes-generic))-plain64", "aes", "xts", "plain64", "", 1},
	{"capi:lrw(ecb(aes))-benbi", "aes", "lrw", "benbi", "", 1},
	{"capi:cbc(aes)-essiv:sha256", "aes", "cbc", "plain64", "sha256", 1},
	{"capi:cbc(aes)-essiv:sha256-generic", "aes", "cbc", "plain64", "sha256", 1},
	{"capi:essiv(cbc(aes),sha256)-plain64", "aes", "cbc", "plain64", "sha256", 1},
	{"capi:essiv(cbc(aes-generic),sha256-ni)-plain64", "aes", "cbc", "plain64", "sha256", 1},
	{"capi:essiv(cbc(aes),sha256)-benbi", "aes", "cbc", "benbi", "sha256", 1},
	{"capi:essiv(xts(aes),sha256)-plain64", "aes", "xts", "plain64", "sha256", 1},
	{"capi:cbc(aes)-lmk", "aes", "cbc", "lmk", "", 64},
	{"capi:ecb(aes)", "aes", "ecb", "", "", 1},
	{"capi:ecb(aes)-plain64", "aes", "ecb", "", "", 1},
	{"capi:ecb(aes)-lmk", "aes", "ecb", "", "", 64},
	{"capi:ecb(cipher_null)", "cipher_null", "ecb", "", "", 1},
	{"capi:ctr(aes)-plain64", "aes", "ctr", "plain64", "", 1},
	{"capi:pcbc(aes)-plain64", "aes", "pcbc", "plain64", "", 1},
	{"capi:cts(cbc(aes))-plain64", "aes", "cts", "plain64", "", 1},
	{"capi:adiantum(xchacha12,aes)-plain64", "xchacha12,aes", "adiantum", "plain64", "", 1},
	{"capi:adiantum(xchacha12-simd,aes-aesni,nhpoly1305-avx2)-plain64", "xchacha12,aes", "adiantum", "plain64", "", 1},
	{"capi:xts(serpent-avx2)-plain64", "serpent", "xts", "plain64", "", 1},
	{"capi:cbc(twofish-3way)-plain", "twofish", "cbc", "plain", "", 1},
	{"capi:cbc(twofish-x86_64-3way)-plain", "twofish", "cbc", "plain", "", 1},
	{"capi:cbc(camellia-aesni-avx2)-plain", "camellia", "cbc", "plain", "", 1},
	{"capi:cbc(des3_ede-asm)-plain", "des3_ede", "cbc", "plain", "", 1},
	{"capi:cbc(aes-fixed-time)-plain", "aes", "cbc", "plain", "", 1},
	{"capi:xts-aes-aesni-plain64", "aes", "xts", "plain64", "", 1},
	{"capi:xts-aes-vaes-avx10_512-plain64", "aes", "xts", "plain64", "", 1},
	{"capi:cbc-aes-ce-essiv:sha256", "aes", "cbc", "plain64", "sha256", 1},
	{"capi:cts-cbc-aes-ce-plain64", "aes", "cts", "plain64", "", 1},
	{"capi:cts(cbc-aes-aesni)-plain64", "aes", "cts", "plain64", "", 1},
	{"capi:essiv(cbc-aes-aesni,sha256-avx2)-plain64", "aes", "cbc", "plain64", "sha256", 1},

	/* what is no cipher and mode of ours is the kernel's affair, whole */
	{"capi:hctr2(aes)-plain64", "hctr2(aes)", "capi", "plain64", "", 1},
	{"capi:hctr2_base(xctr(aes-generic),polyval-generic)-plain64", "hctr2_base(xctr(aes-generic),polyval-generic)",
	 "capi", "plain64", "", 1},
	{"capi:xctr(aes)-plain64:sha256", "xctr(aes)", "capi", "plain64", "", 1},
	{"capi:rfc3686(ctr(aes))-plain64be", "rfc3686(ctr(aes))", "capi", "plain64be", "", 1},
	{"capi:xctr-aes-aesni-plain64", "xctr-aes-aesni", "capi", "plain64", "", 1},
	{"capi:chacha20-plain64", "chacha20", "capi", "plain64", "", 1},
	{"capi:aes", "aes", "capi", "", "", 1}, /* cf_cipher_check knows whether it has an IV */
	{"capi:cbc(anubis)-lmk", "cbc(anubis)", "capi", "lmk", "", 64},
	{"capi:essiv(cbc(aes),blake2b-256)-plain64", "essiv(cbc(aes),blake2b-256)", "capi", "plain64", "", 1},
	{"capi:essiv(cbc(anubis),sha256-generic)-benbi", "essiv(cbc(anubis),sha256-generic)", "capi", "benbi", "", 1},
	{"capi:cbc(anubis)-essiv:sha256", "essiv(cbc(anubis),sha256)", "capi", "plain64", "", 1},
	{"anubis-cbc-essiv:sha256", "essiv(cbc(anubis),sha256)", "capi", "plain64", "", 1},
	{"aes-cbc-essiv:streebog256", "essiv(cbc(aes),streebog256)", "capi", "plain64", "", 1},
	{"capi:essiv(essiv(cbc(aes),sha256),sha256)-plain64", "essiv(essiv(cbc(aes),sha256),sha256)", "capi", "plain64", "",
	 1},
	{"capi:essiv(cbc(aes),sha256)-essiv:sha256", "essiv(essiv(cbc(aes),sha256),sha256)", "capi", "plain64", "", 1},
	{"capi:essiv(cbc(aes))-plain64", "essiv(cbc(aes))", "capi", "plain64", "", 1},
	{"capi:cts(xts(aes))-plain64", "cts(xts(aes))", "capi", "plain64", "", 1},
	{"capi:cts(aes)-plain64", "cts(aes)", "capi", "plain64", "", 1},
	{"capi:ecb(anubis)", "ecb(anubis)", "capi", "", "", 1},
	{"capi:ofb(aes)-plain64", "ofb(aes)", "capi", "plain64", "", 1},
	{"aes-ofb-plain64", "ofb(aes)", "capi", "plain64", "", 1},
	{"anubis-ecb-nonsense", "ecb(anubis)", "capi", "", "", 1},
	{"anubis", "cbc(anubis)", "capi", "plain", "", 1},
	{"anubis:64-cbc-lmk", "cbc(anubis)", "capi", "lmk", "", 64},
	{"anubis-ecb-a-b", "ecb(anubis)", "capi", "", "", 1},
	{"aes-capi-plain64", "capi(aes)", "capi", "plain64", "", 1},
	{"aes-cts-plain64", "cts(aes)", "capi", "plain64", "", 1},
	{"aes-essiv-plain64", "essiv(aes)", "capi", "plain64", "", 1},
	{"aes-adiantum-plain64", "adiantum(aes)", "capi", "plain64", "", 1},
	{"xchacha12,aes,poly1305-adiantum-plain64", "adiantum(xchacha12,aes,poly1305)", "capi", "plain64", "", 1},
	{"capi:adiantum(xchacha12,aes,nhpoly1305,x)-plain64", "adiantum(xchacha12,aes,nhpoly1305,x)", "capi", "plain64", "",
	 1},
	/* but for what the capi: form could not say */
	{"aes:2-ofb-plain64", "aes", "ofb", "plain64", "", 2},
	{"aes-ofb-plain64-x", "aes", "ofb", "plain64-x", "", 1},
};

START_TEST(parse__gives_cipher_mode_iv)
{
	struct cf_cipher_spec spec = {
		.key_bytes = 5, .du_bytes = 1024, .iv_offset = 9, .iv_numbering = CF_IV_LARGE_SECTORS};
	struct cf_err err = {0};
	ck_assert_msg(cf_spec_parse_cipher(good[_i].text, &spec, &err) == 0, "%s: %s", good[_i].text, err.text);
	ck_assert_str_eq(spec.cipher, good[_i].cipher);
	ck_assert_str_eq(spec.mode, good[_i].mode);
	ck_assert_str_eq(spec.iv, good[_i].iv);
	ck_assert_str_eq(spec.essiv_hash, good[_i].essiv_hash);
	ck_assert_uint_eq(spec.keycount, good[_i].keycount);
	ck_assert(spec.key_bytes == 5 && spec.du_bytes == 1024 && spec.iv_offset == 9);
	ck_assert(spec.iv_numbering == CF_IV_LARGE_SECTORS);
}
END_TEST

START_TEST(format__is_read_back_as_the_same)
{
	struct cf_cipher_spec spec = {.cipher = ""}, again = {.cipher = ""};
	struct cf_err err = {0};
	char text[CF_SPEC_TEXT];
	ck_assert_int_eq(cf_spec_parse_cipher(good[_i].text, &spec, &err), 0);
	cf_spec_format_cipher(&spec, text, sizeof(text));
	ck_assert_msg(cf_spec_parse_cipher(text, &again, &err) == 0, "%s: %s: %s", good[_i].text, text, err.text);
	ck_assert_msg(!memcmp(&spec, &again, sizeof(spec)), "%s: %s", good[_i].text, text);
}
END_TEST

#define X16 "xxxxxxxxxxxxxxxx"
#define X64 X16 X16 X16 X16
#define X128 X64 X64
static const struct {
	const char *text;
	int rc;
	const char *says;
} bad[] = {
	{"", -EINVAL, "empty"},
	{"-", -EINVAL, "IV mode"},
	{"-xts-plain64", -EINVAL, "empty"},
	{"aes-", -EINVAL, "IV mode"},
	{"aes-plain-", -EINVAL, "empty"},
	{"aes-xts", -EINVAL, "IV mode"},
	{"aes-cbc", -EINVAL, "IV mode"},
	{"aes-cbc-", -EINVAL, "empty"},
	{"aes--plain64", -EINVAL, "empty"},
	{"aes-cbc-essiv", -EINVAL, "hash"},
	{"aes-cbc-essiv:", -EINVAL, "hash"},
	{"aes-ecb-essiv:sha256", -EINVAL, "ecb"},
	{"aes-ecb-essiv", -EINVAL, "hash"},
	{"aes:-cbc-plain", -EINVAL, "power of two"},
	{"aes:0-cbc-plain", -EINVAL, "power of two"},
	{"aes:3-cbc-plain64", -EINVAL, "power of two"},
	{"aes:2x-cbc-plain64", -EINVAL, "power of two"},
	{"aes:+2-cbc-plain64", -EINVAL, "power of two"},
	{"aes:2:2-cbc-plain64", -EINVAL, "power of two"},
	{"aes:4294967297-cbc-plain64", -EINVAL, "modulo 2^32"},
	{"aes:18446744073709551618-cbc-plain64", -EINVAL, "modulo 2^32"},
	{"aes:1000000000000000000000000000-cbc-plain64", -EINVAL, "key count"},
	{"aes:512-cbc-plain64", -EINVAL, "256"},
	{"xts(aes)-plain64", -EINVAL, "capi:"},
	{"aes:2-cts-plain64", -ENODEV, "no engine here has"},
	{"xchacha12,aes,poly1305:2-adiantum-plain64", -ENODEV, "no engine here has"},
	{X128 "-xts-plain64", -EINVAL, "longer"},
	{"aes-" X128 "-plain64", -EINVAL, "longer"},
	{"aes-xts-" X128, -EINVAL, "longer"},
	{"aes-cbc-essiv:" X128, -EINVAL, "longer"},
	{"capi:" X128 "-plain64", -EINVAL, "longer"},
	{"capi:hctr2(" X128 ")-plain64", -EINVAL, "longer"},
	{"capi:hctr2(aes)-" X128, -EINVAL, "longer"},
	{"capi:hctr2(aes)-essiv:" X128, -EINVAL, "longer"},
	{X64 X16 X16 X16 "xxxxxxxxxxx-xts-plain64", -EINVAL, "longer"}, /* 123 and "xts()" are 128 */
	{"capi:hctr2(aes)-essiv", -EINVAL, "hash"},
	{"capi:chacha20-essiv:", -EINVAL, "hash"},
	{"capi:hctr2(aes", -EINVAL, "parentheses"},
	{"capi:hctr2(aes)-", -EINVAL, "empty"},
	{"capi:hctr2(aes)", -EINVAL, "IV mode"},
	{"capi:a:hctr2(aes)-plain64:x", -ENODEV, "no engine here has"},
	{"aes-capi-plain64-x", -ENODEV, "no engine here has"}, /* our own word for a mode */
	{"anubis-cbc-essiv:a:b", -ENODEV, "no engine here has"},
	{"aes-cbc-essiv:sha256,b", -ENODEV, "no engine here has"},
	{"capi:hctr2(aes)-essiv:a)", -ENODEV, "no engine here has"},
	{"capi:xts(aes)-plain:b:c", -EINVAL, "unknown IV mode 'plain:b'"},
	{"capi:adiantum(xchacha12,aes)-plain(b:", -EINVAL, "unknown IV mode"},
	{"capi:", -EINVAL, "empty"},
	{"capi:-plain64", -EINVAL, "empty"},
	{"capi:xts(aes", -EINVAL, "parentheses"},
	{"capi:xts(aes)x-plain64", -EINVAL, "parentheses"},
	{"capi:xts(-plain64", -EINVAL, "parentheses"},
	{"capi:xts()-plain64", -EINVAL, "empty"},
	{"capi:xts(aes)", -EINVAL, "IV mode"},
	{"capi:xts(aes)-", -EINVAL, "empty"},
	{"capi:cbc(aes)-essiv", -EINVAL, "hash"},
	{"capi:ecb(aes)-essiv:sha256", -EINVAL, "ecb"},
	{"capi:essiv(ecb(aes),sha256)-plain64", -EINVAL, "ecb"},
};

START_TEST(parse__refuses_and_says_why)
{
	struct cf_cipher_spec spec = {.cipher = "kept", .keycount = 77};
	struct cf_err err = {0};
	ck_assert_msg(cf_spec_parse_cipher(bad[_i].text, &spec, &err) == bad[_i].rc, "%s: %d %s", bad[_i].text, err.code,
				  err.text);
	ck_assert_msg(strstr(err.text, bad[_i].says) != NULL, "%s: %s", bad[_i].text, err.text);
	ck_assert_str_eq(spec.cipher, "kept");
	ck_assert_uint_eq(spec.keycount, 77);
}
END_TEST

/* 127 characters are a name of the kernel's, and come back. */
START_TEST(parse__the_longest_name)
{
	struct cf_cipher_spec spec = {.cipher = ""}, again = {.cipher = ""};
	struct cf_err err = {0};
	char text[CF_SPEC_TEXT];
	ck_assert_int_eq(cf_spec_parse_cipher(X64 X16 X16 X16 "xxxxxxxxxx-xts-essiv", &spec, &err), -EINVAL);
	ck_assert_msg(cf_spec_parse_cipher(X64 X16 X16 X16 "xxxxxxxxxx-xts-plain64", &spec, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(strlen(spec.cipher), 127);
	cf_spec_format_cipher(&spec, text, sizeof(text));
	ck_assert_int_eq(cf_spec_parse_cipher(text, &again, &err), 0);
	ck_assert_mem_eq(&spec, &again, sizeof(spec));
}
END_TEST

static const struct {
	const char *option, *same_as;
} options[] = {
	{"null", "cipher_null-ecb"},
	{"cipher_null", "cipher_null-ecb"},
	{"aes-xts-plain64", "aes-xts-plain64"},
	{"null-ecb", "null-ecb"},
};

START_TEST(parse_option__knows_cryptsetups_short_names)
{
	struct cf_cipher_spec a = {.keycount = 0}, b = {.keycount = 0};
	struct cf_err err = {0};
	ck_assert_int_eq(cf_spec_parse_option(options[_i].option, &a, &err), 0);
	ck_assert_int_eq(cf_spec_parse_cipher(options[_i].same_as, &b, &err), 0);
	ck_assert_mem_eq(&a, &b, sizeof(a));
}
END_TEST

/* Every prefix, and every byte changed to every other: no crash, and what is taken is whole. */
START_TEST(parse__survives_damage)
{
	char text[256];
	for (size_t g = 0; g < CF_ARRAY_LEN(good); g++) {
		size_t len = strlen(good[g].text);
		for (size_t at = 0; at < len; at++) {
			for (unsigned c = 0; c < 256; c++) {
				struct cf_cipher_spec spec = {.keycount = 0};
				struct cf_err err = {0};
				strcpy(text, good[g].text);
				text[at] = (char)c;
				int rc = cf_spec_parse_cipher(text, &spec, &err);
				ck_assert(rc == 0 ? spec.cipher[0] && spec.mode[0] && spec.keycount : rc == err.code && err.text[0]);
				ck_assert(rc != 0 || spec.iv[0] || !strcmp(spec.mode, "ecb") || !strcmp(spec.mode, "capi"));
			}
		}
	}
}
END_TEST

int main(void)
{
	Suite *s = suite_create("spec");
	TCase *t = tcase_create("spec");
	tcase_add_loop_test(t, parse__gives_cipher_mode_iv, 0, (int)CF_ARRAY_LEN(good));
	tcase_add_loop_test(t, format__is_read_back_as_the_same, 0, (int)CF_ARRAY_LEN(good));
	tcase_add_loop_test(t, parse__refuses_and_says_why, 0, (int)CF_ARRAY_LEN(bad));
	tcase_add_loop_test(t, parse_option__knows_cryptsetups_short_names, 0, (int)CF_ARRAY_LEN(options));
	tcase_add_test(t, parse__the_longest_name);
	tcase_add_test(t, parse__survives_damage);
	suite_add_tcase(s, t);
	return test_run(s);
}
