/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* readahead.c - how far the kernel reads ahead in the file.
 *
 * Two parties have a say: the mount's entry in sysfs, which only root may raise, and the answer to the kernel's first
 * request (ops_init.c), which can only lower it. Before the loop, one thread. */
#include "config.h"

#include "cryptfuse/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cryptfuse/mounts.h"

static int open_setting(const struct cf_mount *m, int flags)
{
	char path[64];
	snprintf(path, sizeof(path), "/sys/class/bdi/%u:%u/read_ahead_kb", m->dev_major, m->dev_minor);
	return open(path, flags | O_CLOEXEC);
}

static int write_setting(const struct cf_mount *m, unsigned kib)
{
	char text[16];
	int n = snprintf(text, sizeof(text), "%u", kib);
	CF_CLEANUP(cf_close_fd) int fd = open_setting(m, O_WRONLY);
	if (fd < 0)
		return -errno;
	return write(fd, text, (size_t)n) == n ? 0 : -errno;
}

/* 0: cannot be told. */
static unsigned read_setting(const struct cf_mount *m)
{
	char text[16];
	CF_CLEANUP(cf_close_fd) int fd = open_setting(m, O_RDONLY);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[n > 0 ? n : 0] = '\0';
	return (unsigned)strtoul(text, NULL, 10);
}

unsigned cf_session_readahead(const struct cf_mount *m, unsigned kib)
{
	if (kib && write_setting(m, kib) == 0)
		return kib;
	unsigned own = read_setting(m);
	return kib && kib < own ? kib : own;
}
