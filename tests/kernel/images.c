/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* images.c - images for the mounted program: what dm-crypt wrote under random tables, and later, whether dm-crypt reads
 * from them what it should. Runs as root in a kernel that has dm-crypt.
 *
 *   images make DIR SEED N     N times DIR/I.table, DIR/I.img (ciphertext by dm-crypt), DIR/I.plain
 *   images check DIR SEED N    dm-crypt reads DIR/I.img: is it DIR/I.plain?
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cryptfuse/secret.h"
#include "dm.h"
#include "ours.h"
#include "tables.h"

struct files {
	const char *dir;
	unsigned index;
};

static void transfer(const struct files *f, const char *suffix, void *buf, size_t len, enum cf_access access)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%u.%s", f->dir, f->index, suffix);
	CF_CLEANUP(cf_close_fd) int fd = open(path, access == CF_READ_ONLY ? O_RDONLY : O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0) {
		perror(path);
		exit(99);
	}
	if (access == CF_READ_ONLY)
		whole_pread(fd, buf, len, 0);
	else
		whole_pwrite(fd, buf, len, 0);
}

/* The next table from @index on that both sides take, loaded; returns its index. */
static uint64_t next_table(struct dm *dm, struct table *t, uint64_t seed, uint64_t index)
{
	for (;; index++) {
		struct ours o;
		struct cf_err err = {0};
		char why[DM_WHY];
		table_sound(t, seed, index);
		int rc = ours_parse(&o, t->sectors, t->params, &err);
		if (!rc)
			rc = cf_cipher_check(&o.table.cipher, NULL, &err);
		ours_fini(&o);
		if (!rc && dm_load(dm, t->sectors, t->params, why) == 0)
			return index;
	}
}

static void make_one(const struct dm *dm, const struct table *t, const struct files *f, uint8_t *buf)
{
	char line[TABLE_PARAMS + 64];
	size_t len = t->sectors * CF_SECTOR_BYTES;
	struct rng r = rng_new(f->index, t->sectors);
	rng_fill(&r, buf, TABLE_BACKING);
	whole_pwrite(dm->backing, buf, TABLE_BACKING, 0);
	rng_fill(&r, buf, len);
	dm_pwrite(dm, buf, len, 0);
	transfer(f, "plain", buf, len, CF_READ_WRITE);
	whole_pread(dm->backing, buf, TABLE_BACKING, 0);
	transfer(f, "img", buf, TABLE_BACKING, CF_READ_WRITE);
	int n = snprintf(line, sizeof(line), "0 %llu crypt %s\n", (unsigned long long)t->sectors, t->params);
	transfer(f, "table", line, (size_t)n, CF_READ_WRITE);
}

static int check_one(const struct dm *dm, const struct table *t, const struct files *f, uint8_t *buf, uint8_t *want)
{
	size_t len = t->sectors * CF_SECTOR_BYTES;
	transfer(f, "img", buf, TABLE_BACKING, CF_READ_ONLY);
	whole_pwrite(dm->backing, buf, TABLE_BACKING, 0);
	transfer(f, "plain", want, len, CF_READ_ONLY);
	dm_pread(dm, buf, len, 0);
	if (memcmp(buf, want, len) == 0)
		return 0;
	printf("dm-crypt reads something else from %s/%u.img: %s\n", f->dir, f->index, t->params);
	return 1;
}

int main(int argc, char **argv)
{
	static struct table t;
	struct cf_err err = {0};
	struct dm dm;
	if (argc != 5 || (strcmp(argv[1], "make") && strcmp(argv[1], "check"))) {
		fprintf(stderr, "usage: images make|check DIR SEED N\n");
		return 2;
	}
	if (cf_secret_init(&err) != 0 || dm_open(&dm, "images", TABLE_BACKING) != 0)
		return 99;
	uint8_t *buf = aligned_new(TABLE_BACKING), *want = aligned_new(TABLE_BACKING);
	uint64_t seed = strtoull(argv[3], NULL, 10) ^ 4, index = 0;
	unsigned n = (unsigned)strtoul(argv[4], NULL, 10);
	int bad = 0;
	for (struct files f = {argv[2], 0}; f.index < n; f.index++) {
		index = next_table(&dm, &t, seed, index) + 1;
		if (!strcmp(argv[1], "make"))
			make_one(&dm, &t, &f, buf);
		else
			bad += check_one(&dm, &t, &f, buf, want);
	}
	free(buf);
	free(want);
	dm_close(&dm);
	return bad ? 1 : 0;
}
