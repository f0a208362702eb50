/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* crypttab_option.c - the fourth field of a crypttab line: a table of the options that there are.
 *
 * Options that only say when a volume is opened, or by whose queues, are ignored, by name: an unknown one is refused,
 * since it may say how the volume is encrypted. No state; any thread. */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "crypttab.h"
#include "cryptfuse/err.h"
#include "cryptfuse/units.h"

#define TRIES_MAX 1000u

enum kind {
	SET,     /* no value: the field becomes .value */
	TEXT,    /* any */
	NUMBER,  /* decimal */
	IGNORED, /* with a value or without */
	REFUSED, /* .why */
};

struct option {
	const char *name; /* one that ends in '.' or '*' stands for all that begin so */
	enum kind kind;
	size_t field_off, field_bytes;
	unsigned value;
	const char *why;
};

#define FIELD(f) offsetof(struct cf_crypttab, f), sizeof(((struct cf_crypttab *)NULL)->f)
#define NOT_YET "TrueCrypt and VeraCrypt volumes cannot be opened yet"
#define NO_KEY "cryptfuse does not ask it for the key; give --key-file"

static const struct option options[] = {
	{"cipher", TEXT, FIELD(volume.cipher), 0, NULL},
	{"size", NUMBER, FIELD(volume.key_bits), 0, NULL},
	{"hash", TEXT, FIELD(volume.hash), 0, NULL},
	{"offset", NUMBER, FIELD(volume.offset_sectors), 0, NULL},
	{"skip", NUMBER, FIELD(volume.skip_sectors), 0, NULL},
	{"sector-size", NUMBER, FIELD(volume.sector_size_bytes), 0, NULL},
	{"keyfile-offset", NUMBER, FIELD(volume.keyfile_offset_bytes), 0, NULL},
	{"keyfile-size", NUMBER, FIELD(volume.keyfile_size_bytes), 0, NULL},
	{"key-slot", TEXT, FIELD(volume.key_slot), 0, NULL},
	{"keyslot", TEXT, FIELD(volume.key_slot), 0, NULL},
	{"header", TEXT, FIELD(volume.header_file), 0, NULL},
	{"tries", NUMBER, FIELD(volume.tries), 0, NULL},
	{"timeout", NUMBER, FIELD(timeout_s), 0, NULL},
	{"luks", SET, FIELD(volume.type), CF_TYPE_LUKS, NULL},
	{"plain", SET, FIELD(volume.type), CF_TYPE_PLAIN, NULL},
	{"bitlk", SET, FIELD(volume.type), CF_TYPE_BITLK, NULL},
	{"fvault2", SET, FIELD(volume.type), CF_TYPE_FVAULT2, NULL},
	{"readonly", SET, FIELD(volume.access), CF_READ_ONLY, NULL},
	{"read-only", SET, FIELD(volume.access), CF_READ_ONLY, NULL},
	{"discard", SET, FIELD(volume.discards), CF_DISCARDS_ALLOWED, NULL},
	{"allow-discards", SET, FIELD(volume.discards), CF_DISCARDS_ALLOWED, NULL},
	{"verify", SET, FIELD(verify), 1, NULL},
	{"auto", IGNORED, 0, 0, 0, NULL},
	{"noauto", IGNORED, 0, 0, 0, NULL},
	{"nofail", IGNORED, 0, 0, 0, NULL},
	{"noearly", IGNORED, 0, 0, 0, NULL},
	{"_netdev", IGNORED, 0, 0, 0, NULL},
	{"initramfs", IGNORED, 0, 0, 0, NULL},
	{"loud", IGNORED, 0, 0, 0, NULL},
	{"quiet", IGNORED, 0, 0, 0, NULL},
	{"check", IGNORED, 0, 0, 0, NULL},
	{"checkargs", IGNORED, 0, 0, 0, NULL},
	{"same-cpu-crypt", IGNORED, 0, 0, 0, NULL},
	{"submit-from-crypt-cpus", IGNORED, 0, 0, 0, NULL},
	{"no-read-workqueue", IGNORED, 0, 0, 0, NULL},
	{"no-write-workqueue", IGNORED, 0, 0, 0, NULL},
	{"try-empty-password", IGNORED, 0, 0, 0, NULL},
	{"headless", IGNORED, 0, 0, 0, NULL},
	{"password-echo", IGNORED, 0, 0, 0, NULL},
	{"password-cache", IGNORED, 0, 0, 0, NULL},
	{"keyfile-timeout", IGNORED, 0, 0, 0, NULL},
	{"token-timeout", IGNORED, 0, 0, 0, NULL},
	{"x-systemd.", IGNORED, 0, 0, 0, NULL},
	{"x-initrd.", IGNORED, 0, 0, 0, NULL},
	{"swap", REFUSED, 0, 0, 0, CF_CRYPTTAB_RANDOM_KEY},
	{"tmp", REFUSED, 0, 0, 0, CF_CRYPTTAB_RANDOM_KEY},
	{"tcrypt*", REFUSED, 0, 0, 0, NOT_YET},
	{"veracrypt*", REFUSED, 0, 0, 0, NOT_YET},
	{"keyscript", REFUSED, 0, 0, 0, NO_KEY},
	{"pkcs11*", REFUSED, 0, 0, 0, NO_KEY},
	{"fido2*", REFUSED, 0, 0, 0, NO_KEY},
	{"tpm2*", REFUSED, 0, 0, 0, NO_KEY},
	{"keyfile-erase", REFUSED, 0, 0, 0, "cryptfuse erases no key file"},
};

