/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* open.c - from options, or a table, to a plan; from a plan to a volume.
 *
 * A plan is complete and plain data: every default filled in, every number checked against the image, the cipher known
 * to open. What can be refused is refused here, before anybody is asked for a passphrase. cf_open_plan runs in the
 * parent in one thread, cf_open_volume in the daemon before its threads. */
#include "config.h"

#include "plan.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "cryptfuse/header.h"
#include "cryptfuse/journal.h"
#include "cryptfuse/partition.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/spec.h"
#include "cryptfuse/table.h"
#include "cryptfuse/volume.h"

#define TABLE_TEXT_MAX ((size_t)128 * 1024) /* the longest key takes 32 KiB of it */

const struct cf_plain_defaults *cf_plain_defaults(enum cf_compat compat)
{
	static const struct cf_plain_defaults defaults[] = {
		[CF_COMPAT_2_7] = {"2.7", "aes-xts-plain64", "sha256"},
		[CF_COMPAT_2_6] = {"2.6", "aes-cbc-essiv:sha256", "ripemd160"},
	};
	return &defaults[compat];
}

void cf_open_note(const struct cf_open_ui *ui, const char *fmt, ...)
{
	char text[CF_ERR_TEXT];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	ui->note(ui->ctx, text);
}

/* ---- a plain volume by options ---- */

static int plan_numbers(const struct cf_open_opts *opts, struct cf_cipher_spec *spec, struct cf_err *err)
{
	uint64_t du = opts->sector_size_bytes ? opts->sector_size_bytes : CF_DU_MIN;
	if (!cf_units_du_valid(du))
		return cf_fail(err, -EINVAL, "--sector-size %" PRIu64 " is not supported: 512 to 65536, a power of two", du);
	if (opts->iv_large_sectors && du == CF_DU_MIN)
		return cf_fail(err, -EINVAL, "--iv-large-sectors needs a --sector-size above 512");
	if (opts->skip_sectors & (du / CF_SECTOR_BYTES - 1))
		return cf_fail(err, -EINVAL,
					   "--skip %" PRIu64 " is not a multiple of the data unit of %" PRIu64 " bytes (%" PRIu64
					   " sectors)",
					   opts->skip_sectors, du, du / CF_SECTOR_BYTES);
	if (opts->key_bits % 8)
		return cf_fail(err, -EINVAL, "--key-size %" PRIu64 " is not a multiple of 8 bits", opts->key_bits);
	if (opts->key_bits > CF_KEY_MAX * 8u)
		return cf_fail(err, -EINVAL, "--key-size %" PRIu64 " is above %u bits", opts->key_bits, CF_KEY_MAX * 8u);
	if (opts->size_sectors && opts->device_size_bytes)
		return cf_fail(err, -EINVAL, "--size and --device-size cannot be given together");
	if (opts->device_size_bytes % CF_SECTOR_BYTES)
		return cf_fail(err, -EINVAL, "--device-size %" PRIu64 " is not a multiple of 512 bytes",
					   opts->device_size_bytes);
	spec->du_bytes = (uint32_t)du;
	spec->iv_offset = opts->skip_sectors;
	spec->iv_numbering = opts->iv_large_sectors ? CF_IV_LARGE_SECTORS : CF_IV_SECTORS;
	return 0;
}

static int plan_cipher(const struct cf_open_opts *opts, struct cf_cipher_spec *spec, struct cf_err *err)
{
	const char *text = opts->cipher ? opts->cipher : cf_plain_defaults(opts->compat)->cipher;
	int rc = cf_spec_parse_option(text, spec, err);
	if (rc)
		return rc;
	spec->key_bytes = strcmp(spec->cipher, "cipher_null") ? (uint32_t)cf_plain_key_bytes(opts) : 0;
	return 0;
}

