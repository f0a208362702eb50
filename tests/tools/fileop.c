/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* fileop.c - one system call on a file, and what it answered, for the integration scripts.
 *
 * A table of commands; each prints its result ("ok", a number, data) or the name of the errno, and exits 0 either way:
 * the script compares the text. Only a call of the tool itself that makes no sense exits 2. */
#include "config.h"

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/falloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define IO_MAX (64u << 20)

static uint64_t number(const char *text)
{
	return strtoumax(text, NULL, 0);
}

static int report(int64_t rc)
{
	if (rc < 0)
		puts(strerrorname_np(errno));
	else
		printf("%" PRId64 "\n", rc);
	return 0;
}

static int report_ok(int rc)
{
	puts(rc < 0 ? strerrorname_np(errno) : "ok");
	return 0;
}

static int open_or_report(const char *path, int flags)
{
	int fd = open(path, flags | O_CLOEXEC);
	if (fd < 0)
		report_ok(fd);
	return fd;
}

static void *buffer(size_t len)
{
	void *p = NULL;
	if (len > IO_MAX || posix_memalign(&p, 4096, len ? len : 1) != 0)
		errx(2, "no memory");
	return p;
}

/* The word's value in a table that ends with a NULL name; -1 when it is not there. */
struct word {
	const char *name;
	int value;
};
static int lookup(const struct word *w, const char *name)
{
	for (; w->name; w++)
		if (strcmp(w->name, name) == 0)
			return w->value;
	errx(2, "unknown word '%s'", name);
}

static int op_open(char **a)
{
	static const struct word words[] = {{"r", O_RDONLY},
										{"w", O_WRONLY},
										{"rw", O_RDWR},
										{"trunc", O_WRONLY | O_TRUNC},
										{"append", O_WRONLY | O_APPEND},
										{NULL, 0}};
	return report_ok(open(a[1], lookup(words, a[0]) | O_CLOEXEC));
}

static int op_pread(char **a)
{
	int fd = open_or_report(a[2], O_RDONLY);
	if (fd < 0)
		return 0;
	size_t len = number(a[1]);
	uint8_t *buf = buffer(len);
	ssize_t n = pread(fd, buf, len, (off_t)number(a[0]));
	if (n < 0)
		return report(n);
	return fwrite(buf, 1, (size_t)n, stdout) == (size_t)n ? 0 : 2;
}

/* Bytes from stdin, one pwrite, the count it gave. */
static int op_pwrite(char **a)
{
	int fd = open_or_report(a[1], O_WRONLY);
	if (fd < 0)
		return 0;
	uint8_t *buf = buffer(IO_MAX);
	size_t len = fread(buf, 1, IO_MAX, stdin);
	return report(pwrite(fd, buf, len, (off_t)number(a[0])));
}

static int op_fallocate(char **a)
{
	static const struct word words[] = {{"alloc", 0},
										{"keep", FALLOC_FL_KEEP_SIZE},
										{"punch", FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE},
										{"zero", FALLOC_FL_ZERO_RANGE},
										{"zero-keep", FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE},
										{"collapse", FALLOC_FL_COLLAPSE_RANGE},
										{NULL, 0}};
	int fd = open_or_report(a[3], O_RDWR);
	if (fd < 0)
		return 0;
	return report_ok(fallocate(fd, lookup(words, a[0]), (off_t)number(a[1]), (off_t)number(a[2])));
}

static int op_seek(char **a)
{
	static const struct word words[] = {{"data", SEEK_DATA}, {"hole", SEEK_HOLE}, {"end", SEEK_END}, {NULL, 0}};
	int fd = open_or_report(a[2], O_RDONLY);
	return fd < 0 ? 0 : report(lseek(fd, (off_t)number(a[1]), lookup(words, a[0])));
}

static int op_ftruncate(char **a)
{
	int fd = open_or_report(a[1], O_RDWR);
	return fd < 0 ? 0 : report_ok(ftruncate(fd, (off_t)number(a[0])));
}

static int op_fsync(char **a)
{
	int fd = open_or_report(a[0], O_RDWR);
	return fd < 0 ? 0 : report_ok(fsync(fd));
}

static int op_chmod(char **a)
{
	return report_ok(chmod(a[1], (mode_t)strtoul(a[0], NULL, 8)));
}

