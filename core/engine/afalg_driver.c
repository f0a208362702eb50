/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* afalg_driver.c - which driver of the kernel computes an algorithm, and what kind it is: read from /proc/crypto, which
 * loads no module and needs no socket. The kernel takes the driver of the highest priority, as here. No state. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "afalg.h"

/* An entry while it is being read. */
struct entry {
	bool named, usable;
	unsigned n_sizes;
	struct cf_afalg_driver driver;
};

static void take_size(struct entry *e, const char *field, const char *value)
{
	const struct {
		const char *field;
		long *to;
	} sizes[] = {
		{"blocksize", &e->driver.block_bytes},
		{"min keysize", &e->driver.key_min},
		{"max keysize", &e->driver.key_max},
		{"ivsize", &e->driver.iv_bytes},
	};
	for (size_t i = 0; i < CF_ARRAY_LEN(sizes); i++)
		if (!strcmp(field, sizes[i].field)) {
			*sizes[i].to = strtol(value, NULL, 10);
			e->driver.has_sizes = ++e->n_sizes == CF_ARRAY_LEN(sizes);
		}
}

static void take(struct entry *e, const char *field, const char *value, const char *alg)
{
	if (!strcmp(field, "name")) {
		*e = (struct entry){.named = strcmp(value, alg) == 0, .usable = true};
	} else if (!strcmp(field, "driver")) {
		snprintf(e->driver.name, sizeof(e->driver.name), "%s", value);
		e->named = e->named || strcmp(value, alg) == 0;
	} else if (!strcmp(field, "priority")) {
		e->driver.priority = strtol(value, NULL, 10);
	} else if (!strcmp(field, "async")) {
		e->driver.async = strcmp(value, "yes") == 0;
	} else if (!strcmp(field, "selftest")) {
		e->usable = e->usable && strcmp(value, "passed") == 0;
	} else if (!strcmp(field, "internal")) {
		e->usable = e->usable && strcmp(value, "no") == 0;
	} else {
		take_size(e, field, value);
	}
}

/* "name         : ecb(aes)\n" in place. Returns whether there is a field. */
static bool split(char *line, const char **field, const char **value)
{
	char *colon = strchr(line, ':');
	if (!colon)
		return false;
	char *end = colon;
	while (end > line && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*end = '\0';
	*field = line;
	*value = colon + 1 + strspn(colon + 1, " \t");
	colon[1 + strcspn(colon + 1, "\n")] = '\0';
	return true;
}

int cf_afalg_driver_read(FILE *f, const char *alg, struct cf_afalg_driver *out)
{
	char line[256];
	struct entry e = {0};
	int found = -ENOENT;
	for (bool more = true; more;) {
		const char *field, *value;
		more = fgets(line, sizeof(line), f) != NULL;
		if (more && split(line, &field, &value)) {
			take(&e, field, value, alg);
			continue;
		}
		/* An empty line, or the end of the file, ends an entry. */
		if (e.named && e.usable && (found || e.driver.priority > out->priority)) {
			*out = e.driver;
			found = 0;
		}
		e = (struct entry){0};
	}
	return found;
}

int cf_afalg_driver_find(const char *alg, struct cf_afalg_driver *out)
{
	CF_CLEANUP(cf_close_stream) FILE *f = fopen("/proc/crypto", "re");
	return f ? cf_afalg_driver_read(f, alg, out) : -ENOENT;
}

static bool has_any(const char *name, const char *const *marks, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strstr(name, marks[i]))
			return true;
	return false;
}

/* Software may be asynchronous too: cryptd and pcrypt are queues to a worker of the kernel, and until Linux 6.16 code
 * in vector registers went through cryptd where it could not use them. What names it: the instruction set. "aes-ce" is
 * ARM's extension, but "aes-sun8i-ce" a device of Allwinner's. Source: cra_driver_name in Linux crypto/, lib/crypto/
 * and arch/, against drivers/crypto/. */
bool cf_afalg_driver_is_hardware(const struct cf_afalg_driver *d)
{
	static const char *const software[] = {
		"cryptd(", "pcrypt(", "generic",  "-lib",    "-asm",    "fixed-time", "aesni", "avx",  "vaes", "sse2",
		"ssse3",   "-3way",   "x86_64",   "simd",    "aes-ce",  "-neon",      "arm64", "-p8",  "-p10", "vsx",
		"-spe",    "-s390",   "-sparc64", "-octeon", "padlock", "-zvk",       "-lasx", "-lsx",
	};
	return d->async && !has_any(d->name, software, CF_ARRAY_LEN(software));
}

bool cf_afalg_driver_is_constant_time(const struct cf_afalg_driver *d)
{
	static const char *const marks[] = {"aesni", "aes-vaes", "aes-ce",   "neonbs", "fixed-time",
										"-s390", "padlock",  "aes-zvkn", "-p8"};
	return has_any(d->name, marks, CF_ARRAY_LEN(marks)) || cf_afalg_driver_is_hardware(d);
}
