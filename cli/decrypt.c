/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* decrypt.c - cryptfuse decrypt: copy the plaintext out of an image. One process, no FUSE, no mount.
 *
 * Everything that can be refused without a key is refused before the prompt: an output that exists, or that has too
 * little room. The image is only ever read. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "copying.h"
#include "cryptfuse/err.h"
#include "cryptfuse/probe.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/volume.h"
#include "output.h"

static const struct cli_option decrypt_options[] = {
	{.name = "force",
	 .kind = CLI_SET,
	 .help = "replace OUTPUT if it exists, overwrite it if it is a device",
	 CLI_FIELD(force),
	 .value = 1},
	{.name = "sparse",
	 .kind = CLI_SET,
	 .help = "leave holes in OUTPUT where the plaintext is zeros",
	 CLI_FIELD(sparse),
	 .value = 1},
	{.name = "require-signature",
	 .kind = CLI_SET,
	 .help = "copy nothing, with exit 2, if nothing known is found inside",
	 CLI_FIELD(require_signature),
	 .value = 1},
	{.name = NULL},
};

static const struct cli_group decrypt_groups[] = {
	{"Volume", cli_volume_options},
	{"Key", cli_key_options},
	{"From crypttab", cli_crypttab_options},
	{"Output", decrypt_options},
	{"Digests", cli_digest_options},
	{"General", cli_quiet_options},
	{"Help", cli_help_options},
	{"Accepted, without effect", cli_compat_options},
	{NULL, NULL},
};

/** What is open while the command runs. */
struct decrypt {
	const struct cli_opts *o;
	struct cf_opening opening;
	struct cf_volume *volume;
	struct cli_output out;
	struct cli_digests digests;
	struct cli_signals signals;
};

static void decrypt_fini(struct decrypt *d)
{
	cf_volume_free(&d->volume);
	cf_opening_fini(&d->opening);
	cli_digests_fini(&d->digests);
	cli_output_fini(&d->out);
	cf_secret_fini();
}

static int check_zeros(const struct decrypt *d, struct cf_err *err)
{
	if (d->o->sparse && d->out.kind != CLI_OUTPUT_FILE)
		return cf_fail(err, -EINVAL, "--sparse needs a file: %s cannot have holes", d->out.shown);
	return 0;
}

/* All that can be known before a passphrase is asked for. */
static int prepare(struct decrypt *d, const struct cf_open_ui *ui, struct cf_err *err)
{
	int rc = cli_digests_start(&d->digests, d->o->digest, err);
	if (rc || (rc = cli_output_plan(&d->out, d->o->args[1], d->o->force, err)) || (rc = check_zeros(d, err)) ||
		(rc = cf_open_plan(&d->o->volume, ui, &d->opening, err)) ||
		(rc = cli_output_differs(&d->out, &d->opening.image, d->o->args[0], err)))
		return rc;
	cli_say_plan(d->o, d->o->args[0], &d->opening.plan);
	return d->o->sparse ? 0 : cli_output_room(&d->out, d->opening.plan.bytes, err);
}

static int open_volume(struct decrypt *d, const struct cf_open_ui *ui, struct cf_err *err)
{
	int rc = cf_open_key(&d->o->volume, ui, &d->opening, err);
	return rc ? rc : cf_open_volume(&d->opening.plan, d->opening.key, &d->opening.image, &d->volume, err);
}

/* A wrong passphrase of a plain volume gives noise: better said now than when all of it is copied. */
static void say_content(const struct decrypt *d, int rc, const char *found, const struct cf_err *why)
{
	if (rc > 0)
		cli_say("%s: %s, found %s", d->o->args[0], d->opening.plan.type, found);
	else if (rc < 0)
		cli_say("could not look inside %s: %s", d->o->args[0], why->code ? why->text : strerror(-rc));
	else if (strcmp(d->opening.plan.type, "plain"))
		cli_say("%s: %s, nothing known was found inside", d->o->args[0], d->opening.plan.type);
	else
		cli_say("%s: nothing known was found inside: a wrong passphrase or option looks like this", d->o->args[0]);
}

