/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* differential.c - random tables through the real dm-crypt and through cryptfuse: do both take the same tables, and do
 * they agree on every byte? Runs as root in a kernel that has dm-crypt (tests/kernel/run).
 *
 *   differential --differences FILE [--seed N] [--tables N] [--odd N] [--engine NAME] [--paths N]
 *                [--table INDEX | --odd-table INDEX]
 *
 * --paths: by how many of the engines' paths each table is tried, one of the CPU's engines among them in turn, the
 * others chosen at random. --engine: by that one only, where it serves the table; judged are all. Prints one PASS or
 * FAIL line for each thing that was looked at, and with every failure the seed and the index that bring it back. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compare.h"
#include "cryptfuse/engine.h"
#include "cryptfuse/secret.h"
#include "differences.h"

struct options {
	uint64_t seed, tables, odd, paths;
	int64_t only_table, only_odd; /* -1: all */
	const char *engine, *differences;
};

/** How tables were judged and what they were. */
struct tally {
	unsigned tables, both, neither, excused, judged_wrong, bytes_wrong;
	unsigned several_keys, wraps, du4096; /* of those that both took */
	unsigned combos[80];
};

struct state {
	struct options opts;
	struct dm dm;
	struct rules rules;
	struct compare_stats stats;
	struct tally sound, odd;
	unsigned examples_wrong;
};

static unsigned failures;

CF_PRINTF(3, 4) static void result(bool good, const char *name, const char *fmt, ...)
{
	va_list args;
	printf("%s: differential/%s (", good ? "PASS" : "FAIL", name);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf(")\n");
	failures += !good;
}

/* ---- one table ---- */

struct verdict {
	int kernel, ours; /* 0 taken, or -errno */
	char why[DM_WHY];
	struct cf_err err;
};

/* Everything that cryptfuse looks at before it serves a byte. */
static int judge_ours(const struct state *s, struct ours *o, uint64_t sectors, const char *params, struct cf_err *err)
{
	CF_CLEANUP(cf_volume_free) struct cf_volume *v = NULL;
	int rc = ours_parse(o, sectors, params, err);
	if (!rc)
		rc = cf_cipher_check(&o->table.cipher, NULL, err);
	if (rc)
		return rc;
	rc = ours_open(&v, o, s->dm.backing, NULL, CF_PATH_BATCH, err);
	if (rc != -ENODEV)
		return rc;
	*err = (struct cf_err){0}; /* a whole mode only: adiantum */
	return ours_open(&v, o, s->dm.backing, NULL, CF_PATH_NATIVE, err);
}

static void show(const struct verdict *v, const char *what, const char *table)
{
	printf("  %s: %s\n  dm-crypt: %s %s\n  cryptfuse: %s\n", what, table, v->kernel ? strerror(-v->kernel) : "taken",
		   v->kernel ? v->why : "", v->ours ? v->err.text : "taken");
}

/* Judged alike, or differently on purpose? Returns the rule, if one was needed. */
static const struct rule *judge(struct state *s, struct ours *o, uint64_t sectors, const char *params,
								struct verdict *v, struct tally *t)
{
	const struct rule *rule = NULL;
	char *table = malloc(strlen(params) + 32);
	if (!table)
		abort();
	sprintf(table, "%" PRIu64 " %s", sectors, params);
	v->err = (struct cf_err){0};
	v->kernel = dm_load(&s->dm, sectors, params, v->why);
	v->ours = judge_ours(s, o, sectors, params, &v->err);
	t->tables++;
	if (!v->kernel == !v->ours) {
		t->both += !v->kernel;
		t->neither += !!v->kernel;
	} else {
		rule = rules_find(&s->rules, v->kernel ? TAKEN_BY_CRYPTFUSE : TAKEN_BY_KERNEL, table,
						  v->kernel ? v->why : v->err.text);
		t->excused += rule != NULL;
		t->judged_wrong += rule == NULL;
		if (!rule)
			show(v, "judged differently", table);
	}
	free(table);
	return rule;
}

static void count(struct tally *t, const struct table *table)
{
	t->several_keys += table->keycount > 1;
	t->wraps += table->wraps;
	t->du4096 += table->du_bytes == 4096 && !table->large;
	t->combos[table->combo]++;
}

typedef void make_table(struct table *t, uint64_t seed, uint64_t index);

