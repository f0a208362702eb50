/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* options.c - from a command's rows to getopt_long, to fields, and to --help.
 *
 * getopt_long prints nothing here: every complaint names the option and what was wrong with its text. An argument is
 * never echoed where it could be a passphrase that slipped (a surplus word, or what follows an unknown option). */
#include "config.h"

#include "options.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "cryptfuse/err.h"
#include "cryptfuse/units.h"

#define DEFAULT_TRIES 3
#define LONG_BASE 256  /* val of the first row for getopt_long: above every letter */
#define LEFT_COLUMN 34 /* of --help: an option with its argument */

/** All rows of a command, and which of them were given. */
struct rows {
	const struct cli_option *row[CLI_OPTIONS_MAX];
	int seen[CLI_OPTIONS_MAX];
	unsigned n;
	struct option longs[CLI_OPTIONS_MAX + 1];
	char letters[2 * CLI_OPTIONS_MAX + 2];
};

static void collect_rows(const struct cli_command *cmd, struct rows *r)
{
	memset(r, 0, sizeof(*r));
	char *l = r->letters;
	*l++ = ':'; /* tell a missing argument from an unknown option */
	for (const struct cli_group *g = cmd->groups; g->title; g++)
		for (const struct cli_option *o = g->options; o->name; o++) {
			assert(r->n < CLI_OPTIONS_MAX);
			r->longs[r->n] = (struct option){
				.name = o->name, .has_arg = o->arg ? required_argument : no_argument, .val = LONG_BASE + (int)r->n};
			r->row[r->n++] = o;
			if (!o->letter || o->letter == '?') /* getopt's word for "unknown": its row is found by optopt */
				continue;
			*l++ = o->letter;
			if (o->arg)
				*l++ = ':';
		}
}

/* The index of the row that getopt_long's value stands for; -1 for none. */
static int row_index(const struct rows *r, int val)
{
	if (val >= LONG_BASE)
		return val - LONG_BASE < (int)r->n ? val - LONG_BASE : -1;
	for (unsigned i = 0; val && i < r->n; i++)
		if (r->row[i]->letter == val)
			return (int)i;
	return -1;
}

/* ---- one option's text into its field ---- */

static void store(struct cli_opts *out, const struct cli_option *o, uint64_t value)
{
	uint8_t *field = (uint8_t *)out + o->field_off;
	const uint8_t small = (uint8_t)value;
	const uint32_t medium = (uint32_t)value;
	switch (o->field_bytes) {
	case sizeof(small):
		memcpy(field, &small, sizeof(small));
		break;
	case sizeof(medium):
		memcpy(field, &medium, sizeof(medium));
		break;
	default:
		assert(o->field_bytes == sizeof(value));
		memcpy(field, &value, sizeof(value));
	}
}

static int take_string(struct cli_opts *out, const struct cli_option *o, const char *text, struct cf_err *err)
{
	if (!*text)
		return cf_fail(err, -EINVAL, "--%s '': its %s is empty", o->name, o->arg);
	assert(o->field_bytes == sizeof(text));
	memcpy((uint8_t *)out + o->field_off, &text, sizeof(text));
	return 0;
}

static int parse_number(const struct cli_option *o, const char *text, uint64_t *n, struct cf_err *err)
{
	const uint64_t max = o->max ? o->max : UINT64_MAX;
	int rc = cf_units_parse_number(text, max, n);
	if (rc == -EINVAL)
		return cf_fail(err, rc, "--%s '%s': not a number (%s, decimal digits only)", o->name, text, o->arg);
	if (rc || *n < o->min)
		return cf_fail(err, -EINVAL, "--%s '%s': must be %llu to %llu", o->name, text, (unsigned long long)o->min,
					   (unsigned long long)max);
	return 0;
}

static int take_number(struct cli_opts *out, const struct cli_option *o, const char *text, struct cf_err *err)
{
	uint64_t n = 0;
	int rc = parse_number(o, text, &n, err);
	if (rc == 0)
		store(out, o, n);
	return rc;
}

