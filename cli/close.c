/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* close.c - cryptfuse close: flush, unmount, wait until the daemon has gone.
 *
 * Never touches a mount that may hang but through a child (guard.c). The daemon's pidfd is taken before the unmount, so
 * that the wait cannot mistake another process for it. What the last sync said is what close returns (HAZARDS 15). */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <json.h>

#include "cli.h"
#include "cryptfuse/err.h"
#include "cryptfuse/mounts.h"
#include "place.h"

#define LETTING_GO_TRIES 20
#define LETTING_GO_NS 50000000L

static const struct cli_group close_groups[] = {
	{"Help", cli_help_options},
	{NULL, NULL},
};

static void put_json(struct json_object **j)
{
	json_object_put(*j);
	*j = NULL;
}

int cli_find_mount(const char *path, struct cf_mount *m, struct cf_err *err)
{
	char abs[PATH_MAX];
	int rc = cf_mounts_resolve(path, abs);
	if (rc == 0)
		rc = cf_mounts_find(abs, m);
	if (rc < 0)
		return cf_fail(err, rc, "%s: %s", path, strerror(-rc));
	return rc ? 0 : cf_fail(err, -ENOENT, "nothing is open at %s", path);
}

int cli_find_volume(const char *path, struct cf_mount *m, struct cf_err *err)
{
	CF_CLEANUP(cli_place_fini) struct cli_place place = {.lock = -1};
	char abs[PATH_MAX];
	const int is_target = cf_mounts_resolve(path, abs) == 0 && cli_place_find(abs, &place);
	return cli_find_mount(is_target ? place.volume : path, m, err);
}

int cli_is_suspended(const char *json, uint64_t *lost_writes)
{
	CF_CLEANUP(put_json) struct json_object *status = json_tokener_parse(json);
	struct json_object *s = NULL, *lost = NULL;
	if (!json_object_object_get_ex(status, "suspended", &s) || !s)
		return 0;
	if (lost_writes && json_object_object_get_ex(s, "lost_writes", &lost))
		*lost_writes = json_object_get_uint64(lost);
	return 1;
}

/* The daemon's pidfd in *out; -1 where the kernel has none, or the daemon has gone: there is nothing to wait for. */
static int daemon_pidfd(const char *json, int *out)
{
	CF_CLEANUP(put_json) struct json_object *status = json_tokener_parse(json);
	struct json_object *pid = NULL;
	if (!json_object_object_get_ex(status, "pid", &pid))
		return -EBADMSG;
	*out = (int)syscall(SYS_pidfd_open, json_object_get_int(pid), 0);
	return *out < 0 && errno != ENOSYS && errno != ESRCH ? -errno : 0;
}

/* Its owner alone may ask it, and an earlier release may know no status. */
static int never_answers(int rc)
{
	return rc == -EACCES || rc == -EPERM || rc == -ENODATA || rc == -EOPNOTSUPP;
}

/* What is wrong here, and not with the image: nothing has been lost yet. */
static int is_shortage(int rc)
{
	return rc == -ENOMEM || rc == -EAGAIN || rc == -EMFILE || rc == -ENFILE;
}

static int clean_up(const struct cf_mount *m, struct cf_err *err)
{
	struct cf_err why = {0};
	int rc = cf_mounts_unmount(m->mountpoint, CF_UNMOUNT_DETACH, &why);
	if (rc && rc != -EINVAL) /* not mounted: its helper was faster */
		return cf_fail(err, rc, "%s: the daemon has died, but its mount cannot be removed: %s", m->mountpoint,
					   why.text);
	cli_say("%s: the daemon had died; its mount has been removed", m->mountpoint);
	return 0;
}

static int refuse_busy(const struct cf_mount *m, struct cf_err *err)
{
	char who[512];
	cli_holders(m->mountpoint, who, sizeof(who));
	return cf_fail(err, -EBUSY, "%s is busy: %s", m->mountpoint,
				   *who ? who : "in use by somebody whom you may not see");
}

static int unmount(const struct cf_mount *m, struct cf_err *err)
{
	struct cf_err why = {0};
	int rc = cf_mounts_unmount(m->mountpoint, CF_UNMOUNT_NORMAL, &why);
	if (rc == -EBUSY)
		return refuse_busy(m, err);
	if (rc == -EINVAL) /* not mounted any more: somebody else was faster */
		return 0;
	return rc ? cf_fail(err, rc, "%s cannot be unmounted: %s", m->mountpoint, why.text) : 0;
}

static int wait_end(int pidfd, const struct cf_mount *m, struct cf_err *err)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};
	int n;
	do {
		n = poll(&p, 1, (int)CLI_ENDING_TIMEOUT_S * 1000);
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		return 0;
	if (n < 0)
		return cf_fail(err, -errno, "%s is unmounted, but its daemon's end cannot be waited for: %s", m->mountpoint,
					   strerror(errno));
	return cf_fail(err, -ETIMEDOUT, "%s is unmounted, but its daemon has not ended within %u s", m->mountpoint,
				   CLI_ENDING_TIMEOUT_S);
}

