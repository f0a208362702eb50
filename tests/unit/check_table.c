/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_table.c - table lines. Truth: tests/vectors/tables.tsv, what real kernels took and refused and what they then
 * wrote. Where cryptfuse judges otherwise on purpose the row stands below by name. */
#include "config.h"

#include "cryptfuse/table.h"

#include <check.h>
#include <errno.h>
#include <linux/keyctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "run.h"
#include "tsv.h"
#include "vectors.h"

static void start(void)
{
	struct cf_err err = {0};
	ck_assert_msg(cf_secret_init(&err) == 0, "%s", err.text);
}

/* A distinctive 64-byte key: no message may show any eight digits of it. */
#define KEY                                                            \
	"a1b2c3d4e5f60718293a4b5c6d7e8f90a0b1c2d3e4f5061728394a5b6c7d8e9f" \
	"f1e2d3c4b5a69788796a5b4c3d2e1f00f0e1d2c3b4a5968778695a4b3c2d1e0f"
#define GOOD "0 64 crypt aes-xts-plain64 " KEY " 0 7:0 0"

static bool shows_key(const char *text)
{
	char window[9] = "";
	for (size_t i = 0; i + 8 <= strlen(KEY); i++) {
		memcpy(window, &KEY[i], 8);
		if (strstr(text, window))
			return true;
	}
	return false;
}

static int parse(const char *text, struct cf_table *t, uint8_t **key, struct cf_err *err)
{
	*err = (struct cf_err){0};
	int rc = cf_table_parse(text, strlen(text), t, key, err);
	ck_assert_msg(!shows_key(err->text), "%s", err->text);
	ck_assert(rc == err->code);
	return rc;
}

/* ---- what the kernels said ---- */

enum column { ROW, LENGTH, CIPHER, TABLE_KEY, IV_OFFSET, OFFSET, OPTIONS, VERDICT, SHA256, N_COLUMNS };
static struct tsv rows;

/* A row that is not judged as that kernel judged it, and what the message must say. */
static const struct exception {
	const char *row, *verdict, *reason;
} exceptions[] = {
	{"4k:sector-8192", "accepted", "data units above the page size are taken"},
	{"4k:sector-69632-wraps-4096", "refused", "above 65536"},
	{"4k:count-short", "refused", "more options than its COUNT"},
	{"4k:key-odd", "refused", "odd number of hex digits"},
	{"4k:size-8-start-3", "accepted", "any data offset is taken"},
	{"64k:size-128-start-8-of-65536", "accepted", "any data offset is taken"},
	{"64k:size-128-start-64-of-65536", "accepted", "any data offset is taken"},
	{"64k:size-16-start-8-of-8192", "accepted", "any data offset is taken"},
	{"64k:size-32-start-16-of-16384", "accepted", "any data offset is taken"},
};

static const struct exception *exception_of(const char *row)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(exceptions); i++)
		if (!strcmp(exceptions[i].row, row))
			return &exceptions[i];
	return NULL;
}

static char *line_of(int row)
{
	static char line[16384];
	const char *f[N_COLUMNS];
	for (size_t i = 0; i < N_COLUMNS; i++)
		f[i] = tsv_field(&rows, (size_t)row, i);
	int len = snprintf(line, sizeof(line), "0 %s crypt %s %s %s 7:0 %s %s", f[LENGTH], f[CIPHER], f[TABLE_KEY],
					   f[IV_OFFSET], f[OFFSET], f[OPTIONS]);
	ck_assert(len > 0 && (size_t)len < sizeof(line));
	return line;
}

/* The verdict on a row, the cipher included. */
static int judge(int row, struct cf_table *t, uint8_t **key, struct cf_err *err)
{
	const char *line = line_of(row);
	int rc = cf_table_parse(line, strlen(line), t, key, err);
	return rc ? rc : cf_cipher_check(&t->cipher, NULL, err);
}

