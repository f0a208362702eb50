/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* place.c - where a volume lies in its image.
 *
 *     image  | data_sector ... | DU | DU | … | DU | sectors short of a DU | bytes short of a sector |
 *                              ^ off         bytes ^                      ^ what a loop device shows
 *
 * cryptsetup sees a file through a loop device, so the last bytes short of a sector do not exist for it. Pure. */
#include "plan.h"

#include <errno.h>
#include <inttypes.h>

#include "cryptfuse/err.h"

static const char *store(const struct cf_place *p)
{
	return p->store ? p->store : "image";
}

static int refuse_tail(const struct cf_place *p, uint64_t remaining, struct cf_err *err)
{
	uint64_t fits = cf_units_round_down(remaining * CF_SECTOR_BYTES, p->du_bytes);
	if (!fits)
		return cf_fail(err, -EINVAL,
					   "what the %s has after the offset, %" PRIu64 " bytes, is less than --sector-size %u", store(p),
					   remaining * CF_SECTOR_BYTES, p->du_bytes);
	return cf_fail(err, -EINVAL,
				   "what the %s has after the offset is not a multiple of --sector-size %u; --device-size %" PRIu64
				   " would fit",
				   store(p), p->du_bytes, fits);
}

static int refuse_length(const struct cf_place *p, struct cf_err *err)
{
	uint64_t du_sectors = p->du_bytes / CF_SECTOR_BYTES;
	return cf_fail(err, -EINVAL,
				   "the size of %" PRIu64 " sectors is not a multiple of --sector-size %u (%" PRIu64 " sectors)",
				   p->sectors, p->du_bytes, du_sectors);
}

int cf_place_resolve(const struct cf_place *p, uint64_t *off, uint64_t *bytes, struct cf_err *err)
{
	uint64_t image = p->image_bytes / CF_SECTOR_BYTES, du_sectors = p->du_bytes / CF_SECTOR_BYTES;
	if (p->data_sector >= image)
		return cf_fail(err, -EINVAL,
					   "the offset of %" PRIu64 " sectors is beyond the %s, which has %" PRIu64 " sectors",
					   p->data_sector, store(p), image);
	uint64_t remaining = image - p->data_sector, sectors = p->sectors ? p->sectors : remaining;
	if (sectors % du_sectors)
		return p->sectors ? refuse_length(p, err) : refuse_tail(p, remaining, err);
	if (sectors > remaining)
		return cf_fail(err, -EINVAL,
					   "the size of %" PRIu64 " sectors is beyond the %s, which has %" PRIu64
					   " sectors after the offset",
					   sectors, store(p), remaining);
	*off = p->data_sector * CF_SECTOR_BYTES;
	*bytes = sectors * CF_SECTOR_BYTES;
	return 0;
}
