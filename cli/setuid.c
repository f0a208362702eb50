/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* setuid.c - refuses rights that the program got by being started.
 *
 * It opens what its caller names with whatever rights it has, and nothing in it tells those of the file from those of
 * the caller. */
#include "config.h"

#include <errno.h>
#include <sys/auxv.h>
#include <sys/capability.h>
#include <unistd.h>

#include "cli.h"
#include "cryptfuse/err.h"

static void free_cap(cap_t *c)
{
	if (*c)
		cap_free(*c);
}

static int has_capabilities(void)
{
	CF_CLEANUP(free_cap) cap_t none = cap_init();
	CF_CLEANUP(free_cap) cap_t now = cap_get_proc();
	return !none || !now || cap_compare(none, now) != 0;
}

/* AT_SECURE alone may also be the wish of a security module. */
int cli_refuse_setuid(struct cf_err *err)
{
	if (!getauxval(AT_SECURE))
		return 0;
	if (getuid() == geteuid() && getgid() == getegid() && (geteuid() == 0 || !has_capabilities()))
		return 0;
	return cf_fail(err, -EPERM,
				   "the program is setuid or setgid, or has capabilities: it must not be (chmod ug-s, setcap -r)");
}
