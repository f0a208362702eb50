/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* differences.c - reads tests/kernel/differences.txt. See differences.h. */
#include "differences.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void malformed(const char *path, const char *line)
{
	fprintf(stderr, "%s: cannot make sense of: %s\n", path, line);
	exit(99);
}

static bool compile(regex_t *re, const char *text)
{
	return regcomp(re, text, REG_EXTENDED | REG_NOSUB) == 0;
}

/* In an example <32> stands for a key of 32 bytes. */
static char *expand(const char *text)
{
	char *out = NULL;
	size_t size;
	FILE *f = open_memstream(&out, &size);
	if (!f)
		abort();
	for (; *text; text++) {
		char *end;
		unsigned long bytes = *text == '<' ? strtoul(text + 1, &end, 10) : 0;
		if (!bytes || *end != '>') {
			fputc(*text, f);
			continue;
		}
		for (unsigned long i = 0; i < bytes; i++)
			fprintf(f, "%02lx", (i * 37 + 11) & 255);
		text = end;
	}
	fclose(f);
	return out;
}

static bool field(struct rule *r, const char *name, const char *value)
{
	if (!strcmp(name, "taken by")) {
		r->taken_by = strcmp(value, "cryptfuse") ? TAKEN_BY_KERNEL : TAKEN_BY_CRYPTFUSE;
		return !strcmp(value, "cryptfuse") || !strcmp(value, "dm-crypt");
	}
	if (!strcmp(name, "table"))
		return compile(&r->table, value);
	if (!strcmp(name, "refusal"))
		return compile(&r->refusal, value);
	if (!strcmp(name, "example") && r->n_examples < EXAMPLES_MAX)
		return (r->examples[r->n_examples++] = expand(value)) != NULL;
	if (!strcmp(name, "why")) {
		free(r->why);
		return (r->why = strdup(value)) != NULL;
	}
	r->needs = !strcmp(name, "needs") && !strcmp(value, "a missing engine");
	return r->needs;
}

static void complete(const struct rules *r, const char *path)
{
	if (r->n && (!r->at[r->n - 1].why || !r->at[r->n - 1].n_examples))
		malformed(path, r->at[r->n - 1].name);
}

static void read_line(struct rules *r, char *line, const char *path)
{
	line[strcspn(line, "\n")] = '\0';
	char *value = strstr(line, ": ");
	if (!*line || *line == '#')
		return;
	if (*line == '[') {
		complete(r, path);
		line[strcspn(line, "]")] = '\0';
		if (r->n == RULES_MAX)
			malformed(path, line);
		r->at[r->n] = (struct rule){.name = strdup(line + 1)};
		if (!compile(&r->at[r->n].table, "") || !compile(&r->at[r->n].refusal, ""))
			abort();
		r->n++;
		return;
	}
	if (!value || !r->n)
		malformed(path, line);
	*value = '\0';
	if (!field(&r->at[r->n - 1], line, value + 2))
		malformed(path, line);
}

void rules_load(struct rules *r, const char *path)
{
	char *line = NULL;
	size_t size = 0;
	FILE *f = fopen(path, "r");
	if (!f)
		malformed(path, "(it cannot be opened)");
	r->n = 0;
	while (getline(&line, &size, f) > 0)
		read_line(r, line, path);
	complete(r, path);
	free(line);
	fclose(f);
}

void rules_free(struct rules *r)
{
	for (unsigned i = 0; i < r->n; i++) {
		struct rule *rule = &r->at[i];
		regfree(&rule->table);
		regfree(&rule->refusal);
		free(rule->name);
		free(rule->why);
		for (unsigned e = 0; e < rule->n_examples; e++)
			free(rule->examples[e]);
	}
}

struct rule *rules_find(struct rules *r, enum taken_by taken_by, const char *table, const char *refusal)
{
	for (unsigned i = 0; i < r->n; i++) {
		struct rule *rule = &r->at[i];
		if (rule->taken_by == taken_by && !regexec(&rule->table, table, 0, NULL, 0) &&
			!regexec(&rule->refusal, refusal, 0, NULL, 0)) {
			rule->hits++;
			return rule;
		}
	}
	return NULL;
}
