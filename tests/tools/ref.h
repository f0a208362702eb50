/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ref.h - what dm-crypt would make of a data unit, computed apart from cryptfuse.
 *
 * One EVP call a data unit, straight from the text of dm-crypt's documentation. Shares no code with the program, so
 * that tests can hold a backing against it. Ends the program where it cannot go on. Threads: a struct is only read. */
#ifndef CRYPTFUSE_TEST_REF_H
#define CRYPTFUSE_TEST_REF_H

#include <openssl/evp.h>
#include <stdbool.h>
#include <stdint.h>

#define REF_DU_MAX 65536u
#define REF_KEY_MAX 64u

struct ref {
	const EVP_CIPHER *cipher;
	const char *iv_mode; /* "plain", "plain64", "essiv" (sha256) */
	uint8_t key[REF_KEY_MAX], salt[32];
	uint64_t iv_offset;
	unsigned du_bytes;
	bool large; /* iv_large_sectors */
};

/** ref_parse_hex - the bytes of a hex string. Returns their number, at most @max. */
size_t ref_parse_hex(const char *hex, uint8_t *out, size_t max);

/** ref_set_cipher - aes-@mode ("xts", "cbc", "ctr") with a key; the other fields are the caller's. */
void ref_set_cipher(struct ref *r, const char *mode, const uint8_t *key, size_t key_len);

/** ref_convert - one data unit at byte @vol_off of the volume. @encrypt: 1 or 0. */
void ref_convert(const struct ref *r, int encrypt, uint64_t vol_off, const uint8_t *in, uint8_t *out);

#endif
