/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_voice.c - what the daemon says of trouble, how often, and that the last lines are kept.
 *
 * Over a backing that fails when told to, with a clock that the test sets. */
#include "config.h"

#include "cryptfuse/voice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "run.h"
#include "test_volume.h"

#define DU 512u

static struct test_volume tv;
static struct cf_voice voice;
static uint8_t buf[DU];
static unsigned n_heard;
static char heard[CF_VOICE_TEXT];

static time_t now_s; /* 0: the time it is */
int __real_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);
int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
	if (!now_s)
		return __real_clock_gettime(clock, t);
	*t = (struct timespec){.tv_sec = now_s};
	return 0;
}

static void hear(void *ctx, const char *text)
{
	ck_assert_ptr_eq(ctx, &tv);
	n_heard++;
	snprintf(heard, sizeof(heard), "%s", text);
}

static void setup(void)
{
	ck_assert_int_eq(cf_secret_init(NULL), 0);
	test_volume_open(&tv,
					 &(struct test_shape){.mode = "xts", .du_bytes = DU, .bytes = 8 * DU, .access = CF_READ_WRITE});
	cf_voice_init(&voice, tv.v, NULL, hear, &tv);
	now_s = 1000;
}

static void teardown(void)
{
	cf_voice_fini(&voice);
	test_volume_close(&tv);
}

static void fail_reads(unsigned n)
{
	tv.t->read_fault = (struct test_fault){.code = -EIO, .n_calls = n};
	for (unsigned i = 0; i < n; i++)
		ck_assert_int_eq(cf_volume_read(tv.v, tv.w, buf, DU, 0), -EIO);
}

static unsigned kept(struct cf_voice_line last[static CF_VOICE_KEPT])
{
	return cf_voice_last(&voice, last);
}

START_TEST(notice__without_trouble_says_nothing)
{
	struct cf_voice_line last[CF_VOICE_KEPT];
	ck_assert_int_eq(cf_volume_read(tv.v, tv.w, buf, DU, 0), DU);
	cf_voice_notice(&voice);
	ck_assert_uint_eq(n_heard, 0);
	ck_assert_uint_eq(kept(last), 0);
}
END_TEST

START_TEST(reads__that_fail_are_said_at_once_and_then_once_a_minute)
{
	fail_reads(1);
	cf_voice_notice(&voice);
	ck_assert_uint_eq(n_heard, 1);
	ck_assert_ptr_nonnull(strstr(heard, "reads failed"));
	for (unsigned i = 0; i < 5; i++) {
		fail_reads(7);
		now_s += CF_VOICE_PAUSE_S / 5 - 1;
		cf_voice_notice(&voice);
	}
	ck_assert_uint_eq(n_heard, 1);
	now_s += 5;
	cf_voice_notice(&voice);
	ck_assert_uint_eq(n_heard, 2);
	ck_assert_ptr_nonnull(strstr(heard, "(35 times, 36 since open)"));
	now_s += CF_VOICE_PAUSE_S;
	cf_voice_notice(&voice);
	ck_assert_uint_eq(n_heard, 2);
}
END_TEST

/* Another kind of trouble does not wait for the first one's minute. */
START_TEST(writes_and_syncs__have_lines_of_their_own)
{
	fail_reads(1);
	cf_voice_notice(&voice);
	tv.t->write_fault = (struct test_fault){.code = -EIO, .n_calls = 1};
	ck_assert_int_eq(cf_volume_write(tv.v, tv.w, buf, DU, 0), -EIO);
	cf_voice_notice(&voice);
	ck_assert_ptr_nonnull(strstr(heard, "writes failed"));
	tv.t->sync_code = -EIO;
	ck_assert_int_eq(cf_volume_sync(tv.v), -EIO);
	cf_voice_notice(&voice);
	ck_assert_ptr_nonnull(strstr(heard, "sync"));
	ck_assert_uint_eq(n_heard, 3);
}
END_TEST

START_TEST(undo__that_failed_is_said)
{
	tv.t->write_fault = (struct test_fault){-EIO, DU / 2, TEST_FOREVER}; /* half of it, and never again */
	ck_assert_int_eq(cf_volume_write(tv.v, tv.w, buf, 1, 0), -EIO);
	cf_voice_notice(&voice);
	ck_assert_uint_eq(n_heard, 2);
	ck_assert_ptr_nonnull(strstr(heard, "damaged"));
}
END_TEST

/* ---- the lock ---- */

static int lock(int fd, short type)
{
	struct flock l = {.l_type = type, .l_whence = SEEK_SET};
	return fcntl(fd, F_OFD_SETLK, &l);
}

START_TEST(lock__that_another_has_is_said_once)
{
	char path[64];
	struct cf_image image = {.access = CF_READ_WRITE, .n_parts = 1, .fd = {memfd_create("image", MFD_CLOEXEC)}};
	snprintf(path, sizeof(path), "/proc/self/fd/%d", image.fd[0]);
	int other = open(path, O_RDWR | O_CLOEXEC);
	ck_assert_int_ge(other, 0);
	ck_assert_int_eq(lock(image.fd[0], F_WRLCK), 0);
	voice.image = &image;
	cf_voice_notice(&voice);
	ck_assert_uint_eq(n_heard, 0);
	ck_assert_int_eq(lock(image.fd[0], F_UNLCK), 0); /* as if a server had taken it away */
	ck_assert_int_eq(lock(other, F_RDLCK), 0);
	for (unsigned i = 0; i < 3; i++) {
		now_s += CF_VOICE_PAUSE_S;
		cf_voice_notice(&voice);
	}
	ck_assert_uint_eq(n_heard, 1);
	ck_assert_ptr_nonnull(strstr(heard, "lock"));
	close(other);
	cf_image_close(&image);
}
END_TEST

/* ---- the lines ---- */

START_TEST(last__are_the_newest_in_order)
{
	struct cf_voice_line last[CF_VOICE_KEPT];
	char want[16];
	for (unsigned n = 1; n <= 3 * CF_VOICE_KEPT; n++) {
		cf_voice_say(&voice, "line %u", n);
		const unsigned there = n < CF_VOICE_KEPT ? n : CF_VOICE_KEPT;
		ck_assert_uint_eq(kept(last), there);
		snprintf(want, sizeof(want), "line %u", n);
		ck_assert_str_eq(last[there - 1].text, want);
		snprintf(want, sizeof(want), "line %u", n - there + 1);
		ck_assert_str_eq(last[0].text, want);
	}
	ck_assert_uint_eq(n_heard, 3 * CF_VOICE_KEPT);
}
END_TEST

START_TEST(say__cuts_what_is_too_long)
{
	char longer[2 * CF_VOICE_TEXT];
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	cf_voice_say(&voice, "%s", longer);
	ck_assert_uint_eq(strlen(heard), CF_VOICE_TEXT - 1);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("voice");
	TCase *t = tcase_create("voice");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, notice__without_trouble_says_nothing);
	tcase_add_test(t, reads__that_fail_are_said_at_once_and_then_once_a_minute);
	tcase_add_test(t, writes_and_syncs__have_lines_of_their_own);
	tcase_add_test(t, undo__that_failed_is_said);
	tcase_add_test(t, lock__that_another_has_is_said_once);
	tcase_add_test(t, last__are_the_newest_in_order);
	tcase_add_test(t, say__cuts_what_is_too_long);
	suite_add_tcase(s, t);
	return test_run(s);
}