static void note_defaults(const struct cf_open_opts *opts, const struct cf_open_ui *ui)
{
	const struct cf_plain_defaults *ours = cf_plain_defaults(opts->compat);
	const struct cf_plain_defaults *other =
		cf_plain_defaults(opts->compat == CF_COMPAT_2_7 ? CF_COMPAT_2_6 : CF_COMPAT_2_7);
	bool hashed = cf_key_source(opts) != CF_KEY_FROM_FILE;
	if (opts->cipher && opts->key_bits && (opts->hash || !hashed))
		return;
	char bits[64] = "", cipher[64] = "", hash[64] = "";
	if (!opts->cipher)
		snprintf(cipher, sizeof(cipher), " --cipher %s", ours->cipher);
	if (!opts->key_bits)
		snprintf(bits, sizeof(bits), " --key-size %u", CF_PLAIN_KEY_BITS);
	if (!opts->hash && hashed)
		snprintf(hash, sizeof(hash), " --hash %s", ours->hash);
	char text[CF_ERR_TEXT];
	snprintf(text, sizeof(text),
			 "defaults of cryptsetup %s were used:%s%s%s; --compat %s has --cipher %s --key-size %u --hash %s",
			 ours->release, cipher, bits, hash, other->release, other->cipher, CF_PLAIN_KEY_BITS, other->hash);
	ui->warn(ui->ctx, text);
}

static void note_idle_options(const struct cf_open_opts *opts, const struct cf_open_ui *ui)
{
	bool file = cf_key_source(opts) == CF_KEY_FROM_FILE;
	bool raw_stdin = cf_key_source(opts) == CF_KEY_FROM_STDIN && !strcmp(cf_plain_hash(opts), "plain");
	if (file && opts->hash)
		cf_open_note(ui, "--hash %s has no effect: a key file of a plain volume is the key itself", opts->hash);
	if ((file || raw_stdin) && opts->keyfile_size_bytes)
		cf_open_note(ui, "--keyfile-size has no effect: exactly the %zu bytes of the key are read",
					 cf_plain_key_bytes(opts));
}

static int plan_options(const struct cf_open_opts *opts, struct cf_open_plan *plan, struct cf_place *place,
						uint8_t **key, struct cf_err *err)
{
	int rc = plan_numbers(opts, &plan->cipher, err);
	place->data_sector = opts->offset_sectors;
	place->sectors = opts->size_sectors ? opts->size_sectors : opts->device_size_bytes / CF_SECTOR_BYTES;
	plan->discards = opts->discards;
	if (!rc && opts->type == CF_TYPE_LOOPAES)
		return cf_plan_loopaes(opts, &plan->cipher, key, err);
	if (!rc)
		rc = plan_cipher(opts, &plan->cipher, err);
	if (!rc && cf_key_source(opts) != CF_KEY_FROM_FILE)
		rc = cf_key_hash_check(cf_plain_hash(opts), cf_plain_key_bytes(opts), err);
	return rc;
}

/* ---- a plain volume by table ---- */

static int refuse_beside_table(const struct cf_open_opts *opts, struct cf_err *err)
{
	const char *name = cf_given(opts, CF_GIVEN_IN_TABLE);
	return name ? cf_fail(err, -EINVAL, "%s cannot be given with --table: the table says it", name) : 0;
}

static int read_table(const char *path, struct cf_table *out, uint8_t **key, struct cf_err *err)
{
	CF_CLEANUP(cf_close_fd) int fd = -1;
	CF_CLEANUP(cf_secret_buf_fini) struct cf_secret_buf text = {NULL, 0};
	int rc = cf_open_input(path, "table", &fd, err);
	if (!rc)
		rc = cf_key_read_fd(fd, CF_KEY_READ_ALL, 0, 0, path, &text, err);
	if (rc)
		return rc;
	if (text.len > TABLE_TEXT_MAX)
		return cf_fail(err, -EINVAL, "%s is too long to be a table", path);
	return cf_table_parse((const char *)text.data, text.len, out, key, err);
}

static int plan_table(const struct cf_open_opts *opts, struct cf_open_plan *plan, struct cf_place *place, uint8_t **key,
					  struct cf_err *err)
{
	struct cf_table t;
	int rc = refuse_beside_table(opts, err);
	if (!rc)
		rc = read_table(opts->table_file, &t, key, err);
	if (rc)
		return rc;
	plan->cipher = t.cipher;
	plan->discards = t.discards == CF_DISCARDS_ALLOWED ? t.discards : opts->discards;
	place->data_sector = t.data_sector;
	place->sectors = t.sectors;
	return 0;
}

/* ---- both ---- */

/* Those this process may run on. */
static unsigned n_cpus(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
	return n > 0 ? (unsigned)n : 1;
}