static void one_table(struct state *s, make_table *make, uint64_t index, struct tally *tally)
{
	static struct table t;
	struct ours o;
	struct verdict v;
	const char *which = make == table_odd ? "--odd-table" : "--table";
	unsigned wrong = tally->judged_wrong;
	make(&t, s->opts.seed, index);
	judge(s, &o, t.sectors, t.params, &v, tally);
	if (make == table_sound && v.kernel && v.ours)
		show(&v, "not sound after all", t.params);
	if (!v.kernel && !v.ours) {
		struct rng r = rng_new(s->opts.seed ^ 3, index);
		if (make == table_sound)
			count(tally, &t);
		if (compare_table(&s->dm, &o, s->opts.engine, (unsigned)s->opts.paths, &r, &s->stats) != 0) {
			tally->bytes_wrong++;
			printf("  %" PRIu64 " %s\n", t.sectors, t.params);
			wrong = UINT32_MAX;
		}
	}
	if (wrong != tally->judged_wrong)
		printf("  again: --seed %" PRIu64 " %s %" PRIu64 "\n", s->opts.seed, which, index);
	ours_fini(&o);
}

static void many_tables(struct state *s, make_table *make, uint64_t n, int64_t only, struct tally *tally)
{
	for (uint64_t i = 0; i < n; i++)
		if (only < 0 || (uint64_t)only == i)
			one_table(s, make, i, tally);
}

/* Every rule of the list holds for its own examples: none is out of date. */
static void examples(struct state *s)
{
	struct tally t = {0};
	for (unsigned i = 0; i < s->rules.n; i++) {
		struct rule *rule = &s->rules.at[i];
		for (unsigned e = 0; e < rule->n_examples; e++) {
			struct ours o;
			struct verdict v;
			char *params;
			uint64_t sectors = strtoull(rule->examples[e], &params, 10);
			const struct rule *got = judge(s, &o, sectors, params + 1, &v, &t);
			ours_fini(&o);
			if (got == rule || (rule->needs && !v.kernel && !v.ours))
				continue;
			s->examples_wrong++;
			printf("  example of [%s] meets [%s]\n", rule->name, got ? got->name : "no rule");
			show(&v, "example", rule->examples[e]);
		}
		rule->hits = 0;
	}
}

/* ---- what came out ---- */

/* Every engine, and each of its paths for aes, has served some tables; a CPU's engine one in forty. */
static void distribution_engines(struct state *s)
{
	const struct cf_block_cipher *aes = cf_block_cipher_find("aes");
	unsigned paths = 0, few = 0;
	for (size_t i = 0; cf_engines[i]; i++) {
		const struct cf_engine *e = cf_engines[i];
		unsigned want = strncmp(e->name, "cpu-", 4) ? 1 : s->sound.tables / 40;
		if ((s->opts.engine && strcmp(s->opts.engine, e->name) != 0) || e->probe(NULL) != 0 || !e->has(aes, 32))
			continue;
		bool native = e->mode_has && e->mode_has("xts", aes, 64);
		paths += 1 + native;
		few += compare_served(&s->stats, e->name, "batch") < want;
		few += native && compare_served(&s->stats, e->name, "native") < want;
	}
	result(paths && !few, "distribution-engines", "%u paths of the engines for aes, %u of them with too few tables",
		   paths, few);
}

static bool engine_has(const struct table_combo *c)
{
	struct cf_err err;
	const struct cf_engine *afalg;
	const char *mode = c->mode;
	if (table_combo_is_api(c))
		return cf_engine_find("afalg", &afalg, &err) == 0;
	const struct cf_cipher_spec adiantum = {.cipher = "xchacha12,aes",
											.mode = "adiantum",
											.iv = "plain64",
											.keycount = 1,
											.key_bytes = 32,
											.du_bytes = 512};
	return strcmp(mode, "adiantum") != 0 || cf_cipher_check(&adiantum, NULL, &err) == 0;
}

/* HAZARDS 35: random tables prove nothing unless they reach everything. */
static void distribution(struct state *s)
{
	const struct tally *t = &s->sound;
	unsigned once = 0, few = 0, n = table_combos_n(), here = 0;
	printf("both took, by mode and IV kind:");
	for (unsigned i = 0; i < n; i++) {
		bool asked = engine_has(&table_combos[i]);
		printf("%s %s%s%s %u%s", i ? "," : "", table_combos[i].mode, *table_combos[i].iv ? "-" : "", table_combos[i].iv,
			   t->combos[i], asked ? "" : " (no engine)");
		here += asked;
		once += asked && t->combos[i] >= 1;
		few += asked && t->combos[i] < 2;
	}
	printf("\nby engine and path:");
	for (unsigned i = 0; i < s->stats.n_paths; i++)
		printf("%s %s %s %u", i ? "," : "", s->stats.by_path[i].engine, s->stats.by_path[i].path,
			   s->stats.by_path[i].tables);
	printf("\n");
	if (s->opts.only_table >= 0 || s->opts.only_odd >= 0)
		return;
	unsigned all = t->tables;
	bool few_tables = all < 200; /* chance rules */
	result(few_tables || t->both * 4 >= all * 3, "distribution-accepted", "both took %u of %u", t->both, all);
	result(few_tables || (t->several_keys * 10 >= all && t->wraps * 10 >= all && t->du4096 * 10 >= all),
		   "distribution-kinds",
		   "%u with several keys, %u with a wrap inside, %u with 4096-byte units without iv_large_sectors",
		   t->several_keys, t->wraps, t->du4096);
	if (!few_tables)
		distribution_engines(s);
	result(!few || few_tables, "distribution-combinations",
		   "%u of %u mode and IV kinds at least once, %u less than twice", once, here, few);
}

