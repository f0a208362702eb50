/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* crypttab.c - --crypttab: a line of /etc/crypttab stands for IMAGE and for options that were not given. */
#include "config.h"

#include <errno.h>

#include "cli.h"
#include "cryptfuse/crypttab.h"
#include "cryptfuse/err.h"

static int check_args(const struct cli_opts *o, const char *command, struct cf_err *err)
{
	if (o->crypttab && o->n_args != 1)
		return cf_fail(err, -EINVAL, "with --crypttab %s takes MOUNTPOINT only: the line says what IMAGE is", command);
	if (!o->crypttab && o->n_args != 2)
		return cf_fail(err, -EINVAL, "%s takes IMAGE MOUNTPOINT, but %u argument was given; see 'cryptfuse %s --help'",
					   command, o->n_args, command);
	if (!o->crypttab && o->crypttab_file)
		return cf_fail(err, -EINVAL, "--crypttab-file needs --crypttab, the name of a line");
	if (o->crypttab && o->volume.table_file)
		return cf_fail(err, -EINVAL, "--crypttab and --table cannot be given together");
	return 0;
}

int cli_crypttab(struct cli_opts *o, const char *command, struct cf_crypttab *line, struct cf_err *err)
{
	int rc = check_args(o, command, err);
	if (rc || !o->crypttab)
		return rc;
	rc = cf_crypttab_read(o->crypttab_file ? o->crypttab_file : CF_CRYPTTAB_PATH, o->crypttab, line, err);
	if (rc)
		return rc;
	cf_crypttab_apply(line, &o->volume);
	if (!o->tries && line->volume.tries)
		o->volume.tries = line->volume.tries;
	o->timeout_s = o->timeout_s ? o->timeout_s : line->timeout_s;
	o->verify |= line->verify;
	o->args[1] = o->args[0];
	o->args[0] = o->volume.image;
	o->n_args = 2;
	if (o->verbose && !o->batch)
		cli_say("%s is %s%s%s", o->crypttab, o->args[0], *line->ignored ? "; without effect here: " : "",
				line->ignored);
	return 0;
}
