/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* fuzz_options.c - options, keys and an image, as a command line brings them to core/open: one judgement and one key
 * for the same words, a plan that lies in the image, and a key where one is needed and nowhere else.
 *
 * The first lines of an input are the texts, then come the numbers, and what is left is the key file or passphrase. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/open/plan.h"
#include "cryptfuse/secret.h"
#include "fuzz.h"

#define IMAGE_BYTES_MAX (UINT64_C(1) << 40)

struct words {
	char *cipher, *hash, *key_slot, *partition;
	uint64_t flags;
	struct fuzz_in input; /* of the key */
	char key_path[32];
	struct cf_image image;
	uint64_t image_bytes;
};

static void free_words(struct words *w)
{
	free(w->cipher);
	free(w->hash);
	free(w->key_slot);
	free(w->partition);
	cf_image_close(&w->image);
}

static uint64_t maybe(uint64_t flags, unsigned bit, struct fuzz_in *in)
{
	return flags >> bit & 1 ? fuzz_odd_number(in) : 0;
}

static const char *given(const char *text)
{
	return *text ? text : NULL;
}

static void take_words(struct fuzz_in *in, struct words *w, struct cf_open_opts *o)
{
	static const char *const engines[] = {"openssl", "openssl", "openssl",        "gcrypt",
										  "null",    "",        "no such engine", NULL};
	w->cipher = fuzz_line(in);
	w->hash = fuzz_line(in);
	w->key_slot = fuzz_line(in);
	w->partition = fuzz_line(in);
	const uint64_t f = w->flags = fuzz_number(in, 5);
	*o = (struct cf_open_opts){
		.image = "image",
		.open_image = &w->image,
		.cipher = given(w->cipher),
		.hash = given(w->hash),
		.key_slot = given(w->key_slot),
		.partition = given(w->partition),
		.type = f % 8,
		.compat = f >> 3 & 1 ? CF_COMPAT_2_6 : CF_COMPAT_2_7,
		.access = f >> 4 & 1 ? CF_READ_ONLY : CF_READ_WRITE,
		.lock = f >> 5 & 1 ? CF_LOCK_NONE : CF_LOCK,
		.discards = f >> 6 & 1 ? CF_DISCARDS_ALLOWED : CF_DISCARDS_REFUSED,
		.bad_sectors = f >> 7 & 1 ? CF_BAD_ZERO : CF_BAD_EIO,
		.iv_large_sectors = f >> 8 & 1,
		.key_bits = maybe(f, 9, in),
		.offset_sectors = maybe(f, 10, in),
		.skip_sectors = maybe(f, 11, in),
		.size_sectors = maybe(f, 12, in),
		.device_size_bytes = maybe(f, 13, in),
		.sector_size_bytes = maybe(f, 14, in),
		.keyfile_size_bytes = maybe(f, 15, in),
		.keyfile_offset_bytes = maybe(f, 16, in),
		.tries = f >> 17 & 3,
		.threads = f >> 19 & 7,
		.engine = engines[f >> 22 & 7],
		.image_cache = CF_IMAGE_CACHED,
	};
	w->image_bytes = fuzz_odd_number(in) % IMAGE_BYTES_MAX;
	if (f >> 25 & 1)
		o->key_file = w->key_path;
	if (f >> 26 & 1)
		o->table_file = w->key_path;
	if (f >> 27 & 1)
		o->volume_key_file = w->key_path;
	w->input = *in;
}

static void say_nothing(void *ctx, const char *text)
{
	(void)ctx;
	fuzz_must(*text && !strchr(text, '\n'));
}

/* A passphrase: what the input ends in. */
static int ask(void *ctx, const struct cf_open_opts *opts, unsigned attempt, struct cf_secret_buf *out,
			   struct cf_err *err)
{
	const struct words *w = ctx;
	(void)opts;
	fuzz_must(attempt < 8);
	if (!w->input.left)
		return cf_fail(err, -EPERM, "no passphrase");
	out->data = cf_secret_alloc(w->input.left);
	fuzz_must(out->data);
	memcpy(out->data, w->input.at, w->input.left);
	out->len = w->input.left;
	return w->flags >> 28 & 1 ? CF_MAY_ASK_AGAIN : 0;
}

static void check_plan(const struct cf_open_opts *opts, const struct cf_open_plan *p, uint64_t image_bytes)
{
	fuzz_must(p->data_off <= image_bytes && p->bytes <= image_bytes - p->data_off);
	fuzz_must(cf_units_du_valid(p->cipher.du_bytes) && p->bytes && p->bytes % p->cipher.du_bytes == 0);
	fuzz_must(p->cipher.key_bytes <= CF_KEY_MAX && p->access == opts->access);
	fuzz_must(p->n_workers >= 1 && p->n_workers <= CF_WORKERS_MAX && p->n_permits >= 1 && p->n_permits <= p->n_workers);
	fuzz_must(!opts->size_sectors || opts->table_file || p->bytes / CF_SECTOR_BYTES == opts->size_sectors);
	fuzz_must(!opts->sector_size_bytes || p->cipher.du_bytes == opts->sector_size_bytes);
}

/* What the plan says of itself, as words: they end, and one is not another. */
static void check_command(const struct cf_open_opts *opts, struct cf_open_plan *p)
{
	cf_open_command(opts, p);
	const char *word = p->command;
	while (*word)
		word += strlen(word) + 1;
	fuzz_must(word < p->command + CF_COMMAND_MAX);
}

static int open_once(struct words *w, struct cf_open_opts *opts, struct cf_opening *o, struct cf_err *err)
{
	const struct cf_open_ui ui = {.ctx = w, .note = say_nothing, .warn = say_nothing, .passphrase = ask};
	CF_CLEANUP(cf_close_fd) int key = fuzz_file(w->input.at, w->input.left, w->key_path);
	fuzz_must(key >= 0);
	*o = (struct cf_opening){0};
	int rc = cf_open_plan(opts, &ui, o, err);
	fuzz_judged(rc, err);
	fuzz_must(rc || o->image.n_parts == 1);
	fuzz_must(!rc || (!o->image.n_parts && !o->key && !o->header));
	if (rc)
		return rc;
	check_plan(opts, &o->plan, w->image_bytes);
	rc = cf_open_key(opts, &ui, o, err);
	fuzz_judged(rc, err);
	fuzz_must(rc || (o->key != NULL) == (o->plan.cipher.key_bytes != 0));
	if (!rc)
		check_command(opts, &o->plan);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static struct words w;
	static struct cf_opening first, again;
	struct fuzz_in in = {data, len};
	struct cf_open_opts opts;
	struct cf_err err = {0}, err_again = {0};
	w = (struct words){0};
	take_words(&in, &w, &opts);
	w.image.n_parts = 1;
	w.image.access = opts.access;
	w.image.fd[0] = memfd_create("image", MFD_CLOEXEC);
	fuzz_must(w.image.fd[0] >= 0 && ftruncate(w.image.fd[0], (off_t)w.image_bytes) == 0);
	if (opts.access == CF_READ_ONLY)
		w.image.fd[0] = fuzz_read_only(w.image.fd[0]);
	int rc = open_once(&w, &opts, &first, &err);
	fuzz_must(open_once(&w, &opts, &again, &err_again) == rc);
	if (!rc) {
		fuzz_must(memcmp(&first.plan.cipher, &again.plan.cipher, sizeof(first.plan.cipher)) == 0);
		fuzz_must(!first.key || memcmp(first.key, again.key, first.plan.cipher.key_bytes) == 0);
	}
	cf_opening_fini(&first);
	cf_opening_fini(&again);
	free_words(&w);
	return 0;
}
