/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* create.c - cryptfuse create: a new image of a given size, plain or LUKS2, if asked for with a file system in it.
 *
 * A plain image is filled with what cannot be told from ciphertext, since holes would show where nothing was ever
 * written: zeros under a key that nobody keeps, or, with a file system, its zeros under the volume's own key. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "cli.h"
#include "copying.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/volume.h"
#include "mkfs.h"
#include "newimage.h"

#define FILL_KEY_BYTES 64u

static const struct cli_word type_words[] = {
	{"plain", CLI_NEW_PLAIN},
	{"luks2", CLI_NEW_LUKS2},
	{NULL, 0},
};

static const struct cli_option create_options[] = {
	{.name = "size",
	 .kind = CLI_STRING,
	 .arg = "SIZE",
	 .help = "size of IMAGE, with its unit: 500M, 2G, 4096S",
	 CLI_FIELD(size)},
	{.name = "type",
	 .kind = CLI_WORD,
	 .arg = "plain|luks2",
	 .help = "without a header, or with one (plain)",
	 CLI_FIELD(new_type),
	 .words = type_words},
	{.name = "mkfs",
	 .kind = CLI_STRING,
	 .arg = "FS",
	 .help = "make a file system: ext4, vfat, exfat, ntfs, xfs, btrfs ...",
	 CLI_FIELD(mkfs)},
	{.name = "fill",
	 .kind = CLI_SET,
	 .help = "write all of it, so that nothing shows what is used (plain)",
	 CLI_FIELD(fill),
	 .value = CLI_FILL_YES},
	{.name = "no-fill",
	 .kind = CLI_SET,
	 .help = "leave holes where nothing was written (luks2)",
	 CLI_FIELD(fill),
	 .value = CLI_FILL_NO},
	{.name = "force", .kind = CLI_SET, .help = "replace IMAGE if it exists", CLI_FIELD(force), .value = 1},
	{.name = NULL},
};

static const struct cli_option cipher_options[] = {
	{.name = "cipher",
	 .letter = 'c',
	 .kind = CLI_STRING,
	 .arg = "CIPHER",
	 .help = "cipher, mode and IV (aes-xts-plain64)",
	 CLI_FIELD(volume.cipher)},
	{.name = "key-size",
	 .letter = 's',
	 .kind = CLI_NUMBER,
	 .arg = "BITS",
	 .help = "size of the volume key (plain 256, luks2 512)",
	 CLI_FIELD(volume.key_bits)},
	{.name = "sector-size",
	 .kind = CLI_NUMBER,
	 .arg = "BYTES",
	 .help = "what is encrypted under one IV (plain 512, luks2 4096)",
	 CLI_FIELD(volume.sector_size_bytes),
	 .min = CF_DU_MIN,
	 .max = CF_DU_MAX},
	{.name = "iv-large-sectors",
	 .kind = CLI_SET,
	 .help = "count IVs in units of --sector-size (plain)",
	 CLI_FIELD(volume.iv_large_sectors),
	 .value = true},
	{.name = "engine",
	 .kind = CLI_STRING,
	 .arg = "ENGINE",
	 .help = "who computes the cipher (the best one here)",
	 CLI_FIELD(volume.engine)},
	{.name = NULL},
};

static const struct cli_group create_groups[] = {
	{"Image", create_options},
	{"Cipher", cipher_options},
	{"Key", cli_key_options},
	{"New LUKS2 header", cli_format_options},
	{"General", cli_quiet_options},
	{"Help", cli_help_options},
	{NULL, NULL},
};

/** What is made. */
struct create {
	struct cli_new image;
	uint64_t image_bytes, volume_bytes;
	const struct cli_mkfs *mkfs; /* NULL: none */
	int fs;                      /* what it made; -1 */
	enum cf_copy_zeros zeros;    /* skipped: holes stay */
	struct cli_signals signals;
};

static void create_fini(struct create *c)
{
	cli_new_fini(&c->image);
	cf_close_fd(&c->fs);
	cf_secret_fini();
}

/* ---- before the prompt ---- */

