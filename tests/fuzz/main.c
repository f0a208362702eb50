/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* main.c - a fuzz target without libFuzzer: runs each file that is named, or lies in a folder that is named. */
#include "config.h"

#include <dirent.h>
#include <sys/stat.h>

#include "cryptfuse/base.h"
#include "fuzz.h"

#define INPUT_MAX ((size_t)1 << 20)

static void close_file(FILE **f)
{
	if (*f)
		fclose(*f);
}

static unsigned run_file(const char *path)
{
	CF_CLEANUP(close_file) FILE *f = fopen(path, "re");
	CF_CLEANUP(cf_freep) uint8_t *data = malloc(INPUT_MAX);
	fuzz_must(f && data);
	size_t len = fread(data, 1, INPUT_MAX, f);
	CF_CLEANUP(cf_freep) uint8_t *exact = fuzz_copy(data, len);
	fprintf(stderr, "%s\n", path); /* the last one named is the one that crashed */
	LLVMFuzzerTestOneInput(exact, len);
	return 1;
}

static unsigned run_path(const char *path)
{
	struct stat st;
	char below[4096];
	unsigned n = 0;
	fuzz_must(stat(path, &st) == 0);
	if (!S_ISDIR(st.st_mode))
		return run_file(path);
	CF_CLEANUP(cf_close_dir) DIR *dir = opendir(path);
	fuzz_must(dir);
	for (struct dirent *e; (e = readdir(dir));)
		if (e->d_name[0] != '.') {
			snprintf(below, sizeof(below), "%s/%s", path, e->d_name);
			n += run_file(below);
		}
	return n;
}

int main(int argc, char **argv)
{
	unsigned n = 0;
	LLVMFuzzerInitialize(&argc, &argv);
	for (int i = 1; i < argc; i++)
		n += run_path(argv[i]);
	printf("%u inputs\n", n);
	return n ? 0 : 1; /* a corpus that is not there proves nothing */
}