static int look_inside(const struct decrypt *d, struct cf_err *err)
{
	char found[256] = "";
	struct cf_err why = {0};
	if (d->o->batch && !d->o->require_signature)
		return 0;
	const int rc = cf_probe_volume(d->volume, found, sizeof(found), &why);
	if (!d->o->batch)
		say_content(d, rc, found, &why);
	if (rc > 0 || !d->o->require_signature)
		return 0;
	return cf_fail(err, -EPERM,
				   "%s: nothing known was found inside, and --require-signature was given: nothing is copied",
				   d->o->args[0]);
}

static int copy_out(struct decrypt *d, struct cf_err *err)
{
	const enum cf_copy_zeros zeros = d->o->sparse ? CF_COPY_ZEROS_SKIPPED : CF_COPY_ZEROS_WRITTEN;
	int rc = cli_output_make(&d->out, d->opening.plan.bytes, zeros, err);
	if (rc)
		return rc;
	struct cf_copy_file file = {.fd = d->out.fd, .zeros = zeros};
	struct cf_copy_stream stream = {.fd = d->out.fd};
	struct cli_copying c = {
		.source = cf_copy_from_volume(d->volume),
		.sink = d->out.kind == CLI_OUTPUT_STREAM ? cf_copy_to_stream(&stream) : cf_copy_to_file(&file),
		.from = d->o->args[0],
		.to = d->out.shown,
		.digests = &d->digests,
		.signals = &d->signals,
	};
	rc = cli_copy(&c, err);
	return rc ? rc : cli_output_finish(&d->out, err);
}

/* Said even with --batch-mode: it is a result. In bytes of the volume. Returns 0, or -ENXIO when something is missing.
 */
static int say_bad(struct decrypt *d, struct cf_err *err)
{
	static struct cf_bad_range bad[CF_BAD_MAX];
	struct cf_bad_total total;
	const unsigned n = cf_volume_bad(d->volume, bad, CF_BAD_MAX, &total);
	for (unsigned i = 0; i < n; i++)
		cli_say("unreadable: %llu bytes at byte %llu of the volume, byte %llu of %s", (unsigned long long)bad[i].bytes,
				(unsigned long long)bad[i].off, (unsigned long long)bad[i].image_off, d->o->args[0]);
	if (!n)
		return 0;
	return cf_fail(err, -ENXIO, "%s%llu bytes of %s in %u ranges could not be read: they are zeros in %s",
				   total.complete ? "" : "more than ", (unsigned long long)total.bytes, d->o->args[0], n, d->out.shown);
}

static int decrypt(struct decrypt *d, struct cf_err *err)
{
	const struct cf_open_ui ui = cli_open_ui(d->o);
	int rc = cli_guard_secrets(err);
	if (rc || (rc = prepare(d, &ui, err)) || (rc = open_volume(d, &ui, err)) || (rc = look_inside(d, err)))
		return rc;
	cli_hold_signals(&d->signals);
	rc = copy_out(d, err);
	if (rc == -EINTR)
		return rc;
	if (rc == 0)
		rc = cli_digests_print(&d->digests, d->o->args[1], d->out.is_stdout, err);
	return rc ? rc : say_bad(d, err);
}

static int run_decrypt(const struct cli_opts *given, struct cf_err *err)
{
	struct cli_opts o = *given;
	struct decrypt d = {.o = &o, .out = CLI_OUTPUT_NONE};
	o.volume.image = o.args[0];
	o.volume.access = CF_READ_ONLY;
	cli_signals_init(&d.signals);
	const int rc = decrypt(&d, err);
	decrypt_fini(&d);
	if (rc == -EINTR)
		cli_say("%s: %s", o.args[1], err->text);
	cli_let_signals(&d.signals);
	return rc;
}

const struct cli_command cli_decrypt = {
	.name = "decrypt",
	.args = "IMAGE OUTPUT|-",
	.about = "Copy the plaintext out to a file, a device or standard output",
	.min_args = 2,
	.max_args = 2,
	.groups = decrypt_groups,
	.run = run_decrypt,
};
