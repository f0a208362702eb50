/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* header_bitlk.c - BitLocker: where its metadata lies, and the volume in the pieces that the kernel would map.
 *
 *     volume header | data | metadata 0 | data | metadata 1 | data | metadata 2 | data
 *
 * The volume header (the file system's first sectors) is stored elsewhere, and where it is stored, as where the three
 * metadata blocks are, the volume reads as zeros. The library says where all of these are, in the text that crypt_dump
 * prints; only the three offsets in the boot sector are read here, to know what to copy. Source: libbde's description
 * of the format, and the tables that cryptsetup 2.6.1 loads. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/spec.h"
#include "header.h"

#define SIGNATURE_OFF 3u
#define OFFSETS_OFF 176u      /* of the three metadata offsets; 16 bytes of GUID stand before them */
#define OFFSETS_OFF_TOGO 440u /* the same on a removable medium */
#define METADATA_BYTES ((uint64_t)64 * 1024)
#define BOOT_BYTES ((uint64_t)64 * 1024)
#define N_METADATA 3u
#define DUMP_BYTES 16384u

static bool has_signature(const uint8_t *first, const char *signature)
{
	return memcmp(first + SIGNATURE_OFF, signature, strlen(signature)) == 0;
}

/* A removable medium pretends to be FAT, so that is only a suspicion. */
static enum cf_suspicion suspect(const uint8_t first[static CF_SIGNATURE_BYTES])
{
	if (has_signature(first, "-FVE-FS-"))
		return CF_SUSPECT_YES;
	return has_signature(first, "MSWIN4.1") ? CF_SUSPECT_MAYBE : CF_SUSPECT_NO;
}

static int areas(const struct cf_header_store *s, const uint8_t first[static CF_SIGNATURE_BYTES], struct cf_areas *out)
{
	const uint8_t *offsets = first + (has_signature(first, "-FVE-FS-") ? OFFSETS_OFF : OFFSETS_OFF_TOGO);
	(void)s;
	cf_areas_add(out, 0, BOOT_BYTES);
	for (unsigned i = 0; i < N_METADATA; i++)
		cf_areas_add(out, cf_load_le64(offsets + 8 * i), METADATA_BYTES);
	return 0;
}

static enum cf_header_kind kind(struct crypt_device *cd)
{
	(void)cd;
	return CF_HEADER_BITLK;
}

/* ---- the dump ---- */

/* What follows "NAME:" on its line, without the blanks around it. Returns where to search on; NULL there is none. */
static const char *next_value(const char *text, const char *name, char *value, size_t size)
{
	const char *at = text ? strstr(text, name) : NULL;
	if (!at)
		return NULL;
	at += strlen(name);
	at += strspn(at, " \t");
	size_t len = strcspn(at, "\n");
	snprintf(value, size, "%.*s", (int)len, at);
	return at + len;
}

/* "35213312 [bytes]" */
static const char *next_bytes(const char *text, const char *name, uint64_t *out)
{
	char value[64];
	const char *rest = next_value(text, name, value, sizeof(value));
	value[rest ? strcspn(value, " ") : 0] = '\0';
	return rest && cf_units_parse_number(value, INT64_MAX, out) == 0 ? rest : NULL;
}

static void describe_keyslots(const char *dump, struct cf_header_info *out)
{
	static const char with[] = "VMK protected with ";
	char value[CF_HEADER_TEXT];
	while ((dump = next_value(dump, "Protection:", value, sizeof(value))) && out->n_keyslots < CF_KEYSLOTS_MAX) {
		struct cf_keyslot *k = &out->keyslot[out->n_keyslots];
		k->number = (int)out->n_keyslots++;
		snprintf(k->kind, sizeof(k->kind), "%s",
				 strncmp(value, with, sizeof(with) - 1) ? value : value + sizeof(with) - 1);
	}
}

/* The library judges a volume's state before it looks at a passphrase. This one is no text, so that it is not hashed a
 * million times first. */
static void find_problem(struct cf_header *h, char problem[static CF_ERR_TEXT])
{
	h->said[0] = '\0';
	if (crypt_activate_by_passphrase(h->cd, NULL, CRYPT_ANY_SLOT, "\xff", 1, 0) == -ENOTSUP)
		snprintf(problem, CF_ERR_TEXT,
				 "it is encrypted only in part, or its protection is suspended: finish that in Windows first%s%.256s",
				 *h->said ? "; libcryptsetup says: " : "", h->said);
}

static void describe(struct cf_header *h, struct cf_header_info *out)
{
	char dump[DUMP_BYTES];
	cf_header_dump(h, dump, sizeof(dump));
	if (next_value(dump, "Description:", out->label, sizeof(out->label)) && !strcmp(out->label, "(null)"))
		out->label[0] = '\0';
	describe_keyslots(dump, out);
	find_problem(h, out->problem);
}

/* ---- where the volume lies ---- */

struct hole {
	uint64_t off, bytes;
};

static int by_off(const void *a, const void *b)
{
	const struct hole *x = a, *y = b;
	return x->off < y->off ? -1 : x->off > y->off;
}

static int add_piece(struct cf_layout *out, const struct cf_segment *s, struct cf_err *err)
{
	const uint64_t align = out->cipher.du_bytes - 1;
	if (!s->bytes)
		return 0;
	if (out->n_segments == CF_SEGMENTS_MAX || (s->off | s->bytes | s->data_off) & align)
		return cf_fail(err, -EINVAL, "the BitLocker metadata lie where no sector begins");
	out->segment[out->n_segments++] = *s;
	return 0;
}

/* IVs count from the start of the image's range, for the relocated volume header too. */
static int add_data(struct cf_layout *out, uint64_t off, uint64_t bytes, uint64_t from, struct cf_err *err)
{
	const struct cf_segment s = {
		.kind = CF_SEGMENT_CRYPT, .off = off, .bytes = bytes, .data_off = from, .iv_sector = from / CF_SECTOR_BYTES};
	return add_piece(out, &s, err);
}

static int add_zeros(struct cf_layout *out, uint64_t off, uint64_t bytes, struct cf_err *err)
{
	const struct cf_segment s = {.kind = CF_SEGMENT_ZERO, .off = off, .bytes = bytes};
	return add_piece(out, &s, err);
}

static int make_pieces(struct hole hole[static N_METADATA + 1], uint64_t range_bytes, struct cf_layout *out,
					   struct cf_err *err)
{
	const struct hole header = hole[N_METADATA];
	uint64_t end = cf_units_round_down(range_bytes, out->cipher.du_bytes), at = header.bytes;
	int rc = add_data(out, 0, header.bytes, header.off, err);
	qsort(hole, N_METADATA + 1, sizeof(*hole), by_off);
	for (unsigned i = 0; i <= N_METADATA && !rc; i++) {
		if (hole[i].off < at || hole[i].off > end || hole[i].bytes > end - hole[i].off)
			return cf_fail(err, -EINVAL, "the BitLocker metadata overlap, or lie beyond the image");
		rc = add_data(out, at, hole[i].off - at, at, err);
		if (!rc)
			rc = add_zeros(out, hole[i].off, hole[i].bytes, err);
		at = hole[i].off + hole[i].bytes;
	}
	return rc ? rc : add_data(out, at, end - at, at, err);
}

static int layout(struct cf_header *h, uint64_t range_bytes, struct cf_layout *out, struct cf_err *err)
{
	char dump[DUMP_BYTES], text[CF_SPEC_TEXT];
	struct hole hole[N_METADATA + 1];
	uint64_t du;
	*out = (struct cf_layout){.n_segments = 0};
	cf_header_dump(h, dump, sizeof(dump));
	const char *at = strstr(dump, "Metadata segments:");
	for (unsigned i = 0; i <= N_METADATA; i++) {
		at = next_bytes(at, "Offset:", &hole[i].off);
		at = next_bytes(at, "Size:", &hole[i].bytes);
	}
	if (!at || !next_bytes(dump, "Sector size:", &du) || !cf_units_du_valid(du))
		return cf_fail(err, -ENOTSUP, "this libcryptsetup does not say where the BitLocker metadata lie");
	out->cipher.du_bytes = (uint32_t)du;
	out->cipher.iv_numbering = du > CF_DU_MIN ? CF_IV_LARGE_SECTORS : CF_IV_SECTORS;
	out->cipher.key_bytes = (uint32_t)cf_header_key_bytes(h);
	snprintf(text, sizeof(text), "%s-%s", crypt_get_cipher(h->cd), crypt_get_cipher_mode(h->cd));
	int rc = cf_spec_parse_cipher(text, &out->cipher, err);
	return rc ? rc : make_pieces(hole, range_bytes, out, err);
}

const struct cf_header_format cf_header_bitlk = {
	.name = "BitLocker",
	.type = CRYPT_BITLK,
	.suspect = suspect,
	.areas = areas,
	.kind = kind,
	.describe = describe,
	.layout = layout,
};
