/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* poweroff.c - the last process of a kernel under test: a machine without an init has no program for it. */
#include <stdio.h>
#include <sys/reboot.h>
#include <unistd.h>

int main(void)
{
	if (getpid() != 1) {
		fprintf(stderr, "only for the first process of a kernel under test\n");
		return 2;
	}
	sync();
	reboot(RB_POWER_OFF);
	perror("reboot");
	return 1;
}