static int take_numbers(struct cli_opts *out, const struct cli_option *o, const char *text, struct cf_err *err)
{
	struct cli_numbers list;
	char word[32];
	assert(o->field_bytes == sizeof(list));
	memcpy(&list, (const uint8_t *)out + o->field_off, sizeof(list));
	for (const char *at = text;; at++) {
		const size_t len = strcspn(at, ",");
		if (list.n == CLI_NUMBERS_MAX)
			return cf_fail(err, -EINVAL, "--%s: more than %d of them", o->name, CLI_NUMBERS_MAX);
		snprintf(word, sizeof(word), "%.*s", (int)len, at);
		int rc = parse_number(o, len < sizeof(word) ? word : text, &list.at[list.n], err);
		if (rc)
			return rc;
		list.n++;
		at += len;
		if (!*at)
			break;
	}
	memcpy((uint8_t *)out + o->field_off, &list, sizeof(list));
	return 0;
}

static int take_size(struct cli_opts *out, const struct cli_option *o, const char *text, struct cf_err *err)
{
	uint64_t bytes;
	int rc = cf_units_parse_size(text, 1, &bytes);
	if (rc == -ERANGE)
		return cf_fail(err, -EINVAL, "--%s '%s': too large", o->name, text);
	if (rc)
		return cf_fail(err, -EINVAL, "--%s '%s': not a size (a number, and K, M, G, T, KB, MB, GB, TB or S behind it)",
					   o->name, text);
	store(out, o, bytes);
	return 0;
}

/* A number alone is sectors, as in cryptsetup, of any size: it need not be bytes that could be. */
static int take_sectors(struct cli_opts *out, const struct cli_option *o, const char *text, struct cf_err *err)
{
	uint64_t n, bytes;
	int rc = cf_units_parse_number(text, UINT64_MAX, &n);
	if (rc == -EINVAL) {
		rc = cf_units_parse_size(text, CF_SECTOR_BYTES, &bytes);
		if (rc == -EINVAL)
			return cf_fail(err, rc, "--%s '%s': not a number of sectors, nor a size with K, M, G, T or S behind it",
						   o->name, text);
		if (rc == 0 && bytes % CF_SECTOR_BYTES)
			return cf_fail(err, -EINVAL, "--%s '%s': not a multiple of 512 bytes", o->name, text);
		n = rc ? 0 : bytes / CF_SECTOR_BYTES;
	}
	if (rc)
		return cf_fail(err, -EINVAL, "--%s '%s': too large: at most %llu sectors, or 2^63 bytes", o->name, text,
					   (unsigned long long)UINT64_MAX);
	store(out, o, n);
	return 0;
}

static int take_octal(struct cli_opts *out, const struct cli_option *o, const char *text, struct cf_err *err)
{
	const size_t digits = strspn(text, "01234567");
	uint64_t mode = 0;
	for (size_t i = 0; i < digits && mode <= 07777; i++)
		mode = mode * 8 + (uint64_t)(text[i] - '0');
	if (!digits || text[digits] || mode > 0777)
		return cf_fail(err, -EINVAL, "--%s '%s': not permission bits (octal, 0 to 0777)", o->name, text);
	store(out, o, mode);
	return 0;
}

static int take_word(struct cli_opts *out, const struct cli_option *o, const char *text, struct cf_err *err)
{
	for (const struct cli_word *w = o->words; w->text; w++)
		if (!strcmp(text, w->text)) {
			store(out, o, w->value);
			return 0;
		}
	return cf_fail(err, -EINVAL, "--%s '%s': must be one of %s", o->name, text, o->arg);
}

static int take(struct cli_opts *out, const struct cli_option *o, const char *text, struct cf_err *err)
{
	switch (o->kind) {
	case CLI_SET:
		store(out, o, o->value);
		return 0;
	case CLI_STRING:
		return take_string(out, o, text, err);
	case CLI_NUMBER:
		return take_number(out, o, text, err);
	case CLI_NUMBERS:
		return take_numbers(out, o, text, err);
	case CLI_SIZE:
		return take_size(out, o, text, err);
	case CLI_SECTORS:
		return take_sectors(out, o, text, err);
	case CLI_OCTAL:
		return take_octal(out, o, text, err);
	case CLI_WORD:
		return take_word(out, o, text, err);
	case CLI_NO_USE:
		return 0;
	}
	return -EINVAL;
}

/* ---- the whole line ---- */

/* Two different options for one field (--allow-root, --allow-other) cannot both be meant. */
static int check_contradiction(const struct rows *r, int given, struct cf_err *err)
{
	const struct cli_option *o = r->row[given];
	for (unsigned i = 0; o->field_bytes && i < r->n; i++)
		if (r->seen[i] && (int)i != given && r->row[i]->field_bytes && r->row[i]->field_off == o->field_off)
			return cf_fail(err, -EINVAL, "--%s and --%s contradict each other", r->row[i]->name, o->name);
	return 0;
}