START_TEST(row__is_judged_as_the_kernel_judged_it)
{
	const char *name = tsv_field(&rows, (size_t)_i, ROW);
	const struct exception *e = exception_of(name);
	const char *want = e ? e->verdict : tsv_field(&rows, (size_t)_i, VERDICT);
	struct cf_err err = {0};
	struct cf_table t;
	CF_CLEANUP(cf_secret_freep) uint8_t *key = NULL;
	int rc = judge(_i, &t, &key, &err);
	ck_assert_msg(!strcmp(rc ? "refused" : "accepted", want), "%s: %d %s", name, rc, err.text);
	ck_assert_msg(rc == 0 || (rc == err.code && err.text[0]), "%s: no message", name);
	if (rc && e)
		ck_assert_msg(strstr(err.text, e->reason) != NULL, "%s: %s", name, err.text);
}
END_TEST

static void crypt_plaintext(const struct cf_table *t, const uint8_t *key, uint8_t *out, size_t len)
{
	struct cf_err err = {0};
	const struct cf_cipher_opts opts = {.n_workers = 1};
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = NULL;
	uint8_t *plain = malloc(len);
	ck_assert(plain != NULL);
	vector_plaintext(plain, len);
	ck_assert_msg(cf_cipher_new(&c, &t->cipher, key, &opts, &err) == 0, "%s", err.text);
	ck_assert_int_eq(cf_cipher_crypt(c, 0, CF_ENCRYPT, 0, len / t->cipher.du_bytes, plain, out), 0);
	free(plain);
}

START_TEST(accepted_row__encrypts_to_the_kernels_ciphertext)
{
	if (!*tsv_field(&rows, (size_t)_i, SHA256))
		return;
	struct cf_err err = {0};
	struct cf_table t;
	CF_CLEANUP(cf_secret_freep) uint8_t *key = NULL;
	if (judge(_i, &t, &key, &err) != 0)
		return;
	size_t len = (size_t)t.sectors * CF_SECTOR_BYTES;
	uint8_t *out = malloc(len);
	char hex[65];
	ck_assert(out != NULL);
	crypt_plaintext(&t, key, out, len);
	sha256_hex(out, len, hex);
	free(out);
	ck_assert_msg(!strcmp(hex, tsv_field(&rows, (size_t)_i, SHA256)), "%s: %s", tsv_field(&rows, (size_t)_i, ROW), hex);
}
END_TEST

START_TEST(exceptions__exist_and_differ_from_the_kernel)
{
	for (size_t e = 0; e < CF_ARRAY_LEN(exceptions); e++) {
		size_t row = 0;
		while (row < rows.n_rows && strcmp(tsv_field(&rows, row, ROW), exceptions[e].row) != 0)
			row++;
		ck_assert_msg(row < rows.n_rows, "%s is not there", exceptions[e].row);
		ck_assert_msg(strcmp(tsv_field(&rows, row, VERDICT), exceptions[e].verdict) != 0, "%s", exceptions[e].row);
	}
}
END_TEST

static void print_counts(void)
{
	size_t accepted = 0;
	for (size_t i = 0; i < rows.n_rows; i++)
		accepted += !strcmp(tsv_field(&rows, i, VERDICT), "accepted");
	printf("%zu rows, of which the kernels took %zu; %zu exceptions by name, the others as the kernels\n", rows.n_rows,
		   accepted, CF_ARRAY_LEN(exceptions));
}

/* ---- fields ---- */

START_TEST(parse__fills_every_field)
{
	struct cf_table t;
	struct cf_err err;
	CF_CLEANUP(cf_secret_freep) uint8_t *key = NULL;
	ck_assert_msg(parse("0 4096 crypt aes-cbc-essiv:sha256 " KEY " 24 /dev/sdb1 77 3 allow_discards sector_size:4096 "
						"iv_large_sectors\n",
						&t, &key, &err) == 0,
				  "%s", err.text);
	ck_assert_uint_eq(t.sectors, 4096);
	ck_assert_uint_eq(t.data_sector, 77);
	ck_assert_uint_eq(t.cipher.iv_offset, 24);
	ck_assert_uint_eq(t.cipher.du_bytes, 4096);
	ck_assert_int_eq(t.cipher.iv_numbering, CF_IV_LARGE_SECTORS);
	ck_assert_int_eq(t.discards, CF_DISCARDS_ALLOWED);
	ck_assert_uint_eq(t.cipher.key_bytes, 64);
	ck_assert_str_eq(t.cipher.essiv_hash, "sha256");
	ck_assert(cf_secret_contains(key));
	ck_assert_uint_eq(key[0], 0xa1);
	ck_assert_uint_eq(key[31], 0x9f);
	ck_assert_uint_eq(key[63], 0x0f);
}
END_TEST