static void report(struct state *s)
{
	const struct tally *a = &s->sound, *b = &s->odd;
	for (unsigned i = 0; i < s->rules.n; i++)
		if (s->rules.at[i].hits)
			printf("on purpose: %s, %u times\n", s->rules.at[i].name, s->rules.at[i].hits);
	distribution(s);
	result(!s->examples_wrong, "differences-list", "%u deliberate differences hold for their examples", s->rules.n);
	result(!a->judged_wrong, "judgement-sound",
		   "%u tables: both took %u, both refused %u, on purpose differently %u, %u wrong", a->tables, a->both,
		   a->neither, a->excused, a->judged_wrong);
	result(!b->judged_wrong, "judgement-odd",
		   "%u tables: both took %u, both refused %u, on purpose differently %u, %u wrong", b->tables, b->both,
		   b->neither, b->excused, b->judged_wrong);
	result(!a->bytes_wrong && !b->bytes_wrong && s->stats.ranges, "bytes",
		   "%u tables; dm-crypt wrote %" PRIu64 " KiB that cryptfuse read, cryptfuse wrote %" PRIu64
		   " KiB that dm-crypt read, %u random ranges; %u tables wrong",
		   a->both + b->both, s->stats.kernel_wrote / 1024, s->stats.ours_wrote / 1024, s->stats.ranges,
		   a->bytes_wrong + b->bytes_wrong);
}

/* ---- */

static uint64_t number(const char *text)
{
	char *end;
	errno = 0;
	uint64_t n = strtoull(text, &end, 10);
	if (errno || *end || end == text) {
		fprintf(stderr, "not a number: %s\n", text);
		exit(2);
	}
	return n;
}

static struct options parse(int argc, char **argv)
{
	static const struct option names[] = {
		{"seed", 1, NULL, 's'},        {"tables", 1, NULL, 't'}, {"odd", 1, NULL, 'o'},
		{"table", 1, NULL, 'T'},       {"engine", 1, NULL, 'e'}, {"odd-table", 1, NULL, 'O'},
		{"differences", 1, NULL, 'd'}, {"paths", 1, NULL, 'p'},  {NULL, 0, NULL, 0},
	};
	struct options o = {
		.seed = (uint64_t)time(NULL), .tables = 200, .odd = UINT64_MAX, .paths = 3, .only_table = -1, .only_odd = -1};
	for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
		switch (c) {
		case 's':
			o.seed = number(optarg);
			break;
		case 't':
			o.tables = number(optarg);
			break;
		case 'o':
			o.odd = number(optarg);
			break;
		case 'T':
			o.only_table = (int64_t)number(optarg);
			break;
		case 'O':
			o.only_odd = (int64_t)number(optarg);
			break;
		case 'e':
			o.engine = optarg;
			break;
		case 'p':
			o.paths = number(optarg);
			break;
		case 'd':
			o.differences = optarg;
			break;
		default:
			exit(2);
		}
	}
	if (!o.differences) {
		fprintf(stderr, "--differences FILE is missing\n");
		exit(2);
	}
	if (o.odd == UINT64_MAX)
		o.odd = o.tables;
	return o;
}

/* One table alone: not the others, and not those of the other kind. */
static void narrow(struct options *o)
{
	if (o->only_table >= 0) {
		o->tables = (uint64_t)o->only_table + 1;
		o->odd = 0;
	} else if (o->only_odd >= 0) {
		o->odd = (uint64_t)o->only_odd + 1;
		o->tables = 0;
	}
}

int main(int argc, char **argv)
{
	static struct state s;
	struct cf_err err = {0};
	setvbuf(stdout, NULL, _IOLBF, 0);
	s.opts = parse(argc, argv);
	narrow(&s.opts);
	if (cf_secret_init(&err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		return 99;
	}
	rules_load(&s.rules, s.opts.differences);
	if (dm_open(&s.dm, "differential", TABLE_BACKING) != 0)
		return 99;
	printf("seed %" PRIu64 ", %" PRIu64 " sound and %" PRIu64 " odd tables, crypt target %s\n", s.opts.seed,
		   s.opts.tables, s.opts.odd, s.dm.target);
	examples(&s);
	many_tables(&s, table_sound, s.opts.tables, s.opts.only_table, &s.sound);
	many_tables(&s, table_odd, s.opts.odd, s.opts.only_odd, &s.odd);
	report(&s);
	dm_close(&s.dm);
	rules_free(&s.rules);
	return failures ? 1 : 0;
}