/* ---- one option ---- */

static bool is_named(const struct option *o, const char *word, size_t len)
{
	const size_t own = strlen(o->name);
	if (o->name[own - 1] == '*')
		return len >= own - 1 && !strncmp(word, o->name, own - 1);
	if (o->name[own - 1] == '.')
		return len > own && !strncmp(word, o->name, own);
	return len == own && !strncmp(word, o->name, own);
}

static void set_field(struct cf_crypttab *t, const struct option *o, uint64_t value)
{
	uint8_t *field = (uint8_t *)t + o->field_off;
	const uint32_t small = (uint32_t)value;
	if (o->field_bytes == sizeof(small))
		memcpy(field, &small, sizeof(small));
	else
		memcpy(field, &value, sizeof(value));
}

static int take(struct cf_crypttab *t, const struct cf_crypttab_place *p, const struct option *o, char *word,
				struct cf_err *err)
{
	const size_t len = strcspn(word, "="), used = strlen(t->ignored);
	char *text = word[len] ? word + len + 1 : NULL;
	uint64_t n;
	switch (o->kind) {
	case REFUSED:
		return cf_fail(err, -EINVAL, "%s:%u: %s has the option '%.*s': %s", p->where, p->line, p->name, (int)len, word,
					   o->why);
	case IGNORED:
		snprintf(t->ignored + used, sizeof(t->ignored) - used, "%s%.*s", used ? ", " : "", (int)len, word);
		return 0;
	case SET:
		if (text)
			return cf_fail(err, -EINVAL, "%s:%u: %s: the option '%s' takes no value", p->where, p->line, p->name,
						   o->name);
		set_field(t, o, o->value);
		return 0;
	case TEXT:
	case NUMBER:
		break;
	}
	if (!text || !*text)
		return cf_fail(err, -EINVAL, "%s:%u: %s: the option '%s' needs a value", p->where, p->line, p->name, o->name);
	if (o->kind == TEXT) {
		memcpy((uint8_t *)t + o->field_off, &text, sizeof(text));
		return 0;
	}
	if (cf_units_parse_number(text, UINT64_MAX, &n) != 0)
		return cf_fail(err, -EINVAL, "%s:%u: %s: the option '%s' needs a decimal number", p->where, p->line, p->name,
					   o->name);
	set_field(t, o, n);
	return 0;
}

static int take_option(struct cf_crypttab *t, const struct cf_crypttab_place *p, char *word, struct cf_err *err)
{
	const size_t len = strcspn(word, "=");
	for (size_t i = 0; i < CF_ARRAY_LEN(options); i++)
		if (is_named(&options[i], word, len))
			return take(t, p, &options[i], word, err);
	return cf_fail(err, -EINVAL, "%s:%u: %s has an option that is not known here: '%.*s'", p->where, p->line, p->name,
				   (int)len, word);
}

/* A volume with a header says itself how it is encrypted; other readers of the file pass over these too. */
static void drop_plain(struct cf_crypttab *t)
{
	if (t->volume.type == CF_TYPE_AUTO || t->volume.type == CF_TYPE_PLAIN)
		return;
	t->volume.cipher = t->volume.hash = NULL;
	t->volume.key_bits = t->volume.offset_sectors = t->volume.skip_sectors = t->volume.sector_size_bytes = 0;
}

int cf_crypttab_take_options(struct cf_crypttab *t, const struct cf_crypttab_place *p, char *words, struct cf_err *err)
{
	char *save = NULL;
	bool given_tries = strstr(words, "tries=") != NULL;
	for (char *w = strtok_r(words, ",", &save); w; w = strtok_r(NULL, ",", &save)) {
		int rc = take_option(t, p, w, err);
		if (rc)
			return rc;
	}
	if ((given_tries && !t->volume.tries) || t->volume.tries > TRIES_MAX)
		t->volume.tries = TRIES_MAX; /* 0 is for ever */
	drop_plain(t);
	return 0;
}
