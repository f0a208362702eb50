/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* mounter.c - the keeper of a file system's daemon.
 *
 * fusermount3 -u returns while fuse2fs or ntfs-3g still writes (HAZARDS 13). The keeper is the ancestor of whatever the
 * program leaves behind, so it sees the end of a daemon that no other process could wait for, also of a setuid one; its
 * lock says when. No shell, a clean environment, no descriptor but the three. */
#include "config.h"

#include "mounter.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "cryptfuse/clock.h"
#include "cryptfuse/err.h"
#include "cryptfuse/mounts.h"
#include "undo.h"

#define NOT_STARTED 127 /* exit status, as a shell has it */
#define POLL_NS 10000000L

/* ---- the keeper ---- */

_Noreturn static void become(const struct cli_program *p, int said)
{
	char *const env[] = {(char *)(uintptr_t) "PATH=/usr/sbin:/usr/bin:/sbin:/bin", (char *)(uintptr_t) "LC_ALL=C",
						 NULL};
	if (dup2(said, STDOUT_FILENO) < 0 || dup2(said, STDERR_FILENO) < 0 || close_range(STDERR_FILENO + 1, ~0U, 0) != 0)
		_exit(NOT_STARTED);
	execve(p->path, (char *const *)(uintptr_t)p->argv, env);
	_exit(NOT_STARTED);
}

