/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* header_key.c - from a passphrase to the volume key of a header, by libcryptsetup.
 *
 * The key is written straight into the secret arena. The library's own copies go with its context, which the caller
 * frees as soon as the key is there. One thread, in the parent of the daemon. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cryptfuse/secret.h"
#include "header.h"

size_t cf_header_key_bytes(struct cf_header *h)
{
	int n = crypt_get_volume_key_size(h->cd);
	return n > 0 ? (size_t)n : 0;
}

/* Which keyslots the library had no cipher for: all that are in use, as a list. */
static void list_ciphers(struct cf_header *h, int slot, char *text, size_t size)
{
	text[0] = '\0';
	for (int i = 0; i < crypt_keyslot_max(crypt_get_type(h->cd)); i++) {
		size_t len = strlen(text), key_bytes;
		crypt_keyslot_info state = crypt_keyslot_status(h->cd, i);
		if ((slot >= 0 && i != slot) || state < CRYPT_SLOT_ACTIVE)
			continue;
		const char *cipher = crypt_keyslot_get_encryption(h->cd, i, &key_bytes);
		if (cipher)
			snprintf(text + len, size - len, "%skeyslot %d is encrypted with %s", len ? ", " : "", i, cipher);
	}
}

/* What the library answers when it has no cipher for a keyslot, and no kernel either. */
static bool lacks_cipher(int rc)
{
	return rc == -EIO || rc == -ENOTSUP || rc == -ENODEV || rc == -ENOTBLK;
}

static int refuse(struct cf_header *h, int slot, int rc, struct cf_err *err)
{
	char ciphers[CF_ERR_TEXT / 2] = "", lost[CF_LOST_TEXT];
	cf_header_lost(h, lost);
	if (rc == -EPERM)
		return cf_fail(err, rc, "no key available with this passphrase%s", lost);
	if (rc == -ENOENT)
		return cf_fail(err, -EPERM, "no keyslot is in use: nothing can unlock this volume");
	if (rc == -ENOMEM)
		return cf_fail(err, rc, "not enough memory for the key derivation of this volume");
	if (cf_header_is_luks(h) && lacks_cipher(rc))
		list_ciphers(h, slot, ciphers, sizeof(ciphers));
	if (*ciphers)
		return cf_fail(err, -ENOTSUP, "%s: libcryptsetup needs the kernel's AF_ALG for it", ciphers);
	return cf_fail(err, rc, "libcryptsetup cannot unlock the volume: %s", *h->said ? h->said : strerror(-rc));
}

/* The keyslots that the library had no cipher for, by our engines. -EPERM if any of them could be tried. */
static int try_engines(struct cf_header *h, int slot, const struct cf_secret_buf *pass, uint8_t *key, size_t *key_bytes)
{
	int worst = -ENOTSUP;
	for (int i = 0; i < crypt_keyslot_max(CRYPT_LUKS1); i++) {
		if ((slot >= 0 && i != slot) || crypt_keyslot_status(h->cd, i) < CRYPT_SLOT_ACTIVE)
			continue;
		size_t got = *key_bytes;
		int rc = cf_luks1_unlock(h, i, pass, key, &got);
		if (rc >= 0) {
			*key_bytes = got;
			return rc;
		}
		worst = rc == -EPERM ? rc : worst;
	}
	return worst;
}

static int get_key(struct cf_header *h, int slot, const struct cf_secret_buf *pass, uint8_t *key, size_t *key_bytes)
{
	size_t room = *key_bytes;
	int rc = crypt_volume_key_get(h->cd, slot, (char *)key, key_bytes, pass->data ? (const char *)pass->data : "",
								  pass->len);
	if (h->kind != CF_HEADER_LUKS1 || !lacks_cipher(rc))
		return rc;
	*key_bytes = room;
	int ours = try_engines(h, slot, pass, key, key_bytes);
	return lacks_cipher(ours) ? rc : ours;
}

int cf_header_unlock(struct cf_header *h, int slot, const struct cf_secret_buf *pass, uint8_t **key, struct cf_err *err)
{
	size_t want = cf_header_key_bytes(h), got = CF_KEY_MAX;
	CF_CLEANUP(cf_secret_freep) uint8_t *buf = cf_secret_alloc(got);
	if (!buf)
		return cf_fail(err, -ENOMEM, "no memory for the key");
	if (slot >= 0 && crypt_keyslot_status(h->cd, slot) < CRYPT_SLOT_ACTIVE)
		return cf_fail(err, -EPERM, "keyslot %d is not in use", slot);
	int rc = cf_header_costs(h, slot, err);
	if (rc)
		return rc;
	h->said[0] = '\0';
	rc = get_key(h, slot, pass, buf, &got);
	if (rc < 0)
		return refuse(h, slot, rc, err);
	if (got != want)
		return cf_fail(err, -EINVAL, "the volume key has %zu bytes, not the %zu that the header says", got, want);
	*key = cf_secret_alloc(want);
	if (!*key)
		return cf_fail(err, -ENOMEM, "no memory for the key");
	memcpy(*key, buf, want);
	return rc;
}

int cf_header_verify(struct cf_header *h, const uint8_t *key, struct cf_err *err)
{
	if (!cf_header_is_luks(h))
		return 0;
	int rc = cf_header_digest_cost(h, err);
	if (rc)
		return rc;
	rc = crypt_volume_key_verify(h->cd, (const char *)key, cf_header_key_bytes(h));
	if (rc == -EPERM)
		return cf_fail(err, rc, "this is not the volume key of this volume");
	return rc < 0
			   ? cf_fail(err, rc, "libcryptsetup cannot check the volume key: %s", *h->said ? h->said : strerror(-rc))
			   : 0;
}
