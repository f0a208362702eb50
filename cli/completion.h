/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* completion.h - what may stand at a place of a command line, for every shell alike; a file a shell puts it into words.
 *
 * All of it comes from the tables of commands and options: nothing here names a command or an option. Single-threaded.
 */
#ifndef CRYPTFUSE_CLI_COMPLETION_H
#define CRYPTFUSE_CLI_COMPLETION_H

#include "options.h"

/** What a shell can offer. */
enum cli_want {
	CLI_WANT_NOTHING, /* a number, a name: only the person knows */
	CLI_WANT_WORDS,   /* one of a list */
	CLI_WANT_FILES,   /* files and folders */
	CLI_WANT_FOLDERS, /* folders alone */
	CLI_WANT_VOLUMES, /* the mount points of open volumes */
	CLI_WANT_MOUNTS,  /* of whatever FUSE shows, volumes and the file systems in them */
};

#define CLI_WORDS_MAX 512u

struct cli_wanted {
	enum cli_want want;
	char name[64];             /* of the argument, as in help: "IMAGE" */
	char words[CLI_WORDS_MAX]; /* CLI_WANT_WORDS: with a blank between */
};

/** cli_wanted_option - what the argument of an option is. */
void cli_wanted_option(const struct cli_option *o, struct cli_wanted *out);

/** cli_wanted_argument - what argument @i of a command is, from 0. Returns 1; 0 there is none such. */
int cli_wanted_argument(const struct cli_command *cmd, unsigned i, struct cli_wanted *out);

/** Lists mount points, one a line, for a shell: the kernel's \040 undone. */
#define CLI_LIST_VOLUMES "awk '$3 == \"fuse.cryptfuse\" { print $2 }' /proc/self/mounts | sed 's/\\\\040/ /g'"
#define CLI_LIST_MOUNTS "awk '$3 ~ /^fuse/ { print $2 }' /proc/self/mounts | sed 's/\\\\040/ /g'"

/** cli_put_text - to standard output, where it stands between single quotes
 * @special: these characters get a backslash before them.   @quote: what stands for a single quote inside. */
void cli_put_text(const char *text, const char *special, const char *quote);

void cli_completion_bash(void);
void cli_completion_zsh(void);
void cli_completion_fish(void);

#endif
