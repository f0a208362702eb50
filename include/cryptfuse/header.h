/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* header.h - what LUKS, BitLocker and FileVault2 headers say, read by libcryptsetup.
 *
 * libcryptsetup repairs what it loads, so it never sees the image: it gets a sealed copy in memory of the header area,
 * read through the image's own backing (HAZARDS 28). Nothing here writes, needs root, device-mapper or AF_ALG. Runs in
 * the parent, one thread. */
#ifndef CRYPTFUSE_HEADER_H
#define CRYPTFUSE_HEADER_H

#include "cryptfuse/err.h"
#include "cryptfuse/open.h"

enum cf_header_kind {
	CF_HEADER_NONE, /* no header: a plain volume, or something else */
	CF_HEADER_LUKS1,
	CF_HEADER_LUKS2,
	CF_HEADER_BITLK,
	CF_HEADER_FVAULT2,
	CF_HEADER_KINDS
};

#define CF_KEYSLOTS_MAX 32u
#define CF_HEADER_TEXT 64u

struct cf_keyslot {
	int number;
	char kind[CF_HEADER_TEXT];   /* "luks2", "passphrase", "recovery passphrase", "startup key" … */
	char kdf[CF_HEADER_TEXT];    /* "argon2id", "pbkdf2-sha256"; "" unknown */
	char cipher[CF_HEADER_TEXT]; /* what the keyslot itself is encrypted with; "" unknown */
};

/** Everything about a header that may be shown. Plain data, printable text. */
struct cf_header_info {
	enum cf_header_kind kind;
	char uuid[CF_HEADER_TEXT], label[CF_HEADER_TEXT];
	char cipher[CF_HEADER_TEXT * 2]; /* of the data: "aes-xts-plain64" */
	uint32_t key_bits;
	uint32_t du_bytes;
	uint64_t data_off; /* bytes from the start of the data image */
	unsigned n_keyslots;
	struct cf_keyslot keyslot[CF_KEYSLOTS_MAX];
	char problem[CF_ERR_TEXT]; /* why such a volume cannot be opened here; "" it can */
};

struct cf_header;

/** cf_header_load - read the header of a volume that lies in a range of an image
 * @kind: CF_HEADER_NONE takes what is there; another is insisted on (LUKS1 and LUKS2 are told apart)
 * @data, @off, @bytes: the image, and where in it the encrypted volume lies (a partition, or all of it)
 * @detached: the store of a --header, or NULL: it stands in front of the data
 * Returns 0 and *out; -ENOENT no header (of that kind) there; -EINVAL damaged, or of no kind that is known: says how;
 * -EIO. */
int cf_header_load(struct cf_header **out, enum cf_header_kind kind, struct cf_backing *data, uint64_t off,
				   uint64_t bytes, struct cf_backing *detached, struct cf_err *err) CF_MUST_CHECK;

/** cf_header_free - takes NULL, leaves NULL. */
void cf_header_free(struct cf_header **h);

/** cf_header_info - never fails: what is not known stays empty. */
void cf_header_info(struct cf_header *h, struct cf_header_info *out);

/** cf_header_check - would such a volume be opened, with the right key? Judges what cf_header_info leaves out: the
 * place of the data, and whether an engine here has the cipher
 * @problem: the reason, in words; left alone if it would, or if there is one already. */
void cf_header_check(struct cf_header *h, char problem[static CF_ERR_TEXT]);

/** cf_header_kind - which it is; never CF_HEADER_NONE. */
enum cf_header_kind cf_header_kind(const struct cf_header *h);

/** cf_header_kind_name - "LUKS1", "LUKS2", "BitLocker", "FileVault2"; "" for none. */
const char *cf_header_kind_name(enum cf_header_kind kind);

#endif
