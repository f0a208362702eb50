/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* fuzz_mounts.c - mountinfo: names are whole strings, and a mount that was found is found again, the same, in the line
 * that the kernel would write of it. */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include "cryptfuse/mounts.h"
#include "fuzz.h"

#define MOUNTS_MAX 64u

struct found {
	unsigned n;
	struct cf_mount at[MOUNTS_MAX];
};

static int take(void *ctx, const struct cf_mount *m)
{
	struct found *f = ctx;
	fuzz_must(memchr(m->mountpoint, '\0', PATH_MAX) && memchr(m->source, '\0', PATH_MAX));
	f->at[f->n++] = *m;
	return f->n == MOUNTS_MAX ? 17 : 0;
}

static void find(const void *text, size_t len, struct found *out)
{
	char path[32];
	CF_CLEANUP(cf_close_fd) int fd = -1;
	fd = fuzz_file(text, len, path);
	out->n = 0;
	int rc = cf_mounts_each_in(path, take, out);
	fuzz_must(rc == (out->n == MOUNTS_MAX ? 17 : 0));
}

static void put_escaped(FILE *f, const char *name)
{
	for (; *name; name++)
		if (strchr(" \t\n\\#", *name))
			fprintf(f, "\\%03o", (unsigned)*name);
		else
			fputc(*name, f);
}

static void put_line(FILE *f, const struct cf_mount *m)
{
	fprintf(f, "1 2 %u:%u / ", m->dev_major, m->dev_minor);
	put_escaped(f, m->mountpoint);
	fprintf(f, " rw,nosuid shared:3 - fuse.cryptfuse ");
	put_escaped(f, m->source);
	fprintf(f, " rw,user_id=%u,group_id=0\n", (unsigned)m->uid);
}

static bool same(const struct cf_mount *a, const struct cf_mount *b)
{
	return !strcmp(a->mountpoint, b->mountpoint) && !strcmp(a->source, b->source) && a->dev_major == b->dev_major &&
		   a->dev_minor == b->dev_minor && a->uid == b->uid;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct found first, again;
	CF_CLEANUP(cf_freep) char *text = NULL;
	size_t text_len = 0;
	find(data, len, &first);
	FILE *f = open_memstream(&text, &text_len);
	fuzz_must(f);
	for (unsigned i = 0; i < first.n; i++)
		put_line(f, &first.at[i]);
	fclose(f);
	find(text, text_len, &again);
	fuzz_must(again.n == first.n);
	for (unsigned i = 0; i < first.n; i++)
		fuzz_must(same(&first.at[i], &again.at[i]));
	return 0;
}
