/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* table.h - a dm-crypt table line, as `dmsetup table --showkeys` prints it. It holds the key: the text lives in the
 * secret arena. */
#ifndef CRYPTFUSE_TABLE_H
#define CRYPTFUSE_TABLE_H

#include "cryptfuse/cipher.h"

/** A parsed table, without its key: plain data. */
struct cf_table {
	struct cf_cipher_spec cipher;
	uint64_t sectors;     /* length of the volume */
	uint64_t data_sector; /* where it starts in the backing */
	enum cf_discards discards;
};

/** cf_table_parse - "[NAME:] START LENGTH crypt CIPHER KEY IV_OFFSET DEVICE OFFSET [COUNT option…]"
 * @text: @len bytes, one line (a final newline is fine), need not end in NUL
 * @out: set on success     @key: out, owned, from cf_secret_alloc, out->cipher.key_bytes long; NULL for an empty key
 * DEVICE is not looked at: the image stands for it. START must be 0.
 * Returns 0; -EINVAL malformed, more than one line, an unknown option, or taken by the kernel only by misreading it;
 * -ENODEV an unknown cipher; -ENOKEY a keyring key that cannot be read. No message ever shows a piece of the key. */
int cf_table_parse(const char *text, size_t len, struct cf_table *out, uint8_t **key, struct cf_err *err) CF_MUST_CHECK;

#endif