static const struct {
	const char *text;
	uint64_t sectors, data_sector, iv_offset;
	uint32_t key_bytes, du_bytes;
} good[] = {
	{GOOD, 64, 0, 0, 64, 512},
	{GOOD "\n", 64, 0, 0, 64, 512},
	{GOOD "\r\n\n", 64, 0, 0, 64, 512},
	{"  " GOOD, 64, 0, 0, 64, 512},
	{"volume: " GOOD, 64, 0, 0, 64, 512},
	{"0\t64  crypt   aes-xts-plain64 " KEY " 0 7:0 0", 64, 0, 0, 64, 512},
	{"000 0064 crypt aes-xts-plain64 " KEY " 008 7:0 09", 64, 9, 8, 64, 512},
	{"0 64 crypt aes-xts-plain64 " KEY " 0 /dev/disk/by\\ id/x 0", 64, 0, 0, 64, 512},
	{"0 64 crypt aes-xts-plain64 " KEY " 18446744073709551615 7:0 0", 64, 0, UINT64_MAX, 64, 512},
	{"0 18014398509481983 crypt aes-xts-plain64 " KEY " 0 7:0 18014398509481983", INT64_MAX / 512, INT64_MAX / 512, 0,
	 64, 512},
	{"0 64 crypt cipher_null-ecb - 0 7:0 0", 64, 0, 0, 0, 512},
	{"0 64 crypt aes-cbc-plain AbCd 0 7:0 0", 64, 0, 0, 2, 512},
	{GOOD " 0", 64, 0, 0, 64, 512},
	{GOOD " 1 sector_size:1024", 64, 0, 0, 64, 1024},
	{GOOD " 1 sector_size:001024", 64, 0, 0, 64, 1024},
	{GOOD " 2 sector_size:4096 sector_size:512", 64, 0, 0, 64, 512},
	{GOOD " 1 iv_large_sectors", 64, 0, 0, 64, 512},
	{GOOD " 8 ALLOW_discards Same_Cpu_Crypt submit_from_crypt_cpus high_priority no_read_workqueue no_write_workqueue "
		  "no_read_workqueue Iv_Large_Sectors",
	 64, 0, 0, 64, 512},
	{"0 128 crypt aes-xts-plain64 " KEY " 128 7:0 1 1 sector_size:65536", 128, 1, 128, 64, 65536},
};

