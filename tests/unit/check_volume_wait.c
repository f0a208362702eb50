/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_volume_wait.c - threads that wait and threads that compute are counted apart (HAZARDS 17).
 *
 * No clock decides: the backing keeps its callers until as many are inside as should be, so a test ends only if they
 * can be, and the cipher is wrapped to count who is inside. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "cryptfuse/secret.h"
#include "run.h"
#include "test_volume.h"

#define DU 4096u
#define WORKERS CF_WORKERS_MAX
#define PERMITS 2u
#define ROUNDS 20u

static struct test_volume tv;
static pthread_barrier_t in_backing, in_cipher;
static _Atomic bool meet_in_cipher;
static _Atomic unsigned computing, most_computing, clashes;
static _Atomic int context_in_use[WORKERS];

int __real_cf_cipher_crypt(struct cf_cipher *c, unsigned worker, enum cf_dir dir, uint64_t du, size_t n_du,
						   const uint8_t *src, uint8_t *dst);
int __wrap_cf_cipher_crypt(struct cf_cipher *c, unsigned worker, enum cf_dir dir, uint64_t du, size_t n_du,
						   const uint8_t *src, uint8_t *dst);

int __wrap_cf_cipher_crypt(struct cf_cipher *c, unsigned worker, enum cf_dir dir, uint64_t du, size_t n_du,
						   const uint8_t *src, uint8_t *dst)
{
	unsigned now = atomic_fetch_add(&computing, 1) + 1, most = atomic_load(&most_computing);
	while (now > most && !atomic_compare_exchange_weak(&most_computing, &most, now))
		;
	if (worker >= WORKERS || atomic_fetch_add(&context_in_use[worker], 1) != 0)
		atomic_fetch_add(&clashes, 1);
	if (atomic_load(&meet_in_cipher))
		pthread_barrier_wait(&in_cipher);
	sched_yield();
	int rc = __real_cf_cipher_crypt(c, worker, dir, du, n_du, src, dst);
	atomic_fetch_sub(&context_in_use[worker], 1);
	atomic_fetch_sub(&computing, 1);
	return rc;
}

static void setup(void)
{
	const struct test_shape shape = {.mode = "cbc",
									 .du_bytes = DU,
									 .bytes = 4 * WORKERS * DU,
									 .access = CF_READ_WRITE,
									 .n_workers = WORKERS,
									 .n_permits = PERMITS};
	ck_assert_int_eq(cf_secret_init(NULL), 0);
	test_volume_open(&tv, &shape);
}

static void teardown(void)
{
	tv.t->hook = NULL;
	test_volume_close(&tv);
	cf_secret_fini();
}

static void start(pthread_t *t, unsigned n, void *(*f)(void *))
{
	for (uintptr_t i = 0; i < n; i++)
		ck_assert_int_eq(pthread_create(&t[i], NULL, f, (void *)i), 0);
}

static void join(pthread_t *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		pthread_join(t[i], NULL);
}

/* ---- reads and writes ---- */

enum kind { READ, WRITE_WHOLE, WRITE_PART, N_KINDS };

static enum kind kind;
static unsigned rounds = ROUNDS;
static _Atomic unsigned failures;

static void meet_in_backing(struct test_backing *t, enum test_call call)
{
	(void)t;
	(void)call;
	pthread_barrier_wait(&in_backing);
}

static void *one_request_a_round(void *arg)
{
	const uint64_t off = (uintptr_t)arg * 3 * DU;
	for (unsigned i = 0; i < rounds; i++) {
		struct cf_worker *w = cf_volume_enter(tv.v);
		size_t len = kind == WRITE_PART ? 100 : DU;
		memset(w->io, (int)i, len);
		ssize_t n = kind == READ ? cf_volume_read(tv.v, w, w->io, len, off) : cf_volume_write(tv.v, w, w->io, len, off);
		cf_volume_leave(tv.v, w);
		failures += n != (ssize_t)len;
	}
	return NULL;
}

/* Every call of the backing waits until all workers are in one. */
START_TEST(requests__of_all_workers_wait_at_once_and_few_compute)
{
	pthread_t t[WORKERS];
	kind = (enum kind)_i;
	pthread_barrier_init(&in_backing, NULL, WORKERS);
	tv.t->hook = meet_in_backing;
	start(t, WORKERS, one_request_a_round);
	join(t, WORKERS);
	pthread_barrier_destroy(&in_backing);
	ck_assert_uint_eq(failures, 0);
	ck_assert_uint_eq(clashes, 0);
	ck_assert_uint_ge(most_computing, 1);
	ck_assert_uint_le(most_computing, PERMITS);
}
END_TEST

