/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_partition.c - partitions of disk images: listed, found, chosen; the window that libblkid looks through.
 *
 * The images are made here, byte by byte, from the published layouts of MBR and GPT. */
#include "config.h"

#include "cryptfuse/partition.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "run.h"
#include "test_image.h"

#define MIB ((uint64_t)1 << 20)
#define IMAGE_BYTES (64 * MIB)
#define SECTOR 512u

static struct test_image img;
static struct cf_image image;
static struct cf_partitions list;
static struct cf_err err;
static char said[4][CF_ERR_TEXT];
static unsigned n_said;

static void note(void *ctx, const char *text)
{
	(void)ctx;
	if (n_said < CF_ARRAY_LEN(said))
		snprintf(said[n_said++], CF_ERR_TEXT, "%s", text);
}

static const struct cf_open_ui ui = {.note = note};

/* ---- images by hand ---- */

static void put(uint64_t off, const void *data, size_t len)
{
	int fd = open(img.path, O_WRONLY | O_CLOEXEC);
	ck_assert_int_eq(pwrite(fd, data, len, (off_t)off), (ssize_t)len);
	close(fd);
}

static void put_le(uint8_t *to, uint64_t n, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		to[i] = (uint8_t)(n >> (8 * i));
}

/* A boot record at @at with up to two entries, starts counted from where the entry says. */
struct entry {
	uint8_t type;
	uint32_t start, sectors;
};

static void put_boot_record(uint64_t sector, const struct entry *e, unsigned n)
{
	uint8_t b[SECTOR] = {0};
	put_le(b + 440, 0x1234abcd, 4);
	for (unsigned i = 0; i < n; i++) {
		uint8_t *p = b + 446 + 16 * i;
		p[4] = e[i].type;
		put_le(p + 8, e[i].start, 4);
		put_le(p + 12, e[i].sectors, 4);
	}
	b[510] = 0x55;
	b[511] = 0xaa;
	put(sector * SECTOR, b, sizeof(b));
}

/* Primary 1 at 1 MiB, an extended one at 16 MiB with logical 5, 6, 7, eight MiB apart, and primary 3 at the end. */
static void make_mbr(void)
{
	const struct entry table[] = {{0x83, 2048, 4096}, {0x05, 32768, 81920}, {0xe8, 122880, 8192}};
	put_boot_record(0, table, 3);
	for (uint32_t i = 0; i < 3; i++) {
		const struct entry link[] = {{0x83, 2048, 8192}, {0x05, (i + 1) * 16384, 10240}};
		put_boot_record(32768 + i * 16384, link, i < 2 ? 2 : 1);
	}
}

static uint32_t crc32_of(const uint8_t *p, size_t len)
{
	uint32_t c = 0xffffffff;
	for (size_t i = 0; i < len; i++) {
		c ^= p[i];
		for (int k = 0; k < 8; k++)
			c = (c >> 1) ^ (0xedb88320u & (0u - (c & 1)));
	}
	return ~c;
}

/* In @block bytes a sector: partitions 1 and 3 with names, 4 of the name of 3. */
static void make_gpt(uint32_t block)
{
	static const uint8_t luks[16] = {0xcb, 0x7c, 0x7d, 0xca, 0xed, 0x63, 0x53, 0x4c,
									 0x86, 0x1c, 0x17, 0x42, 0x53, 0x60, 0x59, 0xcc};
	static const char *const name[] = {"boot", "", "2", "2", "caf\xe9"};
	static uint8_t entries[128 * 128], head[92];
	const struct entry mbr = {0xee, 1, (uint32_t)(IMAGE_BYTES / block - 1)};
	put_boot_record(0, &mbr, 1);
	memset(entries, 0, sizeof(entries));
	for (unsigned i = 0; i < 5; i++) {
		uint8_t *e = entries + 128 * i;
		if (i == 1)
			continue;
		memcpy(e, luks, 16);
		memset(e + 16, (int)(0x10 + i), 16);
		put_le(e + 32, (i + 1) * 4 * MIB / block, 8);
		put_le(e + 40, (i + 1) * 4 * MIB / block + MIB / block - 1, 8);
		for (unsigned k = 0; name[i][k]; k++)
			e[56 + 2 * k] = (uint8_t)name[i][k];
	}
	memset(head, 0, sizeof(head));
	memcpy(head, "EFI PART", 8);
	put_le(head + 8, 0x00010000, 4);
	put_le(head + 12, sizeof(head), 4);
	put_le(head + 24, 1, 8);
	put_le(head + 32, IMAGE_BYTES / block - 1, 8);
	put_le(head + 40, 64, 8);
	put_le(head + 48, IMAGE_BYTES / block - 64, 8);
	memset(head + 56, 0x77, 16);
	put_le(head + 72, 2, 8);
	put_le(head + 80, 128, 4);
	put_le(head + 84, 128, 4);
	put_le(head + 88, crc32_of(entries, sizeof(entries)), 4);
	put_le(head + 16, crc32_of(head, sizeof(head)), 4);
	put(block, head, sizeof(head));
	put(2 * (uint64_t)block, entries, sizeof(entries));
}

