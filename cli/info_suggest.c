/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* info_suggest.c - the commands that `cryptfuse info` suggests: only those that would not be refused. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cryptfuse/units.h"
#include "info.h"

#define OPTIONS_MAX 160

/* As a shell needs it: quoted if it holds anything but harmless characters. */
static void quote(const char *word, char *out, size_t size)
{
	static const char harmless[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+=:@%,-";
	size_t n = 0;
	if (word[0] != '-' && word[strspn(word, harmless)] == '\0') {
		snprintf(out, size, "%s", word);
		return;
	}
	n += (size_t)snprintf(out, size, "%s'", word[0] == '-' ? "./" : "");
	for (; *word && n + 6 < size; word++)
		n += (size_t)snprintf(out + n, size - n, *word == '\'' ? "'\\''" : "%c", *word);
	snprintf(out + n, size - n, "'");
}

/* What `open` or `mount` needs to be told; "" nothing. @number: of a partition; 0 none. */
static void find_options(const struct info *i, const struct info_volume *v, unsigned number, const char *more,
						 char text[static OPTIONS_MAX])
{
	const int writable = access(i->image, W_OK) == 0 && !v->missing_bytes;
	char partition[32] = "";
	if (number)
		snprintf(partition, sizeof(partition), "--partition %u ", number);
	snprintf(text, OPTIONS_MAX, "%s%s%s%s", more, partition, writable ? "" : "--readonly ",
			 v->header.kind != CF_HEADER_NONE && !v->header.n_keyslots ? "--volume-key-file KEYFILE " : "");
}

static void put_command(const struct info *i, const char *command, const char *options, char out[static INFO_COMMAND])
{
	char image[PATH_MAX], header[PATH_MAX] = "";
	quote(i->image, image, sizeof(image));
	if (i->header_file)
		quote(i->header_file, header, sizeof(header));
	snprintf(out, INFO_COMMAND, "cryptfuse %s %s%s%s%s%s DIRECTORY", command, options,
			 i->header_file ? "--header " : "", header, i->header_file ? " " : "", image);
}

static void suggest(struct info *i, const struct info_volume *v, unsigned number, const char *more)
{
	char options[OPTIONS_MAX];
	if (i->n_commands == INFO_COMMANDS_MAX)
		return;
	find_options(i, v, number, more, options);
	put_command(i, "open", options, i->command[i->n_commands++]);
	if (v->header.kind != CF_HEADER_NONE && v->header.kind != CF_HEADER_FVAULT2) /* there HFS+ is inside */
		put_command(i, "mount", options, i->mount_command[i->n_mount_commands++]);
}

static int opens(const struct info_volume *v)
{
	return v->header.kind != CF_HEADER_NONE && !v->header.problem[0];
}

/* What has a header; else what nobody knows, since a plain volume looks like that. */
void info_suggest(struct info *i)
{
	if (opens(&i->whole))
		suggest(i, &i->whole, 0, "");
	for (unsigned k = 0; k < i->list.n; k++)
		if (opens(&i->part[k]))
			suggest(i, &i->part[k], i->list.at[k].number, "");
	if (i->n_commands)
		return;
	for (unsigned k = 0; k < i->list.n; k++)
		if (i->list.at[k].kind == CF_PARTITION_PLAIN && !info_is_known(&i->part[k]) &&
			i->part[k].missing_bytes < i->list.at[k].place.bytes)
			suggest(i, &i->part[k], i->list.at[k].number, "--type plain ");
	if (!i->list.table[0] && !info_is_known(&i->whole) && i->bytes >= CF_SECTOR_BYTES)
		suggest(i, &i->whole, 0, "--type plain ");
}
