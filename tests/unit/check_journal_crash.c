/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_journal_crash.c - a power cut after every write and sync of image and journal.
 *
 * A volume over a journal over two disks that remember does a while of writes, syncs, discards and rounds, and every
 * version of every data unit is kept. Then the disks are what each cut may have left of them, unsynced pieces of 512
 * bytes there or not, and are opened again. Each data unit must be one of its versions, whole, and none from before the
 * last sync that had ended; no other byte may differ; and a cut during the replay itself must do no harm either. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cryptfuse/err.h"
#include "cryptfuse/journal.h"
#include "cryptfuse/secret.h"
#include "run.h"
#include "test_crash.h"
#include "test_volume.h"

#define VERSIONS_MAX 400u
#define SYNCS_MAX 200u
#define TAIL_BYTES 1024u
#define N_DU_MAX 64u
#define STEPS 60u

struct shape {
	const char *mode, *iv;
	uint32_t du_bytes;
	unsigned n_du;
	uint64_t data_off, log_bytes;
	enum cf_discards discards;
};

static const struct shape shapes[] = {
	{"xts", "plain64", 512, 48, 63 * 512, 24 << 10, CF_DISCARDS_REFUSED},
	{"cbc", "plain64", 4096, 24, 63 * 512, 150 << 10, CF_DISCARDS_REFUSED},
	{"cbc", "plain64", 4096, 24, 4096, 100 << 10, CF_DISCARDS_ALLOWED},
	{"cbc", "elephant", 4096, 16, 0, 60 << 10, CF_DISCARDS_REFUSED},
	{"cbc", "plain64", 65536, 5, 512, 600 << 10, CF_DISCARDS_REFUSED},
};

struct version {
	size_t begun, done; /* events by then */
	bool punched;
	uint8_t *plain;
};

struct du {
	unsigned n;
	struct version version[VERSIONS_MAX];
};

struct run {
	const struct shape *shape;
	struct test_events *events;
	unsigned image_id, log_id;
	uint64_t image_bytes;
	uint8_t *image; /* as it was at first */
	struct cf_volume *v;
	struct cf_worker *w;
	struct cf_cipher *oracle;
	uint8_t *plain; /* the volume as it should read now */
	struct du du[N_DU_MAX];
	unsigned n_syncs;
	size_t sync_begun[SYNCS_MAX], sync_done[SYNCS_MAX];
	uint64_t random;
};

static struct run run;
static unsigned long n_cuts, n_torn_without;

static uint64_t pick(uint64_t n)
{
	return test_random(&run.random) % n;
}

static uint64_t volume_bytes(const struct shape *s)
{
	return (uint64_t)s->n_du * s->du_bytes;
}

static struct cf_journal_opts journal_opts(const struct shape *s)
{
	const struct test_shape shape = {
		.data_off = s->data_off, .bytes = volume_bytes(s), .du_bytes = s->du_bytes, .n_workers = 2};
	return test_journal_opts(&shape);
}

/* ---- the while before the cut ---- */

static void add_version(unsigned d, size_t begun, const uint8_t *plain)
{
	struct du *du = &run.du[d];
	ck_assert_uint_lt(du->n, VERSIONS_MAX);
	struct version *new = &du->version[du->n++];
	*new = (struct version){.begun = begun, .done = test_events_count(run.events)};
	new->plain = malloc(run.shape->du_bytes);
	memcpy(new->plain, plain, run.shape->du_bytes);
}

static void add_versions(uint64_t off, uint64_t len, size_t begun)
{
	const uint32_t du = run.shape->du_bytes;
	for (uint64_t d = off / du; d * du < off + len; d++)
		add_version((unsigned)d, begun, run.plain + d * du);
}

static void step_write(void)
{
	const uint64_t bytes = volume_bytes(run.shape), off = pick(bytes);
	const size_t max = (size_t)(bytes - off < 3 * run.shape->du_bytes ? bytes - off : 3 * run.shape->du_bytes);
	const size_t len = 1 + (size_t)pick(max), begun = test_events_count(run.events);
	test_fill(run.plain + off, len, test_random(&run.random) >> 32);
	ck_assert_int_eq(cf_volume_write(run.v, run.w, run.plain + off, len, off), (ssize_t)len);
	add_versions(off, len, begun);
}

static void step_sync(void)
{
	ck_assert_uint_lt(run.n_syncs, SYNCS_MAX);
	run.sync_begun[run.n_syncs] = test_events_count(run.events);
	ck_assert_int_eq(cf_volume_sync(run.v), 0);
	run.sync_done[run.n_syncs++] = test_events_count(run.events);
}