static int op_chown(char **a)
{
	return report_ok(chown(a[1], (uid_t)number(a[0]), (gid_t)-1));
}

static int op_getxattr(char **a)
{
	static char text[65536];
	ssize_t n = getxattr(a[1], a[0], text, sizeof(text) - 1);
	if (n < 0)
		return report(n);
	puts(text);
	return 0;
}

static int op_listxattr(char **a)
{
	char names[4096];
	ssize_t n = listxattr(a[0], names, sizeof(names));
	if (n < 0)
		return report(n);
	for (ssize_t i = 0; i < n; i += (ssize_t)strlen(names + i) + 1)
		puts(names + i);
	return 0;
}

/* Write the same pseudorandom bytes at "OFF LEN" of each line of stdin into both files. */
static int op_poke(char **a)
{
	int fd[2] = {open(a[1], O_WRONLY | O_CLOEXEC), open(a[2], O_WRONLY | O_CLOEXEC)};
	uint64_t off, len, x = number(a[0]) * 2 + 1;
	if (fd[0] < 0 || fd[1] < 0)
		err(2, "open");
	while (scanf("%" SCNu64 " %" SCNu64, &off, &len) == 2) {
		uint8_t *buf = buffer(len);
		for (uint64_t i = 0; i < len; i++) {
			x = x * 6364136223846793005u + 1442695040888963407u;
			buf[i] = (uint8_t)(x >> 56);
		}
		for (int i = 0; i < 2; i++)
			if (pwrite(fd[i], buf, len, (off_t)off) != (ssize_t)len)
				err(1, "%s: %" PRIu64 " bytes at %" PRIu64, a[1 + i], len, off);
		free(buf);
	}
	puts("ok");
	return 0;
}

/* The plaintext of the recorded dm-crypt vectors. */
static int op_pattern(char **a)
{
	uint64_t n = number(a[0]);
	for (uint64_t i = 0; i < n; i++)
		putchar((int)((((uint32_t)(i * 2654435761u)) >> 13) & 255));
	return 0;
}

/* Write TEXT by write(2) and by a shared mapping, keep both open, say so, stay until stdin ends. Nothing is synced. */
static int op_hold(char **a)
{
	int fd = open(a[0], O_RDWR | O_CLOEXEC);
	uint64_t write_off = number(a[1]), map_off = number(a[2]);
	size_t len = strlen(a[3]);
	if (fd < 0 || pwrite(fd, a[3], len, (off_t)write_off) != (ssize_t)len)
		err(2, "%s", a[0]);
	char *map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)(map_off & ~UINT64_C(4095)));
	if (map == MAP_FAILED || map_off % 4096 + len > 4096)
		err(2, "mmap");
	memcpy(map + map_off % 4096, a[3], len);
	puts("ready");
	fflush(stdout);
	while (getchar() != EOF) {
	}
	return 0;
}

static const struct {
	const char *name, *usage;
	int n_args;
	int (*run)(char **args);
} ops[] = {
	{"open", "r|w|rw|trunc|append FILE", 2, op_open},
	{"pread", "OFF LEN FILE", 3, op_pread},
	{"pwrite", "OFF FILE <DATA", 2, op_pwrite},
	{"fallocate", "alloc|keep|punch|zero|zero-keep|collapse OFF LEN FILE", 4, op_fallocate},
	{"seek", "data|hole|end OFF FILE", 3, op_seek},
	{"ftruncate", "LEN FILE", 2, op_ftruncate},
	{"fsync", "FILE", 1, op_fsync},
	{"chmod", "MODE FILE", 2, op_chmod},
	{"chown", "UID FILE", 2, op_chown},
	{"getxattr", "NAME FILE", 2, op_getxattr},
	{"listxattr", "FILE", 1, op_listxattr},
	{"poke", "SEED FILE FILE <LINES", 3, op_poke},
	{"pattern", "LEN", 1, op_pattern},
	{"hold", "FILE WRITE_OFF MAP_OFF TEXT", 4, op_hold},
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(ops) / sizeof(ops[0]); i++)
		if (strcmp(ops[i].name, argv[1]) == 0 && argc - 2 == ops[i].n_args)
			return ops[i].run(argv + 2);
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		fprintf(stderr, "fileop %s %s\n", ops[i].name, ops[i].usage);
	return 2;
}
