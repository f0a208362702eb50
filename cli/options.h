/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* options.h - the options of every command, as data.
 *
 * A command lists groups of options; parsing, --help and the tests read the same rows, so they cannot drift apart.
 * What several commands share (how a volume is described, where its key comes from) is one group that all of them
 * list. A row names the field of struct cli_opts it sets. */
#ifndef CRYPTFUSE_CLI_OPTIONS_H
#define CRYPTFUSE_CLI_OPTIONS_H

#include <sys/types.h>

#include "cryptfuse/format.h"
#include "cryptfuse/open.h"
#include "cryptfuse/serve.h"

struct cf_err;
struct cli_command;

#define CLI_ARGS_MAX 2
#define CLI_OPTIONS_MAX 96 /* of one command, all groups together */
#define CLI_MODE_DEFAULT UINT64_MAX
#define CLI_NUMBERS_MAX 8

/** A list of numbers that may be of any length up to CLI_NUMBERS_MAX; 0: not given. */
struct cli_numbers {
	uint64_t n;
	uint64_t at[CLI_NUMBERS_MAX];
};

enum cli_new_type { CLI_NEW_PLAIN, CLI_NEW_LUKS2 };
enum cli_fill { CLI_FILL_AUTO, CLI_FILL_NO, CLI_FILL_YES };

/** What a command line said. Strings are borrowed from argv. */
struct cli_opts {
	struct cf_open_opts volume;
	const char *crypttab, *crypttab_file; /* the name of a line; NULL: /etc/crypttab */
	uint64_t tries;                       /* as given; 0 not: volume.tries has the default */
	uint64_t timeout_s;                   /* 0: wait for ever */
	unsigned verify, batch, verbose;
	const char *askpass; /* a program that asks for the passphrase */
	unsigned require_signature;

	const char *name;
	uint64_t mode; /* CLI_MODE_DEFAULT: not given */
	enum cf_mount_share share;
	enum cf_cache cache;
	enum cf_transport transport;
	uint64_t readahead_kib; /* 0: the kernel's own */
	uint64_t stop_timeout_s;
	enum cf_sandbox_use sandbox;
	unsigned foreground, debug;

	struct cli_numbers sector_sizes;
	uint64_t seconds;

	const char *digest;
	unsigned force, sparse;

	enum cli_new_type new_type; /* of an image that is made */
	const char *size;           /* of it; judged by create */
	enum cli_fill fill;
	const char *mkfs;
	struct cf_format_opts format; /* what cf_open_opts does not say */

	const char *fs;            /* mount: the file system, instead of what is found */
	const char *mount_options; /* of its own */
	uint64_t inner_partition;  /* 0: not given */
	unsigned udisks;           /* mount: by it, where it likes */

	unsigned json;
	unsigned help;

	const char *args[CLI_ARGS_MAX];
	unsigned n_args;
};

enum cli_kind {
	CLI_SET,     /* no argument: the field becomes .value */
	CLI_STRING,  /* any text */
	CLI_NUMBER,  /* decimal digits, .min to .max */
	CLI_NUMBERS, /* one or several, with commas between; given again, more of them */
	CLI_SIZE,    /* bytes, or with a suffix */
	CLI_SECTORS, /* 512-byte sectors; with a suffix a size, which must be whole sectors */
	CLI_OCTAL,   /* permission bits */
	CLI_WORD,    /* one of .words */
	CLI_NO_USE,  /* accepted for the sake of cryptsetup's command lines, without effect */
};

struct cli_word {
	const char *text;
	unsigned value;
};

struct cli_option {
	const char *name; /* long name; NULL ends a list */
	char letter;      /* 0: none */
	enum cli_kind kind;
	const char *arg; /* what the argument is called in help; NULL: takes none */
	const char *help;
	size_t field_off;             /* in struct cli_opts */
	size_t field_bytes;           /* 0: sets nothing */
	uint64_t min, max;            /* CLI_NUMBER, CLI_NUMBERS; max 0: no limit */
	unsigned value;               /* CLI_SET */
	const struct cli_word *words; /* CLI_WORD; ends with text NULL */
};

struct cli_group {
	const char *title; /* NULL ends a list */
	const struct cli_option *options;
};

/** The field of struct cli_opts that a row sets. */
#define CLI_FIELD(f) .field_off = offsetof(struct cli_opts, f), .field_bytes = sizeof(((struct cli_opts *)NULL)->f)

extern const struct cli_option cli_volume_options[];   /* which bytes, under which cipher */
extern const struct cli_option cli_key_options[];      /* where the key comes from */
extern const struct cli_option cli_crypttab_options[]; /* /etc/crypttab has it */
extern const struct cli_option cli_mount_options[];    /* how the file is shown */
extern const struct cli_option cli_journal_options[];  /* what survives a crash whole */
extern const struct cli_option cli_format_options[];   /* of a new LUKS2 header */
extern const struct cli_option cli_digest_options[];   /* of what is copied */
extern const struct cli_option cli_quiet_options[];    /* -q, -v */
extern const struct cli_option cli_compat_options[];   /* without effect here */
extern const struct cli_option cli_general_options[];  /* -q, -v, --debug */
extern const struct cli_option cli_help_options[];     /* every command has it */

/** cli_options_parse - a command's arguments into @out, defaults filled in
 * @argv: argv[0] is the command's name. An option given twice: the last counts, but for CLI_NUMBERS; two different
 * options for one field contradict each other. --crypttab stands for one argument. Returns 0; -EINVAL with a line that
 * names the option and the text. With
 * --help the number of arguments is not judged. */
int cli_options_parse(const struct cli_command *cmd, int argc, char **argv, struct cli_opts *out,
					  struct cf_err *err) CF_MUST_CHECK;

/** cli_options_help - what `cryptfuse COMMAND --help` prints, to standard output. */
void cli_options_help(const struct cli_command *cmd);

#endif
