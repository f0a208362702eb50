/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* askpass.c - a passphrase from a program, as ssh-askpass gives it.
 *
 * The program gets the prompt as its only argument; the first line it prints is the passphrase, read from the pipe
 * straight into the secret arena. It inherits standard input and standard error and no other descriptor; the arena is
 * not copied into a forked child (secret.h). One thread. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "cryptfuse/clock.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"

#define NOT_STARTED 127 /* exit status, as a shell has it */

_Noreturn static void become(const char *program, const char *prompt, int out)
{
	char *const argv[] = {(char *)(uintptr_t)program, (char *)(uintptr_t)prompt, NULL};
	if (dup2(out, STDOUT_FILENO) == STDOUT_FILENO && close_range(STDERR_FILENO + 1, ~0U, 0) == 0)
		execvp(program, argv);
	_exit(NOT_STARTED);
}

static int start_program(const char *program, const char *prompt, pid_t *pid, int *from, struct cf_err *err)
{
	int fds[2];
	if (pipe(fds) != 0)
		return cf_fail(err, -errno, "cannot make a pipe: %s", strerror(errno));
	signal(SIGCHLD, SIG_DFL);
	*pid = fork();
	if (*pid == 0)
		become(program, prompt, fds[1]);
	const int code = errno;
	close(fds[1]);
	*from = fds[0];
	if (*pid > 0)
		return 0;
	cf_close_fd(from);
	return cf_fail(err, -code, "cannot fork: %s", strerror(code));
}

/* The first line, or all there is; what follows is not read. */
static int read_answer(int fd, int64_t deadline_ms, struct cf_secret_buf *out)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	for (out->len = 0; out->len < CF_PASSPHRASE_MAX;) {
		const int64_t left = deadline_ms ? deadline_ms - cf_now_ms() : -1;
		if (deadline_ms && left <= 0)
			return -ETIMEDOUT;
		if (poll(&p, 1, left > INT_MAX ? INT_MAX : (int)left) <= 0)
			continue;
		const ssize_t n = read(fd, out->data + out->len, CF_PASSPHRASE_MAX - out->len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		const uint8_t *newline = memchr(out->data + out->len, '\n', (size_t)n);
		if (n == 0 || newline) {
			out->len = newline ? (size_t)(newline - out->data) : out->len;
			return 0;
		}
		out->len += (size_t)n;
	}
	return 0;
}

static int judge(const char *program, int rc, int status, uint64_t timeout_s, struct cf_err *err)
{
	if (rc == -ETIMEDOUT)
		return cf_fail(err, rc, "no passphrase from %s within %llu s", program, (unsigned long long)timeout_s);
	if (rc)
		return cf_fail(err, rc, "the passphrase cannot be read from %s: %s", program, strerror(-rc));
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_STARTED)
		return cf_fail(err, -EINVAL, "the program %s cannot be run", program);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		return cf_fail(err, -EPERM, "no passphrase: %s gave none", program);
	return 0;
}

int cli_askpass(const char *program, const char *prompt, uint64_t timeout_s, struct cf_secret_buf *out,
				struct cf_err *err)
{
	CF_CLEANUP(cf_secret_buf_fini) struct cf_secret_buf answer = {.data = cf_secret_alloc(CF_PASSPHRASE_MAX)};
	CF_CLEANUP(cf_close_fd) int from = -1;
	pid_t pid = -1;
	int status = 0;
	if (!answer.data)
		return cf_fail(err, -ENOMEM, "no memory for a passphrase");
	int rc = start_program(program, prompt, &pid, &from, err);
	if (rc)
		return rc;
	rc = read_answer(from, timeout_s ? cf_now_ms() + (int64_t)timeout_s * 1000 : 0, &answer);
	cf_close_fd(&from);
	if (rc)
		kill(pid, SIGTERM);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	rc = judge(program, rc, status, timeout_s, err);
	if (rc)
		return rc;
	*out = answer;
	answer = (struct cf_secret_buf){0};
	return 0;
}
