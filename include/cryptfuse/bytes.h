/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* bytes.h - numbers in memory in a stated byte order, runs of zeros, and exclusive or of byte runs. Right on hosts of
 * either byte order (HAZARDS 32). */
#ifndef CRYPTFUSE_BYTES_H
#define CRYPTFUSE_BYTES_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define CF_BYTES_LOAD_STORE(name, type, from, to)          \
	static inline type cf_load_##name(const uint8_t *p)    \
	{                                                      \
		type v;                                            \
		memcpy(&v, p, sizeof(v));                          \
		return from(v);                                    \
	}                                                      \
	static inline void cf_store_##name(uint8_t *p, type v) \
	{                                                      \
		v = to(v);                                         \
		memcpy(p, &v, sizeof(v));                          \
	}

CF_BYTES_LOAD_STORE(le32, uint32_t, le32toh, htole32)
CF_BYTES_LOAD_STORE(le64, uint64_t, le64toh, htole64)
CF_BYTES_LOAD_STORE(be32, uint32_t, be32toh, htobe32)
CF_BYTES_LOAD_STORE(be64, uint64_t, be64toh, htobe64)

/** cf_is_zero - are all of @len bytes, at least one, zeros? */
static inline bool cf_is_zero(const uint8_t *p, size_t len)
{
	return p[0] == 0 && memcmp(p, p + 1, len - 1) == 0;
}

/** cf_xor - dst = a ^ b, @len bytes, a multiple of 8. @dst may be @a or @b. */
static inline void cf_xor(uint8_t *dst, const uint8_t *a, const uint8_t *b, size_t len)
{
	typedef uint64_t lane __attribute__((vector_size(16)));
	size_t i = 0;
	for (; i + 16 <= len; i += 16) {
		lane x, y;
		memcpy(&x, a + i, 16);
		memcpy(&y, b + i, 16);
		x ^= y;
		memcpy(dst + i, &x, 16);
	}
	for (; i < len; i += 8) {
		uint64_t x, y;
		memcpy(&x, a + i, 8);
		memcpy(&y, b + i, 8);
		x ^= y;
		memcpy(dst + i, &x, 8);
	}
}

#endif
