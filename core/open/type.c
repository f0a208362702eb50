/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* type.c - what kind of volume it is: what was asked for, against what stands in the image.
 *
 * A plain volume has no header, so it is never guessed: it is one when --type, --table or --cipher say so. Options that
 * describe a plain volume are refused beside a header, since one of the two would be ignored. Runs before any prompt,
 * in one thread. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cryptfuse/err.h"
#include "cryptfuse/partition.h"
#include "header.h"
#include "plan.h"

static const struct {
	const char *word;
	enum cf_header_kind kind; /* NONE: any */
} types[] = {
	[CF_TYPE_AUTO] = {"auto", CF_HEADER_NONE},          [CF_TYPE_PLAIN] = {"plain", CF_HEADER_NONE},
	[CF_TYPE_LUKS] = {"luks", CF_HEADER_NONE},          [CF_TYPE_LUKS1] = {"luks1", CF_HEADER_LUKS1},
	[CF_TYPE_LUKS2] = {"luks2", CF_HEADER_LUKS2},       [CF_TYPE_BITLK] = {"bitlk", CF_HEADER_BITLK},
	[CF_TYPE_FVAULT2] = {"fvault2", CF_HEADER_FVAULT2}, [CF_TYPE_LOOPAES] = {"loopaes", CF_HEADER_NONE},
};

static const char *kind_word(enum cf_header_kind kind)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(types); i++)
		if (kind != CF_HEADER_NONE && types[i].kind == kind)
			return types[i].word;
	return "";
}

const char *cf_given(const struct cf_open_opts *opts, enum cf_given_set set)
{
	const unsigned plain = CF_GIVEN_PLAIN | CF_GIVEN_IN_TABLE;
	const struct {
		const char *name;
		unsigned sets;
		bool given;
	} rows[] = {
		{"--cipher", plain, opts->cipher != NULL},
		{"--hash", plain, opts->hash != NULL},
		{"--key-size", plain, opts->key_bits != 0},
		{"--compat", plain, opts->compat != CF_COMPAT_2_7},
		{"--offset", plain, opts->offset_sectors != 0},
		{"--skip", plain, opts->skip_sectors != 0},
		{"--size", CF_GIVEN_IN_TABLE, opts->size_sectors != 0},
		{"--device-size", CF_GIVEN_IN_TABLE, opts->device_size_bytes != 0},
		{"--sector-size", plain, opts->sector_size_bytes != 0},
		{"--iv-large-sectors", plain, opts->iv_large_sectors},
		{"--key-file", CF_GIVEN_IN_TABLE, opts->key_file != NULL},
		{"--keyfile-size", CF_GIVEN_IN_TABLE, opts->keyfile_size_bytes != 0},
		{"--keyfile-offset", CF_GIVEN_IN_TABLE, opts->keyfile_offset_bytes != 0},
		{"--header", CF_GIVEN_HEADER, opts->header_file != NULL},
		{"--key-slot", CF_GIVEN_HEADER, opts->key_slot != NULL},
		{"--volume-key-file", CF_GIVEN_HEADER, opts->volume_key_file != NULL},
		{"--volume-key-keyring", CF_GIVEN_HEADER, opts->volume_key_keyring != NULL},
	};
	for (size_t i = 0; i < CF_ARRAY_LEN(rows); i++)
		if ((rows[i].sets & set) && rows[i].given)
			return rows[i].name;
	return NULL;
}

static int check_keys(const struct cf_open_opts *opts, struct cf_err *err)
{
	uint64_t slot;
	if (opts->key_slot && cf_units_parse_number(opts->key_slot, CF_KEYSLOTS_MAX - 1, &slot) != 0)
		return cf_fail(err, -EINVAL, "--key-slot '%s': must be 0 to %u", opts->key_slot, CF_KEYSLOTS_MAX - 1);
	if (opts->volume_key_file && opts->volume_key_keyring)
		return cf_fail(err, -EINVAL, "--volume-key-file and --volume-key-keyring cannot be given together");
	bool direct = opts->volume_key_file || opts->volume_key_keyring;
	if (direct && (opts->key_file || opts->key_slot))
		return cf_fail(err, -EINVAL, "%s cannot be given beside a volume key: nothing is unlocked with it",
					   opts->key_file ? "--key-file" : "--key-slot");
	return 0;
}

