/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* guard.c - asks a mounted volume something, although its daemon may hang (HAZARDS 4).
 *
 * Each question is put by a child; the parent waits for a pipe, so that only the child can be caught in the kernel. A
 * child that does not come back is killed and left to init: waiting for it could take as long as the daemon hangs. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "cli.h"
#include "cryptfuse/clock.h"
#include "cryptfuse/mounts.h"

#define STATUS_XATTR "user.cryptfuse.status"

/** What a child does: -errno, or how many bytes of @text it filled. */
struct question {
	int (*ask)(const char *path, char *text, size_t text_size);
	const char *path;
	unsigned timeout_s;
};

static int write_all(int fd, const void *buf, size_t len)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = write(fd, (const char *)buf + done, len - done);
		if (n < 0 && errno != EINTR)
			return -errno;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static void answer_and_exit(const struct question *q, int fd)
{
	char text[CLI_STATUS_MAX];
	signal(SIGPIPE, SIG_IGN);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int rc = q->ask(q->path, text, sizeof(text));
	int bad = write_all(fd, &rc, sizeof(rc)) || (rc > 0 && write_all(fd, text, (size_t)rc));
	_exit(bad);
}

/* Read to the end or the deadline. Returns bytes; -ETIMEDOUT; -errno. */
static int read_until(int fd, void *buf, size_t size, int64_t deadline_ms)
{
	size_t done = 0;
	for (;;) {
		struct pollfd p = {.fd = fd, .events = POLLIN};
		const int64_t left = deadline_ms - cf_now_ms();
		int n = left > 0 ? poll(&p, 1, left > INT_MAX ? INT_MAX : (int)left) : 0;
		if (n == 0 && left <= 0)
			return -ETIMEDOUT;
		if (n <= 0)
			continue;
		ssize_t got = read(fd, (char *)buf + done, size - done);
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == 0 || (got > 0 && done + (size_t)got == size))
			return (int)(done + (size_t)got);
		done += got > 0 ? (size_t)got : 0;
	}
}

/* The child's side of the pipe has answered, or not: the answer, @text ended by NUL; -ETIMEDOUT; -EIO it died. */
static int read_answer(int fd, unsigned timeout_s, char *text, size_t text_size)
{
	const int64_t deadline_ms = cf_now_ms() + (int64_t)timeout_s * 1000;
	int answer = 0, n = read_until(fd, &answer, sizeof(answer), deadline_ms);
	if (n >= 0 && n != (int)sizeof(answer))
		return -EIO;
	if (n < 0 || answer <= 0)
		return n < 0 ? n : answer;
	n = read_until(fd, text, text_size - 1, deadline_ms);
	if (n >= 0 && n != answer)
		return -EIO;
	text[n < 0 ? 0 : n] = '\0';
	return n;
}

static int put(const struct question *q, char *text, size_t text_size)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return -errno;
	CF_CLEANUP(cf_close_fd) int from = ends[0];
	const pid_t child = fork();
	if (child == 0)
		answer_and_exit(q, ends[1]);
	const int fork_errno = errno;
	cf_close_fd(&ends[1]);
	if (child < 0)
		return -fork_errno;
	const int answer = read_answer(from, q->timeout_s, text, text_size);
	if (answer == -ETIMEDOUT)
		kill(child, SIGKILL);
	waitpid(child, NULL, answer == -ETIMEDOUT ? WNOHANG : 0);
	return answer;
}

static int ask_status(const char *path, char *text, size_t text_size)
{
	ssize_t n = getxattr(path, STATUS_XATTR, text, text_size - 1);
	return n < 0 ? -errno : (int)n;
}

/* A daemon without a socket, or whose socket cannot be found from here, is asked through its mount; so is one that has
 * just died, for what the kernel says of it. */
int cli_daemon_status(const struct cf_mount *m, char text[static CLI_STATUS_MAX])
{
	const struct question q = {.ask = ask_status, .path = m->mountpoint, .timeout_s = CLI_STATUS_TIMEOUT_S};
	int n = cf_control_ask(m, text);
	if (n == 0 || n == -ETIMEDOUT)
		return n;
	n = put(&q, text, CLI_STATUS_MAX);
	return n < 0 ? n : 0;
}

static int ask_anything(const char *path, char *text, size_t text_size)
{
	struct statvfs st;
	(void)text;
	(void)text_size;
	return statvfs(path, &st) == 0 ? 0 : -errno;
}

int cli_answers(const char *mountpoint)
{
	char nothing[1];
	const struct question q = {.ask = ask_anything, .path = mountpoint, .timeout_s = CLI_STATUS_TIMEOUT_S};
	return put(&q, nothing, sizeof(nothing));
}

static int sync_file(int dir, const char *name)
{
	CF_CLEANUP(cf_close_fd) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 || fsync(fd) != 0 ? -errno : 0;
}

/* The mount point is the file itself, or a directory of such files: all of them, and the first failure. */
static int ask_sync(const char *path, char *text, size_t text_size)
{
	(void)text;
	(void)text_size;
	CF_CLEANUP(cf_close_dir) DIR *d = opendir(path);
	if (!d)
		return errno == ENOTDIR ? sync_file(AT_FDCWD, path) : -errno;
	int rc = 0;
	for (const struct dirent *e; (e = readdir(d));) {
		const int dot = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..");
		const int one = dot ? 0 : sync_file(dirfd(d), e->d_name);
		rc = rc ? rc : one;
	}
	return rc;
}

int cli_daemon_sync(const char *mountpoint)
{
	char nothing[1];
	const struct question q = {.ask = ask_sync, .path = mountpoint, .timeout_s = CLI_SYNC_TIMEOUT_S};
	return put(&q, nothing, sizeof(nothing));
}
