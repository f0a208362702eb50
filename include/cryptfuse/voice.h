/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* voice.h - what a daemon has to say after its start: I/O errors of the image, a failed sync, an engine or lock lost.
 *
 *     data path: counters  ->  cf_voice_notice, now and then  ->  one line: the last 64 for the status, and a sink
 *                                                                 (the unmount helper, which has syslog)
 *
 * The data path says nothing itself. A line names numbers, the engine and nothing else: no name inside the volume, no
 * key. A kind of trouble is said at once the first time, and then at most once a minute, with how often it came. */
#ifndef CRYPTFUSE_VOICE_H
#define CRYPTFUSE_VOICE_H

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#include "cryptfuse/image.h"
#include "cryptfuse/volume.h"

#define CF_VOICE_KEPT 64u
#define CF_VOICE_TEXT 200u
#define CF_VOICE_PAUSE_S 60 /* between two lines of a kind */

enum cf_voice_kind {
	CF_VOICE_READ,
	CF_VOICE_WRITE,
	CF_VOICE_SYNC,
	CF_VOICE_UNDO,
	CF_VOICE_ENGINE,
	CF_VOICE_LOCK,
	CF_VOICE_KINDS
};

struct cf_voice_line {
	time_t at; /* of the wall clock */
	char text[CF_VOICE_TEXT];
};

struct cf_voice {
	struct cf_volume *volume;
	const struct cf_image *image;              /* whose lock is looked after; NULL: there is none */
	void (*sink)(void *ctx, const char *text); /* gets each line as it comes; must not block; NULL none */
	void *ctx;
	/* below: under the mutex */
	pthread_mutex_t mutex;
	uint64_t said[CF_VOICE_KINDS];   /* what the counter was */
	int64_t said_at[CF_VOICE_KINDS]; /* of the monotonic clock, seconds */
	int64_t lock_looked_at;
	bool lock_lost;
	unsigned n_lines; /* ever; the last CF_VOICE_KEPT are kept */
	struct cf_voice_line line[CF_VOICE_KEPT];
};

/** cf_voice_init - all of these borrowed; @image, @sink: NULL is fine. */
void cf_voice_init(struct cf_voice *v, struct cf_volume *volume, const struct cf_image *image,
				   void (*sink)(void *ctx, const char *text), void *ctx);
void cf_voice_fini(struct cf_voice *v);

/** cf_voice_notice - look at the counters and say what is new. Any thread; allocates nothing. */
void cf_voice_notice(struct cf_voice *v);

/** cf_voice_say - a line of somebody else's, not limited. Any thread. */
void cf_voice_say(struct cf_voice *v, const char *fmt, ...) CF_PRINTF(2, 3);

/** cf_voice_last - the last lines, oldest first. Returns how many were filled in. Any thread. */
unsigned cf_voice_last(struct cf_voice *v, struct cf_voice_line out[static CF_VOICE_KEPT]);

/** cf_voice_syslog - a line to the system's log, or nowhere if that takes none at the moment: never waits. */
void cf_voice_syslog(const char *text);

#endif
