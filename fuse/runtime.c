/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* runtime.c - finds and makes directories that nobody but their user can enter. Any thread. */
#include "config.h"

#include "cryptfuse/runtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cryptfuse/err.h"

#define NAME "cryptfuse"

bool cf_runtime_is_private(const char *dir, uid_t uid)
{
	struct stat st;
	return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == uid && !(st.st_mode & 077);
}

/* @out: NAME in it, if it is private and the name fits. */
static void base_in(const char *dir, uid_t uid, char out[static PATH_MAX])
{
	if (dir && dir[0] == '/' && cf_runtime_is_private(dir, uid) && snprintf(out, PATH_MAX, "%s/" NAME, dir) >= PATH_MAX)
		out[0] = '\0';
}

void cf_runtime_bases(uid_t uid, char base[static CF_RUNTIME_BASES][PATH_MAX])
{
	char standard[64];
	memset(base, 0, CF_RUNTIME_BASES * sizeof(base[0]));
	snprintf(standard, sizeof(standard), "/run/user/%u", uid);
	if (uid == 0)
		snprintf(base[0], sizeof(base[0]), "/run/" NAME);
	else if (uid == geteuid())
		base_in(getenv("XDG_RUNTIME_DIR"), uid, base[0]);
	if (uid != 0)
		base_in(standard, uid, base[1]);
	snprintf(base[2], sizeof(base[2]), "/tmp/" NAME "-%u", uid);
}

int cf_runtime_make(const char *base, struct cf_err *err)
{
	if (mkdir(base, 0700) != 0 && errno != EEXIST)
		return cf_fail(err, -errno, "%s cannot be made: %s", base, strerror(errno));
	if (!cf_runtime_is_private(base, geteuid()))
		return cf_fail(err, -EPERM, "%s is no directory of yours alone (mode 0700): remove it, or set XDG_RUNTIME_DIR",
					   base);
	return 0;
}