/* And not fewer than there are permits: each waits in the cipher until another is there. */
START_TEST(requests__compute_at_once_as_permitted)
{
	pthread_t t[WORKERS];
	kind = READ;
	rounds = 1; /* whoever is last still has a partner */
	pthread_barrier_init(&in_cipher, NULL, PERMITS);
	atomic_store(&meet_in_cipher, true);
	start(t, WORKERS, one_request_a_round);
	join(t, WORKERS);
	atomic_store(&meet_in_cipher, false);
	pthread_barrier_destroy(&in_cipher);
	ck_assert_uint_eq(failures + clashes, 0);
	ck_assert_uint_eq(most_computing, PERMITS);
}
END_TEST

static void *write_first_du(void *arg)
{
	struct cf_worker *w = cf_volume_enter(tv.v);
	failures += cf_volume_write(tv.v, w, w->io, DU, 0) != DU;
	cf_volume_leave(tv.v, w);
	return arg;
}

START_TEST(waiting_for_a_lock__takes_no_permit)
{
	pthread_t t[2 * PERMITS];
	tv.t->pace = TEST_GATE;
	start(t, 1, write_first_du);
	while (!tv.t->at_gate)
		sched_yield();
	start(t + 1, 2 * PERMITS - 1, write_first_du);
	for (unsigned i = 0; i < 1000; i++)
		sched_yield();
	struct cf_worker *w = cf_volume_enter(tv.v);
	ck_assert_int_eq(cf_volume_read(tv.v, w, w->io, DU, DU), DU);
	cf_volume_leave(tv.v, w);
	tv.t->pace = TEST_FAST;
	join(t, 2 * PERMITS);
	ck_assert_uint_eq(failures, 0);
}
END_TEST

/* ---- does the backing make its callers wait? ---- */

static void sleep_in_call(struct test_backing *t, enum test_call call)
{
	(void)t;
	(void)call;
	nanosleep(&(struct timespec){.tv_nsec = 1000}, NULL);
}

static void read_many(unsigned n)
{
	struct cf_worker *w = cf_volume_enter(tv.v);
	for (unsigned i = 0; i < n; i++)
		ck_assert_int_eq(cf_volume_read(tv.v, w, w->io, DU, 0), DU);
	cf_volume_leave(tv.v, w);
}

START_TEST(waiting__is_seen_in_a_backing_that_sleeps)
{
	ck_assert_uint_eq(cf_volume_waiting(tv.v), 0);
	read_many(100);
	ck_assert_uint_eq(cf_volume_waiting(tv.v), 0);
	tv.t->hook = sleep_in_call;
	read_many(100);
	ck_assert_uint_eq(cf_volume_waiting(tv.v), CF_WORKERS_MAX);
	tv.t->hook = NULL;
	read_many(1000);
	ck_assert_uint_eq(cf_volume_waiting(tv.v), 0);
}
END_TEST

/* ---- syncs ---- */

struct asked {
	struct cf_sync sync; /* first */
	_Atomic bool answered;
	int rc;
};

static struct asked asked[WORKERS];
static _Atomic unsigned syncs_begun, syncs_let_go, returned;

static void sync_waits(struct test_backing *t, enum test_call call)
{
	(void)t;
	if (call != TEST_SYNC)
		return;
	unsigned number = atomic_fetch_add(&syncs_begun, 1) + 1;
	while (atomic_load(&syncs_let_go) < number)
		sched_yield();
}

static void answer(struct cf_sync *s, int rc)
{
	struct asked *a = (struct asked *)s;
	failures += atomic_load(&a->answered);
	a->rc = rc;
	atomic_store(&a->answered, true);
}

static void *ask(void *arg)
{
	struct asked *a = &asked[(uintptr_t)arg];
	a->sync.done = answer;
	cf_volume_sync_start(tv.v, &a->sync);
	atomic_fetch_add(&returned, 1);
	return NULL;
}

static void wait_for(_Atomic unsigned *counter, unsigned value)
{
	while (atomic_load(counter) < value)
		sched_yield();
}

