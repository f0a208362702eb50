/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_key.c - what is read from a descriptor, and hashes. The keys that the real cryptsetup made of passphrases and
 * options are check_open's; the digests here are the published ones. */
#include "config.h"

#include "cryptfuse/key.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "run.h"

static void start(void)
{
	struct cf_err err = {0};
	ck_assert_msg(cf_secret_init(&err) == 0, "%s", err.text);
}

/* ---- reading ---- */

static int pipe_of(const void *bytes, size_t len)
{
	int fds[2];
	ck_assert_int_eq(pipe(fds), 0);
	ck_assert_int_eq(write(fds[1], bytes, len), (ssize_t)len);
	close(fds[1]);
	return fds[0];
}

static const struct {
	const char *input;
	enum cf_key_read how;
	uint64_t skip, size;
	const char *key;  /* NULL: refused */
	const char *left; /* what the next reader finds, or NULL */
} reads[] = {
	{"secret\nmore", CF_KEY_READ_LINE, 0, 0, "secret", "more"},
	{"secret", CF_KEY_READ_LINE, 0, 0, "secret", ""},
	{"\nmore", CF_KEY_READ_LINE, 0, 0, "", "more"},
	{"", CF_KEY_READ_LINE, 0, 0, NULL, NULL},
	{"se\r\nx", CF_KEY_READ_LINE, 0, 0, "se\r", "x"},
	{"secretmore", CF_KEY_READ_LINE, 0, 6, "secret", "more"},
	{"secret\nmore", CF_KEY_READ_LINE, 0, 6, "secret", "\nmore"},
	{"secret\nmore", CF_KEY_READ_LINE, 0, 7, NULL, NULL},
	{"secret", CF_KEY_READ_LINE, 0, 7, NULL, NULL},
	{"1\n3secret\n", CF_KEY_READ_LINE, 3, 0, "secret", ""},
	{"123", CF_KEY_READ_LINE, 3, 0, NULL, NULL},
	{"123", CF_KEY_READ_LINE, 4, 0, NULL, NULL},
	{"123\n", CF_KEY_READ_LINE, 3, 0, "", ""},
	{"sec\nret\n", CF_KEY_READ_ALL, 0, 0, "sec\nret\n", ""},
	{"12sec\nret\n", CF_KEY_READ_ALL, 2, 0, "sec\nret\n", ""},
	{"\n", CF_KEY_READ_ALL, 0, 0, "\n", ""},
	{"", CF_KEY_READ_ALL, 0, 0, NULL, NULL},
	{"12", CF_KEY_READ_ALL, 2, 0, NULL, NULL},
	{"12", CF_KEY_READ_ALL, 3, 0, NULL, NULL},
	{"sec\nretmore", CF_KEY_READ_EXACT, 0, 7, "sec\nret", "more"},
	{"1sec\nret", CF_KEY_READ_EXACT, 1, 7, "sec\nret", ""},
	{"secret", CF_KEY_READ_EXACT, 0, 7, NULL, NULL},
	{"secret", CF_KEY_READ_EXACT, 1, 6, NULL, NULL},
	{"", CF_KEY_READ_EXACT, 0, 1, NULL, NULL},
};

static void check_read(int fd, size_t i)
{
	struct cf_err err = {0};
	CF_CLEANUP(cf_secret_buf_fini) struct cf_secret_buf b = {NULL, 0};
	int rc = cf_key_read_fd(fd, reads[i].how, reads[i].skip, reads[i].size, "the input", &b, &err);
	if (!reads[i].key) {
		ck_assert_int_eq(rc, -EINVAL);
		ck_assert_ptr_nonnull(strstr(err.text, "the input"));
		ck_assert(b.data == NULL && b.len == 0);
		return;
	}
	ck_assert_msg(rc == 0, "%s", err.text);
	ck_assert_uint_eq(b.len, strlen(reads[i].key));
	ck_assert(b.len ? cf_secret_contains(b.data) && !memcmp(b.data, reads[i].key, b.len) : !b.data);
	char left[32] = "";
	ck_assert_int_ge(read(fd, left, sizeof(left) - 1), 0);
	ck_assert_str_eq(left, reads[i].left);
}

