/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* interrupt.c - signals that end long work, held back and looked for at its own places.
 *
 * There is no handler and nothing is cut off: after cleaning up, the signal is let through and ends the process in its
 * own way, so that a shell sees what it expects. What this process was told to ignore stays ignored. */
#include "config.h"

#include <errno.h>
#include <signal.h>

#include "cli.h"

void cli_signals_init(struct cli_signals *s)
{
	sigemptyset(&s->held);
	sigprocmask(SIG_BLOCK, NULL, &s->before);
}

void cli_hold_signals(struct cli_signals *s)
{
	static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction now;
	sigemptyset(&s->held);
	for (size_t i = 0; i < CF_ARRAY_LEN(ending); i++)
		if (sigaction(ending[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaddset(&s->held, ending[i]);
	sigprocmask(SIG_BLOCK, &s->held, &s->before);
}

int cli_interrupted(const struct cli_signals *s)
{
	sigset_t pending;
	sigpending(&pending);
	sigandset(&pending, &pending, &s->held);
	return sigisemptyset(&pending) ? 0 : -EINTR;
}

void cli_let_signals(const struct cli_signals *s)
{
	sigprocmask(SIG_SETMASK, &s->before, NULL);
}
