/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* info_json.c - what `cryptfuse info` found, as one JSON object. Its keys are all always there, null where nothing is
 * known: cryptfuse-info(1) promises them. */
#include "config.h"

#include <json.h>
#include <stdio.h>

#include "cli.h"
#include "cryptfuse/err.h"
#include "cryptfuse/json.h"
#include "cryptfuse/units.h"
#include "info.h"

static void put_text(struct json_object *o, const char *key, const char *text)
{
	if (text && *text)
		cf_json_add_text(o, key, text);
	else
		cf_json_add_null(o, key);
}

static void put_content(struct json_object *to, const struct cf_content *c)
{
	if (!c->type[0]) {
		cf_json_add_null(to, "content");
		return;
	}
	struct json_object *o = json_object_new_object();
	put_text(o, "type", c->type);
	put_text(o, "usage", c->usage);
	put_text(o, "version", c->version);
	put_text(o, "label", c->label);
	put_text(o, "uuid", c->uuid);
	cf_json_add(to, "content", o);
}

static struct json_object *keyslots(const struct cf_header_info *h)
{
	struct json_object *list = json_object_new_array();
	for (unsigned k = 0; k < h->n_keyslots; k++) {
		struct json_object *o = json_object_new_object();
		cf_json_add(o, "number", json_object_new_int(h->keyslot[k].number));
		put_text(o, "type", h->keyslot[k].kind);
		put_text(o, "kdf", h->keyslot[k].kdf);
		put_text(o, "cipher", h->keyslot[k].cipher);
		cf_json_append(list, o);
	}
	return list;
}

static void put_header(struct json_object *to, const struct cf_header_info *h)
{
	if (h->kind == CF_HEADER_NONE && !h->problem[0]) {
		cf_json_add_null(to, "header");
		return;
	}
	struct json_object *o = json_object_new_object();
	put_text(o, "type", cf_header_kind_name(h->kind));
	put_text(o, "uuid", h->uuid);
	put_text(o, "label", h->label);
	put_text(o, "cipher", h->cipher);
	cf_json_add_known(o, "key_bits", h->key_bits, h->key_bits);
	cf_json_add_known(o, "sector_size", h->du_bytes, h->du_bytes);
	cf_json_add_known(o, "data_offset", h->data_off, h->du_bytes);
	cf_json_add(o, "keyslots", keyslots(h));
	put_text(o, "problem", h->problem);
	cf_json_add(to, "header", o);
}

static struct json_object *partition(const struct info *i, unsigned k)
{
	const struct cf_partition *p = &i->list.at[k];
	struct json_object *o = json_object_new_object();
	cf_json_add_number(o, "number", p->number);
	cf_json_add_number(o, "offset", p->place.off);
	cf_json_add_number(o, "bytes", p->place.bytes);
	cf_json_add_number(o, "missing_bytes", i->part[k].missing_bytes);
	cf_json_add_flag(o, "extended", p->kind == CF_PARTITION_EXTENDED);
	put_text(o, "type", p->type);
	put_text(o, "type_name", p->type_name);
	put_text(o, "name", p->name);
	put_text(o, "uuid", p->uuid);
	put_content(o, &i->part[k].content);
	put_header(o, &i->part[k].header);
	return o;
}

static void put_table(struct json_object *to, const struct info *i)
{
	if (!i->list.table[0]) {
		cf_json_add_null(to, "partition_table");
		return;
	}
	struct json_object *o = json_object_new_object(), *list = json_object_new_array();
	put_text(o, "type", i->list.table);
	put_text(o, "uuid", i->list.uuid);
	for (unsigned k = 0; k < i->list.n; k++)
		cf_json_append(list, partition(i, k));
	cf_json_add(o, "partitions", list);
	cf_json_add(to, "partition_table", o);
}

static struct json_object *commands(const char (*text)[INFO_COMMAND], unsigned n)
{
	struct json_object *list = json_object_new_array();
	for (unsigned k = 0; k < n; k++)
		cf_json_append(list, json_object_new_string(text[k]));
	return list;
}

int info_print_json(const struct info *i, struct cf_err *err)
{
	struct json_object *o = json_object_new_object();
	put_text(o, "image", i->image);
	cf_json_add_number(o, "bytes", i->bytes);
	cf_json_add_number(o, "tail_bytes", i->bytes % CF_SECTOR_BYTES);
	cf_json_add_number(o, "parts", i->n_parts);
	put_content(o, &i->whole.content);
	put_header(o, &i->whole.header);
	put_table(o, i);
	cf_json_add(o, "commands", commands(i->command, i->n_commands));
	cf_json_add(o, "mount_commands", commands(i->mount_command, i->n_mount_commands));
	return cli_print_json(o, err);
}
