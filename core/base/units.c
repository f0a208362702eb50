/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* units.c - numbers in, numbers out: the only place that parses one. Pure functions. */
#include "cryptfuse/units.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

bool cf_units_du_valid(uint64_t du_bytes)
{
	return du_bytes >= CF_DU_MIN && du_bytes <= CF_DU_MAX && (du_bytes & (du_bytes - 1)) == 0;
}

/* The digits at the start of @text as a number; *end is what follows. -EINVAL no digit, -ERANGE beyond 64 bits. */
static int leading_number(const char *text, uint64_t *out, const char **end)
{
	uint64_t n = 0;
	const char *p = text;
	if (*p < '0' || *p > '9')
		return -EINVAL;
	for (; *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(n, 10u, &n) || __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return -ERANGE;
	*out = n;
	*end = p;
	return 0;
}

int cf_units_parse_number(const char *text, uint64_t max, uint64_t *out)
{
	uint64_t n;
	const char *end;
	for (const char *p = text; *p; p++) /* "5x" is not a number, however large the 5 */
		if (*p < '0' || *p > '9')
			return -EINVAL;
	int rc = leading_number(text, &n, &end);
	if (rc)
		return rc;
	if (n > max)
		return -ERANGE;
	*out = n;
	return 0;
}

/* Bytes a suffix stands for; 0 for one that is unknown. The first letter in either case, the rest as it is written. */
static uint64_t suffix_bytes(const char *suffix)
{
	static const char letters[] = "KMGT";
	if (!strcasecmp(suffix, "S"))
		return CF_SECTOR_BYTES;
	uint64_t binary = 1, decimal = 1;
	for (const char *l = letters; *l; l++) {
		binary *= 1024;
		decimal *= 1000;
		if (strncasecmp(suffix, l, 1) != 0)
			continue;
		if (!suffix[1] || !strcmp(suffix + 1, "iB"))
			return binary;
		if (!strcmp(suffix + 1, "B"))
			return decimal;
	}
	return 0;
}

int cf_units_parse_size(const char *text, uint64_t bare_unit, uint64_t *out_bytes)
{
	uint64_t n, unit = bare_unit;
	const char *suffix;
	int rc = leading_number(text, &n, &suffix);
	if (rc)
		return rc;
	if (*suffix && !(unit = suffix_bytes(suffix)))
		return -EINVAL;
	if (__builtin_mul_overflow(n, unit, &n) || n > INT64_MAX)
		return -ERANGE;
	*out_bytes = n;
	return 0;
}
