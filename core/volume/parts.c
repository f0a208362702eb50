/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* parts.c - which files are the parts of a split image.
 *
 *     disk.img.001  disk.img.002 …      imaging programs, from 001 or 000, any width from three digits on
 *     disk.img.aa   disk.img.ab  …      split(1) with a prefix; xaa, xab … without
 *     disk.img.00   disk.img.01  …      split -d; x00, x01 … without a prefix
 *
 * Only names are looked at, and whether a file is there. An image that is not whole is refused: what is behind the gap
 * would be opened at the wrong place. No state; runs in the parent. */
#include "config.h"

#include "parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "cryptfuse/image.h"

#define DIGITS_MAX 9u /* of a counter */
#define NEAR 8u       /* parts: how far behind a missing one others are looked for, where names are not clear */

static bool is_digit(const struct cf_parts *p, char c)
{
	return c >= p->zero && (unsigned)(c - p->zero) < p->base;
}

static unsigned value_of(const struct cf_parts *p, const char *counter)
{
	uint64_t n = 0;
	for (size_t i = 0; i < p->digits; i++)
		n = n * p->base + (unsigned)(counter[i] - p->zero);
	return n > UINT32_MAX ? UINT32_MAX : (unsigned)n;
}

/* Make the counter at the end of the path @value; 0 if it has too few digits for it. */
static int put_counter(struct cf_parts *p, unsigned value)
{
	char *end = p->path + strlen(p->path);
	for (size_t i = 1; i <= p->digits; i++, value /= p->base)
		end[-(ptrdiff_t)i] = (char)(p->zero + (char)(value % p->base));
	return value == 0;
}

const char *cf_parts_name(struct cf_parts *p, unsigned i)
{
	(void)put_counter(p, p->first + i);
	return p->path;
}

/* Does the name end in a counter of this kind? Sets its width. A counter follows a dot, or the x that split(1) takes
 * when it is told no prefix. */
static bool has_counter(struct cf_parts *p, size_t min_digits)
{
	const char *slash = strrchr(p->path, '/'), *name = slash ? slash + 1 : p->path;
	size_t len = strlen(name), digits = 0;
	while (digits < len && is_digit(p, name[len - 1 - digits]))
		digits++;
	if (p->zero == 'a' && digits == len && len > 1 && name[0] == 'x')
		digits--; /* in "xaa" the x is a letter too */
	if (digits < min_digits || digits > DIGITS_MAX || digits == len)
		return false;
	bool bare = name[0] == 'x' && digits + 1 == len;
	if (!bare && (name[len - digits - 1] != '.' || digits + 1 == len))
		return false;
	p->digits = digits;
	return true;
}

static bool is_there(struct cf_parts *p, unsigned value)
{
	return put_counter(p, value) && access(p->path, F_OK) == 0;
}

/* Three digits are an imaging program's. With fewer, or letters, many other files are called so: disk.01 and disk.02
 * are as likely to be two images, disk.dd is no part at all. */
static bool is_clear(const struct cf_parts *p)
{
	return p->base == 10 && p->digits >= 3;
}

/* The first part has counter 0, or 1 where that is clear. 1 found; 0 no part is there that could be the first. */
static int find_first(struct cf_parts *p)
{
	for (p->first = 0; p->first <= (is_clear(p) ? 1u : 0u); p->first++)
		if (is_there(p, p->first))
			return 1;
	p->first--;
	return 0;
}

static int refuse_gap(struct cf_parts *p, unsigned missing, unsigned there, struct cf_err *err)
{
	char behind[64];
	(void)put_counter(p, there);
	const char *slash = strrchr(p->path, '/');
	snprintf(behind, sizeof(behind), "%s", slash ? slash + 1 : p->path);
	(void)put_counter(p, missing);
	return cf_fail(err, -ENODEV, "%s is missing: %s is there (a link of another name opens one part by itself)",
				   p->path, behind);
}

/* Is one of the next @n parts behind a missing one there? */
static int check_gap(struct cf_parts *p, unsigned missing, unsigned n, struct cf_err *err)
{
	for (unsigned i = missing + 1; i <= missing + n; i++)
		if (is_there(p, i))
			return refuse_gap(p, missing, i, err);
	return 0;
}

static int refuse_later(struct cf_parts *p, unsigned asked, struct cf_err *err)
{
	char given[PATH_MAX];
	(void)put_counter(p, asked);
	strcpy(given, p->path);
	return cf_fail(err, -EINVAL, "%s is part of a split image: name its first part, %s", given, cf_parts_name(p, 0));
}

static int find_parts(struct cf_parts *p, unsigned asked, struct cf_err *err)
{
	unsigned n = 0;
	if (!find_first(p))
		return asked <= p->first || (is_clear(p) && asked <= NEAR) ? check_gap(p, p->first, NEAR, err) : 0;
	while (n <= CF_IMAGE_PARTS_MAX && is_there(p, p->first + n))
		n++;
	if (asked > p->first && asked < p->first + n)
		return refuse_later(p, asked, err);
	if (asked != p->first)
		return 0;
	if (n > CF_IMAGE_PARTS_MAX)
		return cf_fail(err, -E2BIG, "%s: a split image may have %u parts, and this one has more", cf_parts_name(p, 0),
					   CF_IMAGE_PARTS_MAX);
	p->n = n;
	return check_gap(p, p->first + n, is_clear(p) ? CF_IMAGE_PARTS_MAX : NEAR, err);
}

int cf_parts_find(const char *path, struct cf_parts *out, struct cf_err *err)
{
	static const struct {
		char zero;
		unsigned base;
		size_t min_digits;
	} kinds[] = {{'0', 10, 2}, {'a', 26, 2}};
	for (size_t i = 0; i < CF_ARRAY_LEN(kinds); i++) {
		*out = (struct cf_parts){.zero = kinds[i].zero, .base = kinds[i].base, .n = 1};
		if (snprintf(out->path, sizeof(out->path), "%s", path) >= (int)sizeof(out->path))
			return 0; /* open says what is wrong with it */
		if (!has_counter(out, kinds[i].min_digits))
			continue;
		unsigned asked = value_of(out, out->path + strlen(out->path) - out->digits);
		int rc = find_parts(out, asked, err);
		if (out->n == 1 && rc == 0)
			strcpy(out->path, path);
		return rc;
	}
	return 0;
}
