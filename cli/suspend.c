/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* suspend.c - cryptfuse suspend: have a daemon forget its key and keep its mount. */
#include "config.h"

#include "cli.h"
#include "cryptfuse/control.h"
#include "cryptfuse/mounts.h"

static const struct cli_group suspend_groups[] = {
	{"Help", cli_help_options},
	{NULL, NULL},
};

static int run_suspend(const struct cli_opts *o, struct cf_err *err)
{
	struct cf_mount m;
	int rc = cli_find_volume(o->args[0], &m, err);
	return rc ? rc : cf_control_tell(&m, CF_CONTROL_SUSPEND, NULL, 0, err);
}

const struct cli_command cli_suspend = {
	.name = "suspend",
	.args = "MOUNTPOINT",
	.about = "Write out and wipe the key; whoever uses the volume waits until resume",
	.min_args = 1,
	.max_args = 1,
	.groups = suspend_groups,
	.run = run_suspend,
};
