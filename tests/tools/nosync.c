/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* nosync.c - a preloaded library in which syncs say that they are done and do nothing: the program that crash tests
 * must find out. */
#include "config.h"

#include <unistd.h>

int fdatasync(int fd)
{
	(void)fd;
	return 0;
}

int fsync(int fd)
{
	(void)fd;
	return 0;
}
