/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* fuzz_parts.c - names of split images: the first line is what is opened, the others are the files that are there.
 * access() is answered from that list, so that no name of an input is ever looked up. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "core/volume/parts.h"
#include "cryptfuse/image.h"
#include "fuzz.h"

#define NAMES_MAX 300u

static char *names[NAMES_MAX];
static unsigned n_names;

int __wrap_access(const char *path, int mode);

static bool is_there(const char *path)
{
	for (unsigned i = 0; i < n_names; i++)
		if (!strcmp(names[i], path))
			return true;
	return false;
}

int __wrap_access(const char *path, int mode)
{
	(void)mode;
	errno = ENOENT;
	return is_there(path) ? 0 : -1;
}

static void check(const char *path)
{
	static struct cf_parts parts, again;
	struct cf_err first = {0}, second = {0};
	int rc = cf_parts_find(path, &parts, &first);
	fuzz_judged(rc, &first);
	fuzz_must(cf_parts_find(path, &again, &second) == rc && !strcmp(first.text, second.text));
	if (rc)
		return;
	fuzz_must(parts.n >= 1 && parts.n <= CF_IMAGE_PARTS_MAX && parts.n == again.n);
	if (parts.n == 1) {
		fuzz_must(strlen(path) >= sizeof(parts.path) || !strcmp(parts.path, path));
		return;
	}
	for (unsigned i = 0; i < parts.n; i++)
		fuzz_must(is_there(cf_parts_name(&parts, i)) && strlen(parts.path) == strlen(path));
	fuzz_must(!strcmp(cf_parts_name(&parts, 0), path));
}

/* "disk.001*20" is twenty names in a row, of the same digits: a range that is short to write. */
static void add_names(const char *line)
{
	const char *star = strrchr(line, '*');
	size_t len = star ? (size_t)(star - line) : strlen(line), digits = 0;
	unsigned n = star ? (unsigned)strtoul(star + 1, NULL, 10) % NAMES_MAX : 1;
	while (digits < len && digits < 4 && line[len - 1 - digits] >= '0' && line[len - 1 - digits] <= '9')
		digits++;
	unsigned first = (unsigned)strtoul(line + len - digits, NULL, 10);
	for (unsigned i = 0; i < n && n_names < NAMES_MAX; i++, n_names++) {
		char counter[16];
		snprintf(counter, sizeof(counter), "%0*u", (int)digits, first + i);
		names[n_names] = malloc(len + sizeof(counter));
		fuzz_must(names[n_names]);
		sprintf(names[n_names], "%.*s%s", (int)(len - digits), line, digits ? counter : "");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, len};
	CF_CLEANUP(cf_freep) char *path = fuzz_line(&in);
	while (in.left && n_names < NAMES_MAX) {
		CF_CLEANUP(cf_freep) char *line = fuzz_line(&in);
		add_names(line);
	}
	check(path);
	while (n_names)
		free(names[--n_names]);
	return 0;
}
