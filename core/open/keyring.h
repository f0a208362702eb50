/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* keyring.h - a volume key that a table or an option names. Inside core/open only. */
#ifndef CRYPTFUSE_OPEN_KEYRING_H
#define CRYPTFUSE_OPEN_KEYRING_H

#include "cryptfuse/base.h"

struct cf_err;

/** cf_keyring_read - read the key that ":SIZE:TYPE:NAME" names
 * @text: writable, cut up; begins with ':'     @key: out, owned, from cf_secret_alloc, @key_bytes long
 * Only keys of type user can be read back by a program. Returns 0; -EINVAL malformed, or the key has another size;
 * -ENOKEY logon, trusted or encrypted, or no such key, or not ours to read. */
int cf_keyring_read(char *text, uint8_t **key, uint32_t *key_bytes, struct cf_err *err) CF_MUST_CHECK;

/** cf_keyring_read_named - the same for a key that an option names
 * @text: "%user:NAME", "NAME", or a serial number   @want: bytes it must have   @key: out, owned */
int cf_keyring_read_named(const char *text, size_t want, uint8_t **key, struct cf_err *err) CF_MUST_CHECK;

#endif