START_TEST(parse__takes)
{
	struct cf_table t;
	struct cf_err err;
	CF_CLEANUP(cf_secret_freep) uint8_t *key = NULL;
	ck_assert_msg(parse(good[_i].text, &t, &key, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(t.sectors, good[_i].sectors);
	ck_assert_uint_eq(t.data_sector, good[_i].data_sector);
	ck_assert_uint_eq(t.cipher.iv_offset, good[_i].iv_offset);
	ck_assert_uint_eq(t.cipher.key_bytes, good[_i].key_bytes);
	ck_assert_uint_eq(t.cipher.du_bytes, good[_i].du_bytes);
	ck_assert((key == NULL) == (good[_i].key_bytes == 0));
}
END_TEST

#define HEAD "0 64 crypt aes-xts-plain64 "
static const struct {
	const char *text;
	int rc;
	const char *says;
} bad[] = {
	{"", -EINVAL, "empty"},
	{" \n", -EINVAL, "empty"},
	{"volume:", -EINVAL, "too few fields"},
	{"0 64 crypt", -EINVAL, "too few fields"},
	{"0 64 crypt aes-xts-plain64 " KEY " 0 7:0", -EINVAL, "too few fields"},
	{GOOD "\n" GOOD, -EINVAL, "more than one line"},
	{"8 64 crypt aes-xts-plain64 " KEY " 0 7:0 0", -EINVAL, "START"},
	{"0 0 crypt aes-xts-plain64 " KEY " 0 7:0 0", -EINVAL, "LENGTH"},
	{"0 +64 crypt aes-xts-plain64 " KEY " 0 7:0 0", -EINVAL, "LENGTH"},
	{"0 18014398509481984 crypt aes-xts-plain64 " KEY " 0 7:0 0", -EINVAL, "LENGTH"},

	{"0 64 striped 7:0 0 x x 8", -EINVAL, "not one of a crypt target"},
	{HEAD KEY " 18446744073709551616 7:0 0", -EINVAL, "wrap"},
	{HEAD KEY " 0x10 7:0 0", -EINVAL, "IV_OFFSET"},
	{HEAD KEY " 0 7:0 5x", -EINVAL, "OFFSET"},
	{HEAD KEY " 0 7:0 18014398509481984", -EINVAL, "OFFSET"},
	{HEAD KEY "0 0 7:0 0", -EINVAL, "odd number"},
	{HEAD "a 0 7:0 0", -EINVAL, "odd number"},
	{HEAD KEY "0x 0 7:0 0", -EINVAL, "no hex digits"},
	{HEAD "-- 0 7:0 0", -EINVAL, "no hex digits"},
	{GOOD " 1", -EINVAL, "fewer options"},
	{GOOD " 2 allow_discards", -EINVAL, "fewer options"},
	{GOOD " 0 allow_discards", -EINVAL, "more options"},
	{GOOD " 4294967297 allow_discards", -EINVAL, "COUNT"},
	{GOOD " x allow_discards", -EINVAL, "COUNT"},
	{GOOD " 1 discards", -EINVAL, "option 1"},
	{GOOD " 2 allow_discards SECTOR_SIZE:4096", -EINVAL, "option 2"},
	{GOOD " 1 sector_size", -EINVAL, "option 1"},
	{GOOD " 1 sector_size:69632", -EINVAL, "above 65536"},
	{GOOD " 1 sector_size:4294971392", -EINVAL, "above 65536"},
	{GOOD " 2 sector_size:65536 sector_size:512", -EINVAL, "LENGTH"},
	{GOOD " 1 sector_size:1000", -EINVAL, "power of two"},
	{GOOD " 1 sector_size:0", -EINVAL, "power of two"},
	{HEAD KEY " 1 7:0 0 1 sector_size:1024", -EINVAL, "IV_OFFSET is not a multiple"},
	{GOOD " 1 integrity:16:aead", -EINVAL, "dm-integrity"},
	{HEAD ":64:logon:name 0 7:0 0", -ENOKEY, "logon"},
	{HEAD ":64:trusted:name 0 7:0 0", -ENOKEY, "trusted"},
	{HEAD ":64:encrypted:name 0 7:0 0", -ENOKEY, "encrypted"},
	{HEAD ":64:keyring:name 0 7:0 0", -EINVAL, "type"},
	{HEAD ":64:user: 0 7:0 0", -EINVAL, "SIZE:TYPE:NAME"},
	{HEAD ":64:user 0 7:0 0", -EINVAL, "SIZE:TYPE:NAME"},
	{HEAD ":: 0 7:0 0", -EINVAL, "SIZE:TYPE:NAME"},
	{HEAD ":0:user:x 0 7:0 0", -EINVAL, "SIZE"},
	{HEAD ":99999:user:x 0 7:0 0", -EINVAL, "SIZE"},
	/* a key in the wrong place */
	{"0 64 crypt " KEY " 0 7:0 0 0 0", -EINVAL, "IV_OFFSET"},
	{"0 64 crypt " KEY " 00 0 7:0 0", -EINVAL, "looks like a key"},
	{"0 64 crypt x" KEY "-xts-plain64 00 0 7:0 0", -EINVAL, "looks like a key"},
	{"0 64 crypt " KEY " aes-xts-plain64 0 7:0 0", -EINVAL, "KEY"},
	{HEAD "00 " KEY " 7:0 0", -EINVAL, "IV_OFFSET"},
	{GOOD " 1 " KEY, -EINVAL, "option 1"},
	{GOOD " " KEY, -EINVAL, "COUNT"},
	{KEY " " GOOD, -EINVAL, "START"},
};

START_TEST(parse__refuses_and_says_why)
{
	struct cf_table t;
	struct cf_err err;
	CF_CLEANUP(cf_secret_freep) uint8_t *key = NULL;
	ck_assert_msg(parse(bad[_i].text, &t, &key, &err) == bad[_i].rc, "%s: %s", bad[_i].text, err.text);
	ck_assert_msg(strstr(err.text, bad[_i].says) != NULL, "%s: %s", bad[_i].text, err.text);
	ck_assert(key == NULL);
}
END_TEST

START_TEST(parse__refuses_a_nul_byte)
{
	static const char text[] = GOOD "\0 1 allow_discards";
	struct cf_table t;
	struct cf_err err = {0};
	uint8_t *key = NULL;
	ck_assert_int_eq(cf_table_parse(text, sizeof(text) - 1, &t, &key, &err), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "NUL"));
}
END_TEST

START_TEST(parse__needs_no_nul_at_the_end)
{
	static const char text[] = GOOD "77777";
	struct cf_table t;
	struct cf_err err = {0};
	CF_CLEANUP(cf_secret_freep) uint8_t *key = NULL;
	ck_assert_int_eq(cf_table_parse(text, strlen(GOOD), &t, &key, &err), 0);
	ck_assert_uint_eq(t.data_sector, 0);
}
END_TEST

START_TEST(key__above_the_limit_is_refused)
{
	static char text[2 * CF_KEY_MAX + 256];
	for (size_t extra = 0; extra <= 1; extra++) {
		int len = sprintf(text, "0 64 crypt aes-cbc-plain %0*d 0 7:0 0", (int)(2 * (CF_KEY_MAX + extra)), 0);
		struct cf_table t;
		struct cf_err err = {0};
		CF_CLEANUP(cf_secret_freep) uint8_t *key = NULL;
		ck_assert_int_eq(cf_table_parse(text, (size_t)len, &t, &key, &err), extra ? -EINVAL : 0);
	}
}
END_TEST

START_TEST(parse__refuses_too_many_fields)
{
	char text[2048] = GOOD " 99";
	for (int i = 0; i < 99; i++)
		strcat(text, " allow_discards");
	struct cf_table t;
	struct cf_err err;
	uint8_t *key = NULL;
	ck_assert_int_eq(parse(text, &t, &key, &err), -EINVAL);
}
END_TEST

/* ---- damage ---- */

static void try_damaged(const char *text, size_t len)
{
	struct cf_table t;
	struct cf_err err = {0};
	CF_CLEANUP(cf_secret_freep) uint8_t *key = NULL;
	int rc = cf_table_parse(text, len, &t, &key, &err);
	ck_assert_msg(!shows_key(err.text), "%s", err.text);
	if (rc == 0)
		ck_assert_msg(t.cipher.key_bytes == 64 && key, "taken with another key: %.*s", (int)len, text);
	else
		ck_assert(rc == err.code && err.text[0] && !key);
}

START_TEST(damage__every_prefix)
{
	static const char text[] = GOOD " 2 allow_discards sector_size:1024";
	for (size_t len = 0; len < sizeof(text); len++) {
		char *exact = malloc(len ? len : 1); /* a read past the end is seen by a sanitizer */
		ck_assert(exact != NULL);
		memcpy(exact, text, len);
		try_damaged(exact, len);
		free(exact);
	}
}
END_TEST

START_TEST(damage__every_single_byte)
{
	char text[] = GOOD " 2 allow_discards sector_size:1024";
	for (size_t at = 0; at < sizeof(text) - 1; at++) {
		char was = text[at];
		for (unsigned c = 0; c < 256; c++) {
			text[at] = (char)c;
			try_damaged(text, sizeof(text) - 1);
		}
		text[at] = was;
	}
}
END_TEST

START_TEST(damage__every_byte_left_out_or_doubled)
{
	static const char text[] = GOOD " 2 allow_discards sector_size:1024";
	char other[sizeof(text) + 1];
	for (size_t at = 0; at < sizeof(text) - 1; at++) {
		memcpy(other, text, at);
		memcpy(other + at, text + at + 1, sizeof(text) - at - 1);
		try_damaged(other, strlen(other));
		memcpy(other, text, at + 1);
		memcpy(other + at + 1, text + at, sizeof(text) - at);
		try_damaged(other, strlen(other));
	}
}
END_TEST

/* ---- the kernel's keyring ---- */

/* A key in a keyring of this process alone; 0 where the kernel or a sandbox has none to give. */
static long add_user_key(const char *name, const void *bytes, size_t len)
{
	if (syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL) < 0)
		return 0;
	long id = syscall(SYS_add_key, "user", name, bytes, len, KEY_SPEC_SESSION_KEYRING);
	return id < 0 ? 0 : id;
}