int cf_type_check(const struct cf_open_opts *opts, struct cf_err *err)
{
	const char *plain = cf_given(opts, CF_GIVEN_PLAIN), *header = cf_given(opts, CF_GIVEN_HEADER);
	bool luks = opts->type == CF_TYPE_AUTO || opts->type == CF_TYPE_LUKS || opts->type == CF_TYPE_LUKS1 ||
				opts->type == CF_TYPE_LUKS2;
	if (opts->table_file && opts->type != CF_TYPE_AUTO && opts->type != CF_TYPE_PLAIN)
		return cf_fail(err, -EINVAL, "--type %s cannot be given with --table: a table describes a plain volume",
					   types[opts->type].word);
	if (cf_type_is_plain(opts) && header)
		return cf_fail(err, -EINVAL, "%s is for volumes with a header, not for plain ones", header);
	if (!cf_type_is_plain(opts) && opts->type != CF_TYPE_AUTO && plain)
		return cf_fail(err, -EINVAL, "%s cannot be given with --type %s: the header says it", plain,
					   types[opts->type].word);
	if (opts->header_file && !luks)
		return cf_fail(err, -EINVAL, "--header cannot be given with --type %s: only LUKS keeps its header apart",
					   types[opts->type].word);
	if (opts->header_file && plain)
		return cf_fail(err, -EINVAL, "%s cannot be given with --header: the header says it", plain);
	return check_keys(opts, err);
}

void cf_note_ignored_header(const struct cf_open_opts *opts, const struct cf_open_ui *ui, const struct cf_image *image,
							const struct cf_extent *where)
{
	CF_CLEANUP(cf_backing_free) struct cf_backing *b = NULL;
	if (opts->table_file || cf_image_backing(image, &b, NULL) != 0)
		return;
	const char *name = cf_header_suspect(b, where->off, where->bytes);
	if (name)
		cf_open_note(ui, "%s has a %s header, which --type %s ignores: without it, or with --type auto, it is used",
					 opts->image, name, types[opts->type == CF_TYPE_LOOPAES ? CF_TYPE_LOOPAES : CF_TYPE_PLAIN].word);
}

/* ---- no header ---- */

static bool plain_by_options(const struct cf_open_opts *opts)
{
	return opts->type == CF_TYPE_AUTO && opts->cipher && !opts->header_file;
}

/* Names what libblkid knows of the image itself. */
static int no_header(const struct cf_open_opts *opts, const struct cf_image *image, const struct cf_extent *where,
					 struct cf_err *err)
{
	struct cf_content content = {0};
	char found[CF_ERR_TEXT / 2] = "";
	if (!opts->header_file && cf_image_probe(image, where, &content, NULL) > 0)
		snprintf(found, sizeof(found), ", but %.64s%s%.64s", content.type, *content.label ? ", label " : "",
				 content.label);
	const char *store = opts->header_file ? opts->header_file : opts->image;
	char where_it_is[96] = "";
	if (opts->partition && !opts->header_file)
		snprintf(where_it_is, sizeof(where_it_is), "partition %.64s of ", opts->partition);
	if (opts->type != CF_TYPE_AUTO)
		return cf_fail(err, -ENODEV, "no %s header found in %s%s%s", types[opts->type].word, where_it_is, store, found);
	return cf_fail(err, -ENODEV, "no header found in %s%s%s; if it is a plain dm-crypt volume say --type plain",
				   where_it_is, store, found);
}

/* ---- with one ---- */

