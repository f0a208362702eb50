/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* mounts.h - what /proc/self/mountinfo says of cryptfuse mounts. Never touches a mount point itself: a dead or hanging
 * one would hang us. */
#ifndef CRYPTFUSE_MOUNTS_H
#define CRYPTFUSE_MOUNTS_H

#include <limits.h>
#include <sys/types.h>

#include "cryptfuse/base.h"

struct cf_err;

struct cf_mount {
	char mountpoint[PATH_MAX];
	char source[PATH_MAX];         /* of a cryptfuse mount the image (fsname) */
	unsigned dev_major, dev_minor; /* of the mounted file system: names the FUSE connection */
	uid_t uid;                     /* user_id= */
};

/** cf_mounts_find - the topmost cryptfuse mount on exactly @mountpoint (absolute, resolved). Returns 1 found, 0 none,
 * -errno. */
int cf_mounts_find(const char *mountpoint, struct cf_mount *out) CF_MUST_CHECK;

/** What lies on top of a path: nothing is mounted there, somebody else's file system, or ours. */
enum cf_mount_top { CF_TOP_NONE, CF_TOP_OTHER, CF_TOP_CRYPTFUSE };

/** cf_mounts_top - which of them; -errno if mountinfo cannot be read. */
int cf_mounts_top(const char *mountpoint) CF_MUST_CHECK;

/** cf_mounts_find_any - the topmost mount of any kind on exactly @mountpoint; of another's file system @out has no uid.
 * 1 found, 0 none, -errno. */
int cf_mounts_find_any(const char *mountpoint, struct cf_mount *out) CF_MUST_CHECK;

/** cf_mounts_find_source - the first mount of any kind whose source is @source, e.g. "/dev/loop0": its mount point and
 * device. 1 found, 0 none, -errno. */
int cf_mounts_find_source(const char *source, struct cf_mount *out) CF_MUST_CHECK;

/** cf_mounts_each - every cryptfuse mount, in order. @fn returns non-zero to stop, which is returned. */
int cf_mounts_each(int (*fn)(void *ctx, const struct cf_mount *m), void *ctx);

/** cf_mounts_each_in - the same from another file in mountinfo's format, for tests and for other processes. */
int cf_mounts_each_in(const char *mountinfo, int (*fn)(void *ctx, const struct cf_mount *m), void *ctx);

/** cf_mounts_resolve - absolute form of a mount point without looking inside it: resolves its parent folder, keeps the
 * last name, so that it works on a dead mount (where realpath fails with ENOTCONN). Falls back on comparing with
 * mountinfo. 0 or -errno. */
int cf_mounts_resolve(const char *path, char out[static PATH_MAX]) CF_MUST_CHECK;

enum cf_unmount { CF_UNMOUNT_NORMAL, CF_UNMOUNT_DETACH };

/** cf_mounts_unmount - umount2 as root, the setuid fusermount3 otherwise
 * @err: NULL, or out: the reason in words, fusermount3's own where that failed
 * Returns 0; -EBUSY in use, or something else is mounted over it; -EPERM; -EINVAL not mounted; -ENOENT no fusermount3;
 * other -errno: mountinfo cannot be read.
 * Needs a process without no_new_privs. */
int cf_mounts_unmount(const char *mountpoint, enum cf_unmount how, struct cf_err *err) CF_MUST_CHECK;

/** cf_mounts_unmount_any - the same, never by force, of a mount of any kind that cf_mounts_find_any has found; -EBUSY
 * too if it does not lie on top any more. */
int cf_mounts_unmount_any(const struct cf_mount *m, struct cf_err *err) CF_MUST_CHECK;

#endif
