/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* prompt.c - a passphrase from the terminal, or a line of standard input.
 *
 * The passphrase goes by read() from the terminal into the secret arena: no stdio, no copy. While the echo is off,
 * signals that would end or stop the program come through a descriptor, so the terminal is put back first, whatever
 * happens: that is the invariant of struct terminal. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "cli.h"
#include "cryptfuse/clock.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"

#define PROMPT_MAX (PATH_MAX + 128)

/** A terminal with its echo off. */
struct terminal {
	int fd, own_fd; /* own_fd: -1 when fd is standard input */
	int out;
	int signals; /* signalfd */
	sigset_t blocked, before;
	struct termios saved;
	enum { ECHO_AS_FOUND, ECHO_OFF } echo;
};

/* Arrived while waiting: the program was stopped and goes on, so the prompt must be shown again. */
#define RESUMED 1

static int echo_off(struct terminal *t)
{
	struct termios silent;
	if (tcgetattr(t->fd, &t->saved) != 0)
		return -errno;
	silent = t->saved;
	silent.c_lflag &= ~(tcflag_t)(ECHO | ECHONL);
	silent.c_lflag |= ICANON | ISIG;
	if (tcsetattr(t->fd, TCSAFLUSH, &silent) != 0)
		return -errno;
	t->echo = ECHO_OFF;
	return 0;
}

static void echo_back(struct terminal *t)
{
	if (t->echo == ECHO_OFF)
		tcsetattr(t->fd, TCSAFLUSH, &t->saved);
	t->echo = ECHO_AS_FOUND;
}

static void terminal_fini(struct terminal *t)
{
	echo_back(t);
	cf_close_fd(&t->signals);
	cf_close_fd(&t->own_fd);
	sigprocmask(SIG_SETMASK, &t->before, NULL);
}

static int terminal_init(struct terminal *t, struct cf_err *err)
{
	static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP};
	*t = (struct terminal){.own_fd = open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY), .signals = -1};
	t->fd = t->own_fd >= 0 ? t->own_fd : STDIN_FILENO;
	t->out = t->own_fd >= 0 ? t->own_fd : STDERR_FILENO;
	sigemptyset(&t->blocked);
	for (size_t i = 0; i < CF_ARRAY_LEN(caught); i++)
		sigaddset(&t->blocked, caught[i]);
	if (sigprocmask(SIG_BLOCK, &t->blocked, &t->before) != 0)
		return cf_fail(err, -errno, "signals cannot be held back for the prompt: %s", strerror(errno));
	t->signals = signalfd(-1, &t->blocked, SFD_CLOEXEC);
	int rc = t->signals < 0 ? -errno : echo_off(t);
	if (rc == 0)
		return 0;
	terminal_fini(t);
	return cf_fail(err, rc, "the terminal cannot be used for a passphrase: %s", strerror(-rc));
}

static void show(const struct terminal *t, const char *text)
{
	ssize_t n = write(t->out, text, strlen(text));
	(void)n; /* a prompt that cannot be shown is no reason to refuse what is typed */
}

/* ^Z: give the terminal back, stop as the shell expects, and go on when it says so. */
static int stop_and_resume(struct terminal *t)
{
	echo_back(t);
	raise(SIGTSTP);
	sigprocmask(SIG_SETMASK, &t->before, NULL); /* delivers it: stops here */
	sigprocmask(SIG_BLOCK, &t->blocked, NULL);
	int rc = echo_off(t);
	return rc ? rc : RESUMED;
}

