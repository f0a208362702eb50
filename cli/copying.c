/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* copying.c - runs the copy engine for a command: how many threads, what is shown meanwhile, what failed. */
#include "config.h"

#include "copying.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cryptfuse/clock.h"
#include "cryptfuse/err.h"

#define THREADS_MIN 2u /* one waits for the disk while the other computes */
#define THREADS_MAX 4u
#define SHOW_EVERY_MS 500

/** What the line of progress is made of. */
struct watch {
	struct cli_progress progress;
	const struct cli_signals *signals;
	int64_t shown_ms;    /* when the line was last written */
	uint64_t shown_done; /* and how far it was then */
	double bytes_per_s;  /* over the last seconds */
};

static void take_speed(struct watch *w, uint64_t done, int64_t now_ms)
{
	const double now = (double)(done - w->shown_done) * 1000 / (double)(now_ms - w->shown_ms);
	w->bytes_per_s = w->bytes_per_s > 0 ? 0.7 * w->bytes_per_s + 0.3 * now : now;
	w->shown_ms = now_ms;
	w->shown_done = done;
}

static void format_time(double seconds, char *text, size_t text_size)
{
	const unsigned long long s = seconds < 1e9 ? (unsigned long long)(seconds + 0.5) : 1000000000u;
	if (s >= 3600)
		snprintf(text, text_size, "%llu:%02llu:%02llu", s / 3600, s / 60 % 60, s % 60);
	else
		snprintf(text, text_size, "%llu:%02llu", s / 60, s % 60);
}

static void show(struct watch *w, uint64_t done, uint64_t total)
{
	char so_far[32], all[32] = "?", speed[32], left[32] = "", text[160];
	const unsigned known = total != CF_COPY_UNKNOWN && total;
	cli_format_bytes(done, so_far, sizeof(so_far));
	cli_format_bytes((uint64_t)w->bytes_per_s, speed, sizeof(speed));
	if (known)
		cli_format_bytes(total, all, sizeof(all));
	if (known && w->bytes_per_s > 0)
		format_time((double)(total - done) / w->bytes_per_s, left, sizeof(left));
	snprintf(text, sizeof(text), "%s of %s, %s/s%s%s%s", so_far, all, speed, *left ? ", " : "", left,
			 *left ? " left" : "");
	cli_progress_update(&w->progress, known ? (unsigned)((double)done * 100 / (double)total) : 0, text);
}

static int step(void *ctx, uint64_t done, uint64_t total)
{
	struct watch *w = ctx;
	const int64_t now_ms = cf_now_ms();
	if (now_ms - w->shown_ms >= SHOW_EVERY_MS) {
		take_speed(w, done, now_ms);
		show(w, done, total);
	}
	return w->signals ? cli_interrupted(w->signals) : 0;
}

static unsigned n_threads(void)
{
	const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	return cpus < (long)THREADS_MIN ? THREADS_MIN : cpus > (long)THREADS_MAX ? THREADS_MAX : (unsigned)cpus;
}

static int copy_failed(const struct cli_copying *c, const struct cf_copy_result *r, int rc, struct cf_err *err)
{
	switch (r->failed) {
	case CF_COPY_SOURCE:
		return cf_fail(err, rc, "%s cannot be read at byte %llu: %s", c->from, (unsigned long long)r->failed_off,
					   strerror(-rc));
	case CF_COPY_SINK:
		return cf_fail(err, rc, "%s cannot be written at byte %llu: %s", c->to, (unsigned long long)r->failed_off,
					   strerror(-rc));
	case CF_COPY_STEP:
		return cf_fail(err, rc, "interrupted after %llu bytes", (unsigned long long)r->bytes);
	default:
		return cf_fail(err, rc, "the copy failed: %s", strerror(-rc));
	}
}

static int feed(void *ctx, const uint8_t *buf, size_t len)
{
	return cf_digest_feed(ctx, buf, len);
}

int cli_copy(struct cli_copying *c, struct cf_err *err)
{
	struct watch w = {.signals = c->signals, .shown_ms = cf_now_ms()};
	struct cf_copy_opts opts = {
		.source = c->source, .sink = c->sink, .n_threads = n_threads(), .step_ctx = &w, .step = step};
	struct cf_copy_result result;
	for (unsigned i = 0; c->digests && i < c->digests->n; i++)
		opts.taps[opts.n_taps++] = (struct cf_copy_tap){.ctx = c->digests->at[i].run, .take = feed};
	cli_progress_init(&w.progress);
	const int rc = cf_copy_run(&opts, &result);
	cli_progress_end(&w.progress);
	c->bytes = result.bytes;
	return rc ? copy_failed(c, &result, rc, err) : 0;
}

/* ---- digests ---- */

int cli_digests_start(struct cli_digests *d, const char *list, struct cf_err *err)
{
	*d = (struct cli_digests){.n = 0};
	for (const char *at = list; at && *at;) {
		const size_t len = strcspn(at, ",");
		if (d->n == CF_COPY_TAPS_MAX)
			return cf_fail(err, -EINVAL, "--digest: more than %u of them", CF_COPY_TAPS_MAX);
		if (len < sizeof(d->at[0].name))
			snprintf(d->at[d->n].name, sizeof(d->at[0].name), "%.*s", (int)len, at);
		const int rc = cf_digest_start(&d->at[d->n].run, CF_DIGEST_CRYPTSETUP, d->at[d->n].name);
		if (rc)
			return cf_fail(err, -EINVAL, "--digest: there is no '%.*s' here: sha256, sha512, sha1, md5 … are known",
						   (int)len, at);
		d->n++;
		at += len + (at[len] == ',');
	}
	return 0;
}

void cli_digests_fini(struct cli_digests *d)
{
	while (d->n)
		cf_digest_free(&d->at[--d->n].run);
}

/* As coreutils do: a name that would break the line is escaped, and a backslash in front says so. */
static void print_name(FILE *to, const char *file)
{
	for (; *file; file++)
		if (*file == '\n')
			fputs("\\n", to);
		else if (*file == '\r')
			fputs("\\r", to);
		else if (*file == '\\')
			fputs("\\\\", to);
		else
			fputc(*file, to);
	fputc('\n', to);
}

int cli_digests_print(struct cli_digests *d, const char *file, unsigned to_stderr, struct cf_err *err)
{
	FILE *to = to_stderr ? stderr : stdout;
	for (unsigned i = 0; i < d->n; i++) {
		uint8_t sum[CF_DIGEST_MAX];
		const int len = cf_digest_end(d->at[i].run, sum);
		if (len < 0)
			return cf_fail(err, len, "the digest %s failed", d->at[i].name);
		if (strpbrk(file, "\n\r\\"))
			fputc('\\', to);
		for (int k = 0; k < len; k++)
			fprintf(to, "%02x", sum[k]);
		fputs("  ", to);
		print_name(to, file);
	}
	return 0;
}
