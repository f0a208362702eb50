/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* newimage.c - makes images. The header of a LUKS2 image is written last: an image that was cut off cannot be opened,
 * and so cannot be taken for a whole one. */
#include "config.h"

#include "newimage.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "cryptfuse/volume.h"

static struct cf_format_opts format_opts(const struct cli_new *n)
{
	struct cf_format_opts f = n->o.format;
	f.cipher = n->o.volume.cipher;
	f.key_bits = n->o.volume.key_bits;
	f.sector_size_bytes = n->o.volume.sector_size_bytes;
	f.hash = n->o.volume.hash;
	return f;
}

/* ---- before the prompt ---- */

/* What only one of the two kinds has. */
static int check_options(const struct cli_opts *o, struct cf_err *err)
{
	const struct {
		const char *name;
		unsigned given;
		enum cli_new_type type;
	} only[] = {
		{"--label", o->format.label != NULL, CLI_NEW_LUKS2},
		{"--uuid", o->format.uuid != NULL, CLI_NEW_LUKS2},
		{"--pbkdf", o->format.pbkdf != NULL, CLI_NEW_LUKS2},
		{"--pbkdf-memory", o->format.pbkdf_memory_kib != 0, CLI_NEW_LUKS2},
		{"--pbkdf-parallel", o->format.pbkdf_parallel != 0, CLI_NEW_LUKS2},
		{"--pbkdf-force-iterations", o->format.pbkdf_iterations != 0, CLI_NEW_LUKS2},
		{"--iter-time", o->format.iter_time_ms != 0, CLI_NEW_LUKS2},
		{"--iv-large-sectors", o->volume.iv_large_sectors, CLI_NEW_PLAIN},
		{"--skip", o->volume.skip_sectors != 0, CLI_NEW_PLAIN},
		{"--offset", o->volume.offset_sectors != 0, CLI_NEW_PLAIN},
		{"--table", o->volume.table_file != NULL, CLI_NEW_PLAIN},
		{"--compat", o->volume.compat != CF_COMPAT_2_7, CLI_NEW_PLAIN},
	};
	const struct {
		const char *name;
		unsigned given;
	} never[] = {
		{"--partition", o->volume.partition != NULL},
		{"--header", o->volume.header_file != NULL},
		{"--key-slot", o->volume.key_slot != NULL},
		{"--volume-key-file", o->volume.volume_key_file != NULL},
		{"--volume-key-keyring", o->volume.volume_key_keyring != NULL},
	};
	for (size_t i = 0; i < CF_ARRAY_LEN(never); i++)
		if (never[i].given)
			return cf_fail(err, -EINVAL, "%s has no meaning for a new image", never[i].name);
	for (size_t i = 0; i < CF_ARRAY_LEN(only); i++)
		if (only[i].given && only[i].type != o->new_type)
			return cf_fail(err, -EINVAL, "%s is for %s", only[i].name,
						   only[i].type == CLI_NEW_LUKS2 ? "--type luks2 only" : "plain volumes only");
	return 0;
}

int cli_new_plan(struct cli_new *n, const struct cli_opts *o, const char *path, struct cf_err *err)
{
	*n = (struct cli_new){.o = *o, .path = path, .out = CLI_OUTPUT_NONE, .format = CF_FORMAT_NONE};
	n->o.volume.image = path;
	n->o.volume.access = CF_READ_WRITE;
	n->o.volume.type = o->new_type == CLI_NEW_PLAIN ? CF_TYPE_PLAIN : CF_TYPE_LUKS2;
	n->o.verify = 1; /* nobody could open what was encrypted under a slip of the fingers */
	int rc = check_options(o, err);
	if (rc || (rc = cli_output_plan(&n->out, path, o->force, err)))
		return rc;
	if (n->out.kind != CLI_OUTPUT_FILE)
		return cf_fail(err, -EINVAL, "%s is no file: images are made as files", path);
	const struct cf_format_opts f = format_opts(n);
	return o->new_type == CLI_NEW_LUKS2 ? cf_format_check(&f, &n->o.volume, err) : 0;
}

