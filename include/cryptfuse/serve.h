/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* serve.h - the daemon: forked first, fed over a socketpair, mounts, serves, ends.
 *
 *     parent                          daemon                             unmount helper
 *     cf_serve_fork  --------------->  (arena, not dumpable)  -- pipe -->  keeps nothing but the pipe
 *     plan, opens image, asks
 *     cf_serve_start -- plan, key, --> self-test, mount, drop
 *                       descriptor     rights, sandbox, threads
 *     waits for one answer  <--------  ready, or one line of error
 *     probes the mounted file          serves
 *     cf_serve_publish --- parts --->  shows them as files, answers
 *     exits                            until the kernel says it is over
 *
 * The parent does everything that parses hostile input or holds a passphrase; the daemon sees only the finished plan
 * and key (HAZARDS 1, 2). */
#ifndef CRYPTFUSE_SERVE_H
#define CRYPTFUSE_SERVE_H

#include <limits.h>
#include <sys/types.h>

#include "cryptfuse/open.h"

enum cf_mount_kind { CF_MOUNT_DIRECTORY, CF_MOUNT_FILE };

/** Who may use the mount at all; the file's mode decides what they may do. */
enum cf_mount_share { CF_SHARE_OWNER, CF_SHARE_ROOT /* --allow-root */, CF_SHARE_OTHER /* --allow-other */ };

/** What the kernel's page cache does for the file (--cache): reads only, writes too, nothing. */
enum cf_cache { CF_CACHE_DEFAULT, CF_CACHE_WRITEBACK, CF_CACHE_DIRECT };

/** How requests travel between the kernel and the daemon. */
enum cf_transport { CF_TRANSPORT_DEVICE /* /dev/fuse */, CF_TRANSPORT_IO_URING };

/** Whether the daemon that serves is shut off from files, programs and new sockets (sandbox.h). */
enum cf_sandbox_use { CF_SANDBOX_ON, CF_SANDBOX_OFF /* --no-sandbox */ };

/** Everything about the mount that is known before the image is opened. Plain data. */
struct cf_serve_opts {
	char mountpoint[PATH_MAX]; /* absolute, resolved */
	char image[PATH_MAX];      /* absolute, resolved: fsname and status */
	char name[NAME_MAX + 1];   /* of the file in directory mode: "volume" */
	char directory[PATH_MAX];  /* where `mount` shows what is in it, absolute; "": it was opened by `open` */
	enum cf_mount_kind kind;
	enum cf_mount_share share;
	mode_t mode; /* permission bits of the file: 0600, 0400 read-only, or --mode */
	enum cf_cache cache;
	enum cf_transport transport;
	enum cf_sandbox_use sandbox;
	unsigned readahead_kib;  /* 0: the kernel's own */
	unsigned stop_timeout_s; /* how long a busy mount is asked to end before it is detached */
	int foreground;          /* keep the terminal's stderr; otherwise the daemon lets go of it once ready */
	int debug;               /* libfuse's trace on stderr: requests and sizes, never data */
};

/** A part of the volume that is shown as a file of its own, NAME.p<number>, in directory mode. */
struct cf_serve_part {
	unsigned number; /* of a partition: 1 … */
	uint64_t off, bytes;
};

#define CF_SERVE_PARTS_MAX 128u

/** The parent's view of its daemon. */
struct cf_serve {
	pid_t pid;
	int sock; /* -1 once nothing more is to be said */
};

/** cf_serve_fork - make the daemon and its unmount helper
 * Call it before any key, thread or library context exists in this process. In the daemon it never returns.
 * Returns 0 with @s filled; -errno. */
int cf_serve_fork(struct cf_serve *s, const struct cf_serve_opts *opts, struct cf_err *err) CF_MUST_CHECK;

/** cf_serve_start - hand over what to serve and wait until it can be read
 * @key: borrowed, plan->cipher.key_bytes. The parent wipes its own copy.   @image: sent; the caller still closes its
 * own
 * @note: for warnings the daemon has (memory could not be locked …); NULL: dropped. Returns 0 mounted and readable, or
 * the daemon's error. */
int cf_serve_start(struct cf_serve *s, const struct cf_open_plan *plan, const uint8_t *key,
				   const struct cf_image *image, const struct cf_open_ui *ui, struct cf_err *err) CF_MUST_CHECK;

/** cf_serve_publish - after cf_serve_start: show these parts of the volume as files too, in a mount of a directory
 * What is inside was found by looking through the mounted file: the daemon parses nothing (HAZARDS 4). May be called
 * once, or not at all. Returns 0: they are there; -EINVAL the daemon refuses them; -EIO it has gone. */
int cf_serve_publish(struct cf_serve *s, const struct cf_serve_part *parts, unsigned n,
					 struct cf_err *err) CF_MUST_CHECK;

/** cf_serve_abandon - give up before cf_serve_start succeeded: the daemon and helper end, nothing stays mounted. Waits
 * for the daemon. Idempotent. */
void cf_serve_abandon(struct cf_serve *s);

/** cf_serve_wait - for --foreground: stay until the daemon ends, passing SIGINT, SIGTERM and SIGHUP on to it as SIGTERM
 * Returns its exit status: 0, or 1 if the last writes did not reach the image. */
int cf_serve_wait(struct cf_serve *s);

#endif