static int refuse(const struct cli_command *cmd, const struct rows *r, int c, const char *word, struct cf_err *err)
{
	const int i = row_index(r, optopt);
	if (c == ':')
		return cf_fail(err, -EINVAL, "--%s needs its %s; see 'cryptfuse %s --help'", r->row[i]->name, r->row[i]->arg,
					   cmd->name);
	if (i >= 0)
		return cf_fail(err, -EINVAL, "--%s takes no argument", r->row[i]->name);
	if (optopt)
		return cf_fail(err, -EINVAL, "%s has no option -%c; see 'cryptfuse %s --help'", cmd->name, optopt, cmd->name);
	return cf_fail(err, -EINVAL, "%s has no option %.*s; see 'cryptfuse %s --help'", cmd->name, (int)strcspn(word, "="),
				   word, cmd->name);
}

static int take_options(const struct cli_command *cmd, struct rows *r, int argc, char **argv, struct cli_opts *out,
						struct cf_err *err)
{
	int c;
	optind = 0; /* start afresh: GNU getopt */
	opterr = 0;
	while ((c = getopt_long(argc, argv, r->letters, r->longs, NULL)) != -1) {
		const int i = c == '?' && optopt != '?' ? -1 : row_index(r, c);
		if (c == ':' || i < 0)
			return refuse(cmd, r, c, argv[optind - 1], err);
		int rc = take(out, r->row[i], optarg, err);
		if (rc == 0)
			rc = check_contradiction(r, i, err);
		if (rc)
			return rc;
		r->seen[i] = 1;
	}
	return 0;
}

static int take_args(const struct cli_command *cmd, int argc, char **argv, struct cli_opts *out, struct cf_err *err)
{
	const unsigned n = (unsigned)(argc - optind), all = n + (out->crypttab != NULL);
	if (all < cmd->min_args || all > cmd->max_args)
		return cf_fail(err, -EINVAL, "%s takes %s%s%s, but %u argument%s given; see 'cryptfuse %s --help'", cmd->name,
					   *cmd->args ? cmd->args : "no argument", out->crypttab ? " (IMAGE is what --crypttab names)" : "",
					   all > cmd->max_args ? " and no more" : "", n, n == 1 ? " was" : "s were", cmd->name);
	for (unsigned i = 0; i < n; i++) {
		out->args[i] = argv[optind + (int)i];
		if (!*out->args[i])
			return cf_fail(err, -EINVAL, "%s: argument %u is empty", cmd->name, i + 1);
	}
	out->n_args = n;
	return 0;
}

int cli_options_parse(const struct cli_command *cmd, int argc, char **argv, struct cli_opts *out, struct cf_err *err)
{
	struct rows r;
	collect_rows(cmd, &r);
	*out = (struct cli_opts){
		.volume = {.access = CF_READ_WRITE},
		.name = "volume",
		.mode = CLI_MODE_DEFAULT,
		.stop_timeout_s = 10,
		.seconds = 10,
	};
	int rc = take_options(cmd, &r, argc, argv, out, err);
	out->volume.tries = out->tries ? out->tries : DEFAULT_TRIES;
	return rc || out->help ? rc : take_args(cmd, argc, argv, out, err);
}

/* ---- help ---- */

static void print_row(const struct cli_option *o)
{
	char left[64];
	snprintf(left, sizeof(left), "%c%c%c --%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
			 o->letter ? ',' : ' ', o->name, o->arg ? "=" : "", o->arg ? o->arg : "");
	if (strlen(left) > LEFT_COLUMN)
		printf("  %s\n  %*s %s\n", left, LEFT_COLUMN, "", o->help);
	else
		printf("  %-*s %s\n", LEFT_COLUMN, left, o->help);
}

void cli_options_help(const struct cli_command *cmd)
{
	printf("Usage: cryptfuse %s [OPTIONS]%s%s\n%s.\n", cmd->name, *cmd->args ? " " : "", cmd->args, cmd->about);
	for (const struct cli_group *g = cmd->groups; g->title; g++) {
		printf("\n%s:\n", g->title);
		for (const struct cli_option *o = g->options; o->name; o++)
			print_row(o);
	}
}
