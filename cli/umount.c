/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* umount.c - cryptfuse umount: from the inside to the outside, and each step complete before the next.
 *
 * The file system's daemon may still write for minutes after it was unmounted: the volume is closed when it has ended
 * (HAZARDS 13). What is already gone, after a crash or a first call that was busy, is passed over. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "cryptfuse/err.h"
#include "cryptfuse/mounts.h"
#include "mounter.h"
#include "udisks.h"
#include "undo.h"

#define RELEASE_TRIES 50 /* a loop device may be let go of a moment after the unmount */
#define RELEASE_NS 100000000L

static const struct cli_group umount_groups[] = {
	{"Help", cli_help_options},
	{NULL, NULL},
};

static int refuse_busy(const char *target, struct cf_err *err)
{
	char who[512];
	cli_holders(target, who, sizeof(who));
	return cf_fail(err, -EBUSY, "%s is busy: %s", target, *who ? who : "in use by somebody whom you may not see");
}

/* Its file system could not write what it still has, and unmounting it would wait for that. */
static int refuse_suspended(const struct cli_place *p, struct cf_err *err)
{
	char json[CLI_STATUS_MAX];
	struct cf_mount m;
	if (cf_mounts_find(p->volume, &m) == 1 && cf_control_ask(&m, json) == 0 && cli_is_suspended(json, NULL))
		return cf_fail(err, -EBUSY, "%s is suspended: use 'cryptfuse resume %s' first", p->target, p->target);
	return 0;
}

static int unmount_inner(const struct cli_place *p, struct cf_err *err)
{
	struct cf_mount m;
	struct cf_err why = {0};
	char by[PATH_MAX];
	if (cli_place_read(p, "udisks", by))
		return cli_udisks_undo(p, err);
	int rc = cf_mounts_find_any(p->target, &m);
	if (rc < 0)
		return cf_fail(err, rc, "the list of mounts cannot be read: %s", strerror(-rc));
	if (rc == 0)
		return 0;
	if (!cli_place_is_device(p, &m))
		return cf_fail(err, -EBUSY, "%s: something else is mounted over it", p->target);
	rc = cf_mounts_unmount_any(&m, &why);
	if (rc == -EBUSY)
		return refuse_busy(p->target, err);
	if (rc && rc != -EINVAL) /* not mounted any more: somebody else was faster */
		return cf_fail(err, rc, "%s cannot be unmounted: %s", p->target, why.text);
	return 0;
}

/* -EIO: its daemon ended, but not well. */
static int await_daemon(const struct cli_place *p, struct cf_err *err)
{
	char how[PATH_MAX];
	const int rc = cli_mounter_wait(p, CLI_SYNC_TIMEOUT_S, how);
	if (rc == -ETIMEDOUT)
		return cf_fail(err, rc, "%s is unmounted, but the file system's daemon has not ended within %u s; try again",
					   p->target, CLI_SYNC_TIMEOUT_S);
	if (rc > 0)
		return cf_fail(err, -EIO, "%s: the file system ended badly (%.200s): check it before use", p->target, how);
	return rc;
}

int cli_undo_volume(const struct cli_place *p, struct cf_err *err)
{
	const struct timespec pause = {.tv_nsec = RELEASE_NS};
	struct cf_mount m;
	for (int i = 0;; i++) {
		struct cf_err why = {0};
		int rc = cf_mounts_find(p->volume, &m);
		rc = rc > 0 ? cli_close_mount(&m, &why) : rc;
		if (rc != -EBUSY || i == RELEASE_TRIES)
			return rc ? cf_fail(err, rc, "%s", why.code ? why.text : strerror(-rc)) : 0;
		nanosleep(&pause, NULL);
	}
}

int cli_undo(struct cli_place *p, struct cf_err *err)
{
	struct cf_err how = {0};
	int rc = refuse_suspended(p, err);
	if (rc)
		return rc;
	cli_place_note(p, "undoing", "umount");
	rc = unmount_inner(p, err);
	if (rc) {
		cli_place_forget(p, "undoing");
		return rc;
	}
	const int ended = await_daemon(p, &how);
	if (ended == -ETIMEDOUT)
		return cf_fail(err, ended, "%s", how.text);
	rc = cli_undo_volume(p, err);
	if (rc && (rc != -EIO || cf_mounts_top(p->volume) != CF_TOP_NONE)) /* -EIO: also closed, with writes lost */
		return rc;
	cli_place_remove(p);
	return rc || !ended ? rc : cf_fail(err, ended, "%s", how.text);
}

static int run_umount(const struct cli_opts *o, struct cf_err *err)
{
	char target[PATH_MAX];
	CF_CLEANUP(cli_place_fini) struct cli_place p = {.lock = -1};
	int rc = cf_mounts_resolve(o->args[0], target);
	if (rc)
		return cf_fail(err, rc, "%s: %s", o->args[0], strerror(-rc));
	if (cli_place_find(target, &p))
		return cli_undo(&p, err);
	if (cf_mounts_top(target) == CF_TOP_CRYPTFUSE)
		return cf_fail(err, -ENOENT, "%s was opened by 'cryptfuse open': use 'cryptfuse close %s'", target, target);
	return cf_fail(err, -ENOENT, "nothing that you mounted with 'cryptfuse mount' is at %s", target);
}

const struct cli_command cli_umount = {
	.name = "umount",
	.args = "DIRECTORY",
	.about = "Undo mount: unmount the file system, and close the volume when all is written",
	.min_args = 1,
	.max_args = 1,
	.groups = umount_groups,
	.run = run_umount,
};
