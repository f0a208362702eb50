/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* fuzz.c - inputs in pieces, and what every target checks. The arena of secrets is made once, before libcrypto is
 * used. */
#include "config.h"

#include "fuzz.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cryptfuse/secret.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	fuzz_must(cf_secret_init(NULL) == 0);
	return 0;
}

uint64_t fuzz_number(struct fuzz_in *in, size_t bytes)
{
	uint64_t n = 0;
	for (size_t i = 0; i < bytes && in->left; i++, in->at++, in->left--)
		n |= (uint64_t)*in->at << (8 * i);
	return n;
}

uint64_t fuzz_odd_number(struct fuzz_in *in)
{
	const uint8_t kind = (uint8_t)fuzz_number(in, 1);
	if (kind >= 0xc0)
		return fuzz_number(in, 8);
	const uint64_t power = kind % 65 == 64 ? 0 : UINT64_C(1) << kind % 65;
	return power + (uint64_t)(int64_t)(int8_t)fuzz_number(in, 1);
}

const uint8_t *fuzz_take(struct fuzz_in *in, size_t *len)
{
	const uint8_t *at = in->at;
	if (*len > in->left)
		*len = in->left;
	in->at += *len;
	in->left -= *len;
	return at;
}

void *fuzz_copy(const void *bytes, size_t len)
{
	void *copy = malloc(len ? len : 1);
	fuzz_must(copy);
	if (len)
		memcpy(copy, bytes, len);
	return copy;
}

static char *text_of(const uint8_t *bytes, size_t len)
{
	char *text = malloc(len + 1);
	fuzz_must(text);
	if (len)
		memcpy(text, bytes, len);
	text[len] = '\0';
	return text;
}

char *fuzz_line(struct fuzz_in *in)
{
	const uint8_t *newline = in->left ? memchr(in->at, '\n', in->left) : NULL;
	size_t len = newline ? (size_t)(newline - in->at) : in->left, one = 1;
	const uint8_t *at = fuzz_take(in, &len);
	if (newline)
		fuzz_take(in, &one);
	return text_of(at, strnlen((const char *)at, len));
}

char *fuzz_text(struct fuzz_in *in)
{
	size_t len = in->left;
	const uint8_t *at = fuzz_take(in, &len);
	return text_of(at, len ? strnlen((const char *)at, len) : 0);
}

void fuzz_judged(int rc, const struct cf_err *err)
{
	fuzz_must(rc >= 0 || err->code == rc);
	fuzz_must((err->code != 0) == (err->text[0] != '\0'));
	fuzz_must(memchr(err->text, '\0', sizeof(err->text)));
	for (const char *p = err->text; *p; p++)
		fuzz_must((unsigned char)*p >= 0x20 && *p != 0x7f);
}

int fuzz_file(const void *bytes, size_t len, char path[static 32])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	fuzz_must(fd >= 0 && write(fd, bytes, len) == (ssize_t)len && lseek(fd, 0, SEEK_SET) == 0);
	snprintf(path, 32, "/proc/self/fd/%d", fd);
	return fd;
}

int fuzz_read_only(int fd)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	int out = open(path, O_RDONLY | O_CLOEXEC);
	fuzz_must(out >= 0);
	close(fd);
	return out;
}
