/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_fvault2.c - FileVault2. No image of it is small and free, so the least that the library takes for one is made
 * here, from libfvde's description of the format; the library judges whether it is one. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/digest.h"
#include "../../core/open/header.h"
#include "cryptfuse/secret.h"
#include "run.h"
#include "test_backing.h"

#define BLOCK 8192u
#define BYTES ((size_t)3 << 20)
#define LABEL_OFF 8192u
#define METADATA_OFF 65536u
#define DATA_OFF ((uint64_t)1 << 20)
#define DATA_BYTES ((uint64_t)0x123400)
#define ITERATIONS 1000u

static const uint8_t metadata_key[16] = "metadata key 123", volume_uuid[16] = "uuid of a volume";
static const uint8_t family_uuid[16] = {0x0f, 0xb3, 0xd2, 0xc5, 0x2b, 0x3c, 0x4d, 0x67,
										0xa9, 0x1f, 0x7d, 0x25, 0xe6, 0xa4, 0xe7, 0xc1};
static const uint8_t salt[16] = "sixteen of salt.", kek[16] = "key that wraps i", data_key[16] = "the volume's key";

static struct test_backing *t;

/* CRC-32C from all ones, not inverted at the end. */
static uint32_t crc32c(const uint8_t *p, size_t len)
{
	uint32_t crc = UINT32_MAX;
	for (size_t i = 0; i < len; i++) {
		crc ^= p[i];
		for (unsigned k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return crc;
}

static void seal(uint8_t *block, size_t len)
{
	cf_store_le32(block, crc32c(block + 8, len - 8));
	cf_store_le32(block + 4, UINT32_MAX);
}

static void wrap(const uint8_t *key, const uint8_t *in, uint8_t out[static 24])
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	EVP_CIPHER *c = EVP_CIPHER_fetch(cf_libcrypto(), "AES-128-WRAP", NULL);
	int n = 0;
	EVP_CIPHER_CTX_set_flags(ctx, EVP_CIPHER_CTX_FLAG_WRAP_ALLOW);
	ck_assert_int_eq(EVP_EncryptInit_ex2(ctx, c, key, NULL, NULL), 1);
	ck_assert_int_eq(EVP_EncryptUpdate(ctx, out, &n, in, 16), 1);
	ck_assert_int_eq(n, 24);
	EVP_CIPHER_free(c);
	EVP_CIPHER_CTX_free(ctx);
}

static void put_keys(uint8_t *block)
{
	uint8_t from_passphrase[16], pwk[284] = {0}, kwvk[256] = {0};
	char pwk64[400], kwvk64[400];
	ck_assert_int_eq(cf_digest_pbkdf2("sha256", "open sesame", 11, salt, 16, ITERATIONS, from_passphrase, 16), 0);
	memcpy(pwk + 8, salt, 16);
	wrap(from_passphrase, kek, pwk + 32);
	cf_store_le32(pwk + 168, ITERATIONS);
	wrap(kek, data_key, kwvk + 8);
	EVP_EncodeBlock((uint8_t *)pwk64, pwk, sizeof(pwk));
	EVP_EncodeBlock((uint8_t *)kwvk64, kwvk, sizeof(kwvk));
	int n = snprintf((char *)block + 128, BLOCK - 128,
					 "<dict><key>PassphraseWrappedKEKStruct</key><data ID=\"1\">%s</data>"
					 "<key>KEKWrappedVolumeKeyStruct</key><data ID=\"2\">%s</data></dict>",
					 pwk64, kwvk64);
	cf_store_le32(block + 112, 128);
	cf_store_le32(block + 116, (uint32_t)n);
}

static void put_volume(uint8_t *block)
{
	int n = snprintf((char *)block + 256, BLOCK - 256,
					 "<key>com.apple.corestorage.lv.size</key><integer size=\"64\">0x%llx</integer>"
					 "<key>com.apple.corestorage.lv.familyUUID</key>"
					 "<string>0FB3D2C5-2B3C-4D67-A91F-7D25E6A4E7C1</string>",
					 (unsigned long long)DATA_BYTES);
	cf_store_le32(block + 128, 256);
	cf_store_le32(block + 132, (uint32_t)n);
}

static void put_metadata(void)
{
	static const uint16_t types[] = {0x19, 0x1a, 0x305};
	struct cf_cipher_spec spec = {.cipher = "aes",
								  .mode = "xts",
								  .iv = "plain64",
								  .keycount = 1,
								  .key_bytes = 32,
								  .du_bytes = BLOCK,
								  .iv_numbering = CF_IV_LARGE_SECTORS};
	const struct cf_cipher_opts opts = {.n_workers = 1};
	struct cf_cipher *c = NULL;
	uint8_t key[32], plain[3 * BLOCK] = {0};
	memcpy(key, metadata_key, 16);
	memcpy(key + 16, volume_uuid, 16);
	put_keys(plain);
	put_volume(plain + BLOCK);
	cf_store_le32(plain + 2 * BLOCK + 104, DATA_OFF / 4096);
	for (unsigned i = 0; i < 3; i++) {
		plain[i * BLOCK + 10] = (uint8_t)types[i];
		plain[i * BLOCK + 11] = (uint8_t)(types[i] >> 8);
		seal(plain + i * BLOCK, BLOCK);
	}
	ck_assert_int_eq(cf_cipher_new(&c, &spec, key, &opts, NULL), 0);
	ck_assert_int_eq(cf_cipher_crypt(c, 0, CF_ENCRYPT, 0, 3, plain, t->data + METADATA_OFF), 0);
	cf_cipher_free(&c);
}

static void start(void)
{
	ck_assert_int_eq(cf_secret_init(NULL), 0);
	t = test_backing_new(BYTES, 1);
	uint8_t *header = t->data, *label = t->data + LABEL_OFF;
	header[8] = 1;
	memcpy(header + 88, "CS", 2);
	cf_store_le32(header + 96, 4096);
	cf_store_le64(header + 104, LABEL_OFF / 4096);
	cf_store_le32(header + 168, 16);
	memcpy(header + 176, metadata_key, 16);
	memcpy(header + 304, volume_uuid, 16);
	seal(header, 512);
	cf_store_le32(label + 220, 1024);
	cf_store_le64(label + 1024 + 8, 16);
	cf_store_le64(label + 1024 + 32, METADATA_OFF / 4096);
	seal(label, BLOCK);
	put_metadata();
}

static void finish(void)
{
	struct cf_backing *b = &t->base;
	cf_backing_free(&b);
}

static int load(struct cf_header **h)
{
	struct cf_err err = {0};
	return cf_header_load(h, CF_HEADER_NONE, &t->base, 0, BYTES, NULL, &err);
}

START_TEST(info__says_where_the_volume_lies)
{
	CF_CLEANUP(cf_header_free) struct cf_header *h = NULL;
	struct cf_header_info info;
	ck_assert_int_eq(load(&h), 0);
	cf_header_info(h, &info);
	ck_assert_int_eq(info.kind, CF_HEADER_FVAULT2);
	ck_assert_str_eq(info.cipher, "aes-xts-plain64");
	ck_assert_uint_eq(info.key_bits, 256);
	ck_assert_uint_eq(info.data_off, DATA_OFF);
	ck_assert_str_eq(info.problem, "");
	ck_assert_str_eq(info.uuid, "0fb3d2c5-2b3c-4d67-a91f-7d25e6a4e7c1");
}
END_TEST

/* The second half of the key is SHA-256 of the first and the family's UUID. */
START_TEST(unlock__gives_the_key)
{
	CF_CLEANUP(cf_header_free) struct cf_header *h = NULL;
	CF_CLEANUP(cf_secret_freep) uint8_t *key = NULL;
	struct cf_open_plan plan = {.discards = CF_DISCARDS_REFUSED};
	struct cf_secret_buf pass = {.data = cf_secret_alloc(16), .len = 11};
	uint8_t sum[CF_DIGEST_MAX];
	struct cf_err err = {0};
	ck_assert_int_eq(load(&h), 0);
	ck_assert_int_eq(cf_header_plan(h, 0, &plan, &err), 0);
	ck_assert_uint_eq(plan.data_off, DATA_OFF);
	ck_assert_uint_eq(plan.bytes, DATA_BYTES);
	memcpy(pass.data, "open sesamE", 11);
	ck_assert_int_eq(cf_header_unlock(h, CRYPT_ANY_SLOT, &pass, &key, &err), -EPERM);
	memcpy(pass.data, "open sesame", 11);
	ck_assert_int_ge(cf_header_unlock(h, CRYPT_ANY_SLOT, &pass, &key, &err), 0);
	ck_assert_int_eq(cf_digest(CF_DIGEST_KERNEL, "sha256", data_key, 16, family_uuid, 16, sum), 0);
	ck_assert_mem_eq(key, data_key, 16);
	ck_assert_mem_eq(key + 16, sum, 16);
	cf_secret_buf_fini(&pass);
}
END_TEST

/* Pointers into nowhere, and counts without end. */
static const struct {
	size_t at;
	uint64_t is;
} hostile[] = {
	{104, UINT64_MAX},
	{104, BYTES / 4096},
	{104, 1 << 30},
	{LABEL_OFF + 1024 + 8, UINT64_MAX},
	{LABEL_OFF + 1024 + 32, UINT64_MAX},
	{LABEL_OFF + 1024 + 32, BYTES / 4096},
	{LABEL_OFF + 216, UINT64_MAX},
};

START_TEST(load__of_a_hostile_header)
{
	struct cf_header *h = NULL;
	cf_store_le64(t->data + hostile[_i].at, hostile[_i].is);
	seal(t->data, 512);
	seal(t->data + LABEL_OFF, BLOCK);
	ck_assert_int_eq(load(&h), -ENOENT);
	ck_assert_ptr_null(h);
}
END_TEST

/* What leads to the metadata cannot be read: that is no image without a header. */
static const size_t leading[] = {0, LABEL_OFF, LABEL_OFF + 1024};

START_TEST(load__of_an_unreadable_header)
{
	static uint8_t unreadable[BYTES / 512];
	struct cf_header *h = NULL;
	struct cf_err err = {0};
	memset(unreadable, 0, sizeof(unreadable));
	unreadable[leading[_i] / 512] = 1;
	t->unreadable = unreadable;
	ck_assert_int_eq(cf_header_load(&h, CF_HEADER_NONE, &t->base, 0, BYTES, NULL, &err), -EIO);
	ck_assert_msg(strstr(err.text, "the header cannot be read") != NULL, "%s", err.text);
	ck_assert_ptr_null(h);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("fvault2");
	TCase *c = tcase_create("fvault2");
	tcase_add_checked_fixture(c, start, finish);
	tcase_add_test(c, info__says_where_the_volume_lies);
	tcase_add_test(c, unlock__gives_the_key);
	tcase_add_loop_test(c, load__of_a_hostile_header, 0, (int)CF_ARRAY_LEN(hostile));
	tcase_add_loop_test(c, load__of_an_unreadable_header, 0, (int)CF_ARRAY_LEN(leading));
	suite_add_tcase(s, c);
	return test_run(s);
}