uint32_t cli_new_du_bytes(const struct cli_new *n, uint64_t bytes)
{
	if (n->o.volume.sector_size_bytes)
		return (uint32_t)n->o.volume.sector_size_bytes;
	return n->o.new_type == CLI_NEW_LUKS2 && bytes % 4096 == 0 ? 4096 : CF_DU_MIN;
}

uint64_t cli_new_header_bytes(const struct cli_new *n)
{
	return n->o.new_type == CLI_NEW_LUKS2 ? cf_format_header_bytes() : n->o.volume.offset_sectors * CF_SECTOR_BYTES;
}

/* ---- the volume ---- */

static int image_of(const struct cli_output *out, struct cf_image *image, struct cf_err *err)
{
	const int fd = fcntl(out->fd, F_DUPFD_CLOEXEC, 3);
	if (fd < 0)
		return cf_fail(err, -errno, "cannot copy a descriptor: %s", strerror(errno));
	*image = (struct cf_image){.access = CF_READ_WRITE, .n_parts = 1, .fd = {fd}};
	return 0;
}

static int open_plain(struct cli_new *n, struct cf_err *err)
{
	const struct cf_open_ui ui = cli_open_ui(&n->o);
	CF_CLEANUP(cf_image_close) struct cf_image image = {0};
	int rc = image_of(&n->out, &image, err);
	if (rc)
		return rc;
	n->o.volume.open_image = &image;
	rc = cf_open_plan(&n->o.volume, &ui, &n->opening, err);
	n->o.volume.open_image = NULL;
	return rc ? rc : cf_open_key(&n->o.volume, &ui, &n->opening, err);
}

static int open_luks2(struct cli_new *n, uint64_t bytes, struct cf_err *err)
{
	const struct cf_open_ui ui = cli_open_ui(&n->o);
	CF_CLEANUP(cf_secret_buf_fini) struct cf_secret_buf pass = {0};
	n->o.volume.sector_size_bytes = cli_new_du_bytes(n, bytes);
	const struct cf_format_opts f = format_opts(n);
	int rc = cf_format_passphrase(&n->o.volume, &ui, &pass, err);
	if (rc || (rc = cf_format_luks2(&f, &n->o.volume, &pass, bytes, &n->format, err)))
		return rc;
	n->opening.plan = n->format.plan;
	n->opening.key = cf_take(n->format.key);
	return image_of(&n->out, &n->opening.image, err);
}

int cli_new_open(struct cli_new *n, uint64_t bytes, enum cf_copy_zeros zeros, struct cf_err *err)
{
	int rc = cli_output_make(&n->out, cli_new_header_bytes(n) + bytes, zeros, err);
	if (!rc)
		rc = n->o.new_type == CLI_NEW_LUKS2 ? open_luks2(n, bytes, err) : open_plain(n, err);
	if (rc)
		return rc;
	cli_say_plan(&n->o, n->path, &n->opening.plan);
	return cf_open_volume(&n->opening.plan, n->opening.key, &n->opening.image, &n->volume, err);
}

/* ---- the end ---- */

static int write_header(const struct cli_new *n, struct cf_err *err)
{
	struct cf_copy_file from = {.fd = n->format.fd}, to = {.fd = n->out.fd};
	const struct cf_copy_opts copy = {
		.source = cf_copy_from_file(&from, cf_format_header_bytes()), .sink = cf_copy_to_file(&to), .n_threads = 1};
	struct cf_copy_result result;
	const int rc = cf_copy_run(&copy, &result);
	return rc ? cf_fail(err, rc, "the header of %s cannot be written: %s", n->path, strerror(-rc)) : 0;
}

int cli_new_finish(struct cli_new *n, struct cf_err *err)
{
	const int rc = n->format.fd >= 0 ? write_header(n, err) : 0;
	return rc ? rc : cli_output_finish(&n->out, err);
}

void cli_new_fini(struct cli_new *n)
{
	cf_volume_free(&n->volume);
	cf_opening_fini(&n->opening);
	cf_format_fini(&n->format);
	cli_output_fini(&n->out);
}
