/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* encrypt.c - cryptfuse encrypt: copy plaintext into an image, a new one or one that exists. Never in place.
 *
 * A new image has the length of its input, rounded up to whole data units; one that exists keeps its header and its
 * length, and what lies behind the input. A stream of unknown length goes into a file that is as long as can be, and
 * mostly a hole, and is cut in the end. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "copying.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/volume.h"
#include "input.h"
#include "newimage.h"

static const struct cli_option encrypt_options[] = {
	{.name = "force",
	 .kind = CLI_SET,
	 .help = "write into an IMAGE that exists: its content is lost",
	 CLI_FIELD(force),
	 .value = 1},
	{.name = NULL},
};

static const struct cli_group encrypt_groups[] = {
	{"Volume", cli_volume_options},
	{"Key", cli_key_options},
	{"From crypttab", cli_crypttab_options},
	{"New LUKS2 header", cli_format_options},
	{"Output", encrypt_options},
	{"Digests", cli_digest_options},
	{"General", cli_quiet_options},
	{"Help", cli_help_options},
	{"Accepted, without effect", cli_compat_options},
	{NULL, NULL},
};

/** What is open while the command runs. */
struct encrypt {
	struct cli_opts o;
	const char *path; /* of the image */
	struct cli_input in;
	struct cli_new made;       /* a new image */
	struct cf_opening opening; /* or one that exists, */
	struct cf_volume *existing;
	struct cli_digests digests;
	struct cli_signals signals;
};

static void encrypt_fini(struct encrypt *e)
{
	cf_volume_free(&e->existing);
	cf_opening_fini(&e->opening);
	cli_new_fini(&e->made);
	cli_digests_fini(&e->digests);
	cli_input_fini(&e->in);
	cf_secret_fini();
}

/* ---- the copy ---- */

/* What the last data unit has beyond the input is zeros. */
static int pad(struct encrypt *e, struct cf_volume *v, uint64_t bytes, struct cf_err *err)
{
	const uint64_t padding = cf_units_round_up(bytes, cf_volume_du_bytes(v)) - bytes;
	struct cf_worker *w = cf_volume_enter(v);
	const int rc = padding ? cf_volume_zero(v, w, bytes, padding) : 0;
	cf_volume_leave(v, w);
	if (rc)
		return cf_fail(err, rc, "%s cannot be written: %s", e->path, strerror(-rc));
	if (padding && !e->o.batch)
		cli_say("%llu bytes of zeros follow the input: a volume is whole data units of %u bytes",
				(unsigned long long)padding, cf_volume_du_bytes(v));
	return 0;
}

static int copy_in(struct encrypt *e, struct cf_volume *v, uint64_t *bytes, struct cf_err *err)
{
	struct cli_copying c = {
		.source = cli_input_source(&e->in),
		.sink = cf_copy_to_volume(v),
		.from = e->in.shown,
		.to = e->path,
		.digests = &e->digests,
		.signals = &e->signals,
	};
	cli_hold_signals(&e->signals);
	const int rc = cli_copy(&c, err);
	*bytes = c.bytes;
	if (!rc && !c.bytes)
		return cf_fail(err, -EINVAL, "%s is empty", e->in.shown);
	return rc;
}

/* ---- an image that exists ---- */

static int too_long(const struct encrypt *e, uint64_t volume_bytes, struct cf_err *err)
{
	return cf_fail(err, -ENOSPC, "%s has %llu bytes, but the volume in %s has %llu", e->in.shown,
				   (unsigned long long)e->in.bytes, e->path, (unsigned long long)volume_bytes);
}

static int open_existing(struct encrypt *e, struct cf_err *err)
{
	const struct cf_open_ui ui = cli_open_ui(&e->o);
	struct cli_output out = CLI_OUTPUT_NONE;
	e->o.volume.image = e->path;
	if (!e->o.force)
		return cf_fail(err, -EEXIST, "%s exists; --force writes into it, and its content is lost", e->path);
	if (stat(e->path, &out.st) != 0)
		return cf_fail(err, -errno, "cannot open %s: %s", e->path, strerror(errno));
	out.shown = e->path;
	int rc = cli_output_differs(&out, &e->in.image, e->in.shown, err);
	if (rc || (rc = cf_open_plan(&e->o.volume, &ui, &e->opening, err)))
		return rc;
	cli_say_plan(&e->o, e->path, &e->opening.plan);
	if (e->in.bytes != CF_COPY_UNKNOWN && e->in.bytes > e->opening.plan.bytes)
		return too_long(e, e->opening.plan.bytes, err);
	rc = cf_open_key(&e->o.volume, &ui, &e->opening, err);
	return rc ? rc : cf_open_volume(&e->opening.plan, e->opening.key, &e->opening.image, &e->existing, err);
}

static int into_existing(struct encrypt *e, struct cf_err *err)
{
	uint64_t bytes;
	int rc = open_existing(e, err);
	if (rc)
		return rc;
	rc = copy_in(e, e->existing, &bytes, err);
	if (!rc && (rc = cf_volume_sync(e->existing)))
		return cf_fail(err, rc, "%s: what was written did not reach the disk: %s", e->path, strerror(-rc));
	return rc;
}

