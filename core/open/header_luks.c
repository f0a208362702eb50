/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* header_luks.c - LUKS1 and LUKS2: what the library reads of them, and what it says.
 *
 * LUKS2 metadata comes as the JSON text that crypt_dump_json gives. Its data segments become the pieces of the volume
 * as LUKS2's activation would make targets of them. Source: the LUKS2 on-disk format specification. */
#include "config.h"

#include <errno.h>
#include <json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/spec.h"
#include "header.h"

/* A LUKS2 header is at most 4 MiB, and the second one starts where the first ends. */
#define HEADERS_BYTES ((uint64_t)8 << 20)
#define LUKS1_DIGEST_ITERATIONS_OFF 164

static enum cf_suspicion suspect(const uint8_t first[static CF_SIGNATURE_BYTES])
{
	static const uint8_t magic[] = {'L', 'U', 'K', 'S', 0xba, 0xbe};
	return memcmp(first, magic, sizeof(magic)) == 0 ? CF_SUSPECT_YES : CF_SUSPECT_MAYBE;
}

static int areas(const struct cf_header_store *s, const uint8_t first[static CF_SIGNATURE_BYTES], struct cf_areas *out)
{
	(void)s;
	(void)first;
	cf_areas_add(out, 0, HEADERS_BYTES);
	return 0;
}

static void key_areas(struct crypt_device *cd, struct cf_areas *out)
{
	for (int i = 0; i < crypt_keyslot_max(crypt_get_type(cd)); i++) {
		uint64_t off, len;
		if (crypt_keyslot_area(cd, i, &off, &len) == 0)
			cf_areas_add(out, off, len);
	}
}

static enum cf_header_kind kind(struct crypt_device *cd)
{
	return strcmp(crypt_get_type(cd), CRYPT_LUKS1) ? CF_HEADER_LUKS2 : CF_HEADER_LUKS1;
}

/* ---- LUKS2's JSON ---- */

static void put_json(struct json_object **j)
{
	json_object_put(*j);
	*j = NULL;
}

static struct json_object *get_json(struct cf_header *h)
{
	const char *text = NULL;
	return crypt_dump_json(h->cd, &text, 0) == 0 && text ? json_tokener_parse(text) : NULL;
}

static struct json_object *member(struct json_object *o, const char *name)
{
	struct json_object *m = NULL;
	return json_object_is_type(o, json_type_object) && json_object_object_get_ex(o, name, &m) ? m : NULL;
}

static const char *member_text(struct json_object *o, const char *name)
{
	struct json_object *m = member(o, name);
	return m ? json_object_get_string(m) : "";
}

/* Numbers of 64 bits are written as strings. */
static int member_number(struct json_object *o, const char *name, uint64_t *out)
{
	return cf_units_parse_number(member_text(o, name), INT64_MAX, out);
}

static bool has_text(struct json_object *list, const char *text)
{
	for (size_t i = 0; json_object_is_type(list, json_type_array) && i < json_object_array_length(list); i++)
		if (!strcmp(json_object_get_string(json_object_array_get_idx(list, i)), text))
			return true;
	return false;
}

/* "opal, online-reencrypt-v2" */
static void list_requirements(struct json_object *root, char *out, size_t size)
{
	struct json_object *list = member(member(member(root, "config"), "requirements"), "mandatory");
	out[0] = '\0';
	for (size_t i = 0; json_object_is_type(list, json_type_array) && i < json_object_array_length(list); i++) {
		size_t len = strlen(out);
		snprintf(out + len, size - len, "%s%s", len ? ", " : "",
				 json_object_get_string(json_object_array_get_idx(list, i)));
	}
}

/* The segments that make up the volume, in order: those with numbers from 0 on that are no backup of another. */
static struct json_object *segment_at(struct json_object *root, unsigned i)
{
	char number[16];
	snprintf(number, sizeof(number), "%u", i);
	struct json_object *s = member(member(root, "segments"), number);
	struct json_object *flags = member(s, "flags");
	for (size_t k = 0; json_object_is_type(flags, json_type_array) && k < json_object_array_length(flags); k++)
		if (!strncmp(json_object_get_string(json_object_array_get_idx(flags, k)), "backup-", 7))
			return NULL;
	return s;
}

/* ---- why a volume cannot be opened ---- */

static void say_requirements(uint32_t flags, struct json_object *root, char problem[static CF_ERR_TEXT])
{
	char names[128];
	list_requirements(root, names, sizeof(names));
	if (strstr(names, "opal"))
		snprintf(problem, CF_ERR_TEXT, "the drive itself encrypts it (OPAL): only the kernel can unlock it");
	else if (flags & (CRYPT_REQUIREMENT_OFFLINE_REENCRYPT | CRYPT_REQUIREMENT_ONLINE_REENCRYPT) ||
			 strstr(names, "reencrypt"))
		snprintf(problem, CF_ERR_TEXT, "its re-encryption has not ended; finish it with 'cryptsetup reencrypt'");
	else if (flags)
		snprintf(problem, CF_ERR_TEXT, "it asks for what this libcryptsetup does not know: %s", names);
}

