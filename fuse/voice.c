/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* voice.c - turns counters into lines, a few of them.
 *
 * Invariant: what is said is made of numbers, an engine's name and fixed words. One mutex, held across nothing that
 * waits. */
#include "config.h"

#include "cryptfuse/voice.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "cryptfuse/cipher.h"
#include "cryptfuse/clock.h"

void cf_voice_init(struct cf_voice *v, struct cf_volume *volume, const struct cf_image *image,
				   void (*sink)(void *ctx, const char *text), void *ctx)
{
	*v = (struct cf_voice){.volume = volume, .image = image, .sink = sink, .ctx = ctx};
	pthread_mutex_init(&v->mutex, NULL);
}

void cf_voice_fini(struct cf_voice *v)
{
	pthread_mutex_destroy(&v->mutex);
}

/* Under the mutex. */
static void say(struct cf_voice *v, const char *fmt, va_list args)
{
	struct cf_voice_line *l = &v->line[v->n_lines++ % CF_VOICE_KEPT];
	l->at = time(NULL);
	vsnprintf(l->text, sizeof(l->text), fmt, args);
	if (v->sink)
		v->sink(v->ctx, l->text);
}

static void CF_PRINTF(2, 3) say_locked(struct cf_voice *v, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	say(v, fmt, args);
	va_end(args);
}

void cf_voice_say(struct cf_voice *v, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	pthread_mutex_lock(&v->mutex);
	say(v, fmt, args);
	pthread_mutex_unlock(&v->mutex);
	va_end(args);
}

/* ---- what there is to say ---- */

static const char *const troubles[CF_VOICE_KINDS] = {
	[CF_VOICE_READ] = "reads failed, of the image or in the engine",
	[CF_VOICE_WRITE] = "writes failed, of the image or in the engine",
	[CF_VOICE_SYNC] = "a sync of the image failed: what was written may be lost, and every fsync fails until the "
					  "volume is opened anew",
	[CF_VOICE_UNDO] = "a failed write could not be undone, a data unit is damaged",
	[CF_VOICE_LOCK] = "the lock on the image is lost: another program may be writing to it",
};

static void look_at_lock(struct cf_voice *v, int64_t now_s)
{
	if (!v->image || v->lock_lost || (v->lock_looked_at && now_s - v->lock_looked_at < CF_VOICE_PAUSE_S))
		return;
	v->lock_looked_at = now_s;
	v->lock_lost = cf_image_lock_lost(v->image);
}

static void count(struct cf_voice *v, uint64_t counts[static CF_VOICE_KINDS], struct cf_cipher_info *info)
{
	struct cf_volume_stats s;
	cf_volume_stats(v->volume, &s);
	cf_cipher_info(cf_volume_cipher(v->volume), info);
	counts[CF_VOICE_READ] = s.read_errors;
	counts[CF_VOICE_WRITE] = s.write_errors;
	counts[CF_VOICE_SYNC] = s.sync_errors;
	counts[CF_VOICE_UNDO] = s.undo_failures;
	counts[CF_VOICE_ENGINE] = info->lost;
	counts[CF_VOICE_LOCK] = v->lock_lost;
}

static void say_kind(struct cf_voice *v, enum cf_voice_kind kind, uint64_t n, const struct cf_cipher_info *info)
{
	const uint64_t more = n - v->said[kind];
	if (kind == CF_VOICE_ENGINE)
		say_locked(v, "the engine %s is lost%s%s", info->engine,
				   info->standby ? ", and another has taken over: " : ": requests fail, since no other has the cipher",
				   info->standby ? info->standby : "");
	else
		say_locked(v, "%s (%llu times, %llu since open)", troubles[kind], (unsigned long long)more,
				   (unsigned long long)n);
}

void cf_voice_notice(struct cf_voice *v)
{
	const int64_t now_s = cf_now_ms() / 1000;
	uint64_t counts[CF_VOICE_KINDS];
	struct cf_cipher_info info;
	pthread_mutex_lock(&v->mutex);
	look_at_lock(v, now_s);
	count(v, counts, &info);
	for (enum cf_voice_kind k = 0; k < CF_VOICE_KINDS; k++) {
		if (counts[k] == v->said[k] || (v->said[k] && now_s - v->said_at[k] < CF_VOICE_PAUSE_S))
			continue;
		say_kind(v, k, counts[k], &info);
		v->said[k] = counts[k];
		v->said_at[k] = now_s;
	}
	pthread_mutex_unlock(&v->mutex);
}

unsigned cf_voice_last(struct cf_voice *v, struct cf_voice_line out[static CF_VOICE_KEPT])
{
	pthread_mutex_lock(&v->mutex);
	const unsigned n = v->n_lines < CF_VOICE_KEPT ? v->n_lines : CF_VOICE_KEPT;
	for (unsigned i = 0; i < n; i++)
		out[i] = v->line[(v->n_lines - n + i) % CF_VOICE_KEPT];
	pthread_mutex_unlock(&v->mutex);
	return n;
}

/* ---- the system's log ---- */

/* Not syslog(3): it waits while the log takes nothing, and the log may lie on the very volume that is in trouble. */
void cf_voice_syslog(const char *text)
{
	static const struct sockaddr_un log = {.sun_family = AF_UNIX, .sun_path = "/dev/log"};
	char stamp[32] = "", line[CF_VOICE_TEXT * 2 + 8192];
	time_t now = time(NULL);
	struct tm tm;
	if (localtime_r(&now, &tm))
		strftime(stamp, sizeof(stamp), "%b %e %H:%M:%S", &tm);
	int n = snprintf(line, sizeof(line), "<%d>%s cryptfuse[%d]: %s", LOG_DAEMON | LOG_ERR, stamp, (int)getpid(), text);
	CF_CLEANUP(cf_close_fd) int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && n > 0)
		(void)!sendto(fd, line, (size_t)n < sizeof(line) ? (size_t)n : sizeof(line) - 1, MSG_NOSIGNAL,
					  (const struct sockaddr *)&log, sizeof(log));
}
