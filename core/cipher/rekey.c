/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* rekey.c - a cipher that forgets its key, and takes the same one again.
 *
 * What stays is no secret: the spec, the engine that was chosen, the measured thresholds, and a check value, which is
 * the key through PBKDF2 under a random salt: guessing by it is no cheaper than guessing by the ciphertext. */
#include <assert.h>
#include <errno.h>
#include <openssl/crypto.h>
#include <string.h>
#include <sys/random.h>

#include "cryptfuse/digest.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "impl.h"

#define CHECK_HASH "sha256"
#define CHECK_ITERATIONS 1000u

static int check_value(const struct cf_cipher *c, const uint8_t *key, uint8_t out[static CF_CHECK_BYTES])
{
	return cf_digest_pbkdf2(CHECK_HASH, key, c->spec.key_bytes, c->check.salt, sizeof(c->check.salt), CHECK_ITERATIONS,
							out, CF_CHECK_BYTES);
}

int cf_cipher_keep_check(struct cf_cipher *c, const uint8_t *key)
{
	if (getrandom(c->check.salt, sizeof(c->check.salt), 0) != (ssize_t)sizeof(c->check.salt))
		return -EIO;
	int rc = check_value(c, key, c->check.value);
	c->check.kept = rc == 0;
	return rc;
}

bool cf_cipher_can_rekey(const struct cf_cipher *c)
{
	return c->check.kept && !c->plan.engine->elsewhere;
}

bool cf_cipher_has_key(const struct cf_cipher *c)
{
	return c->subkeys != NULL;
}

void cf_cipher_forget(struct cf_cipher *c)
{
	assert(cf_cipher_can_rekey(c) && !c->standby);
	cf_cipher_keys_fini(c);
	cf_cipher_work_wipe(c);
}

static int judge(const struct cf_cipher *c, const uint8_t *key, struct cf_err *err)
{
	uint8_t value[CF_CHECK_BYTES];
	int rc = check_value(c, key, value);
	if (rc)
		return cf_fail(err, rc, "the key cannot be checked: %s", strerror(-rc));
	if (CRYPTO_memcmp(value, c->check.value, sizeof(value)) != 0)
		return cf_fail(err, -EPERM, "this is not the key that the volume was opened with");
	return 0;
}

static int set_up(struct cf_cipher *c, const uint8_t *key, struct cf_err *err)
{
	char label[CF_LABEL];
	int rc = cf_cipher_keys_init(c, key);
	if (!rc)
		rc = cf_cipher_selftest(c, c->path, err);
	cf_cipher_label(&c->spec, label);
	return rc ? cf_fail(err, rc, "engine '%s' could not set up %s: %s", c->plan.engine->name, label, strerror(-rc)) : 0;
}

int cf_cipher_rekey(struct cf_cipher *c, const uint8_t *key, struct cf_err *err)
{
	assert(cf_cipher_can_rekey(c) && !cf_cipher_has_key(c));
	int rc = judge(c, key, err);
	if (rc)
		return rc;
	rc = set_up(c, key, err);
	if (rc)
		cf_cipher_forget(c);
	return rc;
}
