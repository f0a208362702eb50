/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* completion_zsh.c - the tables as a script for zsh: one _arguments call a command. */
#include "config.h"

#include <stdio.h>

#include "cli.h"
#include "completion.h"

#define QUOTE "'\\''"

/* ":MESSAGE:ACTION" behind an option or a place, inside the quotes. Colons and parentheses have a meaning there. */
static void put_action(const struct cli_wanted *w)
{
	putchar(':');
	cli_put_text(w->name, ":", QUOTE);
	putchar(':');
	switch (w->want) {
	case CLI_WANT_NOTHING:
		putchar(' ');
		break;
	case CLI_WANT_WORDS:
		putchar('(');
		cli_put_text(w->words, ":()", QUOTE);
		putchar(')');
		break;
	case CLI_WANT_FILES:
		fputs("_files", stdout);
		break;
	case CLI_WANT_FOLDERS:
		fputs("_files -/", stdout);
		break;
	case CLI_WANT_VOLUMES:
		fputs("_cryptfuse_volumes", stdout);
		break;
	case CLI_WANT_MOUNTS:
		fputs("_cryptfuse_mounts", stdout);
		break;
	}
}

static void put_spec(const struct cli_option *o, const char *dashes, const char *name, const char *sign)
{
	struct cli_wanted w;
	fputs(" \\\n\t\t'", stdout);
	if (o->letter)
		printf("(-%c --%s)", o->letter, o->name);
	printf("%s%s%s[", dashes, name, sign);
	cli_put_text(o->help, "[]\\", QUOTE);
	putchar(']');
	if (o->arg) {
		cli_wanted_option(o, &w);
		put_action(&w);
	}
	putchar('\'');
}

static void put_option(const struct cli_option *o)
{
	const char letter[2] = {o->letter, '\0'};
	if (o->letter)
		put_spec(o, "-", letter, o->arg ? "+" : "");
	put_spec(o, "--", o->name, o->arg ? "=" : "");
}

static void put_command(const struct cli_command *cmd)
{
	struct cli_wanted w;
	printf("_cryptfuse_%s()\n{\n\t_arguments -s -S :", cmd->name);
	for (const struct cli_group *g = cmd->groups; g->title; g++)
		for (const struct cli_option *o = g->options; o->name; o++)
			put_option(o);
	for (unsigned i = 0; cli_wanted_argument(cmd, i, &w); i++) {
		printf(" \\\n\t\t'%u", i + 1);
		put_action(&w);
		putchar('\'');
	}
	puts("\n}\n");
}

static void put_names(void)
{
	puts("_cryptfuse_names()\n{\n\tlocal -a names=(");
	for (size_t i = 0; cli_commands[i]; i++) {
		printf("\t\t'%s:", cli_commands[i]->name);
		cli_put_text(cli_commands[i]->about, ":\\", QUOTE);
		puts("'");
	}
	puts("\t)\n\t_describe command names\n}\n");
}

void cli_completion_zsh(void)
{
	puts("#compdef cryptfuse\n# 'cryptfuse completion zsh' made this from the program's own tables\n");
	puts("_cryptfuse_volumes()\n{\n\tlocal expl\n\tlocal -a at=(${(f)\"$(" CLI_LIST_VOLUMES ")\"})\n"
		 "\t_wanted volumes expl 'open volume' compadd -a at || _files\n}\n");
	puts("_cryptfuse_mounts()\n{\n\tlocal expl\n\tlocal -a at=(${(f)\"$(" CLI_LIST_MOUNTS ")\"})\n"
		 "\t_wanted mounts expl 'mount point' compadd -a at || _files\n}\n");
	for (size_t i = 0; cli_commands[i]; i++)
		put_command(cli_commands[i]);
	put_names();
	puts("_cryptfuse()\n{\n\tlocal curcontext=$curcontext state\n\tlocal -a line\n"
		 "\t_arguments -C '(- *)--help[list the commands]' '(- *)--version[print the version]' "
		 "'1:command:_cryptfuse_names' '*::argument:->argument'\n"
		 "\t[[ $state != argument ]] || (( ! $+functions[_cryptfuse_$line[1]] )) || _cryptfuse_$line[1]\n}\n\n"
		 "if [[ $funcstack[1] == _cryptfuse ]]; then\n\t_cryptfuse \"$@\"\nelse\n\tcompdef _cryptfuse cryptfuse\nfi");
}
