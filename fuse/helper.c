/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* helper.c - flushes and unmounts on behalf of a daemon that no longer may.
 *
 * A process of its own (with a child while it flushes for a suspend), one thread, no secret, no descriptor but the
 * socket to its daemon; deaf to signals, since it must outlive everything that ends the daemon, and it ends when the
 * daemon does. Invariant: it unmounts only the device it was told of, and after the daemon's end it never looks into
 * the mount. */
#include "config.h"

#include "cryptfuse/helper.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cryptfuse/clock.h"
#include "cryptfuse/control.h"
#include "cryptfuse/ipc.h"
#include "cryptfuse/text.h"
#include "cryptfuse/voice.h"

#define RETRY_MS 100
#define RETRY_NS (20L * 1000 * 1000) /* of a call that fails for a moment */
#define LIST_TRIES 50

/** What travels: a word and, with M, the device of the mount, with S a line, with R what failed. */
struct message {
	enum cf_helper_word word;
	unsigned dev_major, dev_minor;
	int code; /* of R */
	char text[CF_VOICE_TEXT];
};

struct helper {
	const struct cf_serve_opts *opts;
	int sock;
	int may_be_mounted;   /* W was heard */
	int mounted;          /* M was heard: dev is known */
	struct message dev;   /* of our mount */
	struct message below; /* of a cryptfuse mount that was there before */
	int was_below;
	int flusher; /* its end tells it to drop the pages; -1 none */
};

/* What a call on the socket failed for will be over in a moment, as memory that is short: a volume that is served must
 * not go for that. */
static int passes(int code)
{
	static const struct timespec pause = {.tv_nsec = RETRY_NS};
	if (code != EINTR && code != ENOMEM && code != ENOBUFS)
		return 0;
	if (code != EINTR)
		nanosleep(&pause, NULL);
	return 1;
}

static int tell(int sock, const struct message *m)
{
	ssize_t n;
	do
		n = send(sock, m, sizeof(*m), MSG_NOSIGNAL);
	while (n < 0 && passes(errno));
	return n < 0 ? -errno : 0;
}

int cf_helper_tell(int sock, enum cf_helper_word word, const struct cf_mount *mount)
{
	struct message m = {.word = word};
	if (mount) {
		m.dev_major = mount->dev_major;
		m.dev_minor = mount->dev_minor;
	}
	return tell(sock, &m);
}