int cf_plan_engine(const struct cf_open_opts *opts, struct cf_open_plan *plan, struct cf_err *err)
{
	if (opts->engine && strlen(opts->engine) >= sizeof(plan->engine))
		return cf_fail(err, -EINVAL, "no engine has a name as long as '%.64s…'", opts->engine);
	if (opts->engine)
		strcpy(plan->engine, opts->engine);
	plan->n_workers = opts->threads ? (unsigned)opts->threads : CF_WORKERS_MAX;
	plan->n_permits = n_cpus();
	if (plan->n_permits > plan->n_workers)
		plan->n_permits = plan->n_workers;
	return cf_cipher_check(&plan->cipher, opts->engine, err);
}

static void note_plan(const struct cf_open_opts *opts, const struct cf_open_ui *ui, const struct cf_open_plan *plan,
					  uint64_t image_bytes)
{
	uint64_t tail = image_bytes - plan->data_off - plan->bytes;
	if (!opts->table_file && opts->type != CF_TYPE_LOOPAES) {
		note_defaults(opts, ui);
		note_idle_options(opts, ui);
	}
	if (tail)
		cf_open_note(ui, "the last %" PRIu64 " bytes of %s%s are not part of the volume", tail,
					 opts->partition ? "the partition in " : "", opts->image);
}

static int plan_place(const struct cf_open_opts *opts, const struct cf_open_ui *ui, struct cf_opening *o,
					  struct cf_place *place, struct cf_err *err)
{
	struct cf_extent where;
	unsigned number;
	place->du_bytes = o->plan.cipher.du_bytes;
	int rc = cf_partition_choose(opts, CF_PARTITION_ASKED, ui, &o->image, &where, &number, err);
	place->store = opts->partition ? "partition" : NULL;
	place->image_bytes = where.bytes;
	if (!rc)
		rc = cf_place_resolve(place, &o->plan.data_off, &o->plan.bytes, err);
	if (rc)
		return rc;
	cf_note_ignored_header(opts, ui, &o->image, &where);
	note_plan(opts, ui, &o->plan, place->image_bytes);
	o->plan.data_off += where.off;
	return 0;
}

static int open_image(const struct cf_open_opts *opts, struct cf_image *image, struct cf_err *err)
{
	return opts->open_image ? cf_image_copy(image, opts->open_image, err)
							: cf_image_open(image, opts->image, opts->access, opts->lock, err);
}

static int plan_plain(const struct cf_open_opts *opts, const struct cf_open_ui *ui, struct cf_opening *o,
					  struct cf_err *err)
{
	struct cf_place place = {0};
	int rc = opts->table_file ? plan_table(opts, &o->plan, &place, &o->key, err)
							  : plan_options(opts, &o->plan, &place, &o->key, err);
	if (!rc)
		rc = cf_plan_engine(opts, &o->plan, err);
	if (!rc && !o->image.n_parts)
		rc = open_image(opts, &o->image, err);
	strcpy(o->plan.type, opts->type == CF_TYPE_LOOPAES ? "loopaes" : "plain");
	return rc ? rc : plan_place(opts, ui, o, &place, err);
}

static int plan_by_header(const struct cf_open_opts *opts, const struct cf_open_ui *ui, struct cf_opening *o,
						  struct cf_err *err)
{
	int rc = open_image(opts, &o->image, err);
	if (!rc)
		rc = cf_plan_header(opts, ui, o, err);
	if (rc == CF_PLAN_PLAIN)
		return plan_plain(opts, ui, o, err);
	return rc ? rc : cf_plan_engine(opts, &o->plan, err);
}

void cf_opening_fini(struct cf_opening *o)
{
	if (o->new_journal)
		unlink(o->plan.journal);
	o->new_journal = false;
	cf_image_close(&o->image);
	cf_secret_freep(&o->key);
	cf_header_free(&o->header);
}

static int plan_journal(const struct cf_open_opts *opts, struct cf_opening *o, struct cf_err *err)
{
	if (opts->journal_bytes && !opts->journal)
		return cf_fail(err, -EINVAL, "--journal-size needs --journal");
	if (opts->journal_bytes &&
		(opts->journal_bytes < CF_JOURNAL_BYTES_MIN || opts->journal_bytes > CF_JOURNAL_BYTES_MAX))
		return cf_fail(err, -EINVAL, "--journal-size %" PRIu64 ": 1 MiB to 1 GiB will do", opts->journal_bytes);
	if (!opts->journal)
		return 0;
	int rc = cf_journal_open_fd(opts->journal, opts->access, opts->journal_bytes, &o->image, &o->image.journal,
								&o->new_journal, err);
	if (rc)
		return rc;
	o->image.n_journals = 1;
	return realpath(opts->journal, o->plan.journal)
			   ? 0
			   : cf_fail(err, -ENODEV, "the journal %s: %s", opts->journal, strerror(errno));
}

