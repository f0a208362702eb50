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

static void put_argument(const struct cli_command *cmd, unsigned place, const struct cli_wanted *w)
{
	static const char *const actions[] = {
		[CLI_WANT_FILES] = "-F",
		[CLI_WANT_FOLDERS] = "-a '(__fish_complete_directories (commandline -ct) folder)'",
		[CLI_WANT_VOLUMES] = "-F -a '(__cryptfuse_volumes)'",
		[CLI_WANT_MOUNTS] = "-F -a '(__cryptfuse_mounts)'",
	};
	if (w->want == CLI_WANT_NOTHING)
		return;
	printf("complete -c cryptfuse -n '__cryptfuse_at %s %u' ", cmd->name, place);
	if (w->want == CLI_WANT_WORDS)
		printf("-a '%s'\n", w->words);
	else
		puts(actions[w->want]);
}

static void put_command(const struct cli_command *cmd)
{
	printf("\ncomplete -c cryptfuse -n __cryptfuse_first -a %s", cmd->name);
	struct cli_wanted w;
	put_help(cmd->about);
	for (unsigned i = 0; cli_wanted_argument(cmd, i, &w); i++)
		put_argument(cmd, i + 1, &w);
	for (const struct cli_group *g = cmd->groups; g->title; g++)
		for (const struct cli_option *o = g->options; o->name; o++)
			put_option(cmd, o);
}

/* Options whose argument is a word of its own, which must not be counted as one of the command's. */
static void put_with(void)
{
	puts("function __cryptfuse_with\n\tswitch $argv[1]");
	for (size_t i = 0; cli_commands[i]; i++) {
		printf("\t\tcase %s\n\t\t\tstring split ' ' -- '", cli_commands[i]->name);
		for (const struct cli_group *g = cli_commands[i]->groups; g->title; g++)
			for (const struct cli_option *o = g->options; o->name; o++) {
				if (o->arg && o->letter)
					printf("-%c ", o->letter);
				if (o->arg)
					printf("--%s ", o->name);
			}
		puts("'");
	}
	puts("\tend\nend\n");
}

/* COMMAND N: is the cursor at argument N of COMMAND? */
static const char at_place[] = "function __cryptfuse_at\n"
							   "\t__cryptfuse_is $argv[1]; or return 1\n"
							   "\tset -l words (commandline -opc)\n"
							   "\tset -e words[1..2]\n"
							   "\tset -l with (__cryptfuse_with $argv[1])\n"
							   "\tset -l n 1\n"
							   "\tset -l value no\n"
							   "\tset -l only no\n"
							   "\tfor word in $words\n"
							   "\t\tif test $value = yes\n"
							   "\t\t\tset value no\n"
							   "\t\telse if test $only = no; and test \"$word\" = --\n"
							   "\t\t\tset only yes\n"
							   "\t\telse if test $only = no; and string match -q -- '-?*' $word\n"
							   "\t\t\tcontains -- $word $with; and set value yes\n"
							   "\t\telse\n"
							   "\t\t\tset n (math $n + 1)\n"
							   "\t\tend\n"
							   "\tend\n"
							   "\ttest $value = no; and test $n -eq $argv[2]\n"
							   "end\n";

void cli_completion_fish(void)
{
	puts("# fish completion for cryptfuse; 'cryptfuse completion fish' made it from the program's own tables\n\n"
		 "function __cryptfuse_first\n\ttest (count (commandline -opc)) -eq 1\nend\n\n"
		 "function __cryptfuse_is\n\tset -l words (commandline -opc)\n"
		 "\ttest (count $words) -ge 2; and test $words[2] = $argv[1]\nend\n\n"
		 "function __cryptfuse_volumes\n\t" CLI_LIST_VOLUMES "\nend\n\n"
		 "function __cryptfuse_mounts\n\t" CLI_LIST_MOUNTS "\nend\n");
	put_with();
	puts(at_place);
	puts("complete -c cryptfuse -f\n"
		 "complete -c cryptfuse -n __cryptfuse_first -l help -d 'list the commands'\n"
		 "complete -c cryptfuse -n __cryptfuse_first -l version -d 'print the version'");
	for (size_t i = 0; cli_commands[i]; i++)
		put_command(cli_commands[i]);
}
