/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* progress.c - the one line of progress, on a terminal only. It is overwritten with spaces, which any terminal can. */
#include "config.h"

#include <stdio.h>
#include <unistd.h>

#include "cli.h"

void cli_progress_init(struct cli_progress *p)
{
	*p = (struct cli_progress){.is_on = isatty(STDERR_FILENO) == 1};
}

void cli_progress_update(struct cli_progress *p, unsigned percent, const char *text)
{
	char line[80];
	if (!p->is_on)
		return;
	snprintf(line, sizeof(line), "%3u %%  %s", percent, text);
	const int width = dprintf(STDERR_FILENO, "\r%-*s", p->width, line);
	p->width = width > 1 ? width - 1 : 0;
	p->percent = percent;
}

void cli_progress_show(struct cli_progress *p, unsigned percent, const char *text)
{
	if (!p->width || p->percent != percent)
		cli_progress_update(p, percent, text);
}

void cli_progress_end(struct cli_progress *p)
{
	if (p->width)
		dprintf(STDERR_FILENO, "\r%*s\r", p->width, "");
	p->width = 0;
}
