/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* mac.c - libcrypto's SipHash and HMAC. The key is set anew for every checksum: that costs next to nothing, and older
 * releases of libcrypto go wrong without. */
#include "cryptfuse/mac.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/digest.h"
#include "cryptfuse/secret.h"

#define HMAC_BYTES 32u

struct cf_mac {
	EVP_MAC_CTX *ctx;
	uint8_t *key;
};

static void free_mac(EVP_MAC **m)
{
	EVP_MAC_free(*m);
}

static void free_mac_ctx(EVP_MAC_CTX **ctx)
{
	EVP_MAC_CTX_free(*ctx);
}

/* HMAC(key, label NUL context): a label with its NUL is no prefix of another. */
int cf_mac_derive(const uint8_t *key, size_t key_len, const char *label, const void *context, size_t context_len,
				  uint8_t out[static CF_MAC_KEY])
{
	static const uint8_t no_key[1];
	const OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string("digest", (char *)(uintptr_t) "SHA2-256", 0),
								 OSSL_PARAM_construct_end()};
	CF_CLEANUP(free_mac) EVP_MAC *hmac = EVP_MAC_fetch(cf_libcrypto(), "HMAC", NULL);
	CF_CLEANUP(free_mac_ctx) EVP_MAC_CTX *ctx = hmac ? EVP_MAC_CTX_new(hmac) : NULL;
	uint8_t full[HMAC_BYTES];
	size_t len;
	if (!ctx || !EVP_MAC_init(ctx, key_len ? key : no_key, key_len ? key_len : sizeof(no_key), params) ||
		!EVP_MAC_update(ctx, (const uint8_t *)label, strlen(label) + 1) || !EVP_MAC_update(ctx, context, context_len) ||
		!EVP_MAC_final(ctx, full, &len, sizeof(full)))
		return -ENOMEM;
	memcpy(out, full, CF_MAC_KEY);
	cf_secret_wipe(full, sizeof(full));
	return 0;
}

int cf_mac_new(struct cf_mac **out, const uint8_t key[static CF_MAC_KEY])
{
	CF_CLEANUP(cf_mac_free) struct cf_mac *m = calloc(1, sizeof(*m));
	CF_CLEANUP(free_mac) EVP_MAC *siphash = EVP_MAC_fetch(cf_libcrypto(), "SIPHASH", NULL);
	if (!m || !siphash || !(m->key = cf_secret_alloc(CF_MAC_KEY)) || !(m->ctx = EVP_MAC_CTX_new(siphash)))
		return -ENOMEM;
	memcpy(m->key, key, CF_MAC_KEY);
	*out = cf_take(m);
	return 0;
}

int cf_mac_tag(struct cf_mac *m, const void *data, size_t len, uint8_t out[static CF_MAC_TAG])
{
	size_t got;
	return EVP_MAC_init(m->ctx, m->key, CF_MAC_KEY, NULL) && EVP_MAC_update(m->ctx, data, len) &&
				   EVP_MAC_final(m->ctx, out, &got, CF_MAC_TAG) && got == CF_MAC_TAG
			   ? 0
			   : -EIO;
}

void cf_mac_free(struct cf_mac **m)
{
	if (!*m)
		return;
	EVP_MAC_CTX_free((*m)->ctx);
	cf_secret_free((*m)->key);
	free(*m);
	*m = NULL;
}
