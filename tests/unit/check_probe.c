/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_probe.c - what libblkid finds, as one printable line. Signatures are made here by hand, so no mkfs is needed.
 */
#include "config.h"

#include "cryptfuse/probe.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "run.h"

#define BYTES ((size_t)1 << 20)

static uint8_t *content;

static void start(void)
{
	content = calloc(1, BYTES);
	ck_assert(content != NULL);
}

static void finish(void)
{
	free(content);
}

static void put_swap(const char *label)
{
	memcpy(content + 4086, "SWAPSPACE2", 10);
	content[1024] = 1;                /* version */
	content[1028] = 99;               /* last page */
	memset(content + 1036, 0x5a, 16); /* UUID */
	memcpy(content + 1052, label, strlen(label));
}

static void put_dos_table(void)
{
	content[446 + 4] = 0x83;  /* a Linux partition */
	content[446 + 8] = 8;     /* from sector 8 */
	content[446 + 12] = 0x40; /* 64 of them */
	content[510] = 0x55;
	content[511] = 0xaa;
}

static int probe(char *text, size_t size)
{
	struct cf_err err = {0};
	int fd = memfd_create("check", MFD_CLOEXEC);
	ck_assert_int_eq(write(fd, content, BYTES), (ssize_t)BYTES);
	int rc = cf_probe_fd(fd, text, size, &err);
	close(fd);
	return rc;
}

START_TEST(probe__of_zeros_and_noise_finds_nothing)
{
	char text[64] = "old";
	ck_assert_int_eq(probe(text, sizeof(text)), 0);
	ck_assert_str_eq(text, "");
	uint32_t n = 1;
	for (size_t i = 0; i < BYTES; i++)
		content[i] = (uint8_t)((n = n * 1664525 + 1013904223) >> 24);
	ck_assert_int_eq(probe(text, sizeof(text)), 0);
	ck_assert_str_eq(text, "");
}
END_TEST

static const struct {
	const char *label, *text;
} labels[] = {
	{"", "swap"},
	{"inner", "swap, label inner"},
	{"my disk", "swap, label my disk"},
	{"a\nb\033[2Jc", "swap, label a?b?[2Jc"},
	{"Gr\xc3\xb6\xc3\x9f"
	 "e",
	 "swap, label Gr\xc3\xb6\xc3\x9f"
	 "e"},
	{"x\xff\xc3(\xc2\x9by", "swap, label x?"
							"?(?"
							"?y"},
	{"x\xe2\x80\xaey", "swap, label x?"
					   "?"
					   "?y"}, /* right-to-left override */
};

START_TEST(probe__names_type_and_printable_label)
{
	char text[64] = "";
	put_swap(labels[_i].label);
	ck_assert_int_eq(probe(text, sizeof(text)), 1);
	ck_assert_str_eq(text, labels[_i].text);
}
END_TEST

START_TEST(probe__names_a_partition_table)
{
	char text[64] = "";
	put_dos_table();
	ck_assert_int_eq(probe(text, sizeof(text)), 1);
	ck_assert_str_eq(text, "dos partition table");
}
END_TEST

START_TEST(probe__cuts_at_the_buffer)
{
	char text[14];
	memset(text, 'x', sizeof(text));
	put_swap("inner");
	ck_assert_int_eq(probe(text, 13), 1);
	ck_assert_str_eq(text, "swap, label ");
	ck_assert_int_eq(text[13], 'x');
}
END_TEST

START_TEST(probe__of_a_closed_descriptor_fails)
{
	char text[64];
	struct cf_err err = {0};
	ck_assert_int_eq(cf_probe_fd(-1, text, sizeof(text), &err), -EIO);
	ck_assert_str_eq(text, "");
	ck_assert_str_ne(err.text, "");
}
END_TEST

int main(void)
{
	Suite *s = suite_create("probe");
	TCase *t = tcase_create("probe");
	tcase_add_checked_fixture(t, start, finish);
	tcase_add_test(t, probe__of_zeros_and_noise_finds_nothing);
	tcase_add_loop_test(t, probe__names_type_and_printable_label, 0, (int)CF_ARRAY_LEN(labels));
	tcase_add_test(t, probe__names_a_partition_table);
	tcase_add_test(t, probe__cuts_at_the_buffer);
	tcase_add_test(t, probe__of_a_closed_descriptor_fails);
	suite_add_tcase(s, t);
	return test_run(s);
}