static int handle_signal(struct terminal *t)
{
	struct signalfd_siginfo info;
	if (read(t->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return -EINTR;
	return info.ssi_signo == (uint32_t)SIGTSTP ? stop_and_resume(t) : -EINTR;
}

/* Until there is a line: 0; RESUMED; -EINTR; -ETIMEDOUT. @deadline_ms: 0 never. */
static int wait_line(struct terminal *t, int64_t deadline_ms)
{
	struct pollfd fds[] = {{.fd = t->fd, .events = POLLIN}, {.fd = t->signals, .events = POLLIN}};
	for (;;) {
		int64_t left = deadline_ms ? deadline_ms - cf_now_ms() : -1;
		if (deadline_ms && left <= 0)
			return -ETIMEDOUT;
		int n = poll(fds, CF_ARRAY_LEN(fds), left > INT_MAX ? INT_MAX : (int)left);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && fds[1].revents)
			return handle_signal(t);
		if (n > 0)
			return 0;
	}
}

/* A terminal's read gives one line at most; what goes past the 512 characters is thrown away with the echo's return. */
static int read_line(struct terminal *t, struct cf_secret_buf *out)
{
	ssize_t n;
	do {
		n = read(t->fd, out->data, CF_PASSPHRASE_MAX);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : -ENODATA;
	out->len = (size_t)n;
	if (out->data[out->len - 1] == '\n')
		out->len--;
	return 0;
}

static int ask(const char *prompt, uint64_t timeout_s, struct cf_secret_buf *out, struct cf_err *err)
{
	CF_CLEANUP(cf_secret_buf_fini) struct cf_secret_buf line = {.data = cf_secret_alloc(CF_PASSPHRASE_MAX)};
	struct terminal t;
	if (!line.data)
		return cf_fail(err, -ENOMEM, "no memory for a passphrase");
	int rc = terminal_init(&t, err);
	if (rc)
		return rc;
	const int64_t deadline_ms = timeout_s ? cf_now_ms() + (int64_t)timeout_s * 1000 : 0;
	do {
		show(&t, prompt);
		rc = wait_line(&t, deadline_ms);
	} while (rc == RESUMED);
	if (rc == 0)
		rc = read_line(&t, &line);
	show(&t, "\n");
	terminal_fini(&t);
	switch (rc) {
	case 0:
		*out = line;
		line = (struct cf_secret_buf){0};
		return 0;
	case -EINTR:
		return cf_fail(err, rc, "interrupted at the prompt");
	case -ETIMEDOUT:
		return cf_fail(err, rc, "no passphrase within %llu s", (unsigned long long)timeout_s);
	case -ENODATA:
		return cf_fail(err, -EPERM, "no passphrase: the terminal's input ended");
	default:
		return cf_fail(err, rc, "the passphrase cannot be read from the terminal: %s", strerror(-rc));
	}
}

/* Returns 1 equal or not to be verified; 0 they differ; -errno. */
static int ask_verified(const struct cli_opts *o, const char *prompt, struct cf_secret_buf *out, struct cf_err *err)
{
	CF_CLEANUP(cf_secret_buf_fini) struct cf_secret_buf first = {0}, again = {0};
	int rc = ask(prompt, o->timeout_s, &first, err);
	if (rc == 0 && o->verify) {
		rc = ask("Verify passphrase: ", o->timeout_s, &again, err);
		if (rc == 0 && (first.len != again.len || memcmp(first.data, again.data, first.len) != 0))
			return 0;
	}
	if (rc)
		return rc;
	*out = first;
	first = (struct cf_secret_buf){0};
	return 1;
}

static int ask_tries(const struct cli_opts *o, const char *prompt, struct cf_secret_buf *out, struct cf_err *err)
{
	for (uint64_t left = o->volume.tries; left > 0; left--) {
		int rc = ask_verified(o, prompt, out, err);
		if (rc)
			return rc < 0 ? rc : 0;
		if (left > 1)
			cli_say("the passphrases do not match");
	}
	return cf_fail(err, -EPERM, "the passphrases do not match");
}

static void make_prompt(const struct cf_open_opts *opts, unsigned attempt, char text[static PROMPT_MAX])
{
	char count[64] = "";
	if (attempt && opts->tries > 1)
		snprintf(count, sizeof(count), " (%u of %llu)", attempt, (unsigned long long)opts->tries);
	snprintf(text, PROMPT_MAX, "Passphrase for %s%s: ", opts->image, count);
	cli_printable(text);
}

int cli_passphrase(void *ctx, const struct cf_open_opts *opts, unsigned attempt, struct cf_secret_buf *out,
				   struct cf_err *err)
{
	const struct cli_opts *o = ctx;
	char prompt[PROMPT_MAX];
	make_prompt(opts, attempt, prompt);
	if (!o->askpass && !isatty(STDIN_FILENO))
		return cf_key_read_fd(STDIN_FILENO, CF_KEY_READ_LINE, opts->keyfile_offset_bytes, opts->keyfile_size_bytes,
							  "standard input", out, err);
	if (opts->keyfile_offset_bytes)
		return cf_fail(err, -EINVAL, "--keyfile-offset cannot be used with a passphrase that is typed");
	int rc = o->askpass ? cli_askpass(o->askpass, prompt, o->timeout_s, out, err) : ask_tries(o, prompt, out, err);
	return rc ? rc : CF_MAY_ASK_AGAIN;
}