static int wait_for(pid_t child)
{
	int status = 0;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

/* Everything that the program left behind; the first one that did not end well counts. */
static int wait_for_all(void)
{
	int bad = 0, status;
	for (;;) {
		const pid_t pid = waitpid(-1, &status, 0);
		if (pid < 0 && errno != EINTR)
			return bad;
		bad = bad || pid < 0 ? bad : status;
	}
}

static void note_end(const struct cli_place *place, int status)
{
	char text[64];
	snprintf(text, sizeof(text), WIFSIGNALED(status) ? "killed by signal %d" : "exit status %d",
			 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
	cli_place_note(place, "ended", text);
}

/* The kernel's own file system has no daemon, and that of one which crashed is still there. */
static void wait_for_unmount(const struct cli_place *place)
{
	CF_CLEANUP(cf_close_fd) int fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	struct pollfd p = {.fd = fd, .events = POLLPRI};
	struct cf_mount m;
	while (fd >= 0 && cf_mounts_find_any(place->target, &m) == 1 && cli_place_is_device(place, &m))
		poll(&p, 1, -1);
}

/* Somebody has unmounted the file system in another way. What fails is left for `umount`, which can say so. */
static void close_volume(struct cli_place *place)
{
	struct cf_err err = {0};
	char text[PATH_MAX];
	if (cli_place_read(place, "undoing", text) || cli_place_read(place, "ended", text))
		return;
	const int rc = cli_undo_volume(place, &err);
	if (rc == 0)
		cli_place_remove(place);
	else if (rc == -EIO)
		cli_place_note(place, "ended", "the last writes did not reach the image");
}

/* fusefat 0.1 writes the table of clusters at its end, fails where it may only read, and exits with 255. */
static bool ended_badly(const struct cli_program *p, int status)
{
	return status && !(WIFEXITED(status) && p->access == CF_READ_ONLY);
}

/* When all has ended. */
static void finish(const struct cli_program *p, const struct cli_place *place)
{
	struct cli_place own = *place;
	const int status = wait_for_all();
	own.lock = -1; /* closed already */
	if (ended_badly(p, status))
		note_end(place, status);
	if (p->purpose != CLI_MOUNTS)
		return;
	wait_for_unmount(place);
	close_volume(&own);
}

/* Whoever reads what the command writes would wait for as long as the file system is mounted. 0 or -errno. */
static int let_go_of_terminal(void)
{
	CF_CLEANUP(cf_close_fd) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			return -errno;
	(void)!chdir("/");
	return 0;
}

/* The program; -errno. */
static pid_t start(const struct cli_program *p, int said)
{
	const int rc = let_go_of_terminal();
	const pid_t child = rc ? rc : fork();
	if (child == 0) {
		signal(SIGPIPE, SIG_DFL);
		signal(SIGHUP, SIG_DFL);
		become(p, said);
	}
	return rc == 0 && child < 0 ? -errno : child;
}

/* Its own session: what the terminal sends must not reach a file system's daemon. */
_Noreturn static void keep(const struct cli_program *p, const struct cli_place *place, const struct cf_mount *before,
						   int said, int report)
{
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	setsid();
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	const pid_t child = start(p, said);
	const int status = child < 0 ? child : wait_for(child);
	if (child >= 0 && p->purpose == CLI_MOUNTS)
		(void)!cli_place_record(place, before, NULL);
	(void)!write(report, &status, sizeof(status));
	close(report);
	close(said);
	if (child >= 0 && WIFEXITED(status) && WEXITSTATUS(status) <= p->ok_status)
		finish(p, place);
	_exit(0);
}

/* ---- the command's side ---- */

static int open_signals(const struct cli_signals *s)
{
	return signalfd(-1, &s->held, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* 0 and *status; -EINTR: the keeper and the program were killed. */
static int await_report(int report, pid_t keeper, const struct cli_signals *signals, int *status)
{
	CF_CLEANUP(cf_close_fd) int fd = open_signals(signals);
	struct pollfd p[] = {{.fd = report, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
	*status = NOT_STARTED << 8;
	while (poll(p, CF_ARRAY_LEN(p), -1) < 0 || !p[0].revents) {
		if (!p[1].revents)
			continue;
		kill(-keeper, SIGKILL);
		kill(keeper, SIGKILL);
		wait_for(keeper);
		return -EINTR;
	}
	return read(report, status, sizeof(*status)) == (ssize_t)sizeof(*status) ? 0 : -EIO;
}

/* One of its lines is the reason, as far as one can tell; all of them with --verbose. */
static int judge(const struct cli_program *p, enum cli_verbosity verbosity, int status, int said, struct cf_err *err)
{
	const int failed = !WIFEXITED(status) || WEXITSTATUS(status) > p->ok_status;
	char text[4096], reason[256] = "", *save = NULL;
	const ssize_t n = pread(said, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (verbosity == CLI_VERBOSE)
			cli_say("%s: %s", p->argv[0], line);
		const char *marked = p->mark ? strstr(line, p->mark) : NULL;
		if (!reason[0] || (marked && !strstr(reason, p->mark)))
			snprintf(reason, sizeof(reason), ": %.200s", marked ? marked : line);
	}
	cli_printable(reason);
	return failed ? cf_fail(err, -EIO, "%s failed (%s %d)%s", p->argv[0], WIFSIGNALED(status) ? "signal" : "status",
							WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), reason)
				  : 0;
}

/* The keeper's copy of it lives as long as the keeper; an earlier keeper may be about to end. */
static int take_lock(const struct cli_place *place)
{
	char path[PATH_MAX];
	int fd = cli_place_path(place, "lock", path) ? -1 : open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && flock(fd, LOCK_EX) != 0)
		cf_close_fd(&fd);
	return fd;
}

int cli_mounter_run(const struct cli_program *p, const struct cli_place *place, const struct cf_mount *before,
					enum cli_verbosity verbosity, const struct cli_signals *signals, struct cf_err *err)
{
	CF_CLEANUP(cf_close_fd) int said = memfd_create("cryptfuse mounter output", MFD_CLOEXEC);
	int ends[2], status;
	if (said < 0 || pipe2(ends, O_CLOEXEC) != 0)
		return cf_fail(err, -errno, "cannot make a pipe: %s", strerror(errno));
	CF_CLEANUP(cf_close_fd) int report = ends[0];
	CF_CLEANUP(cf_close_fd) int lock = take_lock(place);
	const pid_t keeper = lock < 0 ? -1 : fork();
	if (keeper == 0)
		keep(p, place, before, said, ends[1]);
	const int code = errno;
	close(ends[1]);
	if (keeper < 0)
		return cf_fail(err, -code, "%s cannot be run: %s", p->argv[0], strerror(code));
	const int rc = await_report(report, keeper, signals, &status);
	if (rc == 0 && status < 0)
		return cf_fail(err, status, "%s cannot be run: %s", p->argv[0], strerror(-status));
	return rc ? cf_fail(err, rc, "%s was given up", p->argv[0]) : judge(p, verbosity, status, said, err);
}

static int is_held(int lock)
{
	if (flock(lock, LOCK_SH | LOCK_NB) != 0)
		return 1;
	flock(lock, LOCK_UN);
	return 0;
}

int cli_mounter_wait(const struct cli_place *place, unsigned timeout_s, char how[static PATH_MAX])
{
	const int64_t deadline_ms = cf_now_ms() + (int64_t)timeout_s * 1000;
	const struct timespec pause = {.tv_nsec = POLL_NS};
	while (is_held(place->lock)) {
		if (cf_now_ms() > deadline_ms)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
	return cli_place_read(place, "ended", how);
}
