/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* bench.c - cryptfuse bench: how fast is each engine here with a cipher, and which one would open take?
 *
 * Needs no image, no FUSE and no rights; the key is random. Results go to standard output when all of them are there:
 * a bench that is interrupted or fails prints none. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <json.h>

#include "cli.h"
#include "cryptfuse/bench.h"
#include "cryptfuse/err.h"
#include "cryptfuse/json.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/spec.h"

static const struct cli_option bench_options[] = {
	{.name = "cipher",
	 .letter = 'c',
	 .kind = CLI_STRING,
	 .arg = "CIPHER",
	 .help = "cipher, mode and IV (aes-xts-plain64)",
	 CLI_FIELD(volume.cipher)},
	{.name = "key-size",
	 .letter = 's',
	 .kind = CLI_NUMBER,
	 .arg = "BITS",
	 .help = "size of the volume key (256 for each key in it)",
	 CLI_FIELD(volume.key_bits),
	 .max = CF_KEY_MAX * 8},
	{.name = "sector-size",
	 .kind = CLI_NUMBERS,
	 .arg = "BYTES,...",
	 .help = "what is encrypted under one IV (512,4096,65536)",
	 CLI_FIELD(sector_sizes),
	 .min = CF_DU_MIN,
	 .max = CF_DU_MAX},
	{.name = "engine",
	 .kind = CLI_STRING,
	 .arg = "ENGINE",
	 .help = "measure this one only (all that have the cipher)",
	 CLI_FIELD(volume.engine)},
	{.name = "seconds",
	 .kind = CLI_NUMBER,
	 .arg = "SECONDS",
	 .help = "how long all of it may take (10)",
	 CLI_FIELD(seconds),
	 .min = 1,
	 .max = 3600},
	{.name = NULL},
};

static const struct cli_option bench_output_options[] = {
	{.name = "json", .kind = CLI_SET, .help = "machine-readable", CLI_FIELD(json), .value = 1},
	{.name = "verbose",
	 .letter = 'v',
	 .kind = CLI_SET,
	 .help = "name what is left out, and why",
	 CLI_FIELD(verbose),
	 .value = 1},
	{.name = NULL},
};

static const struct cli_group bench_groups[] = {
	{"What is measured", bench_options},
	{"Output", bench_output_options},
	{"Help", cli_help_options},
	{NULL, NULL},
};

static const char *const dir_names[] = {[CF_ENCRYPT] = "encrypt", [CF_DECRYPT] = "decrypt"};

/* ---- what is asked for ---- */

static int plan_cipher(const struct cli_opts *o, struct cf_cipher_spec *spec, struct cf_err *err)
{
	const uint64_t bits = o->volume.key_bits;
	int rc = cf_spec_parse_option(o->volume.cipher ? o->volume.cipher : "aes-xts-plain64", spec, err);
	if (rc)
		return rc;
	if (bits % 8)
		return cf_fail(err, -EINVAL, "--key-size %llu is not a multiple of 8 bits", (unsigned long long)bits);
	const uint32_t fitting = cf_cipher_default_key_bytes(spec); /* 0 only for the null cipher, which takes none */
	spec->key_bytes = bits && fitting ? (uint32_t)(bits / 8) : fitting;
	return 0;
}

static bool has_size(const struct cf_bench_opts *b, uint64_t du_bytes)
{
	for (size_t i = 0; i < b->n_du_sizes; i++)
		if (b->du_sizes[i] == du_bytes)
			return true;
	return false;
}

/* Sizes that were asked for must all be right; of the usual ones those are taken that go with the cipher (lmk has one
 * only). */
static int plan_sizes(const struct cli_opts *o, struct cf_bench_opts *b, struct cf_err *err)
{
	static const struct cli_numbers usual = {3, {512, 4096, 65536}};
	const struct cli_numbers *sizes = o->sector_sizes.n ? &o->sector_sizes : &usual;
	struct cf_err why = {0};
	for (size_t i = 0; i < sizes->n; i++) {
		b->cipher.du_bytes = (uint32_t)sizes->at[i];
		int rc = has_size(b, sizes->at[i]) ? 0 : cf_cipher_check(&b->cipher, b->engine, &why);
		if (rc && sizes != &usual)
			return cf_fail(err, rc, "%s", why.text);
		if (!rc && !has_size(b, sizes->at[i]))
			b->du_sizes[b->n_du_sizes++] = b->cipher.du_bytes;
	}
	return b->n_du_sizes ? 0 : cf_fail(err, why.code, "%s", why.text);
}

/* ---- while it runs ---- */

struct watch {
	const struct cli_opts *o;
	struct cli_signals signals;
	struct cli_progress progress;
};

static void note(void *ctx, const char *text)
{
	struct watch *w = ctx;
	if (!w->o->verbose)
		return;
	cli_progress_end(&w->progress);
	cli_say("%s", text);
}

