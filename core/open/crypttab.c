/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* crypttab.c - finds a line of /etc/crypttab, and makes options of it.
 *
 * The key field is never quoted in a message. No state; any thread.
 * Source: crypttab(5) of Debian's cryptsetup and of systemd. */
#include "config.h"

#include "crypttab.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/err.h"

#define FILE_MAX (1u << 20) /* bytes; nobody has a crypttab of a MiB */

/* ---- words ---- */

/* "\040" is a blank, for a name or path that holds one; none holds a NUL. */
static void unescape(char *word)
{
	char *to = word;
	for (const char *p = word; *p; p++) {
		bool octal = p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' && p[2] <= '7' && p[3] >= '0' &&
					 p[3] <= '7' && strncmp(p + 1, "000", 3) != 0;
		*to++ = octal ? (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0')) : *p;
		p += octal ? 3 : 0;
	}
	*to = '\0';
}

/* Cut at blanks, in place. Returns how many words; one more than @max if there are more. */
static unsigned cut(char *line, unsigned max, char **words)
{
	unsigned n = 0;
	char *save = NULL;
	for (char *w = strtok_r(line, " \t\r", &save); w; w = strtok_r(NULL, " \t\r", &save)) {
		if (n == max)
			return n + 1;
		words[n++] = w;
	}
	return n;
}

/* ---- source and key ---- */

static const struct {
	const char *tag, *folder;
} tags[] = {
	{"UUID=", "by-uuid"},           {"LABEL=", "by-label"}, {"PARTUUID=", "by-partuuid"},
	{"PARTLABEL=", "by-partlabel"}, {"ID=", "by-id"},
};

static const char *tag_value(const char *word, const char **folder)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(tags); i++)
		if (!strncmp(word, tags[i].tag, strlen(tags[i].tag))) {
			*folder = tags[i].folder;
			return word + strlen(tags[i].tag);
		}
	return NULL;
}

/* Names in /dev/disk/by-…: udev writes what is no plain character as \xNN. */
static int take_source(struct cf_crypttab *t, const struct cf_crypttab_place *p, const char *word, struct cf_err *err)
{
	const char *folder = NULL, *value = tag_value(word, &folder);
	size_t n = 0;
	t->volume.image = t->source;
	if (!value) {
		snprintf(t->source, sizeof(t->source), "%s", word);
		return 0;
	}
	n = (size_t)snprintf(t->source, sizeof(t->source), "/dev/disk/%s/", folder);
	for (; *value && n + 5 < sizeof(t->source); value++) {
		const unsigned char c = (unsigned char)*value;
		if (c == '"')
			continue;
		bool plain = isalnum(c) || c >= 0x80 || strchr("#+-.:=@_", c);
		n += (size_t)snprintf(t->source + n, sizeof(t->source) - n, plain ? "%c" : "\\x%02x", c);
	}
	if (t->source[n - 1] == '/')
		return cf_fail(err, -EINVAL, "%s:%u: %s: its source '%s' names nothing", p->where, p->line, p->name, word);
	return 0;
}

static int take_key(struct cf_crypttab *t, const struct cf_crypttab_place *p, const char *word, struct cf_err *err)
{
	static const char *const random[] = {"/dev/urandom", "/dev/random", "/dev/hw_random", "/dev/hwrng"};
	const char *folder, *colon = strrchr(word, ':');
	if (!strcmp(word, "none") || !strcmp(word, "-"))
		return 0;
	for (size_t i = 0; i < CF_ARRAY_LEN(random); i++)
		if (!strcmp(word, random[i]))
			return cf_fail(err, -EINVAL, "%s:%u: %s takes its key from %s: " CF_CRYPTTAB_RANDOM_KEY, p->where, p->line,
						   p->name, random[i]);
	if (colon && (tag_value(colon + 1, &folder) || !strncmp(colon + 1, "/dev/", 5)))
		return cf_fail(err, -EINVAL, "%s:%u: %s has its key file on another device; mount that, and give --key-file",
					   p->where, p->line, p->name);
	t->volume.key_file = word;
	return 0;
}

/* ---- the line, the file ---- */

