/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* fuzz_partition.c - partition tables, as libblkid lists them: sane places, names that print, each found by its number,
 * the same for an image in two pieces as for one in one piece, and a volume is never put outside its image. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cryptfuse/partition.h"
#include "cryptfuse/text.h"
#include "image.h"

#define SPLIT_MAX ((uint64_t)4 << 20) /* longer images are not cut: it is a copy */

static void check_text(const char *text, size_t size)
{
	fuzz_must(memchr(text, '\0', size));
	for (size_t n; *text; text += n)
		fuzz_must((n = cf_text_char(text)) > 0);
}

static void check_list(const struct cf_partitions *list)
{
	const struct cf_partition *found;
	char number[16];
	fuzz_must(list->n <= CF_PARTITIONS_MAX);
	check_text(list->table, sizeof(list->table));
	check_text(list->uuid, sizeof(list->uuid));
	for (unsigned i = 0; i < list->n; i++) {
		const struct cf_partition *p = &list->at[i];
		fuzz_must(p->number && p->place.bytes && p->place.off <= INT64_MAX &&
				  p->place.bytes <= INT64_MAX - p->place.off);
		check_text(p->type, sizeof(p->type));
		check_text(p->name, sizeof(p->name));
		check_text(p->uuid, sizeof(p->uuid));
		snprintf(number, sizeof(number), "%u", p->number);
		fuzz_must(cf_partition_find(list, number, &found, NULL) == 0 && found->number == p->number);
	}
}

static bool same(const struct cf_partitions *a, const struct cf_partitions *b)
{
	if (a->n != b->n || strcmp(a->table, b->table) != 0)
		return false;
	for (unsigned i = 0; i < a->n; i++)
		if (a->at[i].number != b->at[i].number || a->at[i].place.off != b->at[i].place.off ||
			a->at[i].place.bytes != b->at[i].place.bytes || strcmp(a->at[i].type, b->at[i].type) != 0)
			return false;
	return true;
}

static int copy_range(int from, uint64_t off, uint64_t bytes)
{
	CF_CLEANUP(cf_freep) uint8_t *buf = malloc(bytes);
	int fd = memfd_create("part", MFD_CLOEXEC);
	fuzz_must(buf && fd >= 0 && pread(from, buf, bytes, (off_t)off) == (ssize_t)bytes);
	fuzz_must(write(fd, buf, bytes) == (ssize_t)bytes);
	return fuzz_read_only(fd);
}

static void check_split(const struct cf_image *whole, const struct cf_partitions *list, int rc, uint64_t bytes)
{
	static struct cf_partitions again;
	const uint64_t cut = bytes / 3 + 1;
	CF_CLEANUP(cf_image_close) struct cf_image parts = {.n_parts = 0};
	if (bytes < 4 || bytes > SPLIT_MAX)
		return;
	parts.n_parts = 2;
	parts.fd[0] = copy_range(whole->fd[0], 0, cut);
	parts.fd[1] = copy_range(whole->fd[0], cut, bytes - cut);
	fuzz_must(cf_partitions_list(&parts, &again, NULL) == rc);
	fuzz_must(same(list, &again));
}

static void say_nothing(void *ctx, const char *text)
{
	(void)ctx;
	fuzz_must(!strchr(text, '\n'));
}

/* The partition that a name, or the search for what is encrypted, leads to. */
static void check_choice(const struct cf_image *image, uint64_t bytes, const char *name)
{
	const struct cf_open_ui ui = {.note = say_nothing, .warn = say_nothing};
	const struct cf_open_opts opts = {.image = "image", .partition = name, .access = CF_READ_ONLY};
	struct cf_extent where, again;
	unsigned number = 0, number_again = 0;
	struct cf_err first = {0}, second = {0};
	int rc = cf_partition_choose(&opts, CF_PARTITION_SEARCH, &ui, image, &where, &number, &first);
	fuzz_judged(rc, &first);
	fuzz_must(cf_partition_choose(&opts, CF_PARTITION_SEARCH, &ui, image, &again, &number_again, &second) == rc);
	fuzz_must(!strcmp(first.text, second.text));
	if (!rc)
		fuzz_must(where.off <= bytes && where.bytes <= bytes - where.off && where.off == again.off &&
				  number == number_again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct cf_partitions list;
	struct fuzz_in in = {data, len};
	struct fuzz_image made;
	struct cf_err err = {0};
	fuzz_image(&in, &made);
	CF_CLEANUP(cf_image_close) struct cf_image image = {.n_parts = 1, .fd = {made.fd}};
	int rc = cf_partitions_list(&image, &list, &err);
	fuzz_judged(rc, &err);
	if (rc < 0)
		return 0;
	check_list(&list);
	if (made.flags & FUZZ_MORE)
		check_split(&image, &list, rc, made.bytes);
	check_choice(&image, made.bytes, NULL);
	if (list.n)
		check_choice(&image, made.bytes, list.at[list.n - 1].uuid);
	return 0;
}
