/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* udisks.c - a loop device and a mount by udisksctl, and their end.
 *
 * What udisksctl says is for people: which device it is, and where that is mounted, is learned from /sys and mountinfo.
 * So nothing is lost when it fails half way, when a desktop was faster to mount the new device, or after a crash. */
#include "config.h"

#include "udisks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli.h"
#include "cryptfuse/backing.h"
#include "cryptfuse/err.h"
#include "cryptfuse/mounts.h"

#define PROGRAM "udisksctl"
#define DEVICE_TEXT 280

static int prepare(struct cli_program *p, struct cf_err *err)
{
	*p = (struct cli_program){.purpose = CLI_ENDS, .mark = "GDBus.Error"};
	return cli_program_locate(PROGRAM, p->path) == 0
			   ? 0
			   : cf_fail(err, -ENOENT, "--udisks: needs " PROGRAM " (Debian: apt install udisks2)");
}

int cli_udisks_check(enum cf_mount_share share, struct cf_err *err)
{
	struct cli_program p;
	if (share != CF_SHARE_OWNER)
		return cf_fail(err, -EINVAL, "--allow-%s does not go with --udisks: udisks says who may use the files",
					   share == CF_SHARE_ROOT ? "root" : "other");
	return prepare(&p, err);
}

static int explain(int rc, const struct cf_err *why, struct cf_err *err)
{
	if (strstr(why->text, "NotAuthorized"))
		return cf_fail(err, -EPERM, "udisks does not let you do that (polkit: only in a session at the machine): %s",
					   why->text);
	if (strstr(why->text, "connecting to the udisks daemon") || strstr(why->text, "(signal "))
		return cf_fail(err, rc, "udisks does not answer; does udisksd run? %s", why->text);
	return cf_fail(err, rc, "%s", why->text);
}

/* udisksctl VERB WORD…, and whatever it answers to a terminal is not asked for. */
static int run(const struct cli_place *place, const char *const words[static CLI_PROGRAM_ARGS],
			   enum cli_verbosity verbosity, struct cf_err *err)
{
	struct cli_program p;
	struct cli_signals none;
	struct cf_err why = {0};
	unsigned n = 0;
	int rc = prepare(&p, err);
	if (rc)
		return rc;
	p.argv[n++] = PROGRAM;
	for (unsigned i = 0; words[i]; i++)
		p.argv[n++] = words[i];
	p.argv[n] = "--no-user-interaction";
	cli_signals_init(&none);
	rc = cli_mounter_run(&p, place, NULL, verbosity, &none, &why);
	return rc ? explain(rc, &why, err) : 0;
}

/* ---- the way in ---- */

static int find_loop(const char *file, char device[static DEVICE_TEXT])
{
	struct stat st;
	return stat(file, &st) == 0 && cf_backing_loop_user("/sys/block", file, &st, device, DEVICE_TEXT);
}

/* Linux 6.17 and later ask for the size of the file as whoever makes the device, and take a refusal, such as FUSE's to
 * root, for 0. */
static int is_empty(const char *device)
{
	char path[DEVICE_TEXT + 32];
	unsigned long long sectors = 1;
	snprintf(path, sizeof(path), "/sys/block/%s/size", strrchr(device, '/') + 1);
	CF_CLEANUP(cf_close_stream) FILE *f = fopen(path, "re");
	return f && fscanf(f, "%llu", &sectors) == 1 && sectors == 0;
}

static int mount_device(const struct cli_place *place, const struct cli_mount_job *job, const char *type,
						const char *device, enum cli_verbosity verbosity, struct cf_err *err)
{
	const char *words[CLI_PROGRAM_ARGS] = {"mount", "--block-device", device};
	struct cf_err why = {0};
	struct cf_mount m;
	unsigned n = 3;
	if (type) {
		words[n++] = "--filesystem-type";
		words[n++] = type;
	}
	if (job->more) {
		words[n++] = "--options";
		words[n++] = job->more;
	}
	int rc = run(place, words, verbosity, &why);
	if (cf_mounts_find_source(device, &m) != 1)
		return cf_fail(err, rc ? rc : -EIO, "%s",
					   rc ? why.text : PROGRAM " ended without an error, but nothing is mounted");
	cli_place_note(place, "at", m.mountpoint);
	return 0;
}

int cli_udisks_mount(const struct cli_place *place, const struct cli_mount_job *job, const char *type,
					 enum cli_verbosity verbosity, struct cf_err *err)
{
	char device[DEVICE_TEXT];
	struct cf_err why = {0};
	cli_place_note(place, "udisks", "loop");
	const int rc = run(place,
					   (const char *const[CLI_PROGRAM_ARGS]){"loop-setup", "--file", job->file,
															 job->access == CF_READ_ONLY ? "--read-only" : NULL},
					   verbosity, &why);
	const int is_there = find_loop(job->file, device);
	if (is_there && is_empty(device))
		return cf_fail(
			err, -EPERM,
			"with this kernel --udisks works only where /etc/fuse.conf has a line 'user_allow_other' (only root "
			"can add it)");
	if (rc || !is_there)
		return cf_fail(err, rc ? rc : -EIO, "%s",
					   rc ? why.text : PROGRAM " ended without an error, but made no loop device");
	return mount_device(place, job, type, device, verbosity, err);
}

/* ---- the way out ---- */

static int unmount_device(const struct cli_place *place, const char *device, struct cf_err *err)
{
	char who[512];
	struct cf_mount m;
	struct cf_err why = {0};
	const int rc =
		run(place, (const char *const[CLI_PROGRAM_ARGS]){"unmount", "--block-device", device}, CLI_QUIET, &why);
	if (cf_mounts_find_source(device, &m) != 1)
		return 0;
	cli_holders(m.mountpoint, who, sizeof(who));
	if (*who || strstr(why.text, "Busy"))
		return cf_fail(err, -EBUSY, "%s is busy: %s", m.mountpoint,
					   *who ? who : "in use by somebody whom you may not see");
	return cf_fail(err, rc ? rc : -EIO, "%s cannot be unmounted: %s", m.mountpoint, why.text);
}

static int take_device_away(const struct cli_place *place, const char *device, struct cf_err *err)
{
	char still[DEVICE_TEXT];
	struct cf_err why = {0};
	const int rc =
		run(place, (const char *const[CLI_PROGRAM_ARGS]){"loop-delete", "--block-device", device}, CLI_QUIET, &why);
	if (rc == 0 || !cli_holders_loop(place->volume, still, sizeof(still)) || strcmp(still, device) != 0)
		return 0;
	return cf_fail(err, rc, "%s stays ('losetup -d %s' as root takes it away): %s", device, device, why.text);
}

int cli_udisks_undo(const struct cli_place *place, struct cf_err *err)
{
	char device[DEVICE_TEXT], last[DEVICE_TEXT] = "";
	struct cf_mount m;
	while (cli_holders_loop(place->volume, device, sizeof(device)) && strcmp(device, last) != 0) {
		int rc = cf_mounts_find_source(device, &m) == 1 ? unmount_device(place, device, err) : 0;
		if (rc || (rc = take_device_away(place, device, err)))
			return rc;
		strcpy(last, device);
	}
	return 0;
}