void cf_helper_say(int sock, const char *text)
{
	struct message m = {.word = CF_HELPER_SAY};
	snprintf(m.text, sizeof(m.text), "%s", text);
	(void)!send(sock, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* 1 a message; 0 the other side has gone. */
static int hear(int sock, struct message *m)
{
	ssize_t n;
	do
		n = recv(sock, m, sizeof(*m), 0);
	while (n < 0 && passes(errno));
	return n == (ssize_t)sizeof(*m);
}

int cf_helper_hear(int sock)
{
	struct message m;
	return hear(sock, &m) ? (int)m.word : 0;
}

void cf_helper_end(int *sock)
{
	struct message m;
	if (*sock < 0)
		return;
	shutdown(*sock, SHUT_WR);
	while (hear(*sock, &m))
		;
	cf_close_fd(sock);
}

/* What the daemon would say if it still could: image and mount point are known here. */
static void pass_on(const struct helper *h, struct message *m)
{
	char line[2 * PATH_MAX + CF_VOICE_TEXT + sizeof(" on : ")];
	m->text[sizeof(m->text) - 1] = '\0';
	snprintf(line, sizeof(line), "%s on %s: %s", h->opts->image, h->opts->mountpoint, m->text);
	cf_text_make_printable(line);
	cf_voice_syslog(line);
}

/* The helper's side of it: what is for the log goes there. 1 another word; 0 the daemon has gone. */
static int hear_daemon(const struct helper *h, struct message *m)
{
	int r = hear(h->sock, m);
	if (r && m->word == CF_HELPER_SAY)
		pass_on(h, m);
	return r;
}

/* ---- the mount ---- */

static int same_dev(const struct cf_mount *m, const struct message *dev)
{
	return m->dev_major == dev->dev_major && m->dev_minor == dev->dev_minor;
}

/* Is our mount there? Before M, ours is one of this image and user that was not there at the start. */
static int is_there(const struct helper *h)
{
	struct cf_mount m;
	int r, tries = LIST_TRIES;
	do
		r = cf_mounts_find(h->opts->mountpoint, &m);
	while (r < 0 && tries-- && passes(ENOMEM));
	if (r != 1)
		return 0;
	if (h->mounted)
		return same_dev(&m, &h->dev);
	return h->may_be_mounted && m.uid == geteuid() && strcmp(m.source, h->opts->image) == 0 &&
		   !(h->was_below && same_dev(&m, &h->below));
}

/** Every file of the mount, open. */
struct held {
	unsigned n;
	int fd[1 + CF_SERVE_PARTS_MAX];
};

static void hold(struct held *h, int dir, const char *name)
{
	int fd = h->n < CF_ARRAY_LEN(h->fd) ? openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	if (fd >= 0)
		h->fd[h->n++] = fd;
}

static void hold_all(const struct helper *h, struct held *held)
{
	const struct cf_serve_opts *o = h->opts;
	held->n = 0;
	if (o->kind == CF_MOUNT_FILE) {
		hold(held, AT_FDCWD, o->mountpoint);
		return;
	}
	CF_CLEANUP(cf_close_dir) DIR *d = opendir(o->mountpoint);
	for (const struct dirent *e; d && (e = readdir(d));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			hold(held, dirfd(d), e->d_name);
}

static void let_all_go(struct held *held)
{
	while (held->n)
		cf_close_fd(&held->fd[--held->n]);
}

/* Send every dirty page, of the page cache and of mappings, to the daemon, and have it sync the image. What can fail
 * here is reported to those who wrote, by their own fsync. */
static void flush_all(const struct held *held)
{
	for (unsigned i = 0; i < held->n; i++)
		fsync(held->fd[i]);
}

static void flush_files(const struct helper *h)
{
	CF_CLEANUP(let_all_go) struct held held;
	hold_all(h, &held);
	flush_all(&held);
}

/* Detach with the files held open, to flush once more what was written in between. */
static void detach_flushed(const struct helper *h)
{
	CF_CLEANUP(let_all_go) struct held held;
	hold_all(h, &held);
	flush_all(&held);
	int r = is_there(h) ? cf_mounts_unmount(h->opts->mountpoint, CF_UNMOUNT_DETACH, NULL) : 0;
	if (r == 0)
		flush_all(&held);
}

/* Wait a moment; 1 if the daemon ended meanwhile. Further words (a second SIGTERM) change nothing. */
static int pause_or_end(const struct helper *h)
{
	struct pollfd p = {.fd = h->sock, .events = POLLIN};
	int64_t until = cf_now_ms() + RETRY_MS;
	for (int64_t left = RETRY_MS; left > 0; left = until - cf_now_ms()) {
		struct message m;
		if (poll(&p, 1, (int)left) > 0 && !hear_daemon(h, &m))
			return 1;
	}
	return 0;
}

/* The ordinary way, again and again while it is busy. 1 unmounted, or the daemon ended; 0 the time is up. */
static int unmount_in_time(const struct helper *h, int64_t deadline)
{
	while (is_there(h)) {
		if (cf_mounts_unmount(h->opts->mountpoint, CF_UNMOUNT_NORMAL, NULL) == 0)
			return 1;
		if (cf_now_ms() >= deadline)
			return 0;
		if (pause_or_end(h))
			return 1;
	}
	return 1;
}

/* The daemon serves meanwhile, and ends by itself when the kernel lets go of the file system. Busy for too long: detach
 * and tell it to end. The same if it does not end though it is unmounted: a mount namespace of somebody else holds a
 * copy of the mount. */
static void stop(const struct helper *h)
{
	int64_t deadline = cf_now_ms() + (int64_t)h->opts->stop_timeout_s * 1000;
	flush_files(h);
	if (!unmount_in_time(h, deadline)) {
		detach_flushed(h);
		cf_helper_tell(h->sock, CF_HELPER_DETACHED, NULL);
		return;
	}
	do
		if (pause_or_end(h))
			return;
	while (cf_now_ms() < deadline);
	cf_helper_tell(h->sock, CF_HELPER_DETACHED, NULL);
}

/* A process of its own: closing a file flushes it, and under the writeback cache that waits for writes that wait for
 * the key. Locked, dirty and mapped pages stay. */
static void be_flusher(const struct helper *h, int go)
{
	struct held held;
	char nothing;
	hold_all(h, &held);
	flush_all(&held);
	cf_helper_tell(h->sock, CF_HELPER_FLUSH, NULL);
	(void)!read(go, &nothing, 1);
	for (unsigned i = 0; i < held.n; i++)
		(void)!posix_fadvise(held.fd[i], 0, 0, POSIX_FADV_DONTNEED);
	cf_helper_tell(h->sock, CF_HELPER_DROP, NULL);
	_exit(0);
}

/* Nobody waits for it: it belongs to init. */
static void start_flusher(struct helper *h)
{
	int go[2], status;
	cf_close_fd(&h->flusher);
	if (pipe2(go, O_CLOEXEC) != 0)
		return;
	const pid_t pid = fork();
	if (pid == 0) {
		close(go[1]);
		if (fork() == 0)
			be_flusher(h, go[0]);
		_exit(0);
	}
	close(go[0]);
	h->flusher = go[1];
	if (pid > 0)
		waitpid(pid, &status, 0);
}

/* The daemon cannot remove anything from inside its box, or when it was killed. */
static void forget_socket(const struct message *dev)
{
	const struct cf_mount m = {.dev_major = dev->dev_major, .dev_minor = dev->dev_minor, .uid = geteuid()};
	cf_control_forget(&m);
}

static void run(struct helper *h)
{
	struct message m;
	while (hear_daemon(h, &m)) {
		if (m.word == CF_HELPER_MOUNTING)
			h->may_be_mounted = 1;
		if (m.word == CF_HELPER_MOUNTED) {
			h->mounted = 1;
			h->dev = m;
		}
		if (m.word == CF_HELPER_FLUSH)
			start_flusher(h);
		if (m.word == CF_HELPER_DROP)
			cf_close_fd(&h->flusher);
		if (m.word == CF_HELPER_STOP)
			stop(h);
	}
	if (is_there(h))
		(void)!cf_mounts_unmount(h->opts->mountpoint, CF_UNMOUNT_DETACH, NULL);
	if (h->mounted)
		forget_socket(&h->dev);
}

/* ---- the process ---- */

static void be_deaf(void)
{
	static const int deaf[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM};
	sigset_t none;
	for (size_t i = 0; i < CF_ARRAY_LEN(deaf); i++)
		signal(deaf[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

_Noreturn static void be_helper(const struct cf_serve_opts *opts, int sock)
{
	struct cf_mount m;
	struct helper h = {.opts = opts, .sock = sock, .flusher = -1};
	be_deaf();
	struct message ready = {.word = CF_HELPER_READY, .code = cf_ipc_let_go(&h.sock, CF_IPC_STDERR_GONE)};
	const int below = ready.code < 0 ? 0 : cf_mounts_find(opts->mountpoint, &m);
	if (below < 0)
		ready.code = below;
	h.was_below = below == 1;
	if (h.was_below)
		h.below = (struct message){.dev_major = m.dev_major, .dev_minor = m.dev_minor};
	if (tell(h.sock, &ready) < 0 || ready.code < 0)
		_exit(1);
	run(&h);
	_exit(0);
}

int cf_helper_fork(const struct cf_serve_opts *opts, int *sock)
{
	int fds[2];
	int r = cf_ipc_pair(fds);
	if (r < 0)
		return r;
	pid_t pid = fork();
	if (pid == 0)
		be_helper(opts, fds[1]);
	r = pid < 0 ? -errno : 0;
	close(fds[1]);
	struct message ready = {.code = -EIO};
	if (r == 0)
		r = hear(fds[0], &ready) ? ready.code : -EIO;
	if (r < 0) {
		close(fds[0]);
		return r;
	}
	*sock = fds[0];
	return 0;
}