static int check_kind(const struct cf_open_opts *opts, enum cf_header_kind kind, struct cf_err *err)
{
	const char *plain = cf_given(opts, CF_GIVEN_PLAIN), *name = cf_header_kind_name(kind);
	bool is_luks = kind == CF_HEADER_LUKS1 || kind == CF_HEADER_LUKS2;
	bool wanted =
		types[opts->type].kind == kind || opts->type == CF_TYPE_AUTO || (opts->type == CF_TYPE_LUKS && is_luks);
	if (!wanted)
		return cf_fail(err, -ENODEV, "%s has a %s header, not one of --type %s", opts->image, name,
					   types[opts->type].word);
	if (plain)
		return cf_fail(err, -EINVAL, "%s has a %s header: %s is for plain volumes; leave it out, or say --type plain",
					   opts->image, name, plain);
	if (opts->key_slot && !is_luks)
		return cf_fail(err, -EINVAL, "%s has a %s header: --key-slot is for LUKS", opts->image, name);
	return 0;
}

static int size_sectors(const struct cf_open_opts *opts, uint64_t *out, struct cf_err *err)
{
	if (opts->size_sectors && opts->device_size_bytes)
		return cf_fail(err, -EINVAL, "--size and --device-size cannot be given together");
	if (opts->device_size_bytes % CF_SECTOR_BYTES)
		return cf_fail(err, -EINVAL, "--device-size %llu is not a multiple of 512 bytes",
					   (unsigned long long)opts->device_size_bytes);
	*out = opts->size_sectors ? opts->size_sectors : opts->device_size_bytes / CF_SECTOR_BYTES;
	return 0;
}

/* The store of a --header: read, never written, and closed once its copy is made. */
static int open_detached(const struct cf_open_opts *opts, struct cf_backing **out, struct cf_err *err)
{
	CF_CLEANUP(cf_image_close) struct cf_image image = {0};
	if (!opts->header_file)
		return 0;
	int rc = cf_image_open(&image, opts->header_file, CF_READ_ONLY, CF_LOCK_NONE, err);
	return rc ? rc : cf_image_backing(&image, out, err);
}

/* In the only partition that is encrypted. */
static int search_header(const struct cf_open_opts *opts, const struct cf_open_ui *ui, const struct cf_image *image,
						 struct cf_backing *data, struct cf_header **out, unsigned *partition, struct cf_err *err)
{
	struct cf_extent part;
	int rc = cf_partition_choose(opts, CF_PARTITION_SEARCH, ui, image, &part, partition, err);
	if (rc)
		return rc;
	return *partition ? cf_header_load(out, CF_HEADER_NONE, data, part.off, part.bytes, NULL, err) : -ENOENT;
}

/* In the whole image, or the partition that was asked for; or else by a search. */
static int find_header(const struct cf_open_opts *opts, const struct cf_open_ui *ui, const struct cf_image *image,
					   struct cf_header **out, unsigned *partition, struct cf_err *err)
{
	CF_CLEANUP(cf_backing_free) struct cf_backing *data = NULL, *detached = NULL;
	struct cf_extent where = {0};
	unsigned asked;
	int rc = cf_image_backing(image, &data, err);
	if (!rc)
		rc = open_detached(opts, &detached, err);
	if (!rc)
		rc = cf_partition_choose(opts, CF_PARTITION_ASKED, ui, image, &where, &asked, err);
	if (!rc)
		rc = cf_header_load(out, CF_HEADER_NONE, data, where.off, where.bytes, detached, err);
	if (rc != -ENOENT)
		return rc;
	if (plain_by_options(opts))
		return CF_PLAN_PLAIN;
	if (!opts->partition && !detached)
		rc = search_header(opts, ui, image, data, out, partition, err);
	return rc == -ENOENT ? no_header(opts, image, &where, err) : rc;
}

int cf_plan_header(const struct cf_open_opts *opts, const struct cf_open_ui *ui, struct cf_opening *o,
				   struct cf_err *err)
{
	CF_CLEANUP(cf_header_free) struct cf_header *h = NULL;
	uint64_t sectors = 0;
	int rc = size_sectors(opts, &sectors, err);
	if (!rc)
		rc = find_header(opts, ui, &o->image, &h, &o->plan.partition, err);
	if (rc)
		return rc;
	rc = check_kind(opts, cf_header_kind(h), err);
	if (!rc)
		rc = cf_header_plan(h, sectors, &o->plan, err);
	if (rc)
		return rc;
	strcpy(o->plan.type, kind_word(cf_header_kind(h)));
	o->header = cf_take(h);
	return 0;
}