START_TEST(keyring__user_key_is_read)
{
	uint8_t bytes[64];
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 5 + 1);
	if (!add_user_key("cryptfuse:check", bytes, sizeof(bytes)))
		return;
	struct cf_table t;
	struct cf_err err;
	CF_CLEANUP(cf_secret_freep) uint8_t *key = NULL;
	ck_assert_msg(parse(HEAD ":64:user:cryptfuse:check 0 7:0 0", &t, &key, &err) == 0, "%s", err.text);
	ck_assert_uint_eq(t.cipher.key_bytes, 64);
	ck_assert_mem_eq(key, bytes, 64);
	CF_CLEANUP(cf_secret_freep) uint8_t *other = NULL;
	ck_assert_int_eq(parse(HEAD ":32:user:cryptfuse:check 0 7:0 0", &t, &other, &err), -EINVAL);
	ck_assert_int_eq(parse(HEAD ":128:user:cryptfuse:check 0 7:0 0", &t, &other, &err), -EINVAL);
}
END_TEST

START_TEST(keyring__missing_key_is_enokey)
{
	struct cf_table t;
	struct cf_err err;
	uint8_t *key = NULL;
	ck_assert_int_eq(parse(HEAD ":64:user:cryptfuse:no-such-key 0 7:0 0", &t, &key, &err), -ENOKEY);
}
END_TEST

