/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* probe.c - libblkid's word on what a volume holds, as one line.
 *
 * A plain volume has no header: a wrong passphrase opens as noise, and only what is found inside tells. Labels come
 * from whoever made the file system, so they are made printable. No state; runs in the parent, never in the daemon. */
#include "cryptfuse/probe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "blkid.h"
#include "cryptfuse/err.h"
#include "cryptfuse/text.h"

void cf_blkid_free(blkid_probe *probe)
{
	blkid_free_probe(*probe);
	*probe = NULL;
}

int cf_blkid_new(blkid_probe *out, int fd, uint64_t off, uint64_t bytes, struct cf_err *err)
{
	CF_CLEANUP(cf_blkid_free) blkid_probe probe = blkid_new_probe();
	if (!probe)
		return cf_fail(err, -ENOMEM, "no memory for libblkid");
	if (blkid_probe_set_device(probe, fd, (blkid_loff_t)off, (blkid_loff_t)bytes) != 0)
		return cf_fail(err, -EIO, "libblkid cannot look into the image or volume");
	*out = cf_take(probe);
	return 0;
}

void cf_blkid_append(char *text, size_t size, const char *s)
{
	size_t at = strlen(text);
	while (s && *s) {
		size_t len = cf_text_char(s);
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
		cf_blkid_append(text, size, type);
		cf_blkid_append(text, size, label ? ", label " : "");
		cf_blkid_append(text, size, label ? label : "");
	} else if (table) {
		cf_blkid_append(text, size, table);
		cf_blkid_append(text, size, " partition table");
	}
	return type || table;
}

int cf_probe_fd(int fd, char *text, size_t text_size, struct cf_err *err)
{
	CF_CLEANUP(cf_blkid_free) blkid_probe probe = NULL;
	text[0] = '\0';
	int rc = cf_blkid_new(&probe, fd, 0, 0, err);
	if (rc)
		return rc;
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_LABEL);
	blkid_probe_enable_partitions(probe, 1);
	switch (blkid_do_safeprobe(probe)) {
	case 0:
		return describe(probe, text, text_size);
	case 1:
		return 0;
	case -2:
		cf_blkid_append(text, text_size, "more than one known signature");
		return 1;
	default:
		return cf_fail(err, -EIO, "libblkid cannot read the volume");
	}
}

static int fill_content(blkid_probe probe, struct cf_content *out)
{
	cf_blkid_append(out->type, sizeof(out->type), value_of(probe, "TYPE"));
	cf_blkid_append(out->usage, sizeof(out->usage), value_of(probe, "USAGE"));
	cf_blkid_append(out->version, sizeof(out->version), value_of(probe, "VERSION"));
	cf_blkid_append(out->label, sizeof(out->label), value_of(probe, "LABEL"));
	cf_blkid_append(out->uuid, sizeof(out->uuid), value_of(probe, "UUID"));
	return *out->type != '\0';
}

int cf_probe_content(int fd, uint64_t off, uint64_t bytes, struct cf_content *out, struct cf_err *err)
{
	CF_CLEANUP(cf_blkid_free) blkid_probe probe = NULL;
	*out = (struct cf_content){.type = ""};
	int rc = cf_blkid_new(&probe, fd, off, bytes, err);
	if (rc)
		return rc;
	blkid_probe_enable_superblocks(probe, 1);
	blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE | BLKID_SUBLKS_USAGE | BLKID_SUBLKS_VERSION |
												 BLKID_SUBLKS_LABEL | BLKID_SUBLKS_UUID);
	switch (blkid_do_safeprobe(probe)) {
	case 0:
		return fill_content(probe, out);
	case 1:
		return 0;
	case -2:
		strcpy(out->type, "ambiguous");
		return 1;
	default:
		return cf_fail(err, -EIO, "libblkid cannot read the image or volume");
	}
}