/* What libblkid takes for LUKS1. */
static void put_luks(uint64_t off)
{
	uint8_t head[592] = {'L', 'U', 'K', 'S', 0xba, 0xbe, 0, 1};
	strcpy((char *)head + 168, "6f0e7b5d-0000-4000-8000-000000000001");
	put(off, head, sizeof(head));
}

/* ---- the same image, whole or in two parts with a border inside a sector ---- */

enum form { WHOLE, SPLIT, FORMS };

static void setup(void)
{
	test_image_make(&img, IMAGE_BYTES);
	err = (struct cf_err){.code = 0};
	n_said = 0;
	memset(said, 0, sizeof(said));
}

static void teardown(void)
{
	cf_image_close(&image);
	test_image_remove(&img);
}

static int copy_of(uint64_t off, uint64_t bytes)
{
	static uint8_t buf[65536];
	int from = open(img.path, O_RDONLY | O_CLOEXEC), to = memfd_create("part", MFD_CLOEXEC);
	ck_assert_int_eq(ftruncate(to, (off_t)bytes), 0);
	for (uint64_t at = 0; at < bytes; at += sizeof(buf)) {
		ssize_t n = pread(from, buf, bytes - at < sizeof(buf) ? bytes - at : sizeof(buf), (off_t)(off + at));
		bool blank = n > 0 && !buf[0] && !memcmp(buf, buf + 1, (size_t)n - 1);
		ck_assert(n > 0 && (blank || pwrite(to, buf, (size_t)n, (off_t)at) == n));
	}
	close(from);
	return to;
}

static void open_image(enum form form)
{
	const uint64_t border = 30 * MIB + 77;
	if (form == WHOLE) {
		ck_assert_int_eq(cf_image_open(&image, img.path, CF_READ_ONLY, CF_LOCK, &err), 0);
		return;
	}
	image = (struct cf_image){.access = CF_READ_WRITE, .n_parts = 2};
	image.fd[0] = copy_of(0, border);
	image.fd[1] = copy_of(border, IMAGE_BYTES - border);
}

static void assert_partition(unsigned i, unsigned number, uint64_t sector, uint64_t sectors)
{
	ck_assert_uint_eq(list.at[i].number, number);
	ck_assert_uint_eq(list.at[i].place.off, sector * SECTOR);
	ck_assert_uint_eq(list.at[i].place.bytes, sectors * SECTOR);
}

START_TEST(list__mbr_with_logical_partitions)
{
	make_mbr();
	open_image((enum form)_i);
	ck_assert_msg(cf_partitions_list(&image, &list, &err) == 1, "%s", err.text);
	ck_assert_str_eq(list.table, "dos");
	ck_assert_str_eq(list.uuid, "1234abcd");
	ck_assert_uint_eq(list.n, 6);
	assert_partition(0, 1, 2048, 4096);
	assert_partition(1, 2, 32768, 81920);
	ck_assert_int_eq(list.at[1].kind, CF_PARTITION_EXTENDED);
	assert_partition(2, 3, 122880, 8192);
	ck_assert_int_eq(list.at[2].kind, CF_PARTITION_PLAIN);
	ck_assert_str_eq(list.at[2].type, "0xe8");
	ck_assert_str_eq(list.at[2].type_name, "Linux LUKS");
	ck_assert_str_eq(list.at[2].uuid, "1234abcd-03");
	for (unsigned i = 0; i < 3; i++)
		assert_partition(3 + i, 5 + i, 32768 + i * 16384 + 2048, 8192);
}
END_TEST

