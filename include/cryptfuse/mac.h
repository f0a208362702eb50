/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* mac.h - short keyed checksums, and the keys for them.
 *
 * A checksum that nobody can make who lacks the key, of data that anybody may see: SipHash-2-4 with 128 bits. Chosen
 * over HMAC-SHA256 because it is a keyed function of the same purpose at four times the speed for pieces of 512 bytes,
 * also on processors without instructions for SHA. Keys come from a volume key by HMAC-SHA256. */
#ifndef CRYPTFUSE_MAC_H
#define CRYPTFUSE_MAC_H

#include "cryptfuse/base.h"

#define CF_MAC_KEY 16u /* bytes */
#define CF_MAC_TAG 16u

struct cf_mac;

/** cf_mac_derive - a key of its own for one purpose
 * @key: @key_len bytes, may be none (then anybody can derive it)   @label: the purpose   @context: @context_len bytes
 * that the key shall depend on   @out: from cf_secret_alloc. Returns 0; -ENOMEM. */
int cf_mac_derive(const uint8_t *key, size_t key_len, const char *label, const void *context, size_t context_len,
				  uint8_t out[static CF_MAC_KEY]) CF_MUST_CHECK;

/** cf_mac_new - @key: CF_MAC_KEY bytes, copied into the arena. Returns 0; -ENOMEM. */
int cf_mac_new(struct cf_mac **out, const uint8_t key[static CF_MAC_KEY]) CF_MUST_CHECK;

/** cf_mac_tag - the checksum of @len bytes. One thread at a time for each @m; allocates nothing. 0; -EIO. */
int cf_mac_tag(struct cf_mac *m, const void *data, size_t len, uint8_t out[static CF_MAC_TAG]) CF_MUST_CHECK;

/** cf_mac_free - wipes; takes NULL, leaves NULL. */
void cf_mac_free(struct cf_mac **m);

#endif