/* open's --size counts sectors, as cryptsetup's does; a bare number here could be meant either way. */
static int take_size(struct create *c, const char *text, struct cf_err *err)
{
	if (!text)
		return cf_fail(err, -EINVAL, "create needs --size SIZE, e.g. --size 500M");
	if (isdigit((unsigned char)text[strlen(text) - 1]))
		return cf_fail(err, -EINVAL, "--size '%s': give its unit too: K, M, G, T, or S for sectors of 512 bytes", text);
	if (cf_units_parse_size(text, 1, &c->image_bytes) != 0)
		return cf_fail(err, -EINVAL,
					   "--size '%s': not a size (a number, and K, M, G, T, KB, MB, GB, TB or S behind it)", text);
	return 0;
}

static int place_volume(struct create *c, struct cf_err *err)
{
	const uint64_t header = cli_new_header_bytes(&c->image);
	c->volume_bytes = c->image_bytes > header ? c->image_bytes - header : 0;
	const uint32_t du = cli_new_du_bytes(&c->image, c->volume_bytes);
	if (!c->volume_bytes)
		return cf_fail(err, -EINVAL, "--size %s: too small for a volume", c->image.o.size);
	if (c->volume_bytes % du)
		return cf_fail(err, -EINVAL, "--size %s: not a multiple of %u bytes", c->image.o.size, du);
	return 0;
}

static int plan(struct create *c, const struct cli_opts *o, struct cf_err *err)
{
	int rc = take_size(c, o->size, err);
	if (rc || (rc = cli_new_plan(&c->image, o, o->args[0], err)) || (rc = place_volume(c, err)) ||
		(o->mkfs && (rc = cli_mkfs_find(o->mkfs, &c->mkfs, err))))
		return rc;
	const unsigned fill = o->fill == CLI_FILL_AUTO ? o->new_type == CLI_NEW_PLAIN : o->fill == CLI_FILL_YES;
	c->zeros = fill ? CF_COPY_ZEROS_WRITTEN : CF_COPY_ZEROS_SKIPPED;
	return fill ? cli_output_room(&c->image.out, c->image_bytes, err) : 0;
}

/* ---- content ---- */

static int fill(struct create *c, struct cf_volume *v, struct cf_copy_source from, struct cf_err *err)
{
	struct cli_copying copying = {
		.source = from, .sink = cf_copy_to_volume(v), .from = "memory", .to = c->image.path, .signals = &c->signals};
	return cli_copy(&copying, err);
}

/* No key is asked for where none is needed: it goes with this function. */
static int fill_nameless(struct create *c, struct cf_err *err)
{
	struct cf_open_plan plan = {
		.cipher = {.cipher = "aes", .mode = "xts", .iv = "plain64", .keycount = 1, .key_bytes = FILL_KEY_BYTES},
		.bytes = c->image_bytes,
		.access = CF_READ_WRITE,
		.n_workers = 4,
		.n_permits = 4,
	};
	CF_CLEANUP(cf_secret_freep) uint8_t *key = cf_secret_alloc(FILL_KEY_BYTES);
	CF_CLEANUP(cf_image_close) struct cf_image image = {.access = CF_READ_WRITE};
	CF_CLEANUP(cf_volume_free) struct cf_volume *v = NULL;
	plan.cipher.du_bytes = c->image_bytes % 4096 ? CF_DU_MIN : 4096;
	if (!key || getrandom(key, FILL_KEY_BYTES, 0) != (ssize_t)FILL_KEY_BYTES)
		return cf_fail(err, -EIO, "no random numbers for filling the image");
	image.fd[0] = fcntl(c->image.out.fd, F_DUPFD_CLOEXEC, 3);
	image.n_parts = image.fd[0] >= 0;
	if (!image.n_parts)
		return cf_fail(err, -errno, "cannot copy a descriptor: %s", strerror(errno));
	const int rc = cf_open_volume(&plan, key, &image, &v, err);
	return rc ? rc : fill(c, v, cf_copy_from_zeros(c->image_bytes), err);
}