static void say_segment(struct json_object *s, char problem[static CF_ERR_TEXT])
{
	const char *type = member_text(s, "type");
	struct json_object *integrity = member(s, "integrity");
	if (!strncmp(type, "hw-opal", 7))
		snprintf(problem, CF_ERR_TEXT, "the drive itself encrypts it (OPAL): only the kernel can unlock it");
	else if (integrity)
		snprintf(problem, CF_ERR_TEXT, "it has authenticated encryption (%.64s): that needs dm-integrity",
				 member_text(integrity, "type"));
	else if (strcmp(type, "crypt") != 0)
		snprintf(problem, CF_ERR_TEXT, "a part of it is of type '%.64s', not encrypted", type);
}

static void find_problem(struct cf_header *h, char problem[static CF_ERR_TEXT])
{
	CF_CLEANUP(put_json) struct json_object *root = get_json(h);
	uint32_t flags = 0;
	if (!root) {
		snprintf(problem, CF_ERR_TEXT, "libcryptsetup does not say what is in its header");
		return;
	}
	if (crypt_persistent_flags_get(h->cd, CRYPT_FLAGS_REQUIREMENTS, &flags) == 0)
		say_requirements(flags, root, problem);
	for (unsigned i = 0; !*problem && segment_at(root, i); i++)
		say_segment(segment_at(root, i), problem);
	if (!*problem && !segment_at(root, 0))
		snprintf(problem, CF_ERR_TEXT, "its header names no data");
	if (!*problem && !cf_header_key_bytes(h)) /* the keyslots alone say how long the key is */
		snprintf(problem, CF_ERR_TEXT, "its keyslots are erased: nothing but a backup of its header opens it");
}

/* ---- what it says ---- */

static void describe_keyslot(struct cf_header *h, int i, struct cf_keyslot *out)
{
	struct crypt_pbkdf_type pbkdf = {0};
	size_t key_bytes;
	const char *cipher = crypt_keyslot_get_encryption(h->cd, i, &key_bytes);
	out->number = i;
	snprintf(out->kind, sizeof(out->kind), "%s%s", h->kind == CF_HEADER_LUKS1 ? "luks1" : "luks2",
			 crypt_keyslot_status(h->cd, i) == CRYPT_SLOT_UNBOUND ? ", unbound" : "");
	snprintf(out->cipher, sizeof(out->cipher), "%s", cipher ? cipher : "");
	if (crypt_keyslot_get_pbkdf(h->cd, i, &pbkdf) == 0 && pbkdf.type)
		snprintf(out->kdf, sizeof(out->kdf), "%s%s%s", pbkdf.type, pbkdf.hash && *pbkdf.hash ? "-" : "",
				 pbkdf.hash ? pbkdf.hash : "");
}

static void describe(struct cf_header *h, struct cf_header_info *out)
{
	const char *label = h->kind == CF_HEADER_LUKS2 ? crypt_get_label(h->cd) : NULL;
	snprintf(out->label, sizeof(out->label), "%s", label ? label : "");
	for (int i = 0; i < crypt_keyslot_max(crypt_get_type(h->cd)); i++)
		if (crypt_keyslot_status(h->cd, i) >= CRYPT_SLOT_ACTIVE && out->n_keyslots < CF_KEYSLOTS_MAX)
			describe_keyslot(h, i, &out->keyslot[out->n_keyslots++]);
	if (h->kind == CF_HEADER_LUKS2)
		find_problem(h, out->problem);
}

/* ---- what a key is checked with ---- */

static uint64_t digests_of_luks2(struct cf_header *h)
{
	CF_CLEANUP(put_json) struct json_object *root = get_json(h);
	uint64_t most = 0;
	if (!json_object_is_type(member(root, "digests"), json_type_object))
		return UINT64_MAX;
	json_object_object_foreach(member(root, "digests"), name, digest)
	{
		const int64_t n = json_object_get_int64(member(digest, "iterations"));
		(void)name;
		most = n < 0 ? UINT64_MAX : (uint64_t)n > most ? (uint64_t)n : most;
	}
	return most;
}

uint64_t cf_luks_digest_iterations(struct cf_header *h)
{
	uint8_t n[4];
	if (h->kind == CF_HEADER_LUKS2)
		return digests_of_luks2(h);
	return pread(h->copy, n, sizeof(n), LUKS1_DIGEST_ITERATIONS_OFF) == (ssize_t)sizeof(n) ? cf_load_be32(n)
																						   : UINT64_MAX;
}

/* ---- where the volume lies ---- */

