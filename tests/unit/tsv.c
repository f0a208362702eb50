/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* tsv.c - reads a file of vectors whole, then cuts it in place. */
#include "config.h"

#include "tsv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vectors.h"

static void give_up(const char *path, size_t line, const char *why)
{
	fprintf(stderr, "%s:%zu: %s\n", path, line, why);
	exit(99);
}

static void add_row(struct tsv *t, const char *path, size_t line_no, char *line)
{
	t->fields = realloc(t->fields, (t->n_rows + 1) * t->n_fields * sizeof(char *));
	if (!t->fields)
		give_up(path, line_no, "no memory");
	char **row = t->fields + t->n_rows++ * t->n_fields;
	for (size_t i = 0; i < t->n_fields; i++)
		if (!(row[i] = strsep(&line, "\t")))
			give_up(path, line_no, "too few fields");
	if (line)
		give_up(path, line_no, "too many fields");
}

struct tsv tsv_load(const char *name, size_t n_fields)
{
	struct tsv t = {0, n_fields, NULL};
	char below[256], path[4096];
	snprintf(below, sizeof(below), "tests/vectors/%s", name);
	FILE *f = fopen(source_path(below, path, sizeof(path)), "r");
	if (!f)
		give_up(path, 0, "cannot be opened");
	char *line = NULL;
	size_t room = 0, line_no = 0;
	for (ssize_t len; (len = getline(&line, &room, f)) >= 0;) {
		line_no++;
		if (len && line[len - 1] == '\n')
			line[len - 1] = '\0';
		char *kept = *line == '#' ? NULL : strdup(line);
		if (kept)
			add_row(&t, path, line_no, kept);
	}
	free(line);
	fclose(f);
	return t;
}

const char *tsv_field(const struct tsv *t, size_t row, size_t field)
{
	return t->fields[row * t->n_fields + field];
}
