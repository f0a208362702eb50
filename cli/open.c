/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* open.c - cryptfuse open: show a decrypted volume as a file.
 *
 * The order is the point (HAZARDS 1): everything that can be refused without a secret, then the fork of the daemon,
 * then the arena, the plan, the key, the mount, and a look inside through the mounted file. libcrypto and libblkid are
 * not touched before the fork. After a failure the daemon is given up: nothing stays mounted or running. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/session.h"
#include "cryptfuse/spec.h"

static const struct cli_group open_groups[] = {
	{"Volume", cli_volume_options},
	{"Key", cli_key_options},
	{"From crypttab", cli_crypttab_options},
	{"File", cli_mount_options},
	{"Journal", cli_journal_options},
	{"General", cli_general_options},
	{"Help", cli_help_options},
	{"Accepted, without effect", cli_compat_options},
	{NULL, NULL},
};

/* ---- what the line asks for, judged without touching anything secret ---- */

static int check_name(const char *name, struct cf_err *err)
{
	if (!strcmp(name, ".") || !strcmp(name, "..") || strchr(name, '/'))
		return cf_fail(err, -EINVAL, "--name '%s': must be the name of a file, without '/'", name);
	if (strlen(name) > NAME_MAX)
		return cf_fail(err, -EINVAL, "--name: longer than %d bytes", NAME_MAX);
	return 0;
}

static mode_t file_mode(const struct cli_opts *o)
{
	const mode_t writable = o->volume.access == CF_READ_ONLY ? 0222 : 0;
	const mode_t asked = o->mode == CLI_MODE_DEFAULT ? 0600 : (mode_t)o->mode;
	return asked & ~writable;
}

/* As a mount point a file would keep a length of 0 under the writeback cache: the kernel trusts its own (HAZARDS 11).
 */
static int check_cache(const struct cli_opts *o, const struct cf_serve_opts *s, struct cf_err *err)
{
	if (o->cache == CF_CACHE_WRITEBACK && s->kind == CF_MOUNT_FILE)
		return cf_fail(err, -EINVAL, "--cache writeback needs a directory as mount point; %s is a file", o->args[1]);
	return 0;
}

static int plan_mount(const struct cli_opts *o, struct cf_serve_opts *s, struct cf_err *err)
{
	int rc = check_name(o->name, err);
	if (rc || (rc = cli_mountpoint_check(o->args[1], o->args[0], s, err)) || (rc = check_cache(o, s, err)) ||
		(rc = cli_journal_check(o->volume.journal, s, err)) || (rc = cf_session_check_transport(o->transport, err)) ||
		(rc = cli_fuse_check(o->share, err)))
		return rc;
	snprintf(s->name, sizeof(s->name), "%s", o->name);
	s->share = o->share;
	s->cache = o->cache;
	s->transport = o->transport;
	s->sandbox = o->sandbox;
	s->readahead_kib = (unsigned)o->readahead_kib;
	s->mode = file_mode(o);
	s->stop_timeout_s = (unsigned)o->stop_timeout_s;
	s->debug = (int)o->debug;
	s->foreground = (int)(o->foreground || o->debug);
	return 0;
}

/* ---- with the daemon waiting ---- */

/* Plan, key, hand-over. The key is wiped here, whatever comes. */
static int start(const struct cli_opts *o, struct cf_serve *daemon, struct cf_open_plan *plan, struct cf_err *err)
{
	const struct cf_open_ui ui = cli_open_ui(o);
	CF_CLEANUP(cf_opening_fini) struct cf_opening opening = {0};
	int rc = cli_guard_secrets(err);
	if (rc || (rc = cf_open_plan(&o->volume, &ui, &opening, err)))
		return rc;
	*plan = opening.plan;
	cli_say_plan(o, o->args[0], plan);
	if ((rc = cf_open_key(&o->volume, &ui, &opening, err)))
		return rc;
	cf_open_command(&o->volume, &opening.plan);
	*plan = opening.plan;
	rc = cf_serve_start(daemon, plan, opening.key, &opening.image, &ui, err);
	opening.new_journal = opening.new_journal && rc;
	return rc;
}

/* --require-signature: what opened as noise does not stay open. */
static int close_again(const struct cli_opts *o, struct cf_serve *daemon, struct cf_err *err)
{
	kill(daemon->pid, SIGTERM);
	(void)cf_serve_wait(daemon);
	return cf_fail(err, -EPERM, "%s: nothing known was found inside, and --require-signature was given: closed again",
				   o->args[0]);
}

static int run_open(const struct cli_opts *given, struct cf_err *err)
{
	struct cli_opts o = *given;
	struct cf_serve_opts s = {0};
	struct cf_serve daemon = {.sock = -1};
	struct cf_open_plan plan = {0};
	o.volume.image = o.args[0];
	int rc = plan_mount(&o, &s, err);
	if (rc || (rc = cf_serve_fork(&daemon, &s, err)))
		return rc;
	rc = start(&o, &daemon, &plan, err);
	cf_secret_fini();
	if (rc) {
		cf_serve_abandon(&daemon);
		return rc;
	}
	if (cli_look_inside(&o, &s, &plan, &daemon) <= 0 && o.require_signature)
		return close_again(&o, &daemon, err);
	if (s.foreground && cf_serve_wait(&daemon) != 0)
		return cf_fail(err, -EIO, "%s: the last writes did not reach the image", o.args[0]);
	return 0;
}

const struct cli_command cli_open = {
	.name = "open",
	.args = "IMAGE MOUNTPOINT",
	.about = "Show the decrypted volume as a file: MOUNTPOINT/volume, or MOUNTPOINT if it is a file",
	.min_args = 2,
	.max_args = 2,
	.groups = open_groups,
	.run = run_open,
};