START_TEST(read__from_a_pipe)
{
	int fd = pipe_of(reads[_i].input, strlen(reads[_i].input));
	/* the refusal of "passphrase before its newline" names no source */
	if (reads[_i].how == CF_KEY_READ_LINE && reads[_i].size == 7 && strchr(reads[_i].input, '\n')) {
		struct cf_err err = {0};
		struct cf_secret_buf b = {NULL, 0};
		ck_assert_int_eq(cf_key_read_fd(fd, CF_KEY_READ_LINE, 0, 7, "the input", &b, &err), -EINVAL);
		ck_assert_ptr_nonnull(strstr(err.text, "newline"));
	} else {
		check_read(fd, (size_t)_i);
	}
	close(fd);
}
END_TEST

START_TEST(read__from_a_file)
{
	if (strchr(reads[_i].input, '\n') && !reads[_i].key)
		return;
	int fd = memfd_create("check", MFD_CLOEXEC);
	ck_assert_int_eq(write(fd, reads[_i].input, strlen(reads[_i].input)), (ssize_t)strlen(reads[_i].input));
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	check_read(fd, (size_t)_i);
	close(fd);
}
END_TEST

static const struct {
	enum cf_key_read how;
	size_t len;
	int rc;
} limits[] = {
	{CF_KEY_READ_LINE, CF_KEYFILE_MAX + 1, -EINVAL}, /* 8 Mi system calls, so only this one */
	{CF_KEY_READ_ALL, CF_KEYFILE_MAX, 0},
	{CF_KEY_READ_ALL, CF_KEYFILE_MAX + 1, -EINVAL},
	{CF_KEY_READ_EXACT, CF_KEYFILE_MAX + 1, 0},
};

START_TEST(read__takes_8_MiB_and_no_more)
{
	int fd = memfd_create("check", MFD_CLOEXEC);
	char *bytes = malloc(limits[_i].len);
	ck_assert(bytes != NULL);
	memset(bytes, 'k', limits[_i].len);
	ck_assert_int_eq(write(fd, bytes, limits[_i].len), (ssize_t)limits[_i].len);
	ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
	struct cf_err err = {0};
	CF_CLEANUP(cf_secret_buf_fini) struct cf_secret_buf b = {NULL, 0};
	ck_assert_int_eq(cf_key_read_fd(fd, limits[_i].how, 0, limits[_i].len * (limits[_i].how == CF_KEY_READ_EXACT),
									"the input", &b, &err),
					 limits[_i].rc);
	ck_assert_uint_eq(b.len, limits[_i].rc ? 0 : limits[_i].len);
	ck_assert(!b.len || !memcmp(b.data, bytes, b.len));
	free(bytes);
	close(fd);
}
END_TEST

START_TEST(read__of_a_closed_descriptor_is_eio)
{
	struct cf_err err = {0};
	struct cf_secret_buf b = {NULL, 0};
	ck_assert_int_eq(cf_key_read_fd(-1, CF_KEY_READ_ALL, 0, 0, "the input", &b, &err), -EIO);
}
END_TEST

START_TEST(read__of_more_than_memory_is_enomem)
{
	int fd = pipe_of("x", 1);
	struct cf_err err = {0};
	struct cf_secret_buf b = {NULL, 0};
	ck_assert_int_eq(cf_key_read_fd(fd, CF_KEY_READ_EXACT, 0, UINT64_C(1) << 62, "the input", &b, &err), -ENOMEM);
	close(fd);
}
END_TEST

