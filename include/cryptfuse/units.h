/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* units.h - all arithmetic between bytes, sectors, data units and IV sectors, and all parsing of numbers.
 *
 * A sector is always 512 bytes. A data unit (DU) is what is encrypted under one IV: 512 to 65536 bytes, a power of two.
 * Pure functions; any thread. */
#ifndef CRYPTFUSE_UNITS_H
#define CRYPTFUSE_UNITS_H

#include <stdbool.h>

#include "cryptfuse/base.h"

#define CF_SECTOR_BYTES 512u
#define CF_SECTOR_SHIFT 9u
#define CF_DU_MIN 512u
#define CF_DU_MAX 65536u

/** How the IV generator counts (FORMAT.md, "Which number goes into the IV"). */
enum cf_iv_numbering {
	CF_IV_SECTORS,       /* in 512-byte sectors, whatever the DU: 0, 8, 16 … for DU 4096 */
	CF_IV_LARGE_SECTORS, /* in DUs (iv_large_sectors) */
};

/** cf_min_u64, cf_min_size - the smaller of two. */
static inline uint64_t cf_min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline size_t cf_min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/** cf_units_du_valid - a data unit size that cryptfuse takes: a power of two, 512 to 65536. */
bool cf_units_du_valid(uint64_t du_bytes);

/** cf_units_log2 - exponent of a power of two. @n: a power of two, above 0. */
static inline unsigned cf_units_log2(uint64_t n)
{
	return (unsigned)__builtin_ctzll(n);
}

/** cf_units_s0 - the sector number of a data unit before any shift, modulo 2^64
 * @du: index of the DU in the volume   @du_bytes: valid DU size   @iv_offset: sectors
 * It selects the key when there are several. */
static inline uint64_t cf_units_s0(uint64_t du, uint32_t du_bytes, uint64_t iv_offset)
{
	return du * (du_bytes >> CF_SECTOR_SHIFT) + iv_offset;
}

/** cf_units_iv_sector - the number that is fed to the IV generator: s0, shifted under iv_large_sectors. */
static inline uint64_t cf_units_iv_sector(uint64_t s0, uint32_t du_bytes, enum cf_iv_numbering numbering)
{
	return numbering == CF_IV_LARGE_SECTORS ? s0 >> (cf_units_log2(du_bytes) - CF_SECTOR_SHIFT) : s0;
}

/** cf_units_round_down, cf_units_round_up - to a multiple of @align, a power of two. Up may wrap: the caller clamps
 * first. */
static inline uint64_t cf_units_round_down(uint64_t n, uint64_t align)
{
	return n & ~(align - 1);
}
static inline uint64_t cf_units_round_up(uint64_t n, uint64_t align)
{
	return (n + align - 1) & ~(align - 1);
}

/** cf_units_parse_number - a plain decimal number, digits only (leading zeros yes; sign, space, 0x, suffix no)
 * @text: NUL-terminated   @max: largest value allowed   @out: set only on success
 * Returns 0; -EINVAL not a number; -ERANGE above @max. */
int cf_units_parse_number(const char *text, uint64_t max, uint64_t *out) CF_MUST_CHECK;

/** cf_units_parse_size - a size in bytes with cryptsetup's suffixes, as for --device-size
 * Takes N, or N with K M G T (or KiB MiB …; powers of 1024), KB MB … (powers of 1000), S (512-byte sectors); the first
 * letter in any case, "B" and "iB" as written. Without a suffix the unit is @bare_unit bytes.
 * Returns 0; -EINVAL not a size; -ERANGE does not fit in 63 bits of bytes. Source: cryptsetup(8), --device-size. */
int cf_units_parse_size(const char *text, uint64_t bare_unit, uint64_t *out_bytes) CF_MUST_CHECK;

#endif
