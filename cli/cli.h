/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* cli.h - what a command is, and what commands share: words for a person, and calls that must not hang.
 *
 * A command is one file that ends in one const struct cli_command, listed in main.c. Single-threaded throughout: the
 * daemon, which has threads, is another process. */
#ifndef CRYPTFUSE_CLI_CLI_H
#define CRYPTFUSE_CLI_CLI_H

#include <signal.h>

#include "cryptfuse/control.h"
#include "options.h"

struct cf_crypttab;
struct cf_mount;
struct json_object;

struct cli_command {
	const char *name;
	const char *args; /* as in the synopsis: "IMAGE MOUNTPOINT" */
	const char *about;
	unsigned min_args, max_args;
	const struct cli_group *groups;
	/** 0, or -errno with the line for a person in @err; main prints it and exits with cf_err_exit_code. */
	int (*run)(const struct cli_opts *o, struct cf_err *err);
};

extern const struct cli_command cli_open, cli_close, cli_status, cli_info, cli_bench;
extern const struct cli_command cli_mount, cli_umount, cli_suspend, cli_resume;
extern const struct cli_command cli_decrypt, cli_encrypt, cli_create;
extern const struct cli_command cli_completion;

/** All of them, in the order of the help; ends with NULL. In main.c. */
extern const struct cli_command *const cli_commands[];

/** cli_say - one line on standard error, "cryptfuse: …", in one write. What does not print becomes '?'. */
void cli_say(const char *fmt, ...) CF_PRINTF(1, 2);

/** cli_print_json - a document of cryptfuse/json.h to standard output, for people too. Takes @document. -ENOMEM. */
int cli_print_json(struct json_object *document, struct cf_err *err) CF_MUST_CHECK;

/** cli_printable - replace what does not print in place: a name must not forge a line or move the cursor. */
void cli_printable(char *text);

/** cli_format_bytes - "16 MiB", "1.5 GiB", "512 bytes": exact where it is short, else rounded to a tenth. */
void cli_format_bytes(uint64_t bytes, char *text, size_t text_size);

/** How far long work is: one line on standard error that changes in place; nothing unless that is a terminal. */
struct cli_progress {
	unsigned is_on;
	unsigned percent; /* what stands there, and */
	int width;        /* how wide; 0 nothing */
};

/** cli_progress_init - to be done before the others. */
void cli_progress_init(struct cli_progress *p);

/** cli_progress_update - put "NN %  TEXT" there. @text: short, without control characters. */
void cli_progress_update(struct cli_progress *p, unsigned percent, const char *text);

/** cli_progress_show - the same, but only if @percent has changed. */
void cli_progress_show(struct cli_progress *p, unsigned percent, const char *text);

/** cli_progress_end - take the line away, so that what is said next stands alone. */
void cli_progress_end(struct cli_progress *p);

/** Signals that end long work: held back, and looked for where it can be ended. */
struct cli_signals {
	sigset_t held, before;
};

/** cli_signals_init - nothing is held yet, and cli_let_signals changes nothing. */
void cli_signals_init(struct cli_signals *s);

/** cli_hold_signals - hold SIGINT, SIGTERM and SIGHUP back, but for those that this process was told to ignore. Threads
 * that are made afterwards hold them back too. */
void cli_hold_signals(struct cli_signals *s);

/** cli_interrupted - 0, or -EINTR: one has come. */
int cli_interrupted(const struct cli_signals *s);

/** cli_let_signals - as before; one that has come ends the process here. */
void cli_let_signals(const struct cli_signals *s);

/** cli_refuse_setuid - 0; -EPERM the program has rights that its caller has not. Before anything else. */
int cli_refuse_setuid(struct cf_err *err) CF_MUST_CHECK;

/** cli_guard_secrets - this process will hold passphrase and key: no core dump, no debugger, only the arena's memory.
 * Before libcrypto is touched, and after the last fork. 0 or -errno. */
int cli_guard_secrets(struct cf_err *err) CF_MUST_CHECK;

/** cli_open_ui - how core speaks to whoever typed @o, which must live as long. */
struct cf_open_ui cli_open_ui(const struct cli_opts *o);

/** cli_say_plan - with --verbose: what a plan came to. */
void cli_say_plan(const struct cli_opts *o, const char *image, const struct cf_open_plan *plan);

/** cli_crypttab - let the line that --crypttab names fill in IMAGE among the arguments, and what @o leaves open
 * @o: one argument short of @cmd's, as cli_options_parse leaves it   @line: lives as long as @o. Without --crypttab
 * nothing is done. Returns 0 or -errno. */
int cli_crypttab(const struct cli_command *cmd, struct cli_opts *o, struct cf_crypttab *line,
				 struct cf_err *err) CF_MUST_CHECK;

