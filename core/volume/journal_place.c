/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* journal_place.c - a round: what is pending in a sealed half goes to its place in the image.
 *
 *     sync file    state: so many    sync file    write in place    sync image    state: tail + 1    sync file
 *     `-- records are durable, and known to be ---´  `-- torn by a crash: replayed --´  `-- no replay any more --´
 *
 * Only then the half is used again. Writing in place may fail and be tried again, since the records stay; a sync may
 * not: whose failed, of the file or of the image, the journal takes nothing more, and what is in it waits for the next
 * open (HAZARDS 15). */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "cryptfuse/bytes.h"
#include "journal_internal.h"

/* ---- the file ---- */

static int fail_for_good(struct cf_journal *j, int rc)
{
	pthread_mutex_lock(&j->mutex);
	if (!j->error)
		j->error = rc;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->mutex);
	return rc;
}

static int error_of(struct cf_journal *j)
{
	pthread_mutex_lock(&j->mutex);
	const int rc = j->error;
	pthread_mutex_unlock(&j->mutex);
	return rc;
}

/* Under sync_mutex. */
static int sync_file(struct cf_journal *j)
{
	int rc = error_of(j);
	if (rc)
		return rc;
	rc = j->log->ops->sync(j->log);
	atomic_fetch_add_explicit(&j->n_commits, 1, memory_order_relaxed);
	return rc ? fail_for_good(j, rc) : 0;
}

/* The generation counts also where the write fails: then the other one is what counts. */
int cf_journal_write_state(struct cf_journal *j, const uint64_t say[static 3])
{
	uint8_t state[CF_STATE_BYTES] = {0};
	size_t written;
	memcpy(state + CF_STATE_MAGIC, CF_JOURNAL_STATE_MAGIC, 8);
	cf_store_le64(state + CF_STATE_GENERATION, j->generation + 1);
	cf_store_le64(state + CF_STATE_TAIL, say[0]);
	cf_store_le64(state + CF_STATE_DURABLE_0, say[1]);
	cf_store_le64(state + CF_STATE_DURABLE_1, say[2]);
	int rc = cf_mac_tag(j->mac, state, CF_STATE_TAG, state + CF_STATE_TAG);
	if (!rc)
		rc = cf_backing_write_full(j->log, state, sizeof(state), CF_JOURNAL_STATE_AT(j->generation + 1), &written);
	if (rc)
		return rc;
	j->generation++;
	memcpy(j->told, say, sizeof(j->told));
	return 0;
}

/* What every state says: known when it is written, not hoped for. */
static void what_is(struct cf_journal *j, uint64_t say[static 3])
{
	pthread_mutex_lock(&j->mutex);
	say[0] = j->tail;
	say[1] = j->half[0].durable;
	say[2] = j->half[1].durable;
	pthread_mutex_unlock(&j->mutex);
}

static int sync_records(struct cf_journal *j)
{
	uint32_t durable[2];
	pthread_mutex_lock(&j->mutex);
	for (unsigned i = 0; i < 2; i++)
		durable[i] = j->half[i].dirty ? 0 : cf_journal_durable(j, &j->half[i]);
	pthread_mutex_unlock(&j->mutex);
	const int rc = sync_file(j);
	pthread_mutex_lock(&j->mutex);
	for (unsigned i = 0; i < 2 && !rc; i++)
		j->half[i].durable = durable[i];
	pthread_mutex_unlock(&j->mutex);
	return rc;
}

/* Under sync_mutex. A state that says less than is true does no harm: only damage would be noticed later. */
static int sync_and_say(struct cf_journal *j)
{
	uint64_t say[3];
	const int rc = sync_records(j);
	what_is(j, say);
	if (rc || !atomic_load(&j->is_ours) || memcmp(say, j->told, sizeof(say)) == 0)
		return rc;
	return cf_journal_write_state(j, say);
}

int cf_journal_sync_log(struct cf_journal *j)
{
	pthread_mutex_lock(&j->sync_mutex);
	const int rc = sync_and_say(j);
	pthread_mutex_unlock(&j->sync_mutex);
	return rc;
}

/* The records are durable, and so is the word that they are: from now on a missing one is damage. */
static int commit(struct cf_journal *j)
{
	pthread_mutex_lock(&j->sync_mutex);
	int rc = sync_and_say(j);
	if (!rc)
		rc = sync_file(j);
	pthread_mutex_unlock(&j->sync_mutex);
	return rc;
}

/* The tail is in the image: no replay may look at it again. No other state comes between the word and the deed. */
static int retire(struct cf_journal *j)
{
	pthread_mutex_lock(&j->sync_mutex);
	uint64_t say[3];
	what_is(j, say);
	say[1 + say[0] % 2] = 0;
	say[0]++;
	int rc = cf_journal_write_state(j, say);
	if (!rc)
		rc = sync_file(j);
	pthread_mutex_lock(&j->mutex);
	if (!rc) {
		struct cf_journal_half *half = cf_journal_half(j, j->tail++);
		half->durable = 0;
		half->dirty = true;
	}
	pthread_mutex_unlock(&j->mutex);
	pthread_mutex_unlock(&j->sync_mutex);
	return rc;
}

/* ---- the image ---- */

/* Sorted by where they go: a heap, since the C library's own sort may allocate. */
static void sift(struct cf_journal *j, const struct cf_journal_half *half, uint32_t at, uint32_t n)
{
	uint32_t *o = j->order;
	for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
		if (child + 1 < n && half->slot[o[child]].sector < half->slot[o[child + 1]].sector)
			child++;
		if (half->slot[o[at]].sector >= half->slot[o[child]].sector)
			return;
		const uint32_t slot = o[at];
		o[at] = o[child];
		o[child] = slot;
	}
}

static void sort(struct cf_journal *j, const struct cf_journal_half *half, uint32_t n)
{
	for (uint32_t i = n / 2; i-- > 0;)
		sift(j, half, i, n);
	for (uint32_t last = n; last-- > 1;) {
		const uint32_t slot = j->order[0];
		j->order[0] = j->order[last];
		j->order[last] = slot;
		sift(j, half, 0, last);
	}
}

/* The newest record of every data unit, by sector. Returns how many. */
static uint32_t list_newest(struct cf_journal *j, const struct cf_journal_half *half)
{
	uint32_t n = 0;
	pthread_mutex_lock(&j->mutex);
	for (uint32_t slot = 0; slot < half->used; slot++)
		if (cf_journal_half_get(j, half, half->slot[slot].sector) == slot)
			j->order[n++] = slot;
	pthread_mutex_unlock(&j->mutex);
	sort(j, half, n);
	return n;
}

void cf_journal_lock_image(struct cf_journal *j, struct cf_range *r, uint64_t off, uint64_t len,
						   enum cf_range_mode mode)
{
	const uint64_t granule = j->image->granule, from = cf_units_round_down(off, granule);
	if (granule > 1)
		cf_rangelock_acquire(&j->granules, r, from, cf_units_round_up(off + len, granule) - from, mode);
}

void cf_journal_unlock_image(struct cf_journal *j, struct cf_range *r)
{
	if (j->image->granule > 1)
		cf_rangelock_release(&j->granules, r);
}

static int write_image(struct cf_journal *j, size_t len, uint64_t off)
{
	struct cf_range range;
	size_t written;
	cf_journal_lock_image(j, &range, off, len, CF_RANGE_EXCLUSIVE);
	const int rc = cf_backing_write_full(j->image, j->placer.old, len, off, &written);
	cf_journal_unlock_image(j, &range);
	return rc;
}

/* As many data units as lie one behind the other, up to a batch. *n: how many. */
static int write_run(struct cf_journal *j, struct cf_journal_half *half, const uint32_t *slots, uint32_t left,
					 uint32_t *n)
{
	struct cf_journal_hand *h = &j->placer;
	const uint64_t first = half->slot[slots[0]].sector;
	int rc = 0;
	for (*n = 0; *n < left && *n < j->batch && !rc; ++*n) {
		const struct cf_journal_found at = {half, slots[*n]};
		if (half->slot[at.slot].sector != first + (uint64_t)*n * (j->du_bytes / CF_SECTOR_BYTES))
			break;
		rc = cf_journal_read_record(j, h, &at);
		memcpy(h->old + (size_t)*n * j->du_bytes, h->records + j->data_at, j->du_bytes);
	}
	return rc ? rc : write_image(j, (size_t)*n * j->du_bytes, first * CF_SECTOR_BYTES);
}

int cf_journal_sync_image(struct cf_journal *j)
{
	const int rc = j->image->ops->sync(j->image);
	return rc ? fail_for_good(j, rc) : 0;
}

static int write_in_place(struct cf_journal *j, struct cf_journal_half *half)
{
	const uint32_t n = list_newest(j, half);
	int rc = 0;
	for (uint32_t done = 0, took; done < n && !rc; done += took)
		rc = write_run(j, half, j->order + done, n - done, &took);
	return rc ? rc : cf_journal_sync_image(j);
}

/* ---- rounds ---- */

/* Without the mutex. */
static int place(struct cf_journal *j, struct cf_journal_half *half)
{
	pthread_mutex_lock(&j->place_mutex);
	int rc = commit(j);
	if (!rc)
		rc = write_in_place(j, half);
	if (!rc)
		rc = retire(j);
	pthread_mutex_unlock(&j->place_mutex);
	return rc;
}

int cf_journal_round(struct cf_journal *j)
{
	assert(j->tail < j->head);
	if (j->placing) {
		pthread_cond_wait(&j->changed, &j->mutex);
		return j->error;
	}
	struct cf_journal_half *half = cf_journal_half(j, j->tail);
	j->placing = true;
	while (half->writers)
		pthread_cond_wait(&j->changed, &j->mutex);
	pthread_mutex_unlock(&j->mutex);
	const int rc = place(j, half);
	pthread_mutex_lock(&j->mutex);
	while (!rc && half->readers)
		pthread_cond_wait(&j->changed, &j->mutex);
	if (!rc) {
		cf_journal_half_empty(j, half);
		atomic_fetch_add_explicit(&j->n_rounds, 1, memory_order_relaxed);
	}
	j->placing = false;
	pthread_cond_broadcast(&j->changed);
	return rc;
}

int cf_journal_drain(struct cf_journal *j)
{
	pthread_mutex_lock(&j->mutex);
	const uint64_t last = j->head;
	int rc = j->error;
	while (!rc && j->tail <= last && (j->tail < j->head || cf_journal_half(j, j->head)->used || j->placing)) {
		if (j->tail == j->head && !j->placing)
			cf_journal_seal(j);
		else if (j->tail == j->head)
			pthread_cond_wait(&j->changed, &j->mutex);
		else
			rc = cf_journal_round(j);
	}
	pthread_mutex_unlock(&j->mutex);
	return rc;
}
