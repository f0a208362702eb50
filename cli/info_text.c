/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* info_text.c - what `cryptfuse info` found, for a person. */
#include "config.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "cryptfuse/units.h"
#include "info.h"

/* ---- lines ---- */

/* One line, whatever stands in a name. */
static void CF_PRINTF(1, 2) line(const char *fmt, ...)
{
	char text[4 * PATH_MAX];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	cli_printable(text);
	puts(text);
}

/* "NAME VALUE" behind a comma, if there is a value. */
static void add(char *text, size_t size, const char *name, const char *value)
{
	const size_t n = strlen(text);
	if (*value)
		snprintf(text + n, size - n, "%s%s%s", *text ? ", " : "", name, value);
}

static void print_header(const char *indent, const struct cf_header_info *h)
{
	char text[512] = "";
	add(text, sizeof(text), "", cf_header_kind_name(h->kind));
	add(text, sizeof(text), "label ", h->label);
	add(text, sizeof(text), "UUID ", h->uuid);
	line("%s%s", indent, text);
	if (h->cipher[0])
		line("%s%s, key of %u bits, data units of %u bytes, data from byte %" PRIu64, indent, h->cipher, h->key_bits,
			 h->du_bytes, h->data_off);
	for (unsigned k = 0; k < h->n_keyslots; k++) {
		text[0] = '\0';
		add(text, sizeof(text), "", h->keyslot[k].kind);
		add(text, sizeof(text), "", h->keyslot[k].kdf);
		add(text, sizeof(text), "", h->keyslot[k].cipher);
		line("%skeyslot %d: %s", indent, h->keyslot[k].number, text);
	}
}

static void print_content(const char *indent, const struct cf_content *c)
{
	char text[512] = "";
	add(text, sizeof(text), "", c->type);
	add(text, sizeof(text), "version ", c->version);
	add(text, sizeof(text), "label ", c->label);
	add(text, sizeof(text), "UUID ", c->uuid);
	line("%s%s", indent, text);
}

/* The header knows more than libblkid of what it stands for. */
static void print_volume(const char *indent, const struct info_volume *v)
{
	if (v->header.kind != CF_HEADER_NONE)
		print_header(indent, &v->header);
	else if (v->content.type[0])
		print_content(indent, &v->content);
	if (v->header.problem[0])
		line("%scannot be opened here: %s", indent, v->header.problem);
	else if (v->header.kind != CF_HEADER_NONE && !v->header.n_keyslots)
		line("%sno keyslot is left: no passphrase opens it any more, only the volume key itself", indent);
}

static void print_partition(const struct info *i, unsigned k)
{
	const struct cf_partition *p = &i->list.at[k];
	const uint64_t missing = i->part[k].missing_bytes;
	char size[32], text[512] = "";
	cli_format_bytes(p->place.bytes, size, sizeof(size));
	add(text, sizeof(text), "", p->type_name ? p->type_name : p->type);
	add(text, sizeof(text), "name ", p->name);
	add(text, sizeof(text), "PARTUUID ", p->uuid);
	line("partition %u: %s from sector %" PRIu64 ", %s", p->number, size, p->place.off / CF_SECTOR_BYTES, text);
	if (missing)
		line("    its last %" PRIu64 " bytes are missing: the image is cut off", missing);
	if (p->kind == CF_PARTITION_EXTENDED)
		line("    holds other partitions");
	else if (info_is_known(&i->part[k]))
		print_volume("    ", &i->part[k]);
	else
		line("    nothing known");
}

static void print_image(const struct info *i)
{
	char size[32], parts[64] = "";
	cli_format_bytes(i->bytes, size, sizeof(size));
	if (i->n_parts > 1)
		snprintf(parts, sizeof(parts), ", in %u parts", i->n_parts);
	if (strstr(size, "bytes"))
		line("%s: %s%s", i->image, size, parts);
	else
		line("%s: %s (%" PRIu64 " bytes)%s", i->image, size, i->bytes, parts);
	if (i->bytes % CF_SECTOR_BYTES)
		line("its last %u bytes are no whole sector", (unsigned)(i->bytes % CF_SECTOR_BYTES));
}

/* A word that there is nothing to do, for who expected something. */
static void print_no_command(const struct info *i)
{
	int known = !strcmp(i->whole.content.usage, "filesystem"), problems = i->whole.header.problem[0] != 0;
	for (unsigned k = 0; k < i->list.n; k++) {
		known |= i->part[k].content.type[0] != 0;
		problems |= i->part[k].header.problem[0] != 0;
	}
	if (known && !problems)
		line("not encrypted: cryptfuse has nothing to open here");
}

/* What goes without saying where a header was found is said where only a guess is left. */
static void print_commands(const struct info *i)
{
	const int guess = i->n_commands && !i->n_mount_commands && strstr(i->command[0], "--type plain");
	if (guess)
		line("%s", i->list.table[0] ? "if one of the partitions of which nothing is known is a plain dm-crypt volume:"
									: "nothing known: if it is a plain dm-crypt volume:");
	for (unsigned k = 0; k < i->n_commands; k++)
		line("%s%s", guess ? "    " : "open with: ", i->command[k]);
	for (unsigned k = 0; k < i->n_mount_commands; k++)
		line("or, for the files in it: %s", i->mount_command[k]);
	if (!i->n_commands)
		print_no_command(i);
}

void info_print_text(const struct info *i)
{
	print_image(i);
	if (info_is_known(&i->whole))
		print_volume("", &i->whole);
	if (i->list.table[0])
		line("%s partition table%s%s", i->list.table, i->list.uuid[0] ? ", UUID " : "", i->list.uuid);
	for (unsigned k = 0; k < i->list.n; k++)
		print_partition(i, k);
	print_commands(i);
}
