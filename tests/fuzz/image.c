/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* image.c - images in memory, and LUKS2's checksum. Source: the LUKS2 on-disk format specification, 2.1. */
#include "config.h"

#include "image.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/digest.h"

#define BYTES_MAX (UINT64_C(1) << 62)
#define HEADER_MAX ((size_t)4 << 20)
#define MAGIC_BYTES 6u
#define SIZE_OFF 8u
#define ALGORITHM_OFF 72u
#define ALGORITHM_BYTES 32u
#define PLACE_OFF 256u
#define SUM_OFF 448u
#define SUM_BYTES 64u

static void put_chunks(struct fuzz_in *in, struct fuzz_image *i)
{
	while (in->left > 6) {
		const uint64_t off = fuzz_number(in, 4);
		size_t len = (size_t)fuzz_number(in, 2);
		len = len == 0xffff ? in->left : len;
		const uint8_t *bytes = fuzz_take(in, &len);
		if (off < i->bytes && len > i->bytes - off)
			len = (size_t)(i->bytes - off);
		if (off < i->bytes && len)
			fuzz_must(pwrite(i->fd, bytes, len, (off_t)off) == (ssize_t)len);
	}
}

static void seal_at(const struct fuzz_image *i, uint8_t *header, size_t len, uint64_t place)
{
	char hash[ALGORITHM_BYTES + 1] = {0};
	uint8_t sum[CF_DIGEST_MAX] = {0};
	memcpy(hash, header + ALGORITHM_OFF, ALGORITHM_BYTES);
	cf_store_be64(header + PLACE_OFF, place);
	memset(header + SUM_OFF, 0, SUM_BYTES);
	const int n = cf_digest_bytes(CF_DIGEST_KERNEL, hash);
	if (n <= 0 || cf_digest(CF_DIGEST_KERNEL, hash, NULL, 0, header, len, sum) != 0)
		return;
	memcpy(header + SUM_OFF, sum, (size_t)n < SUM_BYTES ? (size_t)n : SUM_BYTES);
	(void)!pwrite(i->fd, header, len, (off_t)place);
}

static void seal(const struct fuzz_image *i)
{
	static const char first[] = "LUKS\xba\xbe\0\2", second[] = "SKUL\xba\xbe";
	CF_CLEANUP(cf_freep) uint8_t *header = calloc(1, HEADER_MAX);
	fuzz_must(header);
	(void)!pread(i->fd, header, 512, 0);
	const uint64_t len = cf_load_be64(header + SIZE_OFF);
	if (memcmp(header, first, MAGIC_BYTES + 2) != 0 || len < 512 || len > HEADER_MAX || 2 * len > i->bytes)
		return;
	(void)!pread(i->fd, header, (size_t)len, 0);
	seal_at(i, header, (size_t)len, 0);
	if (!(i->flags & FUZZ_SECOND))
		return;
	memcpy(header, second, MAGIC_BYTES);
	seal_at(i, header, (size_t)len, len);
}

void fuzz_image(struct fuzz_in *in, struct fuzz_image *out)
{
	out->flags = (unsigned)fuzz_number(in, 1);
	out->bytes = fuzz_odd_number(in);
	out->bytes = out->bytes < BYTES_MAX ? out->bytes : BYTES_MAX;
	out->fd = memfd_create("fuzz", MFD_CLOEXEC);
	fuzz_must(out->fd >= 0 && ftruncate(out->fd, (off_t)out->bytes) == 0);
	put_chunks(in, out);
	if (out->flags & FUZZ_SEAL)
		seal(out);
	out->fd = fuzz_read_only(out->fd);
}
