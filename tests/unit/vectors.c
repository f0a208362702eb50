/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* vectors.c - see vectors.h. */
#include "vectors.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/digest.h"
#include "cryptfuse/spec.h"

const char *source_path(const char *name, char *buf, size_t size)
{
	const char *dir = getenv("srcdir");
	snprintf(buf, size, "%s/%s", dir ? dir : ".", name);
	return buf;
}

static void malformed(const char *path, const char *why)
{
	fprintf(stderr, "%s: %s\n", path, why);
	exit(99);
}

static void split(struct vector *v, char *line, const char *path)
{
	char *field[9], *rest = line;
	for (size_t i = 0; i < 9; i++) {
		field[i] = strsep(&rest, "\t\n");
		if (!field[i] || !*field[i])
			malformed(path, "a row with fewer than 9 fields");
	}
	*v = (struct vector){.line = line,
						 .set = field[0],
						 .name = field[1],
						 .cipher = field[2],
						 .key = field[3],
						 .iv_offset = strtoull(field[4], NULL, 10),
						 .sector_size = (uint32_t)strtoul(field[5], NULL, 10),
						 .iv_large = *field[6] == '1',
						 .sectors = strtoull(field[7], NULL, 10),
						 .sha256 = field[8],
						 .accepted = strcmp(field[8], "refused") != 0};
}

size_t vectors_load(struct vector **out)
{
	char path[4096], *line = NULL;
	size_t size = 0, n = 0;
	FILE *f = fopen(source_path("tests/vectors/crypt.tsv", path, sizeof(path)), "r");
	if (!f)
		malformed(path, "cannot be opened");
	struct vector *v = NULL;
	while (getline(&line, &size, f) > 0) {
		if (*line == '#')
			continue;
		v = realloc(v, (n + 1) * sizeof(*v));
		if (!v)
			abort();
		split(&v[n++], strdup(line), path);
	}
	free(line);
	fclose(f);
	*out = v;
	return n;
}

void vectors_free(struct vector **v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free((*v)[i].line);
	free(*v);
	*v = NULL;
}

int vector_spec(const struct vector *v, struct cf_cipher_spec *spec, struct cf_err *err)
{
	*spec = (struct cf_cipher_spec){0};
	int rc = cf_spec_parse_cipher(v->cipher, spec, err);
	spec->key_bytes = *v->key == '-' ? 0 : (uint32_t)strlen(v->key) / 2;
	spec->du_bytes = v->sector_size;
	spec->iv_numbering = v->iv_large ? CF_IV_LARGE_SECTORS : CF_IV_SECTORS;
	spec->iv_offset = v->iv_offset;
	return rc;
}

void vector_plaintext(uint8_t *buf, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf[i] = (uint8_t)((uint32_t)(i * 2654435761u) >> 13);
}

size_t unhex(const char *text, uint8_t *out, size_t max)
{
	size_t n = 0;
	unsigned byte;
	for (; n < max && sscanf(text + 2 * n, "%2x", &byte) == 1 && text[2 * n] != '-'; n++)
		out[n] = (uint8_t)byte;
	return n;
}

void sha256_hex(const void *data, size_t len, char out[static 65])
{
	uint8_t digest[32];
	if (cf_digest(CF_DIGEST_KERNEL, "sha256", data, len, NULL, 0, digest) != 0)
		abort();
	for (size_t i = 0; i < sizeof(digest); i++)
		snprintf(out + 2 * i, 3, "%02x", digest[i]);
}
