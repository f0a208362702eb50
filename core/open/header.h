/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* header.h - what the kinds of header share, and what open needs of them. Inside core/open only.
 *
 * A kind is one file that ends in one const struct cf_header_format. libcryptsetup reads the header; a format only
 * knows which bytes the library will look at, and how to put what it says into our words. */
#ifndef CRYPTFUSE_OPEN_HEADER_H
#define CRYPTFUSE_OPEN_HEADER_H

#include <libcryptsetup.h>

#include "cryptfuse/err.h"
#include "cryptfuse/header.h"
#include "cryptfuse/key.h"
#include "cryptfuse/probe.h"
#include "cryptfuse/segment.h"

#define CF_SIGNATURE_BYTES 512u /* from the start: signatures and what says where the rest lies */

#define CF_AREAS_MAX 40u

/** Pieces of a store that a library reads, in any order; they may overlap. */
struct cf_areas {
	unsigned n;
	struct cf_extent at[CF_AREAS_MAX];
};

/** cf_areas_add - one more; none when there are too many: what is missing then reads as zeros. */
static inline void cf_areas_add(struct cf_areas *a, uint64_t off, uint64_t bytes)
{
	if (bytes && a->n < CF_AREAS_MAX)
		a->at[a->n++] = (struct cf_extent){.off = off, .bytes = bytes};
}

/** Where a header stands, as its format sees it: offsets count from the start of the volume. */
struct cf_header_store {
	struct cf_backing *backing;
	struct cf_extent range;
};

/** cf_header_read - @len bytes at @at of the store. 0; -EINVAL not inside it; -EIO. */
int cf_header_read(const struct cf_header_store *s, uint64_t at, void *buf, size_t len) CF_MUST_CHECK;

/** Where a volume lies, as its header says. */
struct cf_layout {
	struct cf_cipher_spec cipher; /* all but iv_offset: that is in the segments */
	uint64_t data_off;            /* bytes from the start of the volume's range */
	uint64_t bytes;               /* 0: all that remains */
	uint64_t iv_offset;           /* sectors; when there are no segments */
	unsigned n_segments;          /* 0: one piece at data_off */
	struct cf_segment segment[CF_SEGMENTS_MAX];
};

/** How sure the first bytes make of a kind. */
enum cf_suspicion { CF_SUSPECT_NO, CF_SUSPECT_MAYBE, CF_SUSPECT_YES };

struct cf_header_format {
	const char *name; /* of the family */
	const char *type; /* libcryptsetup's word */
	/** Looks at the start of the store only. */
	enum cf_suspicion (*suspect)(const uint8_t first[static CF_SIGNATURE_BYTES]);
	/** What the library reads to load the header. 0; -EINVAL what is said there makes no sense; -EIO. */
	int (*areas)(const struct cf_header_store *s, const uint8_t first[static CF_SIGNATURE_BYTES], struct cf_areas *out);
	/** What it reads besides to unlock a volume; NULL: nothing. */
	void (*key_areas)(struct crypt_device *cd, struct cf_areas *out);
	enum cf_header_kind (*kind)(struct crypt_device *cd);
	/** Fill label, keyslots and problem; the rest is done. */
	void (*describe)(struct cf_header *h, struct cf_header_info *out);
	/** @range_bytes: how long the image is from the start of the volume's range on. 0; -EINVAL, -ENODEV says why. */
	int (*layout)(struct cf_header *h, uint64_t range_bytes, struct cf_layout *out, struct cf_err *err);
};

extern const struct cf_header_format cf_header_luks, cf_header_bitlk, cf_header_fvault2;

struct cf_header {
	const struct cf_header_format *format;
	enum cf_header_kind kind;
	struct crypt_device *cd;
	int copy;            /* the sealed copy that @cd reads */
	uint64_t lost;       /* bytes that could not be read, and are zeros in the copy */
	uint64_t off, bytes; /* the volume's range of its image */
	enum { CF_HEADER_IN_FRONT, CF_HEADER_DETACHED } place;
	char said[CF_ERR_TEXT]; /* the library's last complaint */
};

static inline bool cf_header_is_luks(const struct cf_header *h)
{
	return h->kind == CF_HEADER_LUKS1 || h->kind == CF_HEADER_LUKS2;
}

/** cf_header_suspect - which kind of header a store looks like it has; for a warning. Reads one sector. */
const char *cf_header_suspect(struct cf_backing *b, uint64_t off, uint64_t bytes);

/** cf_header_load_fd - let the library load a sealed copy; its complaints go to @h. @out: owned, also on failure. */
int cf_header_load_fd(struct cf_header *h, int fd, const char *type, struct crypt_device **out) CF_MUST_CHECK;

/** cf_luks_digest_iterations - of PBKDF2, to check a volume key: the most that any digest of a LUKS header asks for. */
uint64_t cf_luks_digest_iterations(struct cf_header *h);

/** cf_header_costs - is what the header asks of a key derivation bearable? It comes from whoever made the image
 * @slot: the keyslot that will be tried; below 0: all
 * Returns 0; -ENOTSUP more work or memory than anybody would ask for in good faith: names the limit; -ENOMEM more than
 * this machine has. FileVault2 does not say what it asks for. */
int cf_header_costs(struct cf_header *h, int slot, struct cf_err *err) CF_MUST_CHECK;

/** cf_header_digest_cost - the same of the check of a volume key alone. */
int cf_header_digest_cost(struct cf_header *h, struct cf_err *err) CF_MUST_CHECK;

/** cf_luks1_unlock - as crypt_volume_key_get, for a keyslot whose cipher only our engines have
 * -ENOTSUP, -ENODEV they have not either; -EPERM the passphrase is another. */
int cf_luks1_unlock(struct cf_header *h, int slot, const struct cf_secret_buf *pass, uint8_t *key,
					size_t *key_bytes) CF_MUST_CHECK;

#define CF_LOST_TEXT 64u

/** cf_header_lost - "; 4096 bytes of the header cannot be read", or "". */
void cf_header_lost(const struct cf_header *h, char text[static CF_LOST_TEXT]);

/** cf_header_dump - what crypt_dump prints, as text; "" if it failed. @size bytes at @text. */
void cf_header_dump(struct cf_header *h, char *text, size_t size);

/** cf_header_plan - cipher and place of the volume into @plan
 * @sectors: --size; 0 all. Returns 0; -EINVAL, -ENODEV, -ENOTSUP cannot be opened here: says why. */
int cf_header_plan(struct cf_header *h, uint64_t sectors, struct cf_open_plan *plan, struct cf_err *err) CF_MUST_CHECK;

/** cf_header_unlock - the volume key
 * @slot: a keyslot, or CRYPT_ANY_SLOT   @key: out, owned, from cf_secret_alloc, as long as the plan says
 * Returns the keyslot that was used; -EPERM none has this passphrase; -ENOTSUP, -EINVAL …: says why. */
int cf_header_unlock(struct cf_header *h, int slot, const struct cf_secret_buf *pass, uint8_t **key,
					 struct cf_err *err) CF_MUST_CHECK;

/** cf_header_verify - is @key (as long as the plan says) this volume's? 0; -EPERM no. Where the header has no digest of
 * it, any key is. */
int cf_header_verify(struct cf_header *h, const uint8_t *key, struct cf_err *err) CF_MUST_CHECK;

/** cf_header_key_bytes - length of the volume key. */
size_t cf_header_key_bytes(struct cf_header *h);

#endif
