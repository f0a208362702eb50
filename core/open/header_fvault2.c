/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* header_fvault2.c - FileVault2 (Core Storage): where its metadata lies, and what the library says of the volume.
 *
 *     volume header -> disk label block -> volume groups descriptor -> encrypted metadata blocks
 *
 * Only these three pointers are followed here, to know what to copy; what they lead to the library reads. Source:
 * libfvde's description of the format. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/spec.h"
#include "header.h"

#define SIGNATURE_OFF 88u
#define BLOCK_SIZE_OFF 96u
#define LABEL_BLOCK_OFF 104u
#define DESCRIPTOR_OFF 220u /* in the disk label block: where in it the descriptor stands */
#define COUNT_OFF 8u        /* in the descriptor: encrypted metadata blocks */
#define BLOCK_OFF 32u       /* and where the first is */
#define METADATA_BLOCK_BYTES ((uint64_t)8192)
#define METADATA_MAX ((uint64_t)64 << 20) /* of encrypted metadata that is copied; some MiB are usual */
#define FAR ((uint64_t)1 << 30)           /* the library looks no further */
#define DUMP_BYTES 4096u

static enum cf_suspicion suspect(const uint8_t first[static CF_SIGNATURE_BYTES])
{
	return memcmp(first + SIGNATURE_OFF, "CS", 2) == 0 ? CF_SUSPECT_MAYBE : CF_SUSPECT_NO;
}

static int areas(const struct cf_header_store *s, const uint8_t first[static CF_SIGNATURE_BYTES], struct cf_areas *out)
{
	uint8_t pointer[4], descriptor[BLOCK_OFF + 8];
	uint64_t block_bytes = cf_load_le32(first + BLOCK_SIZE_OFF), label, blocks;
	cf_areas_add(out, 0, METADATA_BLOCK_BYTES);
	if (__builtin_mul_overflow(cf_load_le64(first + LABEL_BLOCK_OFF), block_bytes, &label) || label > FAR)
		return -EINVAL;
	int rc = cf_header_read(s, label + DESCRIPTOR_OFF, pointer, sizeof(pointer));
	if (!rc)
		rc = cf_header_read(s, label + cf_load_le32(pointer), descriptor, sizeof(descriptor));
	if (rc)
		return rc;
	cf_areas_add(out, label, METADATA_BLOCK_BYTES);
	cf_areas_add(out, label + cf_load_le32(pointer), sizeof(descriptor));
	uint64_t count = cf_load_le64(descriptor + COUNT_OFF);
	if (__builtin_mul_overflow(cf_load_le64(descriptor + BLOCK_OFF), block_bytes, &blocks) || blocks > FAR ||
		count > METADATA_MAX / METADATA_BLOCK_BYTES)
		return -EINVAL;
	cf_areas_add(out, blocks, count * METADATA_BLOCK_BYTES);
	return 0;
}

static enum cf_header_kind kind(struct crypt_device *cd)
{
	(void)cd;
	return CF_HEADER_FVAULT2;
}

static void describe(struct cf_header *h, struct cf_header_info *out)
{
	(void)h;
	out->n_keyslots = 1;
	snprintf(out->keyslot[0].kind, sizeof(out->keyslot[0].kind), "passphrase");
	snprintf(out->keyslot[0].kdf, sizeof(out->keyslot[0].kdf), "pbkdf2-sha256");
}

/* "Logical volume size:  \t167772160 [bytes]" */
static int volume_bytes(struct cf_header *h, uint64_t *out)
{
	static const char name[] = "Logical volume size:";
	char dump[DUMP_BYTES], digits[32];
	cf_header_dump(h, dump, sizeof(dump));
	const char *at = strstr(dump, name);
	if (!at)
		return -EINVAL;
	at += sizeof(name) - 1;
	at += strspn(at, " \t");
	snprintf(digits, sizeof(digits), "%.*s", (int)strspn(at, "0123456789"), at);
	return cf_units_parse_number(digits, INT64_MAX, out);
}

static int layout(struct cf_header *h, uint64_t range_bytes, struct cf_layout *out, struct cf_err *err)
{
	char text[CF_SPEC_TEXT];
	(void)range_bytes;
	*out = (struct cf_layout){.n_segments = 0};
	if (volume_bytes(h, &out->bytes) != 0 || !out->bytes)
		return cf_fail(err, -ENOTSUP, "this libcryptsetup does not say how long the FileVault2 volume is");
	out->cipher.du_bytes = CF_DU_MIN;
	out->cipher.key_bytes = (uint32_t)cf_header_key_bytes(h);
	out->data_off = crypt_get_data_offset(h->cd) * CF_SECTOR_BYTES;
	out->iv_offset = crypt_get_iv_offset(h->cd);
	snprintf(text, sizeof(text), "%s-%s", crypt_get_cipher(h->cd), crypt_get_cipher_mode(h->cd));
	return cf_spec_parse_cipher(text, &out->cipher, err);
}

const struct cf_header_format cf_header_fvault2 = {
	.name = "FileVault2",
	.type = CRYPT_FVAULT2,
	.suspect = suspect,
	.areas = areas,
	.kind = kind,
	.describe = describe,
	.layout = layout,
};
