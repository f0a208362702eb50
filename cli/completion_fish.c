/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* completion_fish.c - the tables as a script for fish: one complete line an option. */
#include "config.h"

#include <stdio.h>

#include "cli.h"
#include "completion.h"

#define QUOTE "\\'"

static void put_kind(const struct cli_wanted *w)
{
	fputs(w->want == CLI_WANT_FILES ? " -r -F" : " -x", stdout);
	if (w->want != CLI_WANT_WORDS)
		return;
	fputs(" -a '", stdout);
	cli_put_text(w->words, "\\", QUOTE);
	putchar('\'');
}

static void put_help(const char *text)
{
	fputs(" -d '", stdout);
	cli_put_text(text, "\\", QUOTE);
	puts("'");
}

static void put_option(const struct cli_command *cmd, const struct cli_option *o)
{
	struct cli_wanted w;
	printf("complete -c cryptfuse -n '__cryptfuse_is %s'", cmd->name);
	if (o->letter)
		printf(" -s '%c'", o->letter);
	printf(" -l %s", o->name);
	if (o->arg) {
		cli_wanted_option(o, &w);
		put_kind(&w);
	}
	put_help(o->help);
}

/* Which of several arguments it is, is not told: it matters only where one is no file, and such a command has one. */
static void put_arguments(const struct cli_command *cmd)
{
	static const char *const actions[] = {
		[CLI_WANT_FILES] = "-F",
		[CLI_WANT_VOLUMES] = "-F -a '(__cryptfuse_volumes)'",
		[CLI_WANT_MOUNTS] = "-F -a '(__cryptfuse_mounts)'",
	};
	struct cli_wanted w;
	if (!cli_wanted_argument(cmd, 0, &w) || w.want == CLI_WANT_NOTHING)
		return;
	printf("complete -c cryptfuse -n '__cryptfuse_is %s' ", cmd->name);
	if (w.want == CLI_WANT_WORDS)
		printf("-a '%s'\n", w.words);
	else
		puts(actions[w.want]);
}

static void put_command(const struct cli_command *cmd)
{
	printf("\ncomplete -c cryptfuse -n __cryptfuse_first -a %s", cmd->name);
	put_help(cmd->about);
	put_arguments(cmd);
	for (const struct cli_group *g = cmd->groups; g->title; g++)
		for (const struct cli_option *o = g->options; o->name; o++)
			put_option(cmd, o);
}

void cli_completion_fish(void)
{
	puts("# fish completion for cryptfuse; 'cryptfuse completion fish' made it from the program's own tables\n\n"
		 "function __cryptfuse_first\n\ttest (count (commandline -opc)) -eq 1\nend\n\n"
		 "function __cryptfuse_is\n\tset -l words (commandline -opc)\n"
		 "\ttest (count $words) -ge 2; and test $words[2] = $argv[1]\nend\n\n"
		 "function __cryptfuse_volumes\n\t" CLI_LIST_VOLUMES "\nend\n\n"
		 "function __cryptfuse_mounts\n\t" CLI_LIST_MOUNTS "\nend\n\n"
		 "complete -c cryptfuse -f\n"
		 "complete -c cryptfuse -n __cryptfuse_first -l help -d 'list the commands'\n"
		 "complete -c cryptfuse -n __cryptfuse_first -l version -d 'print the version'");
	for (size_t i = 0; cli_commands[i]; i++)
		put_command(cli_commands[i]);
}
