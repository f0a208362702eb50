/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_journal_replay.c - journals that are damaged, cut, another's, or older than the image.
 *
 * A journal is made whose volume "was killed": the bytes of image and file are kept, and opened again with something
 * changed. Either nothing is opened and not a byte of the image has changed, or all data units are what was synced. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "run.h"
#include "test_volume.h"

#define DU 1024u
#define N_DU 8u
#define BYTES (N_DU * DU)
#define DATA_OFF (3u * 512u)
#define IMAGE_BYTES (DATA_OFF + BYTES + 512u)
#define N_SLOTS 5u
#define LOG_BYTES (12288u + 2 * N_SLOTS * (48u + 2 * 2 * 16 + DU))

static const struct test_shape shape = {.du_bytes = DU, .data_off = DATA_OFF, .bytes = BYTES};

/** What is left of a volume that was killed. */
struct left {
	uint8_t image[IMAGE_BYTES], log[LOG_BYTES];
};

static struct left killed;            /* as it was */
static uint8_t replayed[IMAGE_BYTES]; /* what its image must become */
static uint8_t first[IMAGE_BYTES];    /* what it was before everything */

struct opened {
	struct test_backing *image, *log;
	struct cf_backing *b; /* NULL: refused */
	int rc;
	struct cf_err err;
};

static struct opened open_left(const struct left *l, const struct cf_journal_opts *opts, enum cf_access access)
{
	struct opened o = {.image = test_backing_new(IMAGE_BYTES, 1), .log = test_backing_new(LOG_BYTES, 1)};
	memcpy(o.image->data, l->image, IMAGE_BYTES);
	memcpy(o.log->data, l->log, LOG_BYTES);
	o.image->base.access = o.log->base.access = access;
	struct cf_backing *b = &o.image->base, *log = &o.log->base;
	o.rc = cf_journal_wrap(&b, &log, opts, &o.err);
	if (o.rc == 0)
		o.b = b;
	else
		ck_assert(b == &o.image->base && log == &o.log->base); /* both are still ours */
	return o;
}

static void close_opened(struct opened *o)
{
	struct cf_backing *image = &o->image->base, *log = &o->log->base;
	if (o->b) {
		cf_backing_free(&o->b);
		return;
	}
	cf_backing_free(&image);
	cf_backing_free(&log);
}

static void write_du(struct cf_backing *b, unsigned du, uint64_t seed)
{
	uint8_t data[DU];
	size_t written;
	test_fill(data, DU, seed);
	ck_assert_int_eq(cf_backing_write_full(b, data, DU, DATA_OFF + (uint64_t)du * DU, &written), 0);
}

/* Epoch 1 is in the image, 2 is full, 3 not; of 5 data units, some again in one epoch or in the next. */
static const unsigned order[] = {0, 1, 2, 3, 4, 5, 6, 5, 1, 2, 5, 6, 0};
#define N_PENDING 5u

/* Written, synced, killed. */
static void setup(void)
{
	const struct cf_journal_opts opts = test_journal_opts(&shape);
	struct left blank = {.log = {0}};
	test_one_arena();
	test_fill(blank.image, IMAGE_BYTES, 1);
	memcpy(first, blank.image, IMAGE_BYTES);
	test_journal_blank(blank.log);
	struct opened o = open_left(&blank, &opts, CF_READ_WRITE);
	ck_assert_msg(o.rc == 0, "%s", o.err.text);
	for (unsigned i = 0; i < CF_ARRAY_LEN(order); i++)
		write_du(o.b, order[i], 100 + i);
	ck_assert_int_eq(o.b->ops->sync(o.b), 0);
	memcpy(killed.image, o.image->data, IMAGE_BYTES);
	memcpy(killed.log, o.log->data, LOG_BYTES);
	ck_assert_int_eq(cf_backing_read_full(o.b, replayed, DATA_OFF + BYTES, 0), 0);
	memcpy(replayed + DATA_OFF + BYTES, first + DATA_OFF + BYTES, 512);
	close_opened(&o);
	ck_assert_mem_ne(replayed, killed.image, IMAGE_BYTES);
}

static void check_replayed(struct opened *o)
{
	ck_assert_msg(o->rc == 0, "%s", o->err.text);
	ck_assert_mem_eq(o->image->data, replayed, IMAGE_BYTES);
}

static void check_refused(struct opened *o, const struct left *l)
{
	ck_assert_int_eq(o->rc, -ENODEV); /* exit 4 */
	ck_assert_mem_eq(o->image->data, l->image, IMAGE_BYTES);
	ck_assert_mem_eq(o->log->data, l->log, LOG_BYTES);
	ck_assert_uint_eq(o->image->n_writes + o->log->n_writes, 0);
}

START_TEST(journal__is_replayed)
{
	const struct cf_journal_opts opts = test_journal_opts(&shape);
	struct cf_journal_stats s;
	struct opened o = open_left(&killed, &opts, CF_READ_WRITE);
	check_replayed(&o);
	ck_assert(cf_journal_stats(o.b, &s));
	ck_assert_uint_eq(s.replayed, N_PENDING);
	ck_assert_uint_eq(s.pending, 0);
	close_opened(&o);
}
END_TEST

