/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* cryptref.c - what dm-crypt would make of a piece of a volume, computed apart from cryptfuse.
 *
 * One EVP call a data unit, straight from the text of dm-crypt's documentation: aes-xts and aes-cbc with plain, plain64
 * and essiv:sha256. Shares no code with the program, so the integration tests can hold the backing against it.
 * Usage: cryptref [-e] -c xts|cbc -v plain|plain64|essiv -k HEXKEY -s DU [-i IV_OFFSET] [-L] FILE FILE_OFF VOL_OFF LEN
 * Reads LEN bytes at FILE_OFF, treats them as the volume's bytes from VOL_OFF on, writes the result to stdout. */
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DU_MAX 65536
#define KEY_MAX 64

struct ref {
	const EVP_CIPHER *cipher;
	const char *iv_mode;
	uint8_t key[KEY_MAX], salt[32]; /* salt: essiv's hashed key */
	size_t key_len;
	uint64_t iv_offset;
	unsigned du_bytes;
	int encrypt;
	bool large; /* iv_large_sectors */
};

static size_t parse_hex(const char *hex, uint8_t *out, size_t max)
{
	size_t n = strlen(hex) / 2;
	if (n > max || strlen(hex) % 2)
		errx(2, "bad key length");
	for (size_t i = 0; i < n; i++)
		if (sscanf(hex + 2 * i, "%2hhx", &out[i]) != 1)
			errx(2, "bad key digit");
	return n;
}

static uint64_t number(const char *text)
{
	return strtoumax(text, NULL, 10);
}

static const EVP_CIPHER *cipher_of(const char *mode, size_t key_len)
{
	if (strcmp(mode, "xts") == 0)
		return key_len == 32 ? EVP_aes_128_xts() : key_len == 64 ? EVP_aes_256_xts() : NULL;
	return key_len == 16 ? EVP_aes_128_cbc() : key_len == 32 ? EVP_aes_256_cbc() : NULL;
}

/* One call of a cipher without padding. */
static void evp(const EVP_CIPHER *c, const uint8_t *key, const uint8_t *iv, int enc, const uint8_t *in, uint8_t *out,
				size_t len)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();
	int n = 0;
	if (!ctx || !EVP_CipherInit_ex(ctx, c, NULL, key, iv, enc) || !EVP_CIPHER_CTX_set_padding(ctx, 0) ||
		!EVP_CipherUpdate(ctx, out, &n, in, (int)len) || (size_t)n != len)
		errx(2, "libcrypto refused");
	EVP_CIPHER_CTX_free(ctx);
}

static void make_iv(const struct ref *r, uint64_t vol_off, uint8_t iv[16])
{
	uint64_t s = vol_off / 512 + r->iv_offset;
	if (r->large)
		s /= r->du_bytes / 512;
	if (strcmp(r->iv_mode, "plain") == 0)
		s &= 0xffffffff;
	memset(iv, 0, 16);
	for (int i = 0; i < 8; i++)
		iv[i] = (uint8_t)(s >> (8 * i));
	if (strcmp(r->iv_mode, "essiv") == 0) {
		uint8_t plain[16];
		memcpy(plain, iv, 16);
		evp(EVP_aes_256_ecb(), r->salt, NULL, 1, plain, iv, 16);
	}
}

static void convert(const struct ref *r, int fd, uint64_t file_off, uint64_t vol_off, uint64_t len)
{
	static uint8_t in[DU_MAX], out[DU_MAX];
	for (uint64_t done = 0; done < len; done += r->du_bytes) {
		uint8_t iv[16];
		if (pread(fd, in, r->du_bytes, (off_t)(file_off + done)) != (ssize_t)r->du_bytes)
			errx(2, "short read at %" PRIu64, file_off + done);
		make_iv(r, vol_off + done, iv);
		evp(r->cipher, r->key, iv, r->encrypt, in, out, r->du_bytes);
		if (fwrite(out, 1, r->du_bytes, stdout) != r->du_bytes)
			err(2, "write");
	}
}

int main(int argc, char **argv)
{
	struct ref r = {.du_bytes = 512, .iv_mode = "plain64"};
	const char *mode = "xts";
	for (int opt; (opt = getopt(argc, argv, "ec:v:k:s:i:L")) != -1;) {
		switch (opt) {
		case 'e':
			r.encrypt = 1;
			break;
		case 'c':
			mode = optarg;
			break;
		case 'v':
			r.iv_mode = optarg;
			break;
		case 'k':
			r.key_len = parse_hex(optarg, r.key, KEY_MAX);
			break;
		case 's':
			r.du_bytes = (unsigned)number(optarg);
			break;
		case 'i':
			r.iv_offset = number(optarg);
			break;
		case 'L':
			r.large = true;
			break;
		default:
			return 2;
		}
	}
	r.cipher = cipher_of(mode, r.key_len);
	if (argc - optind != 4 || !r.cipher || r.du_bytes < 512 || r.du_bytes > DU_MAX)
		errx(2, "usage: see the top of cryptref.c");
	if (!EVP_Digest(r.key, r.key_len, r.salt, NULL, EVP_sha256(), NULL))
		errx(2, "no sha256");
	int fd = open(argv[optind], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err(2, "%s", argv[optind]);
	convert(&r, fd, number(argv[optind + 1]), number(argv[optind + 2]), number(argv[optind + 3]));
	return fclose(stdout) == 0 ? 0 : 2;
}