START_TEST(list__gpt_in_either_sector_size)
{
	const uint32_t block = _i / FORMS ? 4096 : 512;
	make_gpt(block);
	open_image((enum form)(_i % FORMS));
	ck_assert_msg(cf_partitions_list(&image, &list, &err) == 1, "%s", err.text);
	ck_assert_str_eq(list.table, "gpt");
	ck_assert_uint_eq(list.n, 4);
	assert_partition(0, 1, 4 * MIB / SECTOR, MIB / SECTOR);
	assert_partition(1, 3, 12 * MIB / SECTOR, MIB / SECTOR);
	ck_assert_str_eq(list.at[0].name, "boot");
	ck_assert_str_eq(list.at[3].name, "caf\xc3\xa9");
	ck_assert_str_eq(list.at[0].type, "ca7d7ccb-63ed-4c53-861c-1742536059cc");
	ck_assert_str_eq(list.at[0].type_name, "Linux LUKS");
	ck_assert_str_eq(list.at[0].uuid, "10101010-1010-1010-1010-101010101010");
}
END_TEST

START_TEST(list__no_table_is_none)
{
	if (_i / FORMS)
		put_luks(0);
	open_image((enum form)(_i % FORMS));
	ck_assert_int_eq(cf_partitions_list(&image, &list, &err), 0);
	ck_assert_str_eq(list.table, "");
	ck_assert_uint_eq(list.n, 0);
}
END_TEST

START_TEST(list__an_empty_image_is_none)
{
	ck_assert_int_eq(truncate(img.path, _i), 0);
	ck_assert_int_eq(cf_image_open(&image, img.path, CF_READ_ONLY, CF_LOCK, &err), 0);
	ck_assert_int_eq(cf_partitions_list(&image, &list, &err), 0);
}
END_TEST

/* ---- finding ---- */

static const struct {
	const char *text;
	unsigned number; /* 0: refused */
	const char *says;
} finds[] = {
	{"1", 1, ""},
	{"003", 3, ""},
	{"boot", 1, ""},
	{"11111111-1111-1111-1111-111111111111", 0, "no such partition"},
	{"14141414-1414-1414-1414-141414141414", 5, ""},
	{"2", 0, "partitions 3 and 4 are both called so"},
	{"6", 0, "there are 1 (Linux LUKS, boot), 3"},
	{"BOOT", 0, "no such partition"},
	{"", 0, "no such partition"},
	{"4294967297", 0, "no such partition"},
};

START_TEST(find__by_number_name_and_uuid)
{
	const struct cf_partition *p = NULL;
	make_gpt(512);
	memset(list.at, 0, sizeof(list.at));
	open_image(WHOLE);
	ck_assert_int_eq(cf_partitions_list(&image, &list, &err), 1);
	int rc = cf_partition_find(&list, finds[_i].text, &p, &err);
	ck_assert_msg(rc == (finds[_i].number ? 0 : -EINVAL), "%s: %d", finds[_i].text, rc);
	ck_assert_uint_eq(p ? p->number : 0, finds[_i].number);
	ck_assert_msg(strstr(err.text, finds[_i].says), "%s", err.text);
}
END_TEST

START_TEST(find__takes_a_uuid_in_any_case)
{
	const struct cf_partition *p = NULL;
	make_mbr();
	open_image(WHOLE);
	ck_assert_int_eq(cf_partitions_list(&image, &list, &err), 1);
	ck_assert_int_eq(cf_partition_find(&list, "1234ABCD-07", &p, &err), 0);
	ck_assert_uint_eq(p->number, 7);
}
END_TEST

/* ---- choosing ---- */

static unsigned chosen; /* its number */

static int choose(const char *partition, enum cf_partition_search search, struct cf_extent *where)
{
	const struct cf_open_opts opts = {.image = img.path, .partition = partition, .access = image.access};
	return cf_partition_choose(&opts, search, &ui, &image, where, &chosen, &err);
}

