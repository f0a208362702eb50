/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* base.c - the few helpers behind base.h. No state. */
#include "cryptfuse/base.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cf_freep(void *var)
{
	void *memory;
	memcpy(&memory, var, sizeof(memory)); /* a pointer of any type */
	free(memory);
	memset(var, 0, sizeof(memory));
}

void cf_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void cf_close_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
	*dir = NULL;
}

void cf_close_stream(FILE **f)
{
	if (*f)
		fclose(*f);
	*f = NULL;
}
