/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* completion_bash.c - the tables as a script for bash, which needs no other package.
 *
 * readline splits words at '=' and ':', so the script joins them again, and takes off what readline will not replace.
 */
#include "config.h"

#include <stdio.h>

#include "cli.h"
#include "completion.h"

#define QUOTE "'\\''"

static const char *const kind_words[] = {
	[CLI_WANT_NOTHING] = "nothing", [CLI_WANT_WORDS] = "words",     [CLI_WANT_FILES] = "files",
	[CLI_WANT_FOLDERS] = "folders", [CLI_WANT_VOLUMES] = "volumes", [CLI_WANT_MOUNTS] = "mounts",
};

/* The script's fixed part; put between what the two functions before it say. */
static const char engine_room[] =
	"# the words up to the cursor, where readline split at '=' and ':' joined again, in $words\n"
	"_cryptfuse_words()\n"
	"{\n"
	"\tlocal i word glue=\n"
	"\tfor ((i = 1; i <= COMP_CWORD; i++)); do\n"
	"\t\tword=${COMP_WORDS[i]}\n"
	"\t\tif ((${#words[@]})) && [[ -n $glue || $word == [=:]* ]]; then\n"
	"\t\t\twords[${#words[@]} - 1]+=$word\n"
	"\t\telse\n"
	"\t\t\twords+=(\"$word\")\n"
	"\t\tfi\n"
	"\t\tglue=\n"
	"\t\t[[ $word != [=:]* ]] || glue=yes\n"
	"\tdone\n"
	"}\n"
	"\n"
	"# what may stand at the last of $words: $kind and $list, and in $cur the part of it that is there\n"
	"_cryptfuse_place()\n"
	"{\n"
	"\tlocal options='' with='' arguments='' option='' only='' n=0 word\n"
	"\tcur=${words[${#words[@]} - 1]}\n"
	"\tif ((${#words[@]} == 1)); then\n"
	"\t\tkind=words list=$_cryptfuse_names\n"
	"\t\treturn\n"
	"\tfi\n"
	"\t_cryptfuse_command \"${words[0]}\"\n"
	"\tfor word in \"${words[@]:1:${#words[@]} - 2}\"; do\n"
	"\t\tif [[ -n $option ]]; then\n"
	"\t\t\toption=\n"
	"\t\telif [[ -z $only && $word == -- ]]; then\n"
	"\t\t\tonly=yes\n"
	"\t\telif [[ -z $only && $word == -?* ]]; then\n"
	"\t\t\t[[ \" $with \" != *\" $word \"* ]] || option=$word\n"
	"\t\telse\n"
	"\t\t\tn=$((n + 1))\n"
	"\t\tfi\n"
	"\tdone\n"
	"\tif [[ -n $option ]]; then\n"
	"\t\t_cryptfuse_value \"${words[0]}\" \"$option\"\n"
	"\telif [[ -z $only && $cur == --*=* ]]; then\n"
	"\t\t_cryptfuse_value \"${words[0]}\" \"${cur%%=*}\"\n"
	"\t\tcur=${cur#*=}\n"
	"\telif [[ -z $only && $cur == -* ]]; then\n"
	"\t\tkind=words list=$options\n"
	"\telse\n"
	"\t\tread -r -a words <<<\"$arguments\"\n"
	"\t\tkind=${words[n]:-nothing}\n"
	"\tfi\n"
	"}\n"
	"\n"
	"# $list to COMPREPLY, as far as it begins with $cur; readline replaces what follows the last ':' only\n"
	"_cryptfuse_offer()\n"
	"{\n"
	"\tlocal IFS=$'\\n' word before=\n"
	"\t[[ $cur != *:* || $COMP_WORDBREAKS != *:* ]] || before=${cur%\"${cur##*:}\"}\n"
	"\tfor word in $list; do\n"
	"\t\t[[ $word != \"$cur\"* ]] || COMPREPLY+=(\"${word#\"$before\"}\")\n"
	"\tdone\n"
	"}\n"
	"\n"
	"_cryptfuse()\n"
	"{\n"
	"\tlocal cur kind=nothing list=''\n"
	"\tlocal -a words=()\n"
	"\tCOMPREPLY=()\n"
	"\t_cryptfuse_words\n"
	"\t_cryptfuse_place\n"
	"\tcase $kind in\n"
	"\twords) list=${list// /$'\\n'} ;;\n"
	"\tfiles) compopt -o default 2>/dev/null ;;\n"
	"\tfolders) compopt -o dirnames 2>/dev/null ;;\n"
	"\tvolumes | mounts) # readline must not look at them: one may hang\n"
	"\t\tcompopt -o default 2>/dev/null\n"
	"\t\tlist=$(_cryptfuse_$kind)\n"
	"\t\t[[ -z $list ]] || list=$(while IFS= read -r word; do printf '%q\\n' \"$word\"; done <<<\"$list\")\n"
	"\t\t;;\n"
	"\tesac\n"
	"\t_cryptfuse_offer\n"
	"}\n"
	"\n"
	"complete -F _cryptfuse cryptfuse\n";