/* ---- a new image ---- */

/* The longest volume whose image the file system takes, for an input whose length is not known. */
static int open_longest(struct encrypt *e, struct cf_err *err)
{
	int rc = -EFBIG;
	for (unsigned shift = 60; rc == -EFBIG && shift >= 30; shift--) {
		struct cf_err why = {0};
		rc = cli_new_open(&e->made, UINT64_C(1) << shift, CF_COPY_ZEROS_SKIPPED, &why);
		if (rc == -EFBIG)
			cli_output_unmake(&e->made.out);
		else if (rc)
			return cf_fail(err, rc, "%s", why.text);
	}
	return rc ? cf_fail(err, rc, "%s cannot be made: files may not be so long there", e->path) : 0;
}

static int plan_new(struct encrypt *e, struct cf_err *err)
{
	const int rc = cli_new_plan(&e->made, &e->o, e->path, err);
	if (rc || e->in.bytes == CF_COPY_UNKNOWN)
		return rc;
	const uint64_t bytes = cf_units_round_up(e->in.bytes, cli_new_du_bytes(&e->made, e->in.bytes));
	return cli_output_room(&e->made.out, cli_new_header_bytes(&e->made) + bytes, err);
}

static int open_new(struct encrypt *e, struct cf_err *err)
{
	int rc = plan_new(e, err);
	if (rc)
		return rc;
	if (e->in.bytes == CF_COPY_UNKNOWN)
		return open_longest(e, err);
	const uint64_t bytes = cf_units_round_up(e->in.bytes, cli_new_du_bytes(&e->made, e->in.bytes));
	return cli_new_open(&e->made, bytes, CF_COPY_ZEROS_WRITTEN, err);
}

static int into_new(struct encrypt *e, struct cf_err *err)
{
	uint64_t bytes;
	int rc = open_new(e, err);
	if (rc || (rc = copy_in(e, e->made.volume, &bytes, err)) || (rc = pad(e, e->made.volume, bytes, err)))
		return rc;
	const uint64_t whole = cf_units_round_up(bytes, cf_volume_du_bytes(e->made.volume));
	if (e->in.bytes == CF_COPY_UNKNOWN &&
		ftruncate(e->made.out.fd, (off_t)(cli_new_header_bytes(&e->made) + whole)) != 0)
		return cf_fail(err, -errno, "%s cannot be cut to its length: %s", e->path, strerror(errno));
	return cli_new_finish(&e->made, err);
}

/* ---- the command ---- */

/* Standard input can be one thing only, and there is no writing without writing. */
static int check_options(const struct encrypt *e, struct cf_err *err)
{
	const char *key_file = e->o.volume.key_file;
	if (e->o.volume.access == CF_READ_ONLY)
		return cf_fail(err, -EINVAL, "encrypt writes: leave out --readonly, or 'readonly' in the line of crypttab");
	if (strcmp(e->o.args[0], "-") != 0 || e->o.volume.table_file)
		return 0;
	if (!key_file || !strcmp(key_file, "-"))
		return cf_fail(err, -EINVAL,
					   "standard input is the plaintext: the key must come from --key-file FILE or --table");
	return 0;
}

static int new_type(struct encrypt *e, struct cf_err *err)
{
	if (e->o.volume.type == CF_TYPE_LUKS2)
		e->o.new_type = CLI_NEW_LUKS2;
	else if (e->o.volume.type != CF_TYPE_PLAIN && e->o.volume.type != CF_TYPE_AUTO)
		return cf_fail(err, -EINVAL, "--type: a new image is plain or luks2");
	return 0;
}

static int encrypt(struct encrypt *e, struct cf_err *err)
{
	struct stat st;
	int rc = check_options(e, err);
	if (rc || (rc = cli_guard_secrets(err)) || (rc = cli_digests_start(&e->digests, e->o.digest, err)) ||
		(rc = cli_input_open(&e->in, e->o.args[0], err)))
		return rc;
	if (lstat(e->path, &st) == 0)
		rc = into_existing(e, err);
	else if ((rc = new_type(e, err)) == 0)
		rc = into_new(e, err);
	return rc ? rc : cli_digests_print(&e->digests, e->o.args[0], 0, err);
}

static int run_encrypt(const struct cli_opts *o, struct cf_err *err)
{
	struct encrypt e = {.o = *o, .path = o->args[1], .in = CLI_INPUT_NONE};
	e.made = (struct cli_new){.out = CLI_OUTPUT_NONE, .format = CF_FORMAT_NONE};
	cli_signals_init(&e.signals);
	const int rc = encrypt(&e, err);
	const unsigned torn = rc && e.existing;
	encrypt_fini(&e);
	if (torn)
		cli_say("%s: only a part of the input is in it", e.path);
	if (rc == -EINTR)
		cli_say("%s: %s", e.path, err->text);
	cli_let_signals(&e.signals);
	return rc;
}

const struct cli_command cli_encrypt = {
	.name = "encrypt",
	.args = "INPUT|- IMAGE",
	.about = "Copy plaintext into an image: a new one, plain or LUKS2, or one that exists",
	.min_args = 2,
	.max_args = 2,
	.groups = encrypt_groups,
	.run = run_encrypt,
};
