/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* journal_super.c - whose a journal is: the block in front, and the two states.
 *
 * A journal in which nothing is belongs to nobody. The first write makes it the volume's, closing makes it nobody's
 * again: so a wrong passphrase that only looked binds nothing, and what is bound may hold something. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "cryptfuse/bytes.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "journal_internal.h"

/* Volume key, then everything that says which bytes of which image are meant, then the salt. */
static int derive(const struct cf_journal *j, const struct cf_journal_opts *o, uint8_t *key)
{
	char context[2048];
	const int n =
		snprintf(context, sizeof(context), "%zu %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu32 " %s ",
				 o->key_bytes, o->cipher, o->iv_offset, o->data_off, o->bytes, j->image->bytes, o->du_bytes, o->uuid);
	if (n < 0 || (size_t)n + sizeof(j->salt) > sizeof(context))
		return -EINVAL;
	memcpy(context + n, j->salt, sizeof(j->salt));
	return cf_mac_derive(o->key, o->key_bytes, "cryptfuse journal 1", context, (size_t)n + sizeof(j->salt), key);
}

int cf_journal_keys(struct cf_journal *j, const struct cf_journal_opts *o)
{
	CF_CLEANUP(cf_secret_freep) uint8_t *key = cf_secret_alloc(CF_MAC_KEY);
	int rc = key ? derive(j, o, key) : -ENOMEM;
	if (!rc)
		rc = cf_mac_new(&j->mac, key);
	if (!rc)
		rc = cf_mac_new(&j->placer.mac, key);
	for (unsigned i = 0; i < j->n_hands && !rc; i++)
		rc = cf_mac_new(&j->hand[i].mac, key);
	return rc;
}

static void fill_super(const struct cf_journal *j, uint8_t super[static CF_SUPER_BYTES])
{
	memset(super, 0, CF_SUPER_BYTES);
	memcpy(super + CF_SUPER_MAGIC, CF_JOURNAL_MAGIC, 16);
	cf_store_le32(super + CF_SUPER_VERSION, CF_JOURNAL_VERSION);
	cf_store_le32(super + CF_SUPER_DU, j->du_bytes);
	cf_store_le64(super + CF_SUPER_DATA_OFF, j->data_off);
	cf_store_le64(super + CF_SUPER_VOLUME, j->volume_bytes);
	cf_store_le64(super + CF_SUPER_IMAGE, j->image->bytes);
	cf_store_le64(super + CF_SUPER_FILE, j->log->bytes);
	memcpy(super + CF_SUPER_SALT, j->salt, sizeof(j->salt));
	memcpy(super + CF_SUPER_UUID, j->uuid, sizeof(j->uuid));
}

/* ---- writing ---- */

static int write_super(struct cf_journal *j, const uint8_t super[static CF_SUPER_BYTES])
{
	size_t written;
	const int rc = cf_backing_write_full(j->log, super, CF_SUPER_BYTES, CF_JOURNAL_SUPER_AT, &written);
	return rc ? rc : j->log->ops->sync(j->log);
}

/* Both states first: whoever finds the super finds them. */
int cf_journal_adopt(struct cf_journal *j)
{
	const uint64_t nothing[3] = {j->tail, 0, 0};
	uint8_t super[CF_SUPER_BYTES];
	fill_super(j, super);
	int rc = cf_journal_write_state(j, nothing);
	if (!rc)
		rc = cf_journal_write_state(j, nothing);
	if (!rc)
		rc = j->log->ops->sync(j->log);
	if (!rc)
		rc = cf_mac_tag(j->mac, super, CF_SUPER_TAG, super + CF_SUPER_TAG);
	if (!rc)
		rc = write_super(j, super);
	if (!rc)
		atomic_store(&j->is_ours, 1);
	return rc;
}

int cf_journal_disown(struct cf_journal *j)
{
	uint8_t super[CF_SUPER_BYTES] = CF_JOURNAL_MAGIC;
	if (!atomic_load(&j->is_ours))
		return 0;
	cf_store_le32(super + CF_SUPER_VERSION, CF_JOURNAL_VERSION);
	atomic_store(&j->is_ours, 0);
	return write_super(j, super);
}

/* ---- reading ---- */

