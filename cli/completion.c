/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* completion.c - cryptfuse completion: print the script that makes a shell complete command lines.
 *
 * The build runs it and installs what it prints, so that completions cannot drift from the options. What an argument is
 * follows from what the tables call it: FILE is a file, wherever it stands. */
#include "config.h"

#include "completion.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "cryptfuse/engine.h"
#include "cryptfuse/err.h"
#include "mkfs.h"

static const struct {
	const char *name;
	void (*print)(void);
} shells[] = {
	{"bash", cli_completion_bash},
	{"zsh", cli_completion_zsh},
	{"fish", cli_completion_fish},
};

/* What an argument of that name is. Ciphers and hashes: those that people have, of the many that there are. */
static const struct {
	const char *name;
	enum cli_want want;
	const char *words;
} kinds[] = {
	{"CIPHER", CLI_WANT_WORDS,
	 "aes-xts-plain64 aes-cbc-essiv:sha256 aes-cbc-plain64 aes-cbc-plain serpent-xts-plain64 twofish-xts-plain64 "
	 "camellia-xts-plain64"},
	{"HASH", CLI_WANT_WORDS, "sha256 sha512 ripemd160 sha1 whirlpool plain"},
	{"HASH,...", CLI_WANT_WORDS, "sha256 sha512 sha1 md5 sha256,md5"},
	{"KDF", CLI_WANT_WORDS, "argon2id argon2i pbkdf2"},
	{"PROGRAM", CLI_WANT_FILES, ""},
	{"FILE", CLI_WANT_FILES, ""},
	{"IMAGE", CLI_WANT_FILES, ""},
	{"INPUT|-", CLI_WANT_FILES, ""},
	{"OUTPUT|-", CLI_WANT_FILES, ""},
	{"MOUNTPOINT", CLI_WANT_FILES, ""},
	{"DIRECTORY", CLI_WANT_FOLDERS, ""},
};

static void add_word(struct cli_wanted *out, const char *word)
{
	const size_t len = strlen(out->words);
	out->want = CLI_WANT_WORDS;
	snprintf(out->words + len, sizeof(out->words) - len, "%s%s", len ? " " : "", word);
}

static void by_name(const char *name, struct cli_wanted *out)
{
	*out = (struct cli_wanted){.want = CLI_WANT_NOTHING};
	snprintf(out->name, sizeof(out->name), "%s", name);
	for (size_t i = 0; i < CF_ARRAY_LEN(kinds); i++)
		if (!strcmp(name, kinds[i].name)) {
			out->want = kinds[i].want;
			snprintf(out->words, sizeof(out->words), "%s", kinds[i].words);
		}
	if (!strcmp(name, "ENGINE")) {
		add_word(out, "auto");
		for (size_t i = 0; cf_engines[i]; i++)
			add_word(out, cf_engines[i]->name);
	}
	for (size_t i = 0; !strcmp(name, "FS") && cli_mkfs_name(i); i++)
		add_word(out, cli_mkfs_name(i));
	for (size_t i = 0; !strcmp(name, "SHELL") && i < CF_ARRAY_LEN(shells); i++)
		add_word(out, shells[i].name);
}

void cli_wanted_option(const struct cli_option *o, struct cli_wanted *out)
{
	by_name(o->arg ? o->arg : "", out);
	for (const struct cli_word *w = o->words; w && w->text; w++)
		add_word(out, w->text);
}

int cli_wanted_argument(const struct cli_command *cmd, unsigned i, struct cli_wanted *out)
{
	char name[sizeof(out->name)];
	const char *at = cmd->args + strspn(cmd->args, " [");
	for (unsigned skip = i; skip && *at; skip--) {
		at += strcspn(at, " ");
		at += strspn(at, " [");
	}
	if (!*at)
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, " ]"), at);
	by_name(name, out);
	/* Where a command begins with a mount point, it is one that there is. */
	if (i == 0 && !strcmp(name, "MOUNTPOINT"))
		out->want = CLI_WANT_VOLUMES;
	else if (i == 0 && !strcmp(name, "DIRECTORY"))
		out->want = CLI_WANT_MOUNTS;
	return 1;
}

void cli_put_text(const char *text, const char *special, const char *quote)
{
	for (; *text; text++) {
		if (*text == '\'') {
			fputs(quote, stdout);
			continue;
		}
		if (strchr(special, *text))
			putchar('\\');
		putchar(*text);
	}
}

static int run_completion(const struct cli_opts *o, struct cf_err *err)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(shells); i++)
		if (!strcmp(o->args[0], shells[i].name)) {
			shells[i].print();
			return 0;
		}
	return cf_fail(err, -EINVAL, "no completion for the shell '%s'; there are bash, zsh and fish", o->args[0]);
}

static const struct cli_group completion_groups[] = {
	{"Help", cli_help_options},
	{NULL, NULL},
};

const struct cli_command cli_completion = {
	.name = "completion",
	.args = "SHELL",
	.about = "Print the script that makes bash, zsh or fish complete command lines of cryptfuse",
	.min_args = 1,
	.max_args = 1,
	.groups = completion_groups,
	.run = run_completion,
};
