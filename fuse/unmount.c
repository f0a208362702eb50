/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* unmount.c - takes a cryptfuse mount away, with the caller's own right or through the setuid fusermount3.
 *
 * Invariant: only the mount that lies on top is taken, and only if it is what the caller says. Holds no state; any
 * thread, but it waits for a child. */
#include "config.h"

#include "cryptfuse/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cryptfuse/err.h"

/* Start the setuid helper with nothing but its message channel. */
static int spawn_fusermount(const char *mountpoint, enum cf_unmount how, int out_fd, pid_t *pid)
{
	char *argv[] = {(char *)FUSERMOUNT_PROG, (char *)(how == CF_UNMOUNT_DETACH ? "-uz" : "-u"), (char *)"--",
					(char *)mountpoint, NULL};
	char *envp[] = {(char *)"LC_ALL=C", NULL};
	posix_spawn_file_actions_t fa;
	posix_spawnattr_t attr;
	sigset_t none, defaults;
	sigemptyset(&none);
	sigfillset(&defaults);
	posix_spawn_file_actions_init(&fa);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_addopen(&fa, 0, "/dev/null", O_RDWR, 0);
	posix_spawn_file_actions_adddup2(&fa, 0, 1);
	posix_spawn_file_actions_adddup2(&fa, out_fd, 2);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &defaults);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	int r = posix_spawnp(pid, FUSERMOUNT_PROG, &fa, &attr, argv, envp);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&fa);
	return -r;
}

/* Read until the end, keep what fits. */
static void drain(int fd, char *text, size_t size)
{
	size_t n = 0;
	char spill[256] = "";
	for (;;) {
		int full = n + 1 >= size;
		ssize_t got = read(fd, full ? spill : text + n, full ? sizeof(spill) : size - 1 - n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += full ? 0 : (size_t)got;
	}
	text[n] = '\0';
}

/* Its reasons are told apart only by its words; the first line of them is handed on. */
static int helper_failed(const char *mountpoint, const char *text, struct cf_err *err)
{
	const int len = (int)strcspn(text, "\n");
	int rc = strstr(text, "busy") ? -EBUSY : cf_mounts_top(mountpoint) == CF_TOP_NONE ? -EINVAL : -EPERM;
	return len ? cf_fail(err, rc, "%.*s", len, text) : cf_fail(err, rc, FUSERMOUNT_PROG " failed and did not say why");
}

static int unmount_by_helper(const char *mountpoint, enum cf_unmount how, struct cf_err *err)
{
	int fds[2], status = 0;
	pid_t pid;
	char text[512];
	if (pipe2(fds, O_CLOEXEC) != 0)
		return cf_fail(err, -errno, "%s", strerror(errno));
	int r = spawn_fusermount(mountpoint, how, fds[1], &pid);
	close(fds[1]);
	CF_CLEANUP(cf_close_fd) int out = fds[0];
	if (r < 0)
		return cf_fail(err, r, FUSERMOUNT_PROG ": %s", strerror(-r));
	drain(out, text, sizeof(text));
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return helper_failed(mountpoint, text, err);
}

static int take_away(const char *mountpoint, enum cf_unmount how, struct cf_err *err)
{
	if (umount2(mountpoint, UMOUNT_NOFOLLOW | (how == CF_UNMOUNT_DETACH ? MNT_DETACH : 0)) == 0)
		return 0;
	return errno == EPERM ? unmount_by_helper(mountpoint, how, err) : cf_fail(err, -errno, "%s", strerror(errno));
}

/* @top: below 0 the list could not be read. */
static int not_there(int top, struct cf_err *err)
{
	return top < 0 ? cf_fail(err, top, "the list of mounts cannot be read: %s", strerror(-top))
				   : cf_fail(err, -EINVAL, "it is not mounted");
}

int cf_mounts_unmount_any(const struct cf_mount *m, struct cf_err *err)
{
	struct cf_mount top;
	int r = cf_mounts_find_any(m->mountpoint, &top);
	if (r <= 0)
		return not_there(r, err);
	if (top.dev_major != m->dev_major || top.dev_minor != m->dev_minor)
		return cf_fail(err, -EBUSY, "something else is mounted over it");
	return take_away(m->mountpoint, CF_UNMOUNT_NORMAL, err);
}

int cf_mounts_unmount(const char *mountpoint, enum cf_unmount how, struct cf_err *err)
{
	const int top = cf_mounts_top(mountpoint);
	if (top == CF_TOP_OTHER) /* what somebody mounted over it is not ours to take away */
		return cf_fail(err, -EBUSY, "something else is mounted over it");
	return top == CF_TOP_CRYPTFUSE ? take_away(mountpoint, how, err) : not_there(top, err);
}
