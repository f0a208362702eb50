/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* verdict.h - whether what a crash left is what cryptfuse-format(7) promises. */
#ifndef CRYPTFUSE_CRASH_VERDICT_H
#define CRYPTFUSE_CRASH_VERDICT_H

#include "ref.h"
#include "trace.h"

/** What a data unit that was torn may lose, in pieces of CRASH_PIECE bytes that are old or new. */
enum crash_tear {
	CRASH_TEAR_NEVER,  /* it is one piece, or there is a journal: only what is punched can be torn, and is lost */
	CRASH_TEAR_PIECES, /* nothing: each piece reads as old or new */
	CRASH_TEAR_BLOCK,  /* the first cipher block of a piece that follows another's */
	CRASH_TEAR_REST,   /* all from the first such piece on */
	CRASH_TEAR_UNIT,   /* the whole data unit */
};

struct crash_judge {
	const char *name; /* for messages; NULL: none are wanted */
	const struct crash_trace *trace;
	const struct crash_model *model;
	const struct crash_disk *top; /* what the volume itself wrote: whole data units */
	enum crash_tear tear;
	uint64_t data_off, bytes; /* of the volume in the image */
	uint32_t du_bytes;
	/** Decrypt a data unit, computed apart from the volume. */
	void (*decrypt)(void *ctx, uint64_t du, const uint8_t *src, uint8_t *dst);
	void *ctx;
	enum crash_holes holes;

	uint8_t *seen, *plain; /* the image decrypted last, and its plaintext: most data units stay as they are */
	uint64_t n_torn, n_violations;
};

void crash_judge_init(struct crash_judge *j);
void crash_judge_fini(struct crash_judge *j);

/** crash_judge_refuse - what a crash after @upto events left cannot be opened. */
void crash_judge_refuse(struct crash_judge *j, size_t upto, const char *what, const char *why);

/** crash_judge_image - what a crash after @upto events left; @what names the crash in a message. */
void crash_judge_image(struct crash_judge *j, size_t upto, const uint8_t *image, const char *what);

#endif