int main(void)
{
	rows = tsv_load("tables.tsv", N_COLUMNS);
	print_counts();
	Suite *s = suite_create("table");
	TCase *t = tcase_create("table");
	tcase_add_checked_fixture(t, start, NULL);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, row__is_judged_as_the_kernel_judged_it, 0, (int)rows.n_rows);
	tcase_add_loop_test(t, accepted_row__encrypts_to_the_kernels_ciphertext, 0, (int)rows.n_rows);
	tcase_add_test(t, exceptions__exist_and_differ_from_the_kernel);
	tcase_add_test(t, parse__fills_every_field);
	tcase_add_loop_test(t, parse__takes, 0, (int)CF_ARRAY_LEN(good));
	tcase_add_loop_test(t, parse__refuses_and_says_why, 0, (int)CF_ARRAY_LEN(bad));
	tcase_add_test(t, parse__refuses_a_nul_byte);
	tcase_add_test(t, parse__needs_no_nul_at_the_end);
	tcase_add_test(t, key__above_the_limit_is_refused);
	tcase_add_test(t, parse__refuses_too_many_fields);
	tcase_add_test(t, damage__every_prefix);
	tcase_add_test(t, damage__every_single_byte);
	tcase_add_test(t, damage__every_byte_left_out_or_doubled);
	tcase_add_test(t, keyring__user_key_is_read);
	tcase_add_test(t, keyring__missing_key_is_enokey);
	suite_add_tcase(s, t);
	return test_run(s);
}
