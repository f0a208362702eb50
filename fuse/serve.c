/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* serve.c - the parent's side of the daemon: make it, feed it, wait for it, give it up.
 *
 * Invariant: a daemon that has not said "ready" never outlives its parent: it ends when the socket does. One thread. */
#include "config.h"

#include "cryptfuse/serve.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cryptfuse/daemon.h"
#include "cryptfuse/err.h"
#include "cryptfuse/ipc.h"

#define ABANDON_TRIES 100 /* of 50 ms: how long an abandoned daemon may take to end by itself */

int cf_serve_fork(struct cf_serve *s, const struct cf_serve_opts *opts, struct cf_err *err)
{
	int fds[2];
	int r = cf_ipc_pair(fds);
	if (r < 0)
		return cf_fail(err, r, "cannot make a socketpair: %s", strerror(-r));
	signal(SIGCHLD, SIG_DFL); /* an inherited SIG_IGN would hide how the daemon ended */
	pid_t pid = fork();
	if (pid == 0) {
		close(fds[0]);
		cf_daemon_main(fds[1], opts);
	}
	int code = errno;
	close(fds[1]);
	if (pid < 0) {
		close(fds[0]);
		return cf_fail(err, -code, "cannot fork: %s", strerror(code));
	}
	*s = (struct cf_serve){.pid = pid, .sock = fds[0]};
	return 0;
}

/* Notes are passed on until there is an answer. */
static int wait_ready(struct cf_serve *s, const struct cf_open_ui *ui, struct cf_err *err)
{
	struct cf_ipc_answer a;
	for (;;) {
		int r = cf_ipc_recv_answer(s->sock, &a);
		if (r < 0)
			return cf_fail(err, -EIO, "the daemon ended without a word");
		if (a.kind == CF_IPC_READY)
			return 0;
		if (a.kind == CF_IPC_ERROR)
			return cf_fail(err, a.code < 0 ? a.code : -EIO, "%s", a.text);
		if (ui && ui->note)
			ui->note(ui->ctx, a.text);
	}
}

int cf_serve_start(struct cf_serve *s, const struct cf_open_plan *plan, const uint8_t *key,
				   const struct cf_image *image, const struct cf_open_ui *ui, struct cf_err *err)
{
	/* If it cannot be sent the daemon has gone, and may have said why. */
	int sent = cf_ipc_send_order(s->sock, plan, key, image);
	return sent < 0 && sent != -EPIPE ? cf_fail(err, sent, "cannot reach the daemon: %s", strerror(-sent))
									  : wait_ready(s, ui, err);
}

int cf_serve_publish(struct cf_serve *s, const struct cf_serve_part *parts, unsigned n, struct cf_err *err)
{
	int r = cf_ipc_send_parts(s->sock, parts, n);
	if (r < 0)
		r = cf_fail(err, -EIO, "the partitions cannot be shown: %s", strerror(-r));
	else
		r = wait_ready(s, NULL, err);
	cf_close_fd(&s->sock);
	return r;
}

void cf_serve_abandon(struct cf_serve *s)
{
	static const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
	if (s->pid <= 0)
		return;
	cf_close_fd(&s->sock);
	pid_t pid = 0;
	for (int i = 0; i < ABANDON_TRIES && pid == 0; i++) {
		pid = waitpid(s->pid, NULL, WNOHANG);
		if (pid == 0)
			nanosleep(&pause, NULL);
	}
	if (pid == 0) { /* it hangs; its helper removes what it mounted */
		kill(s->pid, SIGKILL);
		waitpid(s->pid, NULL, 0);
	}
	s->pid = 0;
}

int cf_serve_wait(struct cf_serve *s)
{
	sigset_t set;
	int status = 0;
	cf_close_fd(&s->sock);
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGCHLD);
	sigprocmask(SIG_BLOCK, &set, NULL);
	pid_t ended;
	while ((ended = waitpid(s->pid, &status, WNOHANG)) == 0) {
		int sig = sigwaitinfo(&set, NULL);
		if (sig > 0 && sig != SIGCHLD)
			kill(s->pid, SIGTERM);
	}
	s->pid = 0;
	return ended > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