static int refuse_other(const struct cf_journal *j, const uint8_t *super, struct cf_err *err)
{
	uint8_t ours[CF_SUPER_BYTES];
	fill_super(j, ours);
	if (memcmp(super + CF_SUPER_DU, ours + CF_SUPER_DU, CF_SUPER_FILE - CF_SUPER_DU) != 0 ||
		memcmp(super + CF_SUPER_UUID, ours + CF_SUPER_UUID, CF_JOURNAL_UUID) != 0)
		return cf_fail(err, -ENODEV, "the journal belongs to another volume, or to this one opened in another way");
	if (cf_load_le64(super + CF_SUPER_FILE) != j->log->bytes)
		return cf_fail(err, -ENODEV, "the journal is %" PRIu64 " bytes long, and was %" PRIu64, j->log->bytes,
					   cf_load_le64(super + CF_SUPER_FILE));
	return cf_fail(err, -ENODEV, "the journal was written under another key (another passphrase?), or is damaged");
}

/* 1: this state is whole, and newer than what was found so far. */
static int read_state(struct cf_journal *j, uint64_t generation)
{
	uint8_t state[CF_STATE_BYTES], tag[CF_MAC_TAG];
	int rc = cf_backing_read_full(j->log, state, sizeof(state), CF_JOURNAL_STATE_AT(generation));
	if (!rc)
		rc = cf_mac_tag(j->mac, state, CF_STATE_TAG, tag);
	if (rc)
		return rc;
	const uint64_t found = cf_load_le64(state + CF_STATE_GENERATION);
	if (memcmp(state + CF_STATE_MAGIC, CF_JOURNAL_STATE_MAGIC, 8) != 0 || found <= j->generation ||
		memcmp(tag, state + CF_STATE_TAG, sizeof(tag)) != 0)
		return 0;
	j->generation = found;
	j->told[0] = cf_load_le64(state + CF_STATE_TAIL);
	j->told[1] = cf_load_le64(state + CF_STATE_DURABLE_0);
	j->told[2] = cf_load_le64(state + CF_STATE_DURABLE_1);
	return 1;
}

static int read_states(struct cf_journal *j, struct cf_err *err)
{
	int rc = read_state(j, 1);
	const int second = rc < 0 ? rc : read_state(j, 2);
	rc = second < 0 ? second : rc | second;
	if (rc < 0)
		return cf_fail(err, rc, "the journal cannot be read");
	if (!rc || j->told[1] > j->n_slots || j->told[2] > j->n_slots)
		return cf_fail(err, -ENODEV, "the journal is damaged: it does not say what is in it");
	j->tail = j->told[0];
	return 0;
}

static bool is_nobodys(const uint8_t *super)
{
	return super[CF_SUPER_DU] == 0 &&
		   memcmp(super + CF_SUPER_DU, super + CF_SUPER_DU + 1, CF_SUPER_BYTES - CF_SUPER_DU - 1) == 0;
}

static int new_salt(struct cf_journal *j)
{
	return getrandom(j->salt, sizeof(j->salt), 0) == (ssize_t)sizeof(j->salt) ? 0 : -EIO;
}

int cf_journal_read_super(struct cf_journal *j, const struct cf_journal_opts *o, struct cf_err *err)
{
	uint8_t super[CF_SUPER_BYTES], tag[CF_MAC_TAG];
	int rc = cf_backing_read_full(j->log, super, sizeof(super), CF_JOURNAL_SUPER_AT);
	if (rc)
		return cf_fail(err, rc, "the journal cannot be read");
	if (memcmp(super + CF_SUPER_MAGIC, CF_JOURNAL_MAGIC, 16) != 0)
		return cf_fail(err, -ENODEV, "the journal is damaged: it does not begin as one");
	if (cf_load_le32(super + CF_SUPER_VERSION) != CF_JOURNAL_VERSION)
		return cf_fail(err, -ENODEV, "the journal is of version %" PRIu32 ", which this cryptfuse does not know",
					   cf_load_le32(super + CF_SUPER_VERSION));
	const bool nobodys = is_nobodys(super);
	if (nobodys)
		rc = new_salt(j);
	else
		memcpy(j->salt, super + CF_SUPER_SALT, sizeof(j->salt));
	if (!rc)
		rc = cf_journal_keys(j, o);
	if (!rc)
		rc = cf_mac_tag(j->mac, super, CF_SUPER_TAG, tag);
	if (rc)
		return cf_fail(err, rc, "no memory for the journal's keys");
	if (nobodys)
		return 1;
	if (memcmp(tag, super + CF_SUPER_TAG, sizeof(tag)) != 0 || cf_load_le64(super + CF_SUPER_FILE) != j->log->bytes)
		return refuse_other(j, super, err);
	atomic_store(&j->is_ours, 1);
	return read_states(j, err);
}
