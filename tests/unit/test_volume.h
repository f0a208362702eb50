/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* test_volume.h - a volume over a backing in memory, and what its backing must hold, worked out without the volume. */
#ifndef CRYPTFUSE_TEST_VOLUME_H
#define CRYPTFUSE_TEST_VOLUME_H

#include "cryptfuse/journal.h"
#include "cryptfuse/volume.h"
#include "test_backing.h"

struct test_shape {
	const char *mode; /* of aes-MODE-plain64 */
	uint32_t du_bytes;
	uint64_t data_off, bytes;
	uint32_t granule; /* of the backing; 0: 1 */
	uint32_t block;   /* the backing takes only whole ones, as with O_DIRECT; 0: any range */
	enum cf_access access;
	enum cf_discards discards;
	enum cf_bad_sectors bad_sectors;
	unsigned n_workers; /* 0: 1 */
	unsigned n_permits; /* 0: n_workers */
	uint64_t log_bytes; /* of a journal before the backing; 0: none */
};

struct test_volume {
	struct cf_volume *v;
	struct test_backing *t;   /* the volume's */
	struct test_backing *log; /* its journal's file; NULL none */
	struct cf_worker *w;      /* for tests of one thread */
	struct cf_cipher *oracle;
	struct test_shape shape;
};

/** test_cipher - aes-@mode-@iv under a fixed key. */
struct cf_cipher *test_cipher(const char *mode, const char *iv, uint32_t du_bytes, unsigned n_workers);

/** test_volume_open - the volume holds what decrypts from random ciphertext; a sector of it follows its end. */
void test_volume_open(struct test_volume *tv, const struct test_shape *shape);
void test_volume_close(struct test_volume *tv);

/** test_journal_opts - what the journal of a volume of that shape is made with. */
struct cf_journal_opts test_journal_opts(const struct test_shape *shape);

/** test_journal_blank - bytes of a journal's file in which nothing is. */
void test_journal_blank(uint8_t *data);

/** test_volume_decrypt - all of the volume as its backing holds it, by the oracle; a journal is drained first. @out:
 * shape.bytes. */
void test_volume_decrypt(struct test_volume *tv, uint8_t *out);

/** test_fill - bytes that depend on @seed and their place. */
void test_fill(uint8_t *buf, size_t len, uint64_t seed);

uint64_t test_random(uint64_t *state);

#endif