static int step(void *ctx, unsigned percent, const struct cf_bench_result *next)
{
	struct watch *w = ctx;
	char text[64];
	snprintf(text, sizeof(text), "%s %s, %s, data units of %u bytes", next->engine, next->path, dir_names[next->dir],
			 next->du_bytes);
	cli_progress_show(&w->progress, percent, text);
	return cli_interrupted(&w->signals);
}

/* If a signal came, its own way of ending the process is taken here, with the key gone and nothing printed. */
static int measure(const struct cli_opts *o, const struct cf_bench_opts *b, struct cf_bench *results,
				   struct cf_err *err)
{
	struct watch w = {.o = o};
	const struct cf_bench_ui ui = {.ctx = &w, .note = note, .step = step};
	cli_progress_init(&w.progress);
	cli_hold_signals(&w.signals);
	int rc = cf_bench_run(b, &ui, results, err);
	cf_secret_fini();
	cli_progress_end(&w.progress);
	cli_let_signals(&w.signals);
	return rc == -EINTR ? cf_fail(err, rc, "interrupted") : rc;
}

/* ---- output ---- */

/* "128 KiB", or "128 to 512 KiB" where it is not the same for all data units. */
static void format_batches(const struct cf_bench *b, char *text, size_t text_size)
{
	uint32_t least = UINT32_MAX, most = 0;
	for (size_t i = 0; i < b->n_results; i++) {
		least = b->results[i].batch_bytes < least ? b->results[i].batch_bytes : least;
		most = b->results[i].batch_bytes > most ? b->results[i].batch_bytes : most;
	}
	if (least < most)
		snprintf(text, text_size, "%u to %u KiB", least / 1024, most / 1024);
	else
		snprintf(text, text_size, "%u KiB", most / 1024);
}

static void print_table(const struct cf_cipher_spec *spec, const struct cf_bench *b)
{
	char cipher[CF_SPEC_TEXT], batches[32];
	cf_spec_format_cipher(spec, cipher, sizeof(cipher));
	format_batches(b, batches, sizeof(batches));
	printf("%s, key of %u bits; batches of %s, one thread\n\n", cipher, spec->key_bytes * 8, batches);
	printf("%11s  %-9s  %-11s  %-6s  %8s  %9s\n", "data unit", "direction", "engine", "path", "MB/s", "CPU s/GiB");
	for (size_t i = 0; i < b->n_results; i++) {
		const struct cf_bench_result *r = &b->results[i];
		printf("%11u  %-9s  %-11s  %-6s  %8.1f  %9.3f%s\n", r->du_bytes, dir_names[r->dir], r->engine, r->path,
			   r->mb_per_s, r->cpu_s_per_gib, r->chosen ? "  *" : "");
	}
	puts("\n* what 'cryptfuse open' would take for such a batch");
}

static void add_number(struct json_object *j, const char *name, double value, int decimals)
{
	char text[32];
	snprintf(text, sizeof(text), "%.*f", decimals, value);
	cf_json_add(j, name, json_object_new_double_s(value, text));
}

static struct json_object *result_json(const struct cf_bench_result *r)
{
	struct json_object *j = json_object_new_object();
	cf_json_add_text(j, "engine", r->engine);
	cf_json_add_text(j, "path", r->path);
	cf_json_add_text(j, "direction", dir_names[r->dir]);
	cf_json_add_number(j, "sector_size", r->du_bytes);
	cf_json_add_number(j, "batch_bytes", r->batch_bytes);
	add_number(j, "mb_per_s", r->mb_per_s, 1);
	add_number(j, "cpu_s_per_gib", r->cpu_s_per_gib, 4);
	cf_json_add_flag(j, "chosen", r->chosen);
	return j;
}

static int print_json(const struct cf_cipher_spec *spec, const struct cf_bench *b, struct cf_err *err)
{
	struct json_object *j = json_object_new_object(), *results = json_object_new_array();
	char cipher[CF_SPEC_TEXT];
	cf_spec_format_cipher(spec, cipher, sizeof(cipher));
	cf_json_add_text(j, "cipher", cipher);
	cf_json_add_number(j, "key_bits", spec->key_bytes * 8);
	for (size_t i = 0; i < b->n_results; i++)
		cf_json_append(results, result_json(&b->results[i]));
	cf_json_add(j, "results", results);
	return cli_print_json(j, err);
}

static int run_bench(const struct cli_opts *o, struct cf_err *err)
{
	struct cf_bench_opts b = {.engine = o->volume.engine, .budget_ns = o->seconds * 1000000000u};
	struct cf_bench results;
	int rc = cf_secret_init(err);
	if (rc || (rc = plan_cipher(o, &b.cipher, err)) || (rc = plan_sizes(o, &b, err)) ||
		(rc = measure(o, &b, &results, err)))
		return rc;
	if (o->json)
		return print_json(&b.cipher, &results, err);
	print_table(&b.cipher, &results);
	return 0;
}

const struct cli_command cli_bench = {
	.name = "bench",
	.args = "",
	.about = "Measure how fast each engine is with a cipher, and which one open would take",
	.min_args = 0,
	.max_args = 0,
	.groups = bench_groups,
	.run = run_bench,
};
