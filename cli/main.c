/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* main.c - the table of commands, and nothing else that a command could know better. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "cryptfuse/crypttab.h"
#include "cryptfuse/err.h"

const struct cli_command *const cli_commands[] = {
	&cli_mount, &cli_umount,  &cli_open,    &cli_close,  &cli_suspend, &cli_resume,     &cli_status,
	&cli_info,  &cli_decrypt, &cli_encrypt, &cli_create, &cli_bench,   &cli_completion, NULL,
};

static const struct cli_command *find_command(const char *name)
{
	for (size_t i = 0; cli_commands[i]; i++)
		if (!strcmp(name, cli_commands[i]->name))
			return cli_commands[i];
	return NULL;
}

static int refuse_command(const char *word, struct cf_err *err)
{
	if (word[0] == '-')
		return cf_fail(err, -EINVAL, "a command comes first, its options after it; see 'cryptfuse --help'");
	char names[128] = "";
	for (size_t i = 0; cli_commands[i]; i++) {
		const size_t len = strlen(names);
		snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "", cli_commands[i]->name);
	}
	return cf_fail(err, -EINVAL, "no command '%s' (there are %s); see 'cryptfuse --help'", word, names);
}

static void print_help(void)
{
	puts("Usage: cryptfuse COMMAND [OPTIONS] [ARGUMENTS]\n"
		 "Opens dm-crypt volumes without root and without device-mapper.\n\nCommands:");
	for (size_t i = 0; cli_commands[i]; i++) {
		char left[64];
		snprintf(left, sizeof(left), "%s %s", cli_commands[i]->name, cli_commands[i]->args);
		printf("  %-26s %s\n", left, cli_commands[i]->about);
	}
	puts("\n'cryptfuse COMMAND --help' lists the options of a command, 'cryptfuse --version' prints the version.");
}

/* Words that stand in place of a command. Returns 1 done, 0 none of them. */
static int general_word(const char *word)
{
	if (!strcmp(word, "--help") || !strcmp(word, "-?") || !strcmp(word, "help")) {
		print_help();
		return 1;
	}
	if (!strcmp(word, "--version") || !strcmp(word, "-V")) {
		puts(PACKAGE_STRING);
		return 1;
	}
	return 0;
}

static int run(int argc, char **argv, struct cf_err *err)
{
	if (argc < 2)
		return cf_fail(err, -EINVAL, "a command is needed; see 'cryptfuse --help'");
	if (general_word(argv[1]))
		return 0;
	const struct cli_command *cmd = find_command(argv[1]);
	if (!cmd)
		return refuse_command(argv[1], err);
	struct cli_opts opts;
	struct cf_crypttab line;
	int rc = cli_options_parse(cmd, argc - 1, argv + 1, &opts, err);
	if (rc)
		return rc;
	if (opts.help) {
		cli_options_help(cmd);
		return 0;
	}
	rc = cli_crypttab(cmd, &opts, &line, err);
	return rc ? rc : cmd->run(&opts, err);
}

/* A descriptor 0, 1 or 2 that is closed would be given to the image, and a message would then be written into it. */
static int hold_standard_descriptors(void)
{
	int fd;
	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

int main(int argc, char **argv)
{
	struct cf_err err = {0};
	int rc = hold_standard_descriptors();
	if (rc == 0)
		rc = cli_refuse_setuid(&err);
	if (rc == 0)
		rc = run(argc, argv, &err);
	if (rc == 0 && (fflush(stdout) != 0 || ferror(stdout)))
		rc = cf_fail(&err, -EIO, "standard output cannot be written: %s", strerror(errno));
	if (rc < 0)
		cli_say("%s", err.code ? err.text : strerror(-rc));
	/* Not exit(): libcryptsetup would tidy up memory that went with the secret arena. */
	_exit(cf_err_exit_code(rc));
}
