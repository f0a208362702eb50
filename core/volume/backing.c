/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* backing.c - what every backing shares: whole transfers over short ones, and the end of its life. No state. */
#include "cryptfuse/backing.h"

#include <errno.h>
#include <stdlib.h>

int cf_backing_read_full(struct cf_backing *b, void *buf, size_t len, uint64_t off)
{
	uint8_t *to = buf;
	for (size_t done = 0; done < len;) {
		ssize_t n = b->ops->pread(b, to + done, len - done, off + done);
		if (n < 0)
			return (int)n;
		if (n == 0) /* the image became shorter under us: never zeros */
			return -EIO;
		done += (size_t)n;
	}
	return 0;
}

int cf_backing_write_full(struct cf_backing *b, const void *buf, size_t len, uint64_t off, size_t *written)
{
	const uint8_t *from = buf;
	for (*written = 0; *written < len;) {
		ssize_t n = b->ops->pwrite(b, from + *written, len - *written, off + *written);
		if (n < 0)
			return (int)n;
		if (n == 0)
			return -EIO;
		*written += (size_t)n;
	}
	return 0;
}

void cf_backing_free(struct cf_backing **b)
{
	if (!*b)
		return;
	(*b)->ops->close(*b);
	free(*b);
	*b = NULL;
}
