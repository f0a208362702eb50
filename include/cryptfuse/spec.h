/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* spec.h - from dm-crypt's cipher string to a struct.
 *
 * Syntax only: what the words mean together is judged by cf_cipher_check. Pure functions. */
#ifndef CRYPTFUSE_SPEC_H
#define CRYPTFUSE_SPEC_H

#include "cryptfuse/cipher.h"

/** cf_spec_parse_cipher - "aes-xts-plain64", "aes:64-cbc-lmk", "capi:essiv(cbc(aes),sha256)-plain64" …
 * Sets cipher, mode, iv, essiv_hash and keycount of @out and nothing else. Both forms of one cipher give the same
 * struct. What is no cipher and mode of ours is kept as the kernel's own name, with the mode CF_MODE_API, whoever may
 * know it. Returns 0; -EINVAL malformed, or accepted by the kernel only by misreading it (the message says why);
 * -ENODEV a name that nobody can have. Source: dm-crypt.c, crypt_ctr_cipher_old() and crypt_ctr_cipher_new().
 */
int cf_spec_parse_cipher(const char *text, struct cf_cipher_spec *out, struct cf_err *err) CF_MUST_CHECK;

/** cf_spec_parse_option - the same for what --cipher takes: cryptsetup's "null" and "cipher_null" are cipher_null-ecb.
 */
int cf_spec_parse_option(const char *text, struct cf_cipher_spec *out, struct cf_err *err) CF_MUST_CHECK;

#define CF_SPEC_TEXT (5 * CF_NAME_MAX) /* bytes that any spec fits in as text, NUL included */

/** cf_spec_format_cipher - the way back: a cipher string that cf_spec_parse_cipher reads as the same struct
 * @size: at least CF_SPEC_TEXT. */
void cf_spec_format_cipher(const struct cf_cipher_spec *c, char *out, size_t size);

#endif
