/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* notmpfile.c - to be preloaded: a file system that cannot have files without a name (O_TMPFILE), nor rename without
 * replacing, as FAT over some servers. Everything else passes. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(default)
int openat64(int dir, const char *path, int flags, ...);
int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags);
#pragma GCC visibility pop

int openat64(int dir, const char *path, int flags, ...)
{
	va_list args;
	va_start(args, flags);
	const mode_t mode = va_arg(args, mode_t);
	va_end(args);
	if ((flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return (int)syscall(SYS_openat, dir, path, flags, mode);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned flags)
{
	if (flags) {
		errno = EINVAL;
		return -1;
	}
	return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}