START_TEST(choose__all_of_an_image_unless_asked)
{
	struct cf_extent where;
	make_mbr();
	put_luks(122880 * (uint64_t)SECTOR);
	open_image((enum form)_i);
	ck_assert_int_eq(choose(NULL, CF_PARTITION_ASKED, &where), 0);
	ck_assert_uint_eq(where.off, 0);
	ck_assert_uint_eq(where.bytes, IMAGE_BYTES);
	ck_assert_uint_eq(chosen, 0);
	ck_assert_int_eq(choose("6", CF_PARTITION_ASKED, &where), 0);
	ck_assert_uint_eq(chosen, 6);
	ck_assert_uint_eq(where.off, (32768 + 16384 + 2048) * (uint64_t)SECTOR);
	ck_assert_uint_eq(where.bytes, 8192 * (uint64_t)SECTOR);
	ck_assert_uint_eq(n_said, 0);
}
END_TEST

START_TEST(choose__the_one_that_is_encrypted)
{
	struct cf_extent where;
	make_mbr();
	put_luks(122880 * (uint64_t)SECTOR);
	open_image((enum form)_i);
	ck_assert_msg(choose(NULL, CF_PARTITION_SEARCH, &where) == 0, "%s", err.text);
	ck_assert_uint_eq(where.off, 122880 * (uint64_t)SECTOR);
	ck_assert_uint_eq(chosen, 3);
	ck_assert_uint_eq(n_said, 1);
	ck_assert_ptr_nonnull(strstr(said[0], "--partition 3"));
}
END_TEST

START_TEST(choose__not_between_several)
{
	struct cf_extent where;
	make_mbr();
	put_luks(122880 * (uint64_t)SECTOR);
	put_luks((32768 + 2048) * (uint64_t)SECTOR);
	open_image((enum form)_i);
	ck_assert_int_eq(choose(NULL, CF_PARTITION_SEARCH, &where), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "several encrypted partitions: 3 (Linux LUKS, crypto_LUKS), 5 (Linux, "));
	ck_assert_ptr_null(strstr(err.text, "6 ("));
}
END_TEST

START_TEST(choose__says_what_there_is_when_nothing_is_encrypted)
{
	struct cf_extent where;
	make_mbr();
	open_image((enum form)_i);
	ck_assert_int_eq(choose(NULL, CF_PARTITION_SEARCH, &where), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "1 (Linux)"));
	ck_assert_ptr_nonnull(strstr(err.text, "--type plain --partition N"));
}
END_TEST

START_TEST(choose__without_a_table_all_of_it_or_nothing)
{
	struct cf_extent where;
	open_image((enum form)_i);
	ck_assert_int_eq(choose(NULL, CF_PARTITION_SEARCH, &where), 0);
	ck_assert_uint_eq(where.bytes, IMAGE_BYTES);
	ck_assert_int_eq(choose("1", CF_PARTITION_ASKED, &where), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "no partition table"));
}
END_TEST

START_TEST(choose__not_an_extended_partition)
{
	struct cf_extent where;
	make_mbr();
	open_image(WHOLE);
	ck_assert_int_eq(choose("2", CF_PARTITION_ASKED, &where), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "only holds others"));
}
END_TEST

/* Partition 3 ends at 64 MiB exactly; the image loses its last sector. */
START_TEST(choose__a_partition_that_is_cut_off_is_for_reading_only)
{
	struct cf_extent where;
	make_mbr();
	ck_assert_int_eq(truncate(img.path, (off_t)(IMAGE_BYTES - SECTOR)), 0);
	open_image(WHOLE);
	ck_assert_int_eq(choose("3", CF_PARTITION_ASKED, &where), 0);
	ck_assert_uint_eq(where.bytes, 8191 * (uint64_t)SECTOR);
	ck_assert_uint_eq(n_said, 1);
	ck_assert_ptr_nonnull(strstr(said[0], "last 512 bytes"));
	image.access = CF_READ_WRITE;
	cf_image_close(&image);
	ck_assert_int_eq(cf_image_open(&image, img.path, CF_READ_WRITE, CF_LOCK, &err), 0);
	ck_assert_int_eq(choose("3", CF_PARTITION_ASKED, &where), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.text, "reaches 512 bytes beyond"));
}
END_TEST