/* All threads ask for a sync; all but the one that syncs are free again and can wait for reads, all at once. */
START_TEST(syncs__hold_one_thread)
{
	pthread_t syncing[WORKERS], reading[WORKERS];
	tv.t->hook = sync_waits;
	start(syncing, WORKERS, ask);
	wait_for(&returned, WORKERS - 1);
	ck_assert_uint_eq(syncs_begun, 1);
	ck_assert_uint_eq(cf_volume_waiting(tv.v), 1);
	kind = READ;
	start(reading, WORKERS, one_request_a_round);
	join(reading, WORKERS);
	for (unsigned i = 0; i < WORKERS; i++)
		ck_assert(!asked[i].answered);
	atomic_store(&syncs_let_go, UINT32_MAX);
	join(syncing, WORKERS);
	for (unsigned i = 0; i < WORKERS; i++)
		ck_assert(asked[i].answered && asked[i].rc == 0);
	ck_assert_uint_eq(tv.t->n_syncs, 2); /* the first, and one for all that came meanwhile */
	ck_assert_uint_eq(failures, 0);
}
END_TEST

/* The second came when the first sync had begun: what it wrote before may not be in it. */
START_TEST(sync__does_not_join_one_that_has_begun)
{
	pthread_t t[2];
	tv.t->hook = sync_waits;
	start(t, 1, ask);
	wait_for(&syncs_begun, 1);
	asked[1].sync.done = answer;
	cf_volume_sync_start(tv.v, &asked[1].sync);
	atomic_store(&syncs_let_go, 1);
	while (!asked[1].answered && syncs_begun < 2)
		sched_yield();
	ck_assert(!asked[1].answered);
	ck_assert(asked[0].answered);
	ck_assert_uint_eq(syncs_begun, 2);
	atomic_store(&syncs_let_go, 2);
	join(t, 1);
	ck_assert(asked[1].answered);
}
END_TEST

/* The kernel tells of a lost write once: by which sync, all who ask from then on, or are waiting, must hear of it. */
START_TEST(sync__error_reaches_all)
{
	pthread_t t[1];
	const bool first_fails = _i;
	tv.t->hook = sync_waits;
	tv.t->sync_code = first_fails ? -EIO : 0;
	start(t, 1, ask);
	wait_for(&syncs_begun, 1);
	for (unsigned i = 1; i < 4; i++) {
		asked[i].sync.done = answer;
		cf_volume_sync_start(tv.v, &asked[i].sync);
	}
	atomic_store(&syncs_let_go, 1);
	if (!first_fails) {
		wait_for(&syncs_begun, 2);
		tv.t->sync_code = -EIO;
		atomic_store(&syncs_let_go, 2);
	}
	join(t, 1);
	tv.t->sync_code = 0;
	ck_assert_int_eq(asked[0].rc, first_fails ? -EIO : 0);
	for (unsigned i = 1; i < 4; i++)
		ck_assert(asked[i].answered && asked[i].rc == -EIO);
	ck_assert_int_eq(cf_volume_sync(tv.v), -EIO);
	ck_assert_uint_eq(tv.t->n_syncs, first_fails ? 1 : 2);
}
END_TEST

static void *sync_and_wait(void *arg)
{
	failures += cf_volume_sync(tv.v) != 0;
	atomic_fetch_add(&returned, 1);
	return arg;
}

START_TEST(sync__returns_when_it_was_answered)
{
	pthread_t t[4];
	tv.t->hook = sync_waits;
	start(t, 1, sync_and_wait);
	wait_for(&syncs_begun, 1);
	start(t + 1, 3, sync_and_wait);
	for (unsigned i = 0; i < 1000; i++)
		sched_yield();
	ck_assert_uint_eq(returned, 0);
	atomic_store(&syncs_let_go, UINT32_MAX);
	join(t, 4);
	ck_assert_uint_eq(failures, 0);
	ck_assert_uint_ge(tv.t->n_syncs, 2);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("waiting and computing");
	TCase *t = tcase_create("wait");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_set_timeout(t, 60);
	tcase_add_loop_test(t, requests__of_all_workers_wait_at_once_and_few_compute, 0, N_KINDS);
	tcase_add_test(t, requests__compute_at_once_as_permitted);
	tcase_add_test(t, waiting_for_a_lock__takes_no_permit);
	tcase_add_test(t, waiting__is_seen_in_a_backing_that_sleeps);
	tcase_add_test(t, syncs__hold_one_thread);
	tcase_add_test(t, sync__does_not_join_one_that_has_begun);
	tcase_add_loop_test(t, sync__error_reaches_all, 0, 2);
	tcase_add_test(t, sync__returns_when_it_was_answered);
	suite_add_tcase(s, t);
	return test_run(s);
}
