/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* compare.h - one table that both sides take: do they agree on every byte, in both directions? */
#ifndef CRYPTFUSE_TEST_COMPARE_H
#define CRYPTFUSE_TEST_COMPARE_H

#include "dm.h"
#include "ours.h"
#include "tables.h"

#define COMPARE_PATHS 32u /* engines times paths */

/** What was compared, over all tables. */
struct compare_stats {
	struct {
		const char *engine, *path;
		unsigned tables;
	} by_path[COMPARE_PATHS];
	unsigned n_paths;
	uint64_t kernel_wrote, ours_wrote; /* bytes that one side wrote and the other read back right */
	unsigned ranges;                   /* random ranges, either side, either way */
};

/** compare_table - the table is loaded in @dm, and is what @o was read from
 * dm-crypt writes and cryptfuse reads, cryptfuse writes and dm-crypt reads, whole volume and random ranges, without a
 * byte changed outside the volume: by one path of the CPU's engines, which have their turns, and by a random choice
 * among those of all engines that serve it.
 * @engine: only this one, if it serves the table; NULL all   @paths: how many to choose
 * Returns 0 if they agree; -1, and says what differs on stdout. */
int compare_table(const struct dm *dm, const struct ours *o, const char *engine, unsigned paths, struct rng *r,
				  struct compare_stats *stats) CF_MUST_CHECK;

/** compare_served - how many tables that path has served. */
unsigned compare_served(struct compare_stats *s, const char *engine, const char *path);

#endif