/** cli_passphrase - struct cf_open_ui's passphrase: asks on the terminal, or reads a line of standard input when that
 * is no terminal, or runs --askpass. @ctx: const struct cli_opts *. -EPERM passphrases do not match, after --tries;
 * -ETIMEDOUT; -EINTR. */
int cli_passphrase(void *ctx, const struct cf_open_opts *opts, unsigned attempt, struct cf_secret_buf *out,
				   struct cf_err *err);

/** cli_askpass - the first line that @program prints when it is run with @prompt. @timeout_s: 0 wait for ever.
 * -EPERM it gave none; -EINVAL it cannot be run; -ETIMEDOUT. */
int cli_askpass(const char *program, const char *prompt, uint64_t timeout_s, struct cf_secret_buf *out,
				struct cf_err *err) CF_MUST_CHECK;

/** cli_mountpoint_check - can a volume be shown there? Asked before any secret is
 * @path, @image: as given. @out: set mountpoint, image and kind. Returns 0; -ENOENT; -EBUSY something of ours is open
 * there, alive or dead; -ENOTEMPTY; -EPERM; -EINVAL. */
int cli_mountpoint_check(const char *path, const char *image, struct cf_serve_opts *out,
						 struct cf_err *err) CF_MUST_CHECK;

/** cli_journal_check - a journal must not be, or lie under, the mount point. @journal: NULL none. 0 or -EINVAL. */
int cli_journal_check(const char *journal, const struct cf_serve_opts *s, struct cf_err *err) CF_MUST_CHECK;

/** cli_fuse_check - is FUSE usable by this user, with @share? -ENODEV, -ENOENT something is missing; -EPERM. */
int cli_fuse_check(enum cf_mount_share share, struct cf_err *err) CF_MUST_CHECK;

/** cli_look_inside - say what is in a volume that was just mounted, and have its partitions shown as files too
 * @daemon: serves it, after cf_serve_start. Says what goes wrong; -q says nothing else. Returns 1 something
 * known was found; 0 nothing; -errno. */
int cli_look_inside(const struct cli_opts *o, const struct cf_serve_opts *s, const struct cf_open_plan *plan,
					struct cf_serve *daemon);

#define CLI_STATUS_MAX CF_CONTROL_STATUS_MAX
#define CLI_STATUS_TIMEOUT_S 5u  /* a daemon that does not answer within it hangs */
#define CLI_SYNC_TIMEOUT_S 600u  /* a slow disk may need minutes to take what is cached */
#define CLI_ENDING_TIMEOUT_S 60u /* from unmount to the daemon's end */

/** cli_find_mount - the cryptfuse mount at @path. 0; -ENOENT nothing is open there. Asks the daemon nothing. */
int cli_find_mount(const char *path, struct cf_mount *m, struct cf_err *err) CF_MUST_CHECK;

/** cli_find_volume - the same, and what `mount` has mounted at @path is found by its volume. */
int cli_find_volume(const char *path, struct cf_mount *m, struct cf_err *err) CF_MUST_CHECK;

/** cli_is_suspended - whether a status says so. @lost_writes: out, those that were answered with EIO; may be NULL. */
int cli_is_suspended(const char *json, uint64_t *lost_writes);

/** cli_close_mount - flush, unmount and wait until its daemon has gone, or clean up after one that died
 * 0; -EBUSY; -EIO closed, but the last writes did not reach the image; -ETIMEDOUT. */
int cli_close_mount(const struct cf_mount *m, struct cf_err *err) CF_MUST_CHECK;

/** cli_answers - whether the file system at @mountpoint does, asked by a child that may hang. 0; -ENOTCONN; -ETIMEDOUT
 * …. */
int cli_answers(const char *mountpoint) CF_MUST_CHECK;

/** cli_daemon_status - the status JSON of the mount @m, by its control socket, or read through the mount by a child
 * that may hang
 * @text: out. Returns 0; -ENOTCONN the daemon has died; -ETIMEDOUT; -EACCES another user's. */
int cli_daemon_status(const struct cf_mount *m, char text[static CLI_STATUS_MAX]) CF_MUST_CHECK;

/** cli_daemon_sync - fsync every file of the mount through the mount, in a child that may hang
 * Returns 0; -EIO, -ENOSPC … what the image said; -ETIMEDOUT; -EACCES and the like: it could not be opened. */
int cli_daemon_sync(const char *mountpoint) CF_MUST_CHECK;

/** cli_holders - who keeps @mountpoint busy, loop devices first: "/dev/loop0, process 1234 (vim)"; "" when nobody can
 * be seen. */
void cli_holders(const char *mountpoint, char *text, size_t text_size);

/** cli_holders_loop - a loop device on a file below @mountpoint: 1 and its name; 0 none. */
int cli_holders_loop(const char *mountpoint, char *device, size_t device_size) CF_MUST_CHECK;

#endif
