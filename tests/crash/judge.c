/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* judge.c - is in an image what load's log says was acknowledged, and nothing that was not being written?
 *
 * Decrypts the image as it was before and as the crash left it, by libcrypto alone (ref.h), and works out from the seed
 * what every byte may be. A thread can have come one acknowledgement further than its log says, and no further.
 *
 * Usage: judge -s SEED -t THREADS -u DU -c xts|cbc -k HEXKEY BEFORE IMAGE LOG
 * Prints "ACKNOWLEDGED PENDING LOST", counts of operations, operations and bytes; ends with 1 if any are lost. */
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ref.h"
#include "work.h"

#define PIECE 512u /* bytes that a disk writes whole */
#define BLOCK 16u

struct judge {
	struct crash_work work;
	struct crash_model model;
	struct ref ref;
	bool chained; /* cbc: where a data unit is torn, a block is lost */
};

static uint8_t *decrypt_file(const struct judge *j, const char *path, uint64_t *bytes)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0)
		err(2, "%s", path);
	const size_t len = (size_t)st.st_size;
	uint8_t *in = malloc(len + 1), *out = malloc(len + 1);
	if (!in || !out || pread(fd, in, len, 0) != (ssize_t)len)
		err(2, "%s", path);
	for (size_t off = 0; off < len; off += j->ref.du_bytes)
		ref_convert(&j->ref, 0, off, in + off, out + off);
	close(fd);
	free(in);
	*bytes = len;
	return out;
}

static uint64_t begin(struct judge *j, unsigned thread, uint64_t upto)
{
	uint64_t n = 0;
	for (; j->model.begun[thread] < upto; n++)
		crash_model_begin(&j->model, thread);
	return n;
}

/* A line that the crash cut short has no end, and does not count. */
static uint64_t take_log(struct judge *j, const char *path)
{
	uint64_t n, total = 0;
	unsigned thread;
	char end;
	FILE *f = fopen(path, "re");
	if (!f)
		err(2, "%s", path);
	while (fscanf(f, "%u %" SCNu64 "%c", &thread, &n, &end) == 3 && end == '\n') {
		if (thread >= j->work.n_threads)
			errx(2, "%s: no log of this run", path);
		total += begin(j, thread, n);
		crash_model_ack(&j->model, thread, n);
	}
	fclose(f);
	return total;
}

/* What each thread may have come to after its last line: up to the operation that ends with the next sync. */
static uint64_t take_pending(struct judge *j)
{
	uint64_t total = 0;
	for (unsigned t = 0; t < j->work.n_threads; t++)
		for (struct crash_op op = {.sync = false}; !op.sync; total++) {
			crash_op_get(&j->work, t, j->model.begun[t], &op);
			crash_model_begin(&j->model, t);
		}
	return total;
}

static bool being_written(const struct judge *j, uint64_t unit)
{
	const uint64_t du = j->work.du_bytes;
	for (size_t i = 0; i < j->model.n_pending; i++) {
		const struct crash_op *op = &j->model.pending[i].op;
		if (op->off / du <= unit && unit <= (op->off + op->len - 1) / du)
			return true;
	}
	return false;
}

/* Returns how many bytes are lost; says so of the first unit only. */
static uint64_t judge_unit(const struct judge *j, uint64_t unit, const uint8_t *plain, uint64_t before)
{
	static uint8_t bad[REF_DU_MAX];
	const uint32_t du = j->work.du_bytes;
	uint64_t lost = 0;
	if (!crash_model_unexplained(&j->model, unit * du, plain + unit * du, du, bad))
		return 0;
	const bool excused = j->chained && being_written(j, unit);
	for (uint32_t i = 0; i < du; i++) {
		if (!bad[i] || (excused && i >= PIECE && i % PIECE < BLOCK))
			continue;
		if (!lost++ && !before)
			warnx("byte %u of data unit %" PRIu64
				  " is neither what was synced nor what was being written; seed %" PRIu64,
				  i, unit, j->work.seed);
	}
	return lost;
}

int main(int argc, char **argv)
{
	struct judge j = {.ref.iv_mode = "plain64"};
	const char *mode = "xts";
	uint8_t key[REF_KEY_MAX];
	size_t key_len = 0;
	for (int opt; (opt = getopt(argc, argv, "s:t:u:c:k:")) != -1;) {
		switch (opt) {
		case 's':
			j.work.seed = strtoull(optarg, NULL, 10);
			break;
		case 't':
			j.work.n_threads = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'u':
			j.ref.du_bytes = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'c':
			mode = optarg;
			break;
		case 'k':
			key_len = ref_parse_hex(optarg, key, sizeof(key));
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 3 || j.ref.du_bytes < PIECE || j.ref.du_bytes > REF_DU_MAX)
		errx(2, "usage: see the top of judge.c");
	ref_set_cipher(&j.ref, mode, key, key_len);
	j.chained = strcmp(mode, "cbc") == 0;
	j.work.du_bytes = j.ref.du_bytes;
	uint8_t *plain = decrypt_file(&j, argv[optind], &j.work.bytes);
	crash_work_init(&j.work);
	crash_model_init(&j.model, &j.work, plain);
	free(plain);
	const uint64_t acked = take_log(&j, argv[optind + 2]), pending = take_pending(&j);
	uint64_t bytes, lost = 0;
	plain = decrypt_file(&j, argv[optind + 1], &bytes);
	if (bytes != j.work.bytes)
		errx(1, "the image is %" PRIu64 " bytes long, not %" PRIu64, bytes, j.work.bytes);
	for (uint64_t unit = 0; unit < bytes / j.work.du_bytes; unit++)
		lost += judge_unit(&j, unit, plain, lost);
	printf("%" PRIu64 " %" PRIu64 " %" PRIu64 "\n", acked, pending, lost);
	free(plain);
	crash_model_fini(&j.model);
	crash_work_fini(&j.work);
	return lost ? 1 : 0;
}
