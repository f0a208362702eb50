/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* base.c - the few helpers behind base.h. No state. */
#include "config.h"

#include "cryptfuse/base.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SEAL_TRIES 100 /* of 10 ms */

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

int cf_seal_memory(int fd)
{
	static const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
	for (int i = 0; fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL) != 0; i++) {
		if (errno != EBUSY || i == SEAL_TRIES)
			return -errno;
		nanosleep(&pause, NULL);
	}
	return 0;
}