static int write_extent(struct create *c, uint64_t off, uint64_t end, uint8_t *buf, struct cf_err *err)
{
	struct cf_volume *v = c->image.volume;
	while (off < end) {
		const size_t len = end - off < CF_IO_MAX ? (size_t)(end - off) : CF_IO_MAX;
		struct cf_worker *w = cf_volume_enter(v);
		ssize_t n = pread(c->fs, buf, len, (off_t)off);
		n = n > 0 ? cf_volume_write(v, w, buf, (size_t)n, off) : n < 0 ? -errno : -EIO;
		cf_volume_leave(v, w);
		if (n < 0)
			return cf_fail(err, (int)n, "%s cannot be written: %s", c->image.path, strerror((int)-n));
		off += (uint64_t)n;
		if (cli_interrupted(&c->signals))
			return cf_fail(err, -EINTR, "interrupted");
	}
	return 0;
}

/* What the program wrote, zeros too, and nothing else. */
static int write_extents(struct create *c, struct cf_err *err)
{
	CF_CLEANUP(cf_freep) uint8_t *buf = malloc(CF_IO_MAX);
	if (!buf)
		return cf_fail(err, -ENOMEM, "out of memory");
	for (off_t at = 0;;) {
		const off_t data = lseek(c->fs, at, SEEK_DATA);
		if (data < 0)
			return errno == ENXIO ? 0 : cf_fail(err, -errno, "the file in memory: %s", strerror(errno));
		at = lseek(c->fs, data, SEEK_HOLE);
		const int rc = write_extent(c, (uint64_t)data, (uint64_t)at, buf, err);
		if (rc)
			return rc;
	}
}

static int write_content(struct create *c, struct cf_err *err)
{
	struct cf_copy_file file = {.fd = c->fs};
	if (c->fs >= 0 && c->zeros == CF_COPY_ZEROS_SKIPPED)
		return write_extents(c, err);
	if (c->fs >= 0)
		return fill(c, c->image.volume, cf_copy_from_file(&file, c->volume_bytes), err);
	if (c->zeros == CF_COPY_ZEROS_SKIPPED)
		return 0;
	return c->image.volume ? fill(c, c->image.volume, cf_copy_from_zeros(c->volume_bytes), err) : fill_nameless(c, err);
}

static int create(struct create *c, const struct cli_opts *o, struct cf_err *err)
{
	int rc = cli_guard_secrets(err);
	if (rc || (rc = plan(c, o, err)))
		return rc;
	if (c->mkfs && (rc = cli_mkfs_run(c->mkfs, c->volume_bytes, o->verbose, &c->fs, err)))
		return rc;
	if (c->mkfs || o->new_type == CLI_NEW_LUKS2)
		rc = cli_new_open(&c->image, c->volume_bytes, c->zeros, err);
	else
		rc = cli_output_make(&c->image.out, c->image_bytes, c->zeros, err);
	if (rc)
		return rc;
	cli_hold_signals(&c->signals);
	rc = write_content(c, err);
	return rc ? rc : cli_new_finish(&c->image, err);
}

static void say_made(const struct create *c, const struct cli_opts *o)
{
	char size[32];
	cli_format_bytes(c->image_bytes, size, sizeof(size));
	if (!o->batch)
		cli_say("%s: %s, %s%s%s", c->image.path, size,
				o->new_type == CLI_NEW_LUKS2 ? "LUKS2" : "plain, without a header", o->mkfs ? ", with " : "",
				o->mkfs ? o->mkfs : "");
}

static int run_create(const struct cli_opts *o, struct cf_err *err)
{
	struct create c = {.image = {.out = CLI_OUTPUT_NONE, .format = CF_FORMAT_NONE}, .fs = -1};
	cli_signals_init(&c.signals);
	const int rc = create(&c, o, err);
	if (rc == 0)
		say_made(&c, o);
	create_fini(&c);
	if (rc == -EINTR)
		cli_say("%s: %s", o->args[0], err->text);
	cli_let_signals(&c.signals);
	return rc;
}

const struct cli_command cli_create = {
	.name = "create",
	.args = "IMAGE",
	.about = "Make a new image, plain or LUKS2, with a file system in it if asked for",
	.min_args = 1,
	.max_args = 1,
	.groups = create_groups,
	.run = run_create,
};