int cf_open_plan(const struct cf_open_opts *opts, const struct cf_open_ui *ui, struct cf_opening *out,
				 struct cf_err *err)
{
	CF_CLEANUP(cf_opening_fini)
	struct cf_opening o = {.plan = {.access = opts->access,
									.lock = opts->lock,
									.image_cache = opts->image_cache,
									.bad_sectors = opts->bad_sectors,
									.discards = opts->discards,
									.keyslot = -1}};
	if (opts->bad_sectors == CF_BAD_ZERO && opts->access == CF_READ_WRITE)
		return cf_fail(err, -EINVAL,
					   "--bad-sectors zero needs --readonly: what cannot be read now must not be overwritten");
	int rc = cf_type_check(opts, err);
	if (!rc)
		rc = cf_type_is_plain(opts) ? plan_plain(opts, ui, &o, err) : plan_by_header(opts, ui, &o, err);
	if (!rc && opts->image_cache == CF_IMAGE_DIRECT) /* headers are read at any place: not before they are */
		rc = cf_image_set_direct(&o.image, opts->image, err);
	if (!rc)
		rc = plan_journal(opts, &o, err);
	if (rc)
		return rc;
	if (o.image.n_parts > 1)
		cf_open_note(ui, "%s and the %u parts behind it are opened as one image", opts->image, o.image.n_parts - 1);
	*out = o;
	o = (struct cf_opening){0};
	return 0;
}

/* Its records are replayed here. */
static int open_journal(const struct cf_open_plan *plan, const uint8_t *key, const struct cf_image *image,
						struct cf_backing **backing, struct cf_err *err)
{
	char cipher[CF_SPEC_TEXT];
	struct cf_err why = {0};
	CF_CLEANUP(cf_backing_free) struct cf_backing *log = NULL;
	const struct cf_journal_opts opts = {
		.key = key,
		.key_bytes = plan->cipher.key_bytes,
		.cipher = cipher,
		.uuid = plan->uuid,
		.iv_offset = plan->cipher.iv_offset,
		.data_off = plan->data_off,
		.bytes = plan->bytes,
		.du_bytes = plan->cipher.du_bytes,
		.n_callers = plan->n_workers,
		.segment = plan->segment,
		.n_segments = plan->n_segments,
	};
	cf_spec_format_cipher(&plan->cipher, cipher, sizeof(cipher));
	int rc = cf_image_log(image, &log, err);
	if (!rc && (rc = cf_journal_wrap(backing, &log, &opts, &why)))
		return cf_fail(err, rc, "%s: %s", plan->journal, why.text);
	return rc;
}

struct cf_volume_opts cf_open_volume_opts(const struct cf_open_plan *plan)
{
	return (struct cf_volume_opts){
		.data_off = plan->data_off,
		.bytes = plan->bytes,
		.access = plan->access,
		.discards = plan->discards,
		.bad_sectors = plan->bad_sectors,
		.n_workers = plan->n_workers,
		.n_permits = plan->n_permits,
		.segment = plan->segment,
		.n_segments = plan->n_segments,
	};
}

int cf_open_volume(const struct cf_open_plan *plan, const uint8_t *key, const struct cf_image *image,
				   struct cf_volume **out, struct cf_err *err)
{
	const struct cf_cipher_opts cipher_opts = {
		.engine = plan->engine[0] ? plan->engine : NULL,
		.path = CF_PATH_AUTO,
		.n_workers = plan->n_permits,
	};
	const struct cf_volume_opts volume_opts = cf_open_volume_opts(plan);
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *cipher = NULL;
	CF_CLEANUP(cf_backing_free) struct cf_backing *backing = NULL;
	int rc = cf_cipher_new(&cipher, &plan->cipher, key, &cipher_opts, err);
	if (!rc && (rc = cf_cipher_keep_check(cipher, key)))
		return cf_fail(err, rc, "no check value of the key: %s", strerror(-rc));
	if (!rc)
		rc = cf_image_backing(image, &backing, err);
	if (!rc && *plan->journal)
		rc = open_journal(plan, key, image, &backing, err);
	return rc ? rc : cf_volume_new(out, &backing, &cipher, &volume_opts, err);
}
