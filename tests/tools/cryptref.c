/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* cryptref.c - what dm-crypt would make of a piece of a volume, computed apart from cryptfuse (ref.h).
 *
 * Usage: cryptref [-e] -c xts|cbc|ctr -v plain|plain64|essiv -k HEXKEY -s DU [-i IV_OFFSET] [-L] FILE FILE_OFF VOL_OFF
 * LEN Reads LEN bytes at FILE_OFF, treats them as the volume's bytes from VOL_OFF on, writes the result to stdout. */
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ref.h"

static uint64_t number(const char *text)
{
	return strtoumax(text, NULL, 10);
}

static void convert(const struct ref *r, int encrypt, int fd, uint64_t file_off, uint64_t vol_off, uint64_t len)
{
	static uint8_t in[REF_DU_MAX], out[REF_DU_MAX];
	for (uint64_t done = 0; done < len; done += r->du_bytes) {
		if (pread(fd, in, r->du_bytes, (off_t)(file_off + done)) != (ssize_t)r->du_bytes)
			errx(2, "short read at %" PRIu64, file_off + done);
		ref_convert(r, encrypt, vol_off + done, in, out);
		if (fwrite(out, 1, r->du_bytes, stdout) != r->du_bytes)
			err(2, "write");
	}
}

int main(int argc, char **argv)
{
	struct ref r = {.du_bytes = 512, .iv_mode = "plain64"};
	const char *mode = "xts";
	uint8_t key[REF_KEY_MAX];
	size_t key_len = 0;
	int encrypt = 0;
	for (int opt; (opt = getopt(argc, argv, "ec:v:k:s:i:L")) != -1;) {
		switch (opt) {
		case 'e':
			encrypt = 1;
			break;
		case 'c':
			mode = optarg;
			break;
		case 'v':
			r.iv_mode = optarg;
			break;
		case 'k':
			key_len = ref_parse_hex(optarg, key, sizeof(key));
			break;
		case 's':
			r.du_bytes = (unsigned)number(optarg);
			break;
		case 'i':
			r.iv_offset = number(optarg);
			break;
		case 'L':
			r.large = true;
			break;
		default:
			return 2;
		}
	}
	ref_set_cipher(&r, mode, key, key_len);
	if (argc - optind != 4 || r.du_bytes < 512 || r.du_bytes > REF_DU_MAX)
		errx(2, "usage: see the top of cryptref.c");
	int fd = open(argv[optind], O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err(2, "%s", argv[optind]);
	convert(&r, encrypt, fd, number(argv[optind + 1]), number(argv[optind + 2]), number(argv[optind + 3]));
	return fclose(stdout) == 0 ? 0 : 2;
}
