/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* journal.h - a write-ahead log: every data unit of the image is wholly old or wholly new, whatever crashes.
 *
 *     volume --> journal --- records, appended --> FILE        at once; a sync of the volume is a sync of FILE
 *                   `------- in place ----------> image        later, in runs, when half of FILE is full or all is idle
 *
 * A backing that wraps a backing: the volume knows nothing of it, and writes whole data units of ciphertext to it. A
 * record holds which data unit it is, the new ciphertext, and a checksum of every 512-byte piece of old and new; all
 * checksums are keyed (mac.h) by a key that comes from the volume key. cryptfuse-format(7) has the bytes and what they
 * promise. FILE holds ciphertext, checksums of ciphertext, and numbers: no key, no plaintext. */
#ifndef CRYPTFUSE_JOURNAL_H
#define CRYPTFUSE_JOURNAL_H

#include <stdbool.h>

#include "cryptfuse/backing.h"
#include "cryptfuse/segment.h"

#define CF_JOURNAL_BYTES_DEFAULT (UINT64_C(64) << 20)
#define CF_JOURNAL_BYTES_MIN (UINT64_C(1) << 20)
#define CF_JOURNAL_BYTES_MAX (UINT64_C(1) << 30)
#define CF_JOURNAL_UUID 64u

struct cf_image;

/** cf_journal_open_fd - open and lock a journal's file, and make it if it is not there; in the parent of the daemon
 * @access: CF_READ_ONLY needs one that is there     @bytes: its size if it is made, or holds nothing; 0: the default
 * @image: what it is for: it must be another file   @out_created: it was not there: whoever fails later removes it
 * Returns 0 and @out_fd, owned, close-on-exec; -ENODEV no journal, or not a file (link, directory, FIFO …: says which);
 * -EINVAL the image itself; -EACCES; -EROFS; -EBUSY in use; -ENOLCK; -ENOSPC. */
int cf_journal_open_fd(const char *path, enum cf_access access, uint64_t bytes, const struct cf_image *image,
					   int *out_fd, bool *out_created, struct cf_err *err) CF_MUST_CHECK;

/** What a journal is for: another volume, or another key, is refused. */
struct cf_journal_opts {
	const uint8_t *key; /* of the volume, borrowed, @key_bytes */
	size_t key_bytes;
	const char *cipher; /* as a text: part of what the checksums depend on */
	const char *uuid;   /* of the header; "" none */
	uint64_t iv_offset; /* sectors */
	uint64_t data_off;  /* bytes */
	uint64_t bytes;     /* of the volume */
	uint32_t du_bytes;
	unsigned n_callers;               /* that read or write at once; more of them wait. 1 to CF_SLOTS_MAX */
	const struct cf_segment *segment; /* @n_segments, borrowed; none: one piece at @data_off */
	unsigned n_segments;
};

/** cf_journal_wrap - put a journal before a backing, after replaying what is in it
 * @b: taken on success, and *b is then the journal; untouched on failure   @log: the file, taken on success
 * If *b is for reading only, nothing is written: what is in the journal is shown over what is in the image.
 * The whole of the replay is judged before the first byte is written; when that, or writing it, fails, the journal
 * stays as it is. Returns 0; -ENODEV not a journal, of another volume or key, damaged, or the image has been changed
 * since; -ENOMEM; -EIO …, what the backings say. */
int cf_journal_wrap(struct cf_backing **b, struct cf_backing **log, const struct cf_journal_opts *opts,
					struct cf_err *err) CF_MUST_CHECK;

/** How a journal fares. */
struct cf_journal_stats {
	uint64_t bytes;            /* of the file */
	uint64_t replayed;         /* data units that were in it at open */
	uint64_t records, pending; /* written since open; data units that are not in the image yet */
	uint64_t commits;          /* syncs of the file */
	uint64_t rounds;           /* how often what was pending went to the image */
	int error;                 /* -errno: why it takes nothing more; 0 it is well */
};

/** cf_journal_stats - of a backing that cf_journal_wrap made; false for any other. Any thread. */
bool cf_journal_stats(struct cf_backing *b, struct cf_journal_stats *out);

#endif
