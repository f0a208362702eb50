/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* keyring.c - a volume key out of the kernel's keyring service.
 *
 * A table may say ":SIZE:TYPE:NAME". Keys of type logon never leave the kernel, trusted and encrypted ones only in a
 * wrapped form, so none of these can be used here. No state; any thread. Source: dm-crypt.c, get_key_size() and
 * crypt_set_keyring_key(); keyctl(2). */
#include "config.h"

#include "keyring.h"

#include <errno.h>
#include <linux/keyctl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cryptfuse/cipher.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"

static int check_type(const char *type, struct cf_err *err)
{
	static const char *const unreadable[] = {"logon", "trusted", "encrypted"};
	if (!strcmp(type, "user"))
		return 0;
	for (size_t i = 0; i < CF_ARRAY_LEN(unreadable); i++)
		if (!strcmp(type, unreadable[i]))
			return cf_fail(err, -ENOKEY,
						   "the table's key is a %s key of the kernel's keyring, which no program can read",
						   unreadable[i]);
	return cf_fail(err, -EINVAL, "the table's KEY names a type of keyring key that dm-crypt does not have");
}

static int read_user_key(const char *name, size_t want, uint8_t **key, struct cf_err *err)
{
	long id = syscall(SYS_request_key, "user", name, NULL, 0);
	if (id < 0)
		return cf_fail(err, -ENOKEY, "the table's key is not in a keyring of this process: %s", strerror(errno));
	CF_CLEANUP(cf_secret_freep) uint8_t *bytes = cf_secret_alloc(want);
	if (!bytes)
		return cf_fail(err, -ENOMEM, "no memory for the key");
	long got = syscall(SYS_keyctl, KEYCTL_READ, id, bytes, want);
	if (got < 0)
		return cf_fail(err, -ENOKEY, "the table's key cannot be read from the keyring: %s", strerror(errno));
	if ((size_t)got != want)
		return cf_fail(err, -EINVAL, "the table's key has %ld bytes in the keyring, not the %zu of the table", got,
					   want);
	*key = cf_take(bytes);
	return 0;
}

/* "%TYPE:NAME", or a name alone: keyctl(1)'s way to name a key. */
static int find_named(const char *text, long *id, struct cf_err *err)
{
	static const char prefix[] = "%user:";
	uint64_t serial;
	if (cf_units_parse_number(text, INT32_MAX, &serial) == 0) {
		*id = (long)serial;
		return 0;
	}
	if (*text == '%' && strncmp(text, prefix, sizeof(prefix) - 1) != 0)
		return cf_fail(err, -EINVAL, "--volume-key-keyring %s: only keys of type user can be read: %%user:NAME", text);
	*id = syscall(SYS_request_key, "user", *text == '%' ? text + sizeof(prefix) - 1 : text, NULL, 0);
	if (*id < 0)
		return cf_fail(err, -ENOKEY, "the key %s is not in a keyring of this process: %s", text, strerror(errno));
	return 0;
}

int cf_keyring_read_named(const char *text, size_t want, uint8_t **key, struct cf_err *err)
{
	long id = -1;
	int rc = find_named(text, &id, err);
	if (rc)
		return rc;
	CF_CLEANUP(cf_secret_freep) uint8_t *bytes = cf_secret_alloc(want);
	if (!bytes)
		return cf_fail(err, -ENOMEM, "no memory for the key");
	long got = syscall(SYS_keyctl, KEYCTL_READ, id, bytes, want);
	if (got < 0)
		return cf_fail(err, -ENOKEY, "the key %s cannot be read from the keyring: %s", text, strerror(errno));
	if ((size_t)got != want)
		return cf_fail(err, -EINVAL, "the key %s has %ld bytes, not the %zu of the volume key", text, got, want);
	*key = cf_take(bytes);
	return 0;
}

int cf_keyring_read(char *text, uint8_t **key, uint32_t *key_bytes, struct cf_err *err)
{
	char *size = text + 1, *type = strchr(size, ':'), *name = type ? strchr(type + 1, ':') : NULL;
	if (!name || !name[1])
		return cf_fail(err, -EINVAL, "the table's KEY is not of the form :SIZE:TYPE:NAME");
	*type++ = '\0';
	*name++ = '\0';
	uint64_t want;
	if (cf_units_parse_number(size, CF_KEY_MAX, &want) != 0 || want == 0)
		return cf_fail(err, -EINVAL, "the SIZE of the table's keyring key must be a number from 1 to %u", CF_KEY_MAX);
	int rc = check_type(type, err);
	if (!rc)
		rc = read_user_key(name, (size_t)want, key, err);
	if (!rc)
		*key_bytes = (uint32_t)want;
	return rc;
}
