/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* crypttab.c - --crypttab: a line of /etc/crypttab stands for IMAGE and for options that were not given. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "cli.h"
#include "cryptfuse/crypttab.h"
#include "cryptfuse/err.h"

static int check_options(const struct cli_opts *o, struct cf_err *err)
{
	if (!o->crypttab && o->crypttab_file)
		return cf_fail(err, -EINVAL, "--crypttab-file needs --crypttab, the name of a line");
	if (o->crypttab && o->volume.table_file)
		return cf_fail(err, -EINVAL, "--crypttab and --table cannot be given together");
	return 0;
}

/* Where the synopsis has it: the others make room. */
static void insert_image(struct cli_opts *o, const char *synopsis)
{
	unsigned at = 0;
	for (const char *end = strstr(synopsis, "IMAGE"); synopsis < end; synopsis++)
		at += *synopsis == ' ';
	memmove(&o->args[at + 1], &o->args[at], (o->n_args - at) * sizeof(o->args[0]));
	o->args[at] = o->volume.image;
	o->n_args++;
}

int cli_crypttab(const struct cli_command *cmd, struct cli_opts *o, struct cf_crypttab *line, struct cf_err *err)
{
	int rc = check_options(o, err);
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
	insert_image(o, cmd->args);
	if (o->verbose && !o->batch)
		cli_say("%s is %s%s%s", o->crypttab, o->volume.image, *line->ignored ? "; without effect here: " : "",
				line->ignored);
	return 0;
}