START_TEST(journal__is_replayed_in_memory_for_a_reader)
{
	const struct cf_journal_opts opts = test_journal_opts(&shape);
	uint8_t seen[IMAGE_BYTES];
	struct opened o = open_left(&killed, &opts, CF_READ_ONLY);
	ck_assert_int_eq(o.rc, 0);
	ck_assert_int_eq(cf_backing_read_full(o.b, seen, IMAGE_BYTES, 0), 0);
	ck_assert_mem_eq(seen, replayed, IMAGE_BYTES);
	ck_assert_int_eq(o.b->ops->drain(o.b), 0);
	ck_assert_int_eq(o.b->ops->start(o.b), 0);
	ck_assert_mem_eq(o.image->data, killed.image, IMAGE_BYTES);
	ck_assert_mem_eq(o.log->data, killed.log, LOG_BYTES);
	ck_assert_uint_eq(o.image->n_writes + o.log->n_writes + o.image->n_syncs + o.log->n_syncs, 0);
	close_opened(&o);
}
END_TEST

/* One bit of each byte. Most are harmless: slots that are in no use, and what lies between blocks. */
START_TEST(journal__damaged_anywhere_is_refused_or_harmless)
{
	const struct cf_journal_opts opts = test_journal_opts(&shape);
	struct left *l = malloc(sizeof(*l));
	unsigned n_refused = 0, n_harmless = 0;
	for (size_t at = (size_t)_i; at < LOG_BYTES; at += 4) {
		*l = killed;
		l->log[at] ^= (uint8_t)(1u << at / 4 % 8);
		struct opened o = open_left(l, &opts, CF_READ_WRITE);
		if (o.rc)
			check_refused(&o, l);
		else
			check_replayed(&o);
		n_refused += o.rc != 0;
		n_harmless += o.rc == 0;
		close_opened(&o);
	}
	ck_assert_uint_gt(n_refused, 7 * (DU + 112) / 4);
	ck_assert_uint_gt(n_harmless, 1000);
	free(l);
}
END_TEST

static const uint32_t cuts[] = {0, 1, 20, 511, 512, 4096, 8192, 12288, 12289, 13000, LOG_BYTES / 2, LOG_BYTES - 1};

START_TEST(journal__that_was_cut_is_refused)
{
	const struct cf_journal_opts opts = test_journal_opts(&shape);
	struct opened o = {.image = test_backing_new(IMAGE_BYTES, 1), .log = test_backing_new(cuts[_i] + 1, 1)};
	o.log->base.bytes = cuts[_i];
	memcpy(o.image->data, killed.image, IMAGE_BYTES);
	memcpy(o.log->data, killed.log, cuts[_i]);
	struct cf_backing *b = &o.image->base, *log = &o.log->base;
	ck_assert_int_eq(cf_journal_wrap(&b, &log, &opts, &o.err), -ENODEV);
	ck_assert_mem_eq(o.image->data, killed.image, IMAGE_BYTES);
	ck_assert_uint_eq(o.image->n_writes + o.log->n_writes, 0);
	close_opened(&o);
}
END_TEST

START_TEST(journal__of_another_volume_is_refused)
{
	static const uint8_t other_key[32] = {1, 2, 4};
	const struct cf_journal_opts ours = test_journal_opts(&shape);
	struct cf_journal_opts other[9];
	for (size_t i = 0; i < CF_ARRAY_LEN(other); i++)
		other[i] = ours;
	other[0].key = other_key;
	other[1].key_bytes = 16;
	other[2].cipher = "aes-other";
	other[3].uuid = "another";
	other[4].iv_offset = 1;
	other[5].data_off = DATA_OFF - 512;
	other[6].bytes = BYTES - DU;
	other[7].du_bytes = 512;
	other[8].key_bytes = 0;
	struct opened o = open_left(&killed, &other[_i], _i % 2 ? CF_READ_ONLY : CF_READ_WRITE);
	check_refused(&o, &killed);
	close_opened(&o);
}
END_TEST

START_TEST(journal__of_a_longer_image_is_refused)
{
	const struct cf_journal_opts opts = test_journal_opts(&shape);
	struct opened o = {.image = test_backing_new(IMAGE_BYTES + 512, 1), .log = test_backing_new(LOG_BYTES, 1)};
	memcpy(o.log->data, killed.log, LOG_BYTES);
	struct cf_backing *b = &o.image->base, *log = &o.log->base;
	ck_assert_int_eq(cf_journal_wrap(&b, &log, &opts, &o.err), -ENODEV);
	ck_assert_uint_eq(o.image->n_writes + o.log->n_writes, 0);
	close_opened(&o);
}
END_TEST