START_TEST(buf_fini__leaves_nothing)
{
	struct cf_secret_buf b = {cf_secret_alloc(10), 10};
	cf_secret_buf_fini(&b);
	ck_assert(b.data == NULL && b.len == 0);
	cf_secret_buf_fini(&b);
}
END_TEST

/* ---- hashing ---- */

static const struct {
	const char *hash, *pass;
	size_t key_len;
	const char *key; /* hex; NULL: refused */
	const char *says;
} hashes[] = {
	{"sha256", "abc", 32, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", NULL},
	{"SHA256", "abc", 32, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", NULL},
	{"sha256", "", 32, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", NULL},
	{"sha256", "abc", 16, "ba7816bf8f01cfea414140de5dae2223", NULL},
	{"sha256:016", "abc", 20, "ba7816bf8f01cfea414140de5dae222300000000", NULL},
	{"sha1", "abc", 20, "a9993e364706816aba3e25717850c26c9cd0d89d", NULL},
	{"md5", "abc", 16, "900150983cd24fb0d6963f7d28e17f72", NULL},
	{"ripemd160", "abc", 20, "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc", NULL},
	{"RIPEMD160", "abc", 20, "8eb208f7e05d987a9b044a8e98c6b087f15a0bfc", NULL},
	{"sha3-256", "abc", 32, "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532", NULL},
	{"blake2s-256", "abc", 32, "508c5e8c327c14e2e1a72ba34eeb452f37458b209ed63a294d999b4c86675982", NULL},
	{"Whirlpool", "abc", 16, "4e2448a4c6f486bb16b6562c73b4020b", NULL},
	/* round 1 hashes "A" and the passphrase: md5("Abc") follows md5("bc") */
	{"md5", "bc", 32, "5360af35bde9ebd8f01f492dc059593c35593b7ce5020eae3ca68fd5b6f3e031", NULL},
	{"plain", "secret", 8, "7365637265740000", NULL},
	{"plain", "secretsecret", 8, "7365637265747365", NULL},
	{"plain", "", 4, "00000000", NULL},
	{"plain:4", "secret", 8, "7365637200000000", NULL},
	{"plain:6", "secret", 6, "736563726574", NULL},
	{"plain:7", "secret", 8, NULL, "shorter"},
	{"sha256:33", "abc", 32, NULL, "above the key size"},
	{"plain:33", "abc", 32, NULL, "above the key size"},
	{"sha256:", "abc", 32, NULL, "decimal digits"},
	{"sha256:0", "abc", 32, NULL, "decimal digits"},
	{"sha256:16x", "abc", 32, NULL, "decimal digits"},
	{"sha256:0x10", "abc", 32, NULL, "decimal digits"},
	{"sha256:-1", "abc", 32, NULL, "decimal digits"},
	{"sha256:18446744073709551617", "abc", 32, NULL, "decimal digits"},
	{"nosuch", "abc", 32, NULL, "unknown hash"},
	{"", "abc", 32, NULL, "unknown hash"},
	{":16", "abc", 32, NULL, "unknown hash"},
	{"shake256", "abc", 32, NULL, "unknown hash"},
	{"null", "abc", 32, NULL, "unknown hash"},
	{"PLAIN", "abc", 32, NULL, "unknown hash"},
};

START_TEST(hash__makes_the_published_key)
{
	struct cf_err err = {0};
	char hex[129] = "";
	CF_CLEANUP(cf_secret_freep) uint8_t *key = cf_secret_alloc(64);
	CF_CLEANUP(cf_secret_buf_fini) struct cf_secret_buf pass = {cf_secret_alloc(64), strlen(hashes[_i].pass)};
	memcpy(pass.data, hashes[_i].pass, pass.len);
	memset(key, 0xee, 64);
	int rc = cf_key_from_passphrase(hashes[_i].hash, &pass, key, hashes[_i].key_len, &err);
	ck_assert_msg(rc == (hashes[_i].key ? 0 : -EINVAL), "%s: %s", hashes[_i].hash, err.text);
	for (size_t i = 0; i < hashes[_i].key_len; i++)
		sprintf(hex + 2 * i, "%02x", key[i]);
	if (hashes[_i].key)
		ck_assert_str_eq(hex, hashes[_i].key);
	else
		ck_assert_msg(strstr(err.text, hashes[_i].says) != NULL, "%s", err.text);
	ck_assert_uint_eq(key[hashes[_i].key_len], 0xee);
}
END_TEST

START_TEST(hash_check__says_before_the_prompt_what_hashing_would)
{
	struct cf_err err = {0};
	bool known = hashes[_i].key || !strcmp(hashes[_i].says, "shorter"); /* only the passphrase shows that */
	int rc = cf_key_hash_check(hashes[_i].hash, hashes[_i].key_len, &err);
	ck_assert_msg(rc == (known ? 0 : -EINVAL), "%s: %s", hashes[_i].hash, err.text);
}
END_TEST

START_TEST(hash__long_key_takes_many_rounds)
{
	struct cf_err err = {0};
	CF_CLEANUP(cf_secret_freep) uint8_t *key = cf_secret_alloc(1024), *part = cf_secret_alloc(32);
	char text[64] = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAx"; /* round 31 */
	const struct cf_secret_buf pass = {(uint8_t *)text + 31, 1}, last = {(uint8_t *)text, 32};
	ck_assert_int_eq(cf_key_from_passphrase("sha256", &pass, key, 1024, &err), 0);
	ck_assert_int_eq(cf_key_from_passphrase("sha256", &last, part, 32, &err), 0);
	ck_assert_mem_eq(key + 31 * 32, part, 32);
}
END_TEST

START_TEST(hash__leaves_nothing_in_the_arena)
{
	struct cf_err err = {0};
	struct cf_secret_stats before, after;
	const struct cf_secret_buf pass = {(uint8_t *)"abc", 3};
	CF_CLEANUP(cf_secret_freep) uint8_t *key = cf_secret_alloc(64);
	ck_assert_int_eq(cf_key_from_passphrase("whirlpool", &pass, key, 64, &err),
					 0); /* libcrypto's own first-time state */
	cf_secret_stats(&before);
	for (int i = 0; i < 20; i++)
		ck_assert_int_eq(cf_key_from_passphrase("whirlpool", &pass, key, 64, &err), 0);
	cf_secret_stats(&after);
	ck_assert_uint_eq(after.in_use_bytes, before.in_use_bytes);
}
END_TEST

int main(void)
{
	setenv("OPENSSL_CONF", "/nonexistent/openssl.cnf", 1); /* must not matter */
	Suite *s = suite_create("key");
	TCase *t = tcase_create("key");
	tcase_add_checked_fixture(t, start, NULL);
	tcase_set_timeout(t, 240);
	tcase_add_loop_test(t, read__from_a_pipe, 0, (int)CF_ARRAY_LEN(reads));
	tcase_add_loop_test(t, read__from_a_file, 0, (int)CF_ARRAY_LEN(reads));
	tcase_add_loop_test(t, read__takes_8_MiB_and_no_more, 0, (int)CF_ARRAY_LEN(limits));
	tcase_add_test(t, read__of_a_closed_descriptor_is_eio);
	tcase_add_test(t, read__of_more_than_memory_is_enomem);
	tcase_add_test(t, buf_fini__leaves_nothing);
	tcase_add_loop_test(t, hash__makes_the_published_key, 0, (int)CF_ARRAY_LEN(hashes));
	tcase_add_loop_test(t, hash_check__says_before_the_prompt_what_hashing_would, 0, (int)CF_ARRAY_LEN(hashes));
	tcase_add_test(t, hash__long_key_takes_many_rounds);
	tcase_add_test(t, hash__leaves_nothing_in_the_arena);
	suite_add_tcase(s, t);
	return test_run(s);
}
