/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* fuzz_units.c - numbers, sizes, places and IV sectors against arithmetic of 128 bits, which has room for all of
 * them. */
#include "config.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "core/open/plan.h"
#include "cryptfuse/probe.h"
#include "fuzz.h"

typedef unsigned __int128 wide;

#define FAR ((wide)1 << 100) /* more than any 64-bit number times any unit */

/* The digits at the start; FAR and more are FAR. */
static wide digits_of(const char **text)
{
	wide n = 0;
	for (; isdigit((unsigned char)**text); ++*text)
		n = n >= FAR ? FAR : n * 10 + (unsigned)(**text - '0');
	return n < FAR ? n : FAR;
}

static wide unit_of(const char *suffix, uint64_t bare)
{
	static const char letters[] = "kmgt";
	const char *at = *suffix ? strchr(letters, tolower((unsigned char)*suffix)) : NULL;
	wide unit = 1;
	if (!*suffix)
		return bare;
	if (!strcmp(suffix, "s") || !strcmp(suffix, "S"))
		return 512;
	if (!at || !*at || (suffix[1] && strcmp(suffix + 1, "B") != 0 && strcmp(suffix + 1, "iB") != 0))
		return 0;
	for (const char *l = letters; l <= at; l++)
		unit *= suffix[1] == 'B' ? 1000 : 1024;
	return unit;
}

static void check_parsers(const char *text, uint64_t max, uint64_t bare)
{
	const char *end = text;
	const wide n = digits_of(&end);
	uint64_t got = 1234567;
	int want = end == text || *end ? -EINVAL : n > max ? -ERANGE : 0;
	fuzz_must(cf_units_parse_number(text, max, &got) == want);
	fuzz_must(got == (want ? 1234567 : (uint64_t)n));
	const wide unit = unit_of(end, bare);
	got = 1234567;
	want = end == text            ? -EINVAL
		   : n > UINT64_MAX       ? -ERANGE
		   : *end && !unit        ? -EINVAL
		   : n * unit > INT64_MAX ? -ERANGE
								  : 0;
	fuzz_must(cf_units_parse_size(text, bare, &got) == want);
	fuzz_must(got == (want ? 1234567 : (uint64_t)(n * unit)));
}

static void check_iv(uint64_t du, uint32_t du_bytes, uint64_t iv_offset)
{
	const wide s0 = ((wide)du * (du_bytes / 512) + iv_offset) % ((wide)1 << 64);
	fuzz_must(cf_units_s0(du, du_bytes, iv_offset) == (uint64_t)s0);
	fuzz_must(cf_units_iv_sector((uint64_t)s0, du_bytes, CF_IV_SECTORS) == (uint64_t)s0);
	fuzz_must(cf_units_iv_sector((uint64_t)s0, du_bytes, CF_IV_LARGE_SECTORS) == (uint64_t)(s0 / (du_bytes / 512)));
	fuzz_must(cf_units_round_down(du, du_bytes) == du - du % du_bytes);
	if ((wide)du + du_bytes <= UINT64_MAX)
		fuzz_must(cf_units_round_up(du, du_bytes) == (uint64_t)(((wide)du + du_bytes - 1) / du_bytes * du_bytes));
}

static void check_place(const struct cf_place *p)
{
	uint64_t off = 0, bytes = 0;
	struct cf_err err = {0};
	const wide image = p->image_bytes / 512, du_sectors = p->du_bytes / 512;
	const bool inside = p->data_sector < image;
	const wide left = inside ? image - p->data_sector : 0, sectors = p->sectors ? p->sectors : left;
	const bool good = inside && sectors % du_sectors == 0 && sectors <= left;
	int rc = cf_place_resolve(p, &off, &bytes, &err);
	fuzz_judged(rc, &err);
	fuzz_must(rc == (good ? 0 : -EINVAL));
	if (good)
		fuzz_must(off == (wide)p->data_sector * 512 && bytes == sectors * 512 && (wide)off + bytes <= p->image_bytes);
}

static void check_extent(uint64_t off, uint64_t bytes, uint64_t store)
{
	const struct cf_extent e = cf_extent_clip((struct cf_extent){off, bytes}, store);
	const wide from = off < store ? off : store, to = (wide)off + bytes < store ? (wide)off + bytes : store;
	fuzz_must(e.off == from && e.bytes == (to > from ? to - from : 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, len};
	const uint64_t a = fuzz_odd_number(&in), b = fuzz_odd_number(&in), c = fuzz_odd_number(&in);
	const uint32_t du_bytes = 512u << fuzz_number(&in, 1) % 8;
	const struct cf_place place = {.image_bytes = a, .data_sector = b, .sectors = c, .du_bytes = du_bytes};
	CF_CLEANUP(cf_freep) char *text = fuzz_text(&in);
	check_parsers(text, a, b);
	check_parsers(text, UINT64_MAX, 512);
	check_iv(a, du_bytes, b);
	check_place(&place);
	check_extent(a, b, c);
	fuzz_must(cf_units_du_valid(a) == (a >= 512 && a <= 65536 && __builtin_popcountll(a) == 1));
	return 0;
}
