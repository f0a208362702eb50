/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* place.h - where `mount` keeps a volume open, and how `umount` finds it again.
 *
 *     BASE/mount-XXXXXX/volume/       the volume is mounted here
 *                      /target        a link to DIRECTORY
 *                      /device        a link to MAJOR:MINOR, what was mounted at DIRECTORY
 *                      /lock          locked as long as the keeper of the file system runs
 *                      /ended         a link to words: how it ended, if that was not well
 *                      /udisks       a link to anything: udisks has mounted the file system
 *                      /at           a link to where it did, which is not DIRECTORY
 *                      /undoing       a link to anything: `umount` is at work
 *
 * BASE belongs to the user alone. One thread. */
#ifndef CRYPTFUSE_CLI_PLACE_H
#define CRYPTFUSE_CLI_PLACE_H

#include <limits.h>

#include "cryptfuse/base.h"

struct cf_err;
struct cf_mount;

struct cli_place {
	char dir[PATH_MAX];    /* BASE/mount-XXXXXX; "" none */
	char volume[PATH_MAX]; /* the mount point in it */
	char target[PATH_MAX]; /* DIRECTORY, absolute */
	int lock;              /* descriptor; -1 none */
};

/** cli_place_make - a new one for @target. 0; -EPERM BASE is not the user's alone; -errno. Nothing is left on
 * failure. */
int cli_place_make(const char *target, struct cli_place *out, struct cf_err *err) CF_MUST_CHECK;

/** cli_place_find - the one of this user whose target, or "at", is @target. 1 found, its lock open but not held; 0
 * none. */
int cli_place_find(const char *target, struct cli_place *out) CF_MUST_CHECK;

/** cli_place_target - where the file system is to be found whose volume's mount point is in a place. 1; 0 it lies in
 * none. */
int cli_place_target(const char *mountpoint, char target[static PATH_MAX]) CF_MUST_CHECK;

/** cli_place_path - @out: a name in the place; -ENAMETOOLONG. */
int cli_place_path(const struct cli_place *p, const char *name, char out[static PATH_MAX]) CF_MUST_CHECK;

/** cli_place_record - remember what lies on the target now, if it is not @before: a program has just mounted it there
 * Returns 1 it is remembered; 0 nothing new is there; -EIO. */
int cli_place_record(const struct cli_place *p, const struct cf_mount *before, struct cf_err *err) CF_MUST_CHECK;

/** cli_place_is_device - whether @m is what was remembered. */
int cli_place_is_device(const struct cli_place *p, const struct cf_mount *m) CF_MUST_CHECK;

/** cli_place_note - put @text under @name, if nothing is there. cli_place_read: 1 and the text; 0 nothing. */
void cli_place_note(const struct cli_place *p, const char *name, const char *text);
int cli_place_read(const struct cli_place *p, const char *name, char text[static PATH_MAX]) CF_MUST_CHECK;

/** cli_place_forget - take a note away. */
void cli_place_forget(const struct cli_place *p, const char *name);

/** cli_place_remove - take it away; what is mounted in it must be gone. Idempotent. */
void cli_place_remove(struct cli_place *p);

/** cli_place_fini - CF_CLEANUP helper: closes the lock, leaves the rest. */
void cli_place_fini(struct cli_place *p);

#endif