/* HAZARDS 30: each piece of 512 bytes of what the journal has, changed by somebody else. */
START_TEST(image__that_was_changed_since_is_not_rolled_back)
{
	const struct cf_journal_opts opts = test_journal_opts(&shape);
	struct left *l = malloc(sizeof(*l));
	unsigned n_refused = 0;
	for (size_t at = 0; at < IMAGE_BYTES; at += 256) {
		*l = killed;
		l->image[at] ^= 1;
		struct opened o = open_left(l, &opts, at % 512 ? CF_READ_ONLY : CF_READ_WRITE);
		if (o.rc)
			check_refused(&o, l);
		else
			ck_assert_mem_eq(o.image->data + at, l->image + at, 1); /* no data unit of the journal's */
		n_refused += o.rc != 0;
		close_opened(&o);
	}
	ck_assert_uint_eq(n_refused, N_PENDING * DU / 256);
	free(l);
}
END_TEST

/* As a round that was cut leaves it: every mixture of old and new pieces. */
START_TEST(image__with_pieces_old_and_new_is_replayed)
{
	const struct cf_journal_opts opts = test_journal_opts(&shape);
	struct left *l = malloc(sizeof(*l));
	uint64_t random = (uint64_t)_i + 1;
	*l = killed;
	for (size_t at = 0; at < IMAGE_BYTES; at += 512)
		if (test_random(&random) % 2)
			memcpy(l->image + at, replayed + at, 512);
	struct opened o = open_left(l, &opts, CF_READ_WRITE);
	check_replayed(&o);
	close_opened(&o);
	free(l);
}
END_TEST

START_TEST(journal__in_which_nothing_is_fits_every_volume)
{
	struct cf_journal_opts opts = test_journal_opts(&shape);
	struct left blank = {.log = {0}};
	memcpy(blank.image, first, IMAGE_BYTES);
	memcpy(blank.log, killed.log, LOG_BYTES); /* records of somebody else, that were left behind */
	memset(blank.log, 0, 4096);
	test_journal_blank(blank.log);
	opts.cipher = "aes-other";
	struct opened o = open_left(&blank, &opts, CF_READ_WRITE);
	ck_assert_int_eq(o.rc, 0);
	ck_assert_uint_eq(o.log->n_writes, 0); /* to look binds nothing */
	ck_assert_mem_eq(o.image->data, first, IMAGE_BYTES);
	write_du(o.b, 0, 5);
	ck_assert_uint_gt(o.log->n_writes, 1);
	close_opened(&o);
}
END_TEST

START_TEST(file__that_begins_as_no_journal_is_refused)
{
	const struct cf_journal_opts opts = test_journal_opts(&shape);
	struct left l = killed;
	memset(l.log, 0, 512);
	struct opened o = open_left(&l, &opts, CF_READ_WRITE);
	check_refused(&o, &l);
	close_opened(&o);
}
END_TEST

START_TEST(journal__that_cannot_be_replayed_stays)
{
	const struct cf_journal_opts opts = test_journal_opts(&shape);
	struct opened o = {.image = test_backing_new(IMAGE_BYTES, 1), .log = test_backing_new(LOG_BYTES, 1)};
	struct left l;
	memcpy(o.image->data, killed.image, IMAGE_BYTES);
	memcpy(o.log->data, killed.log, LOG_BYTES);
	o.image->write_fault = (struct test_fault){-EIO, 512, TEST_FOREVER};
	struct cf_backing *b = &o.image->base, *log = &o.log->base;
	ck_assert_int_eq(cf_journal_wrap(&b, &log, &opts, &o.err), -EIO);
	memcpy(l.image, o.image->data, IMAGE_BYTES);
	memcpy(l.log, o.log->data, LOG_BYTES);
	close_opened(&o);
	o = open_left(&l, &opts, CF_READ_WRITE);
	check_replayed(&o);
	close_opened(&o);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("journal replay");
	TCase *t = tcase_create("replay");
	test_one_arena();
	tcase_add_unchecked_fixture(t, setup, NULL);
	tcase_set_timeout(t, 120);
	tcase_add_test(t, journal__is_replayed);
	tcase_add_test(t, journal__is_replayed_in_memory_for_a_reader);
	tcase_add_loop_test(t, journal__damaged_anywhere_is_refused_or_harmless, 0, 4);
	tcase_add_loop_test(t, journal__that_was_cut_is_refused, 0, (int)CF_ARRAY_LEN(cuts));
	tcase_add_loop_test(t, journal__of_another_volume_is_refused, 0, 9);
	tcase_add_test(t, journal__of_a_longer_image_is_refused);
	tcase_add_test(t, image__that_was_changed_since_is_not_rolled_back);
	tcase_add_loop_test(t, image__with_pieces_old_and_new_is_replayed, 0, 20);
	tcase_add_test(t, journal__in_which_nothing_is_fits_every_volume);
	tcase_add_test(t, file__that_begins_as_no_journal_is_refused);
	tcase_add_test(t, journal__that_cannot_be_replayed_stays);
	suite_add_tcase(s, t);
	const int rc = test_run(s);
	cf_secret_fini();
	return rc;
}