/* Not journaled: a punched data unit may be anything until the next sync, so that one comes at once. */
static void step_punch(void)
{
	const uint32_t du = run.shape->du_bytes;
	const uint64_t d = pick(run.shape->n_du);
	const size_t begun = test_events_count(run.events);
	memset(run.plain + d * du, 0, du);
	ck_assert_int_eq(cf_volume_punch(run.v, run.w, d * du, du), 0);
	add_versions(d * du, du, begun);
	run.du[d].version[run.du[d].n - 1].punched = true;
	step_sync();
}

static void step(void)
{
	const uint64_t what = pick(20);
	if (what < 14)
		step_write();
	else if (what < 18 || run.shape->discards == CF_DISCARDS_REFUSED)
		step_sync();
	else
		step_punch();
	uint8_t *now = malloc(volume_bytes(run.shape));
	ck_assert_int_eq(cf_volume_read(run.v, run.w, now, (size_t)volume_bytes(run.shape), 0),
					 (ssize_t)volume_bytes(run.shape));
	ck_assert_mem_eq(now, run.plain, volume_bytes(run.shape));
	free(now);
}

static void decrypt(const uint8_t *image, uint8_t *out)
{
	const struct shape *s = run.shape;
	ck_assert_int_eq(cf_cipher_crypt(run.oracle, 0, CF_DECRYPT, 0, s->n_du, image + s->data_off, out), 0);
	if (s->discards == CF_DISCARDS_REFUSED)
		return;
	uint8_t *zeros = calloc(1, s->du_bytes);
	for (unsigned d = 0; d < s->n_du; d++)
		if (memcmp(image + s->data_off + (size_t)d * s->du_bytes, zeros, s->du_bytes) == 0)
			memset(out + (size_t)d * s->du_bytes, 0, s->du_bytes);
	free(zeros);
}

static void start(const struct shape *s, uint64_t seed)
{
	run = (struct run){.shape = s, .random = seed, .image_bytes = s->data_off + volume_bytes(s) + TAIL_BYTES};
	run.events = test_events_new();
	run.oracle = test_cipher(s->mode, s->iv, s->du_bytes, 1);
	run.image = malloc(run.image_bytes);
	run.plain = malloc(volume_bytes(s));
	uint8_t *log_data = calloc(1, s->log_bytes);
	test_journal_blank(log_data);
	test_fill(run.image, run.image_bytes, 7);
	decrypt(run.image, run.plain);
	for (unsigned d = 0; d < s->n_du; d++)
		add_version(d, 0, run.plain + (size_t)d * s->du_bytes);
	struct cf_err err = {0};
	struct cf_backing *b = test_disk_new(run.events, run.image, run.image_bytes, &run.image_id);
	struct cf_backing *log = test_disk_new(run.events, log_data, s->log_bytes, &run.log_id);
	free(log_data);
	const struct cf_journal_opts opts = journal_opts(s);
	const struct cf_volume_opts vo = {.data_off = s->data_off,
									  .bytes = volume_bytes(s),
									  .access = CF_READ_WRITE,
									  .discards = s->discards,
									  .n_workers = 1};
	struct cf_cipher *c = test_cipher(s->mode, s->iv, s->du_bytes, 1);
	ck_assert_msg(cf_journal_wrap(&b, &log, &opts, &err) == 0, "%s", err.text);
	ck_assert_msg(cf_volume_new(&run.v, &b, &c, &vo, &err) == 0, "%s", err.text);
	run.w = cf_volume_enter(run.v);
}

static void end(void)
{
	for (unsigned d = 0; d < N_DU_MAX; d++)
		for (unsigned i = 0; i < run.du[d].n; i++)
			free(run.du[d].version[i].plain);
	test_events_free(&run.events);
	cf_cipher_free(&run.oracle);
	free(run.image);
	free(run.plain);
}

/* ---- after the cut ---- */

/* The oldest version that may be seen after a cut at @k. */
static unsigned floor_of(const struct du *du, size_t k)
{
	unsigned oldest = 0;
	for (unsigned s = 0; s < run.n_syncs && run.sync_done[s] <= k; s++)
		while (oldest + 1 < du->n && du->version[oldest + 1].done <= run.sync_begun[s])
			oldest++;
	return oldest;
}

static bool is_version(const struct du *du, size_t k, const uint8_t *plain)
{
	const unsigned oldest = floor_of(du, k);
	for (unsigned i = oldest; i < du->n && (i == 0 || du->version[i].begun < k); i++)
		if ((i > oldest && du->version[i].punched) || memcmp(du->version[i].plain, plain, run.shape->du_bytes) == 0)
			return true;
	return false;
}

static unsigned n_wrong(const uint8_t *image, size_t k)
{
	uint8_t *plain = malloc(volume_bytes(run.shape));
	unsigned n = 0;
	decrypt(image, plain);
	for (unsigned d = 0; d < run.shape->n_du; d++)
		n += !is_version(&run.du[d], k, plain + (size_t)d * run.shape->du_bytes);
	free(plain);
	return n;
}