/* ---- the window ---- */

START_TEST(window__has_the_ends_and_nothing_else)
{
	CF_CLEANUP(cf_backing_free) struct cf_backing *b = NULL;
	const struct cf_extent whole = {.bytes = IMAGE_BYTES};
	struct cf_extent ends[2];
	static const uint64_t at[] = {0, 2 * MIB - 1, 2 * MIB, 62 * MIB - 1, 62 * MIB, IMAGE_BYTES - 1};
	uint8_t byte = 0xa5;
	int fd = -1;
	for (size_t i = 0; i < CF_ARRAY_LEN(at); i++)
		put(at[i], &byte, 1);
	open_image((enum form)_i);
	ck_assert_int_eq(cf_image_backing(&image, &b, &err), 0);
	cf_window_ends(&whole, ends);
	ck_assert_int_eq(cf_window_fd(b, ends, 2, &fd, &err), 0);
	for (size_t i = 0; i < CF_ARRAY_LEN(at); i++) {
		ck_assert_int_eq(pread(fd, &byte, 1, (off_t)at[i]), 1);
		ck_assert_uint_eq(byte, at[i] < 2 * MIB || at[i] >= 62 * MIB ? 0xa5 : 0);
	}
	ck_assert_int_eq(lseek(fd, 0, SEEK_END), (off_t)IMAGE_BYTES);
	ck_assert_int_eq(pwrite(fd, &byte, 1, 0), -1);
	ck_assert_int_eq(ftruncate(fd, 0), -1);
	close(fd);
}
END_TEST

START_TEST(window__ends_of_a_short_range_are_all_of_it)
{
	const struct cf_extent e = {.off = 1000, .bytes = 700};
	struct cf_extent ends[2];
	cf_window_ends(&e, ends);
	ck_assert_uint_eq(ends[0].off, 1000);
	ck_assert_uint_eq(ends[0].bytes, 700);
	ck_assert_uint_eq(ends[1].off, 1000);
	ck_assert_uint_eq(ends[1].bytes, 700);
}
END_TEST

START_TEST(clip__keeps_to_the_store)
{
	struct cf_extent e = cf_extent_clip((struct cf_extent){.off = 10, .bytes = UINT64_MAX}, 15);
	ck_assert_uint_eq(e.off, 10);
	ck_assert_uint_eq(e.bytes, 5);
	e = cf_extent_clip((struct cf_extent){.off = UINT64_MAX, .bytes = UINT64_MAX}, 15);
	ck_assert_uint_eq(e.off, 15);
	ck_assert_uint_eq(e.bytes, 0);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("partition");
	TCase *c = tcase_create("partition");
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_loop_test(c, list__mbr_with_logical_partitions, 0, FORMS);
	tcase_add_loop_test(c, list__gpt_in_either_sector_size, 0, 2 * FORMS);
	tcase_add_loop_test(c, list__no_table_is_none, 0, 2 * FORMS);
	tcase_add_loop_test(c, list__an_empty_image_is_none, 0, 2);
	tcase_add_loop_test(c, find__by_number_name_and_uuid, 0, CF_ARRAY_LEN(finds));
	tcase_add_test(c, find__takes_a_uuid_in_any_case);
	tcase_add_loop_test(c, choose__all_of_an_image_unless_asked, 0, FORMS);
	tcase_add_loop_test(c, choose__the_one_that_is_encrypted, 0, FORMS);
	tcase_add_loop_test(c, choose__not_between_several, 0, FORMS);
	tcase_add_loop_test(c, choose__says_what_there_is_when_nothing_is_encrypted, 0, FORMS);
	tcase_add_loop_test(c, choose__without_a_table_all_of_it_or_nothing, 0, FORMS);
	tcase_add_test(c, choose__not_an_extended_partition);
	tcase_add_test(c, choose__a_partition_that_is_cut_off_is_for_reading_only);
	tcase_add_loop_test(c, window__has_the_ends_and_nothing_else, 0, FORMS);
	tcase_add_test(c, window__ends_of_a_short_range_are_all_of_it);
	tcase_add_test(c, clip__keeps_to_the_store);
	suite_add_tcase(s, c);
	return test_run(s);
}