/* Whoever waited for the key has got an error and may take a moment to close what it has open. */
static int unmount_suspended(const struct cf_mount *m, struct cf_err *err)
{
	const struct timespec pause = {.tv_nsec = LETTING_GO_NS};
	struct cf_err why = {0};
	int rc = unmount(m, &why);
	for (int i = 0; rc == -EBUSY && i < LETTING_GO_TRIES; i++) {
		nanosleep(&pause, NULL);
		why = (struct cf_err){0};
		rc = unmount(m, &why);
	}
	if (rc == -EBUSY) /* it stays suspended, and can still be resumed */
		(void)!cf_control_tell(m, CF_CONTROL_PARK, NULL, 0, NULL);
	return rc ? cf_fail(err, rc, "%s", why.text) : 0;
}

/* What a file system on a loop device has written is not for us to throw away: it would stay in use anyway. */
static int refuse_mounted_on_top(const struct cf_mount *m, struct cf_err *err)
{
	char who[512];
	cli_holders(m->mountpoint, who, sizeof(who));
	return strncmp(who, "/dev/", 5) ? 0 : refuse_busy(m, err);
}

/* Without the key nothing can be written: what waits for it gets an error first, or the unmount would wait, too. What
 * was answered before the suspend is in the image. */
static int close_suspended(const struct cf_mount *m, int pidfd, struct cf_err *err)
{
	char json[CLI_STATUS_MAX];
	uint64_t lost = 0;
	int rc = refuse_mounted_on_top(m, err);
	if (rc || (rc = cf_control_tell(m, CF_CONTROL_REFUSE, NULL, 0, err)))
		return rc;
	(void)!cli_daemon_sync(m->mountpoint); /* it fails if pages were dirty, and counts them */
	if (cli_daemon_status(m, json) == 0)
		cli_is_suspended(json, &lost);
	rc = unmount_suspended(m, err);
	if (rc == 0 && pidfd >= 0)
		rc = wait_end(pidfd, m, err);
	if (rc == 0 && lost)
		rc = cf_fail(
			err, -EIO,
			"%s is closed; it was suspended, and %llu writes that waited for the key are lost: those who wrote were "
			"told so",
			m->mountpoint, (unsigned long long)lost);
	return rc;
}

static int close_open(const struct cf_mount *m, int pidfd, struct cf_err *err)
{
	const int synced = cli_daemon_sync(m->mountpoint);
	if (is_shortage(synced))
		return cf_fail(err, synced, "%s stays open: its last writes cannot be flushed now: %s", m->mountpoint,
					   strerror(-synced));
	int rc = unmount(m, err);
	if (rc == 0 && pidfd >= 0)
		rc = wait_end(pidfd, m, err);
	if (rc == 0 && pidfd < 0)
		cli_say("%s is unmounted; its daemon cannot be seen from here and may take a moment to end", m->mountpoint);
	/* Another user's mount that root closes cannot be opened: the kernel's own flush at the unmount has to do. */
	if (rc == 0 && synced && synced != -EACCES)
		return cf_fail(err, -EIO, "%s is closed, but the last writes did not reach %s: %s", m->mountpoint, m->source,
					   strerror(-synced));
	return rc;
}

int cli_close_mount(const struct cf_mount *m, struct cf_err *err)
{
	char json[CLI_STATUS_MAX] = "";
	int rc = cli_daemon_status(m, json);
	if (rc == -ENOTCONN)
		return clean_up(m, err);
	if (rc == -ETIMEDOUT)
		return cf_fail(err, rc, "%s: the daemon does not answer within %u s; it may wait for a slow or lost disk",
					   m->mountpoint, CLI_STATUS_TIMEOUT_S);
	CF_CLEANUP(cf_close_fd) int pidfd = -1;
	const int suspended = rc == 0 && cli_is_suspended(json, NULL);
	if (rc == 0)
		rc = daemon_pidfd(json, &pidfd);
	if (rc && !never_answers(rc))
		return cf_fail(err, rc, "%s stays open: its daemon cannot be asked who it is: %s", m->mountpoint,
					   strerror(-rc));
	return suspended ? close_suspended(m, pidfd, err) : close_open(m, pidfd, err);
}

/* What `mount` made is undone from the inside: closing only the volume would be a busy one, or a torn one. */
static int refuse_mounted(const char *path, struct cf_err *err)
{
	char abs[PATH_MAX];
	CF_CLEANUP(cli_place_fini) struct cli_place place = {.lock = -1};
	if (cf_mounts_resolve(path, abs) == 0 && cli_place_find(abs, &place))
		return cf_fail(err, -EINVAL, "%s was mounted by 'cryptfuse mount': use 'cryptfuse umount %s'", abs, abs);
	return 0;
}

static int run_close(const struct cli_opts *o, struct cf_err *err)
{
	struct cf_mount m;
	int rc = refuse_mounted(o->args[0], err);
	if (rc || (rc = cli_find_mount(o->args[0], &m, err)))
		return rc;
	return cli_close_mount(&m, err);
}

const struct cli_command cli_close = {
	.name = "close",
	.args = "MOUNTPOINT",
	.about = "Flush, unmount and wait until the daemon has gone; also cleans up after a crash",
	.min_args = 1,
	.max_args = 1,
	.groups = close_groups,
	.run = run_close,
};