static void put_names(const struct cli_option *o, const char *between)
{
	if (o->letter)
		printf("%s-%c", between, o->letter);
	printf("%s--%s", o->letter ? " " : between, o->name);
}

static void put_options(const char *variable, const struct cli_command *cmd, int with_argument)
{
	const char *between = "";
	printf("\t\t%s='", variable);
	for (const struct cli_group *g = cmd->groups; g->title; g++)
		for (const struct cli_option *o = g->options; o->name; o++)
			if (o->arg || !with_argument) {
				put_names(o, between);
				between = " ";
			}
	puts("'");
}

static void put_command(const struct cli_command *cmd)
{
	struct cli_wanted w;
	printf("\t%s)\n", cmd->name);
	put_options("options", cmd, 0);
	put_options("with", cmd, 1);
	printf("\t\targuments='");
	for (unsigned i = 0; cli_wanted_argument(cmd, i, &w); i++)
		printf("%s%s", i ? " " : "", kind_words[w.want]);
	puts("'");
	/* A single list of words is enough: no command has two arguments that are such. */
	for (unsigned i = 0; cli_wanted_argument(cmd, i, &w); i++)
		if (w.want == CLI_WANT_WORDS)
			printf("\t\tlist='%s'\n", w.words);
	puts("\t\t;;");
}

static void put_value(const struct cli_command *cmd, const struct cli_option *o)
{
	struct cli_wanted w;
	cli_wanted_option(o, &w);
	if (w.want == CLI_WANT_NOTHING)
		return;
	printf("\t'%s --%s'", cmd->name, o->name);
	if (o->letter)
		printf(" | '%s -%c'", cmd->name, o->letter);
	printf(") kind=%s", kind_words[w.want]);
	if (w.want == CLI_WANT_WORDS) {
		fputs(" list='", stdout);
		cli_put_text(w.words, "", QUOTE);
		putchar('\'');
	}
	puts(" ;;");
}

static void put_values(void)
{
	puts("# what the argument of a command's option is\n_cryptfuse_value()\n{\n\tcase \"$1 $2\" in");
	for (size_t i = 0; cli_commands[i]; i++)
		for (const struct cli_group *g = cli_commands[i]->groups; g->title; g++)
			for (const struct cli_option *o = g->options; o->name; o++)
				put_value(cli_commands[i], o);
	puts("\tesac\n}\n");
}

void cli_completion_bash(void)
{
	puts("# bash completion for cryptfuse; 'cryptfuse completion bash' made it from the program's own tables\n");
	puts("# what a command has: its options, those of them that take an argument, what its own arguments are\n"
		 "_cryptfuse_command()\n{\n\tcase $1 in");
	for (size_t i = 0; cli_commands[i]; i++)
		put_command(cli_commands[i]);
	puts("\tesac\n}\n");
	put_values();
	puts("_cryptfuse_volumes()\n{\n\t" CLI_LIST_VOLUMES "\n}\n");
	puts("_cryptfuse_mounts()\n{\n\t" CLI_LIST_MOUNTS "\n}\n");
	char commands[CLI_WORDS_MAX] = "";
	size_t len = 0;
	for (size_t i = 0; cli_commands[i] && len < sizeof(commands); i++)
		len += (size_t)snprintf(commands + len, sizeof(commands) - len, "%s ", cli_commands[i]->name);
	printf("_cryptfuse_names='%s--help --version'\n\n", commands);
	fputs(engine_room, stdout);
}