static void check_image(const uint8_t *image, size_t k)
{
	const uint64_t end_off = run.shape->data_off + volume_bytes(run.shape);
	ck_assert_mem_eq(image, run.image, run.shape->data_off);
	ck_assert_mem_eq(image + end_off, run.image + end_off, TAIL_BYTES);
	ck_assert_uint_eq(n_wrong(image, k), 0);
}

/* Two disks, and what opening them makes of the image. */
struct again {
	struct test_events *events;
	unsigned image_id, log_id;
};

static void open_again(struct again *a, const uint8_t *image, const uint8_t *log_data, enum cf_access access,
					   uint8_t *out)
{
	struct cf_err err = {0};
	a->events = test_events_new();
	struct cf_backing *b = test_disk_new(a->events, image, run.image_bytes, &a->image_id);
	struct cf_backing *log = test_disk_new(a->events, log_data, run.shape->log_bytes, &a->log_id);
	const struct cf_journal_opts opts = journal_opts(run.shape);
	b->access = log->access = access;
	ck_assert_msg(cf_journal_wrap(&b, &log, &opts, &err) == 0, "%s", err.text);
	ck_assert_int_eq(cf_backing_read_full(b, out, run.image_bytes, 0), 0);
	cf_backing_free(&b);
	if (access == CF_READ_ONLY)
		ck_assert_uint_eq(test_events_count(a->events), 0);
}

/* The replay itself is cut, and then done anew. */
static void cut_replay(struct again *a, size_t k)
{
	const size_t k2 = (size_t)pick(test_events_count(a->events) + 1);
	const enum test_cut cut = (enum test_cut)pick(3);
	uint8_t *image = test_events_cut(a->events, a->image_id, k2, cut, run.random);
	uint8_t *log_data = test_events_cut(a->events, a->log_id, k2, cut, run.random + 1);
	uint8_t *out = malloc(run.image_bytes);
	struct again b;
	open_again(&b, image, log_data, CF_READ_WRITE, out);
	check_image(out, k);
	test_events_free(&b.events);
	free(image);
	free(log_data);
	free(out);
}

static void check_cut(size_t k, enum test_cut cut)
{
	const uint64_t seed = test_random(&run.random);
	uint8_t *image = test_events_cut(run.events, run.image_id, k, cut, seed);
	uint8_t *log_data = test_events_cut(run.events, run.log_id, k, cut, ~seed);
	uint8_t *seen = malloc(run.image_bytes), *out = malloc(run.image_bytes);
	struct again reader, writer;
	n_torn_without += n_wrong(image, k);
	open_again(&reader, image, log_data, CF_READ_ONLY, seen);
	open_again(&writer, image, log_data, CF_READ_WRITE, out);
	ck_assert_mem_eq(seen, out, run.image_bytes);
	check_image(out, k);
	uint8_t *left =
		test_events_cut(writer.events, writer.image_id, test_events_count(writer.events), TEST_CUT_NOTHING, 0);
	ck_assert_mem_eq(left, out, run.image_bytes);
	cut_replay(&writer, k);
	test_events_free(&reader.events);
	test_events_free(&writer.events);
	free(image);
	free(log_data);
	free(seen);
	free(out);
	free(left);
	n_cuts++;
}

START_TEST(cut__leaves_every_data_unit_old_or_new)
{
	n_cuts = n_torn_without = 0;
	start(&shapes[_i], 1000 + (uint64_t)_i);
	for (unsigned i = 0; i < STEPS; i++)
		step();
	struct cf_journal_stats stats;
	ck_assert(cf_volume_journal(run.v, &stats));
	ck_assert_uint_gt(stats.rounds, 3);
	cf_volume_leave(run.v, run.w);
	cf_volume_free(&run.v);
	const size_t n = test_events_count(run.events);
	for (size_t k = 0; k <= n; k++) {
		check_cut(k, TEST_CUT_NOTHING);
		check_cut(k, TEST_CUT_ALL);
		check_cut(k, TEST_CUT_SOME);
		check_cut(k, TEST_CUT_SOME);
	}
	end();
	ck_assert_uint_gt(n_torn_without, 0); /* the cuts do harm where no journal is */
	printf("%s-%s, %u bytes: %zu events, %llu rounds, %lu cuts, 0 data units wrong; without the replay %lu\n",
		   shapes[_i].mode, shapes[_i].iv, shapes[_i].du_bytes, n, (unsigned long long)stats.rounds, n_cuts,
		   n_torn_without);
}

int main(void)
{
	test_one_arena();
	Suite *s = suite_create("journal_crash");
	TCase *t = tcase_create("cut");
	tcase_add_loop_test(t, cut__leaves_every_data_unit_old_or_new, 0, (int)CF_ARRAY_LEN(shapes));
	suite_add_tcase(s, t);
	const int rc = test_run(s);
	cf_secret_fini();
	return rc;
}
