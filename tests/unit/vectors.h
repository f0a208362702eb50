/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* vectors.h - rows of tests/vectors/crypt.tsv, the plaintext they were made of, and small helpers for tests of ciphers.
 */
#ifndef CRYPTFUSE_TEST_VECTORS_H
#define CRYPTFUSE_TEST_VECTORS_H

#include <stdbool.h>

#include "cryptfuse/cipher.h"

struct vector {
	char *set, *name, *cipher, *key, *sha256; /* point into line */
	uint64_t iv_offset, sectors;
	uint32_t sector_size;
	bool iv_large, accepted;
	char *line;
};

/** vectors_load - all rows of srcdir's tests/vectors/crypt.tsv; ends the program on a malformed file. Returns their
 * number. */
size_t vectors_load(struct vector **out);
void vectors_free(struct vector **v, size_t n);

/** vector_spec - the row as a spec. Returns what cf_spec_parse_cipher said. */
int vector_spec(const struct vector *v, struct cf_cipher_spec *spec, struct cf_err *err);

/** vector_plaintext - byte i = ((i * 2654435761) mod 2^32 >> 13) & 255. */
void vector_plaintext(uint8_t *buf, size_t len);

/** unhex - the bytes of a hex string; "-" is empty. Returns their number. */
size_t unhex(const char *text, uint8_t *out, size_t max);

/** sha256_hex - digest as 64 hex digits and a NUL. */
void sha256_hex(const void *data, size_t len, char out[static 65]);

/** source_path - a file of the source tree: $srcdir or the current folder in front. */
const char *source_path(const char *name, char *buf, size_t size);

#endif
