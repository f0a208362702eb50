/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* probe.c - libblkid's word on what a volume holds, as one line.
 *
 * A plain volume has no header: a wrong passphrase opens as noise, and only what is found inside tells. Labels come
 * from whoever made the file system, so they are made printable. No state; runs in the parent, never in the daemon. */
#include "cryptfuse/probe.h"

#include <blkid.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cryptfuse/err.h"

static void free_probe(blkid_probe *probe)
{
	blkid_free_probe(*probe);
}

/* How many bytes of well-formed UTF-8 that print stand at @s; 0 when none do. */
static size_t printable(const unsigned char *s)
{
	if (s[0] < 0x80)
		return s[0] >= 0x20 && s[0] != 0x7f;
	size_t len = s[0] >= 0xc2 && s[0] < 0xe0   ? 2
				 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
				 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
											   : 0;
	for (size_t i = 1; i < len; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	bool control = s[0] == 0xc2 && s[1] < 0xa0; /* U+0080 to U+009F */
	bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
	bool reordering = s[0] == 0xe2 && ((s[1] == 0x80 && s[2] >= 0xa8 && s[2] <= 0xae) ||
									   (s[1] == 0x81 && s[2] >= 0xa6)); /* line breaks and direction marks */
	return control || overlong || reordering ? 0 : len;
}

static void append(char *text, size_t size, const char *s)
{
	size_t at = strlen(text);
	while (*s) {
		size_t len = printable((const unsigned char *)s);
		size_t take = len ? len : 1;
		if (at + take >= size)
			break;
		memcpy(text + at, len ? s : "?", take);
		at += take;
		s += take;
	}
	text[at] = '\0';
}

static const char *value_of(blkid_probe probe, const char *name)
{
	const char *value;
	return blkid_probe_lookup_value(probe, name, &value, NULL) == 0 && *value ? value : NULL;
}

static int describe(blkid_probe probe, char *text, size_t size)
{
	const char *type = value_of(probe, "TYPE"), *label = value_of(probe, "LABEL"), *table = value_of(probe, "PTTYPE");
	if (type) {
		append(text, size, type);
		append(text, size, label ? ", label " : "");
		append(text, size, label ? label : "");
	} else if (table) {
		append(text, size, table);
		append(text, size, " partition table");
	}
	return type || table;
}

int cf_probe_fd(int fd, char *text, size_t text_size, struct cf_err *err)
{
	CF_CLEANUP(free_probe) blkid_probe probe = blkid_new_probe();
	text[0] = '\0';
	if (!probe)
		return cf_fail(err, -ENOMEM, "no memory for libblkid");
	if (blkid_probe_set_device(probe, fd, 0, 0) != 0)
		return cf_fail(err, -EIO, "libblkid cannot look into the volume");
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_LABEL);
	blkid_probe_enable_partitions(probe, 1);
	switch (blkid_do_safeprobe(probe)) {
	case 0:
		return describe(probe, text, text_size);
	case 1:
		return 0;
	case -2:
		append(text, text_size, "more than one known signature");
		return 1;
	default:
		return cf_fail(err, -EIO, "libblkid cannot read the volume");
	}
}