static int layout_luks1(struct cf_header *h, struct cf_layout *out, struct cf_err *err)
{
	char text[CF_SPEC_TEXT];
	snprintf(text, sizeof(text), "%s-%s", crypt_get_cipher(h->cd), crypt_get_cipher_mode(h->cd));
	out->cipher.du_bytes = CF_DU_MIN;
	out->data_off = crypt_get_data_offset(h->cd) * CF_SECTOR_BYTES;
	return cf_spec_parse_option(text, &out->cipher, err);
}

static int read_segment(struct json_object *s, struct cf_segment *out, struct cf_cipher_spec *spec, struct cf_err *err)
{
	uint64_t du;
	bool to_the_end = !strcmp(member_text(s, "size"), "dynamic");
	if (member_number(s, "offset", &out->data_off) || member_number(s, "iv_tweak", &out->iv_sector) ||
		member_number(s, "sector_size", &du) || (!to_the_end && member_number(s, "size", &out->bytes)) ||
		!cf_units_du_valid(du) || (!to_the_end && !out->bytes) || out->data_off % CF_SECTOR_BYTES)
		return cf_fail(err, -EINVAL, "a segment of the LUKS2 header makes no sense");
	spec->du_bytes = (uint32_t)du;
	return cf_spec_parse_option(member_text(s, "encryption"), spec, err);
}

/* One key for all of them: the digest that a segment is checked with. */
static const char *digest_of(struct json_object *root, unsigned segment)
{
	char number[16];
	snprintf(number, sizeof(number), "%u", segment);
	json_object_object_foreach(member(root, "digests"), name,
							   digest) if (has_text(member(digest, "segments"), number)) return name;
	return "";
}

static bool same_cipher(const struct cf_cipher_spec *a, const struct cf_cipher_spec *b)
{
	char text_a[CF_SPEC_TEXT], text_b[CF_SPEC_TEXT];
	cf_spec_format_cipher(a, text_a, sizeof(text_a));
	cf_spec_format_cipher(b, text_b, sizeof(text_b));
	return a->du_bytes == b->du_bytes && !strcmp(text_a, text_b);
}

/* Several segments: one after the other, under one cipher and one key. */
static int layout_pieces(struct json_object *root, uint64_t range_bytes, struct cf_layout *out, struct cf_err *err)
{
	uint64_t off = 0;
	for (unsigned i = 0; segment_at(root, i); i++) {
		struct cf_cipher_spec spec = {.keycount = 0};
		if (i == CF_SEGMENTS_MAX)
			return cf_fail(err, -ENOTSUP, "the LUKS2 volume has more than %u segments", CF_SEGMENTS_MAX);
		struct cf_segment *s = &out->segment[i];
		int rc = read_segment(segment_at(root, i), s, &spec, err);
		if (rc)
			return rc;
		if (i && (!same_cipher(&spec, &out->cipher) || strcmp(digest_of(root, i), digest_of(root, 0)) != 0))
			return cf_fail(err, -ENOTSUP, "the segments of the LUKS2 volume differ in cipher or key");
		if (s->data_off >= range_bytes || s->bytes > range_bytes - s->data_off)
			return cf_fail(err, -EINVAL, "segment %u of the LUKS2 volume lies beyond the image", i);
		if (!s->bytes)
			s->bytes = cf_units_round_down(range_bytes - s->data_off, spec.du_bytes);
		s->off = off;
		off += s->bytes;
		out->cipher = spec;
		out->n_segments = i + 1;
	}
	out->data_off = out->segment[0].data_off;
	return 0;
}

static int layout_luks2(struct cf_header *h, uint64_t range_bytes, struct cf_layout *out, struct cf_err *err)
{
	CF_CLEANUP(put_json) struct json_object *root = get_json(h);
	struct cf_segment only = {0};
	if (!segment_at(root, 0))
		return cf_fail(err, -EINVAL, "the LUKS2 header names no data");
	if (segment_at(root, 1))
		return layout_pieces(root, range_bytes, out, err);
	int rc = read_segment(segment_at(root, 0), &only, &out->cipher, err);
	out->data_off = only.data_off;
	out->bytes = only.bytes;
	out->iv_offset = only.iv_sector;
	return rc;
}

static int layout(struct cf_header *h, uint64_t range_bytes, struct cf_layout *out, struct cf_err *err)
{
	*out = (struct cf_layout){.n_segments = 0};
	int rc = h->kind == CF_HEADER_LUKS1 ? layout_luks1(h, out, err) : layout_luks2(h, range_bytes, out, err);
	out->cipher.key_bytes = (uint32_t)cf_header_key_bytes(h);
	return rc;
}

const struct cf_header_format cf_header_luks = {
	.name = "LUKS",
	.type = CRYPT_LUKS,
	.suspect = suspect,
	.areas = areas,
	.key_areas = key_areas,
	.kind = kind,
	.describe = describe,
	.layout = layout,
};