static int take_line(struct cf_crypttab *t, const struct cf_crypttab_place *p, char **words, unsigned n,
					 struct cf_err *err)
{
	if (n < 2)
		return cf_fail(err, -EINVAL, "%s:%u: %s has no source: NAME SOURCE KEYFILE OPTIONS", p->where, p->line,
					   p->name);
	if (n > 4)
		return cf_fail(err, -EINVAL, "%s:%u: %s has more than four fields (a blank in one is written \\040)", p->where,
					   p->line, p->name);
	for (unsigned i = 1; i < n; i++)
		unescape(words[i]);
	t->volume.access = CF_READ_WRITE;
	int rc = take_source(t, p, words[1], err);
	if (!rc && n > 2)
		rc = take_key(t, p, words[2], err);
	if (!rc && n > 3 && strcmp(words[3], "-") != 0)
		rc = cf_crypttab_take_options(t, p, words[3], err);
	return rc;
}

/* Does the line have that name? Its words to @words, in @buf. Comments have none. */
static unsigned named_line(const char *text, size_t len, const char *name, char buf[static CF_CRYPTTAB_LINE_MAX],
						   char **words)
{
	if (len >= CF_CRYPTTAB_LINE_MAX)
		return 0;
	memcpy(buf, text, len);
	buf[len] = '\0';
	const unsigned n = cut(buf, 4, words);
	if (!n || *words[0] == '#')
		return 0;
	unescape(words[0]);
	return strcmp(words[0], name) ? 0 : n;
}

int cf_crypttab_find(const char *text, size_t len, const char *where, const char *name, struct cf_crypttab *out,
					 struct cf_err *err)
{
	struct cf_crypttab_place p = {where, name, 0};
	unsigned found = 0, line = 0;
	char buf[CF_CRYPTTAB_LINE_MAX], *words[5];
	if (memchr(text, '\0', len))
		return cf_fail(err, -EINVAL, "%s holds a NUL byte: it is not text", where);
	for (const char *at = text, *end = text + len; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const size_t bytes = newline ? (size_t)(newline - at) : (size_t)(end - at);
		line++;
		if (named_line(at, bytes, name, buf, words)) {
			if (found)
				return cf_fail(err, -EINVAL, "%s: %s stands in lines %u and %u", where, name, found, line);
			found = line;
			memset(out, 0, sizeof(*out));
			memcpy(out->line, at, bytes);
		}
		at += bytes + (newline != NULL);
	}
	if (!found)
		return cf_fail(err, -ENOENT, "%s has no line '%s'", where, name);
	p.line = found;
	return take_line(out, &p, words, cut(out->line, 4, words), err);
}

int cf_crypttab_read(const char *path, const char *name, struct cf_crypttab *out, struct cf_err *err)
{
	CF_CLEANUP(cf_close_stream) FILE *f = fopen(path, "re");
	CF_CLEANUP(cf_freep) char *text = malloc(FILE_MAX);
	if (!f)
		return cf_fail(err, -errno, "%s cannot be opened: %s", path, strerror(errno));
	if (!text)
		return cf_fail(err, -ENOMEM, "no memory for %s", path);
	const size_t len = fread(text, 1, FILE_MAX, f);
	if (ferror(f))
		return cf_fail(err, -EIO, "%s cannot be read", path);
	if (len == FILE_MAX)
		return cf_fail(err, -EINVAL, "%s is longer than %u bytes", path, FILE_MAX - 1);
	return cf_crypttab_find(text, len, path, name, out, err);
}

/* ---- beside a command line ---- */

#define FILL(f) opts->f = opts->f ? opts->f : v->f

void cf_crypttab_apply(const struct cf_crypttab *t, struct cf_open_opts *opts)
{
	const struct cf_open_opts *v = &t->volume;
	const bool has_key = opts->key_file || opts->volume_key_file || opts->volume_key_keyring;
	FILL(image);
	FILL(type);
	FILL(header_file);
	FILL(cipher);
	FILL(hash);
	FILL(key_bits);
	FILL(offset_sectors);
	FILL(skip_sectors);
	FILL(sector_size_bytes);
	FILL(key_slot);
	FILL(tries);
	FILL(discards);
	if (!has_key) {
		FILL(key_file);
		FILL(keyfile_size_bytes);
		FILL(keyfile_offset_bytes);
	}
	if (v->access == CF_READ_ONLY)
		opts->access = CF_READ_ONLY;
}
