/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* partition_choose.c - which partition is meant: by number, name or PARTUUID, or the only one that is encrypted.
 *
 * What is refused is refused with the list of what there is. No state; runs in the parent. */
#include "config.h"

#include "cryptfuse/partition.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cryptfuse/err.h"
#include "cryptfuse/units.h"
#include "plan.h"

/* ---- one of them ---- */

unsigned cf_partition_encrypted(const struct cf_partitions *list, const struct cf_partition **first)
{
	unsigned n = 0;
	*first = NULL;
	for (unsigned i = 0; i < list->n; i++)
		if (!strcmp(list->at[i].content.usage, "crypto") && n++ == 0)
			*first = &list->at[i];
	return n;
}

/* "1 (EFI System, esp), 2 (Linux filesystem, crypto_LUKS)": of all, or of those that are encrypted. */
static void describe(const struct cf_partitions *list, const char *usage, char *text, size_t size)
{
	size_t at = 0;
	text[0] = '\0';
	for (unsigned i = 0; i < list->n && at < size; i++) {
		const struct cf_partition *p = &list->at[i];
		const char *type = p->type_name ? p->type_name : p->type;
		if (usage && strcmp(p->content.usage, usage) != 0)
			continue;
		int n = snprintf(text + at, size - at, "%s%u (%s%s%s%s%s)", at ? ", " : "", p->number, type,
						 *p->name ? ", " : "", p->name, *p->content.type ? ", " : "", p->content.type);
		at += n > 0 ? (size_t)n : 0;
	}
}

static bool fits(const struct cf_partition *p, const char *text)
{
	return !strcmp(p->name, text) || (*p->uuid && !strcasecmp(p->uuid, text));
}

int cf_partition_find(const struct cf_partitions *list, const char *text, const struct cf_partition **out,
					  struct cf_err *err)
{
	const struct cf_partition *found = NULL;
	char all[CF_ERR_TEXT / 2];
	uint64_t number = 0;
	bool is_number = cf_units_parse_number(text, UINT32_MAX, &number) == 0;
	for (unsigned i = 0; i < list->n && is_number; i++)
		if (list->at[i].number == number) {
			*out = &list->at[i];
			return 0;
		}
	for (unsigned i = 0; i < list->n; i++) {
		if (!fits(&list->at[i], text))
			continue;
		if (found)
			return cf_fail(err, -EINVAL, "--partition %s: the partitions %u and %u are both called so: use the number",
						   text, found->number, list->at[i].number);
		found = &list->at[i];
	}
	describe(list, NULL, all, sizeof(all));
	if (!found)
		return cf_fail(err, -EINVAL, "--partition %s: no such partition; there are %s", text, *all ? all : "none");
	*out = found;
	return 0;
}

/* ---- where the volume lies ---- */

static int take_place(const struct cf_open_opts *opts, const struct cf_open_ui *ui, const struct cf_partition *p,
					  uint64_t image_bytes, struct cf_extent *where, struct cf_err *err)
{
	if (p->kind == CF_PARTITION_EXTENDED)
		return cf_fail(err, -EINVAL, "partition %u of %s only holds others: name one of them", p->number, opts->image);
	*where = cf_extent_clip(p->place, image_bytes);
	uint64_t cut = p->place.bytes - where->bytes;
	if (cut && (opts->access == CF_READ_WRITE || !where->bytes))
		return cf_fail(err, -EINVAL, "partition %u of %s reaches %llu bytes beyond its end: the image is cut off%s",
					   p->number, opts->image, (unsigned long long)cut, where->bytes ? "; --readonly may do" : "");
	if (cut)
		cf_open_note(ui, "the last %llu bytes of partition %u are missing: the image is cut off",
					 (unsigned long long)cut, p->number);
	return 0;
}

static int refuse_choice(const struct cf_open_opts *opts, const struct cf_partitions *list, unsigned n,
						 struct cf_err *err)
{
	char text[CF_ERR_TEXT / 2];
	describe(list, n ? "crypto" : NULL, text, sizeof(text));
	if (n)
		return cf_fail(err, -EINVAL, "%s has several encrypted partitions: %s; choose one with --partition",
					   opts->image, text);
	return cf_fail(
		err, -EINVAL,
		"%s has a %s partition table, and nothing in it that is known to be encrypted: %s; a plain volume opens "
		"with --type plain --partition N",
		opts->image, list->table, *text ? text : "no partition");
}

/* What is encrypted and alone. */
static int search(const struct cf_open_opts *opts, const struct cf_open_ui *ui, const struct cf_image *image,
				  struct cf_partitions *list, const struct cf_partition **out, struct cf_err *err)
{
	int rc = cf_partitions_probe(image, list, err);
	if (rc)
		return rc;
	unsigned n = cf_partition_encrypted(list, out);
	if (n != 1)
		return refuse_choice(opts, list, n, err);
	cf_open_note(ui, "%s is a disk image; what is encrypted is its partition %u%s%s: --partition %u", opts->image,
				 (*out)->number, *(*out)->name ? ", " : "", (*out)->name, (*out)->number);
	return 0;
}

static int image_bytes(const struct cf_image *image, uint64_t *bytes, struct cf_err *err)
{
	CF_CLEANUP(cf_backing_free) struct cf_backing *b = NULL;
	int rc = cf_image_backing(image, &b, err);
	if (!rc)
		*bytes = b->bytes;
	return rc;
}

static int choose(const struct cf_open_opts *opts, const struct cf_open_ui *ui, const struct cf_image *image,
				  struct cf_partitions *list, struct cf_extent *where, unsigned *number, struct cf_err *err)
{
	const struct cf_partition *p;
	const uint64_t bytes = where->bytes;
	int rc = cf_partitions_list(image, list, err);
	if (rc < 0 || (rc == 0 && !opts->partition))
		return rc;
	if (rc == 0)
		return cf_fail(err, -EINVAL, "--partition %s: %s has no partition table", opts->partition, opts->image);
	rc = opts->partition ? cf_partition_find(list, opts->partition, &p, err) : search(opts, ui, image, list, &p, err);
	if (rc || (rc = take_place(opts, ui, p, bytes, where, err)))
		return rc;
	*number = p->number;
	return 0;
}

int cf_partition_choose(const struct cf_open_opts *opts, enum cf_partition_search how, const struct cf_open_ui *ui,
						const struct cf_image *image, struct cf_extent *where, unsigned *number, struct cf_err *err)
{
	*where = (struct cf_extent){.off = 0};
	*number = 0;
	int rc = image_bytes(image, &where->bytes, err);
	if (rc || (!opts->partition && how == CF_PARTITION_ASKED))
		return rc;
	CF_CLEANUP(cf_freep) struct cf_partitions *list = malloc(sizeof(*list));
	return list ? choose(opts, ui, image, list, where, number, err) : cf_fail(err, -ENOMEM, "out of memory");
}
