/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* fuzz_ipc.c - what the daemon hears over its socket: a sound order with some bytes changed, cut, or with another
 * number of descriptors; parts; answers. What it takes is sane, and what it refuses leaves no descriptor behind. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cryptfuse/ipc.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/volume.h"
#include "fuzz.h"

#define FDS_MAX (CF_IMAGE_PARTS_MAX + 4u)

static int lowest_free(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	fuzz_must(fd >= 0);
	close(fd);
	return fd;
}

static void send_raw(int sock, const void *bytes, size_t len, int fd, unsigned n_fds)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = {0};
	int fds[FDS_MAX];
	struct iovec iov = {.iov_base = (void *)bytes, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	for (unsigned i = 0; i < n_fds; i++)
		fds[i] = fd;
	if (n_fds) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		*c = (struct cmsghdr){
			.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(n_fds * sizeof(int))};
		memcpy(CMSG_DATA(c), fds, n_fds * sizeof(int));
	}
	(void)!sendmsg(sock, &msg, MSG_NOSIGNAL);
}

/* @len bytes of @sound with some of them changed; the message may also be shorter or longer. */
static void spoil(struct fuzz_in *in, uint8_t *bytes, size_t len)
{
	for (unsigned n = (unsigned)fuzz_number(in, 1) % 16; n; n--) {
		const size_t at = (size_t)fuzz_number(in, 2) % len;
		size_t run = 1 + (size_t)fuzz_number(in, 1) % 8;
		run = run < len - at ? run : len - at;
		const uint8_t *from = fuzz_take(in, &run);
		if (run)
			memcpy(bytes + at, from, run);
	}
}

static size_t other_length(struct fuzz_in *in, size_t len)
{
	const unsigned how = (unsigned)fuzz_number(in, 1);
	return how < 200 ? len : how < 230 ? len - 1 - fuzz_number(in, 2) % len : len + how - 229;
}

static void check_order(const struct cf_open_plan *p, const struct cf_image *image)
{
	const struct cf_cipher_spec *c = &p->cipher;
	fuzz_must(memchr(c->cipher, 0, sizeof(c->cipher)) && memchr(c->mode, 0, sizeof(c->mode)));
	fuzz_must(memchr(c->iv, 0, sizeof(c->iv)) && memchr(c->essiv_hash, 0, sizeof(c->essiv_hash)));
	fuzz_must(memchr(p->engine, 0, sizeof(p->engine)) && memchr(p->type, 0, sizeof(p->type)));
	fuzz_must(memchr(p->uuid, 0, sizeof(p->uuid)) && c->key_bytes <= CF_KEY_MAX);
	fuzz_must(p->n_workers >= 1 && p->n_workers <= CF_WORKERS_MAX && p->n_permits <= p->n_workers);
	fuzz_must(image->n_parts >= 1 && image->n_parts <= CF_IMAGE_PARTS_MAX && image->access == p->access);
	for (const char *word = p->command; *word; word += strlen(word) + 1)
		fuzz_must(word < p->command + CF_COMMAND_MAX);
}

/* What passes is also a plan that opens, or is refused with a reason; a volume of no key and no cipher is enough. */
static void check_open(const struct cf_open_plan *plan, const struct cf_image *image)
{
	CF_CLEANUP(cf_backing_free) struct cf_backing *b = NULL;
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = NULL;
	CF_CLEANUP(cf_volume_free) struct cf_volume *v = NULL;
	const struct cf_cipher_spec spec = {
		.cipher = "cipher_null", .mode = "ecb", .keycount = 1, .du_bytes = plan->cipher.du_bytes};
	const struct cf_cipher_opts cipher_opts = {.engine = "null", .n_workers = plan->n_permits};
	const struct cf_volume_opts opts = cf_open_volume_opts(plan);
	struct cf_err err = {0};
	if (!cf_units_du_valid(plan->cipher.du_bytes) || cf_image_backing(image, &b, &err) != 0)
		return;
	fuzz_must(cf_cipher_new(&c, &spec, NULL, &cipher_opts, &err) == 0);
	const uint64_t image_bytes = b->bytes;
	int rc = cf_volume_new(&v, &b, &c, &opts, &err);
	fuzz_judged(rc, &err);
	if (!rc && !plan->n_segments)
		fuzz_must(plan->data_off <= image_bytes && plan->bytes <= image_bytes - plan->data_off && plan->bytes);
}

static struct cf_open_plan sound_plan(void)
{
	struct cf_open_plan p = {
		.bytes = 1 << 20,
		.data_off = 4096,
		.access = CF_READ_WRITE,
		.n_workers = 4,
		.n_permits = 2,
		.cipher = {.cipher = "aes", .mode = "xts", .iv = "plain64", .keycount = 1, .key_bytes = 64, .du_bytes = 4096}};
	p.segment[0] = (struct cf_segment){.bytes = 1 << 19, .data_off = 4096};
	p.segment[1] = (struct cf_segment){.off = 1 << 19, .bytes = 1 << 19, .data_off = 1 << 20};
	return p;
}

static void order(struct fuzz_in *in, int pair[2], int file)
{
	static uint8_t message[sizeof(struct cf_open_plan) + 64];
	CF_CLEANUP(cf_secret_freep) uint8_t *key = NULL;
	CF_CLEANUP(cf_image_close) struct cf_image image = {0};
	static struct cf_open_plan plan;
	const uint8_t secret[256] = {1};
	const struct cf_open_plan sound = sound_plan();
	const unsigned n_fds = (unsigned)fuzz_number(in, 1) % (FDS_MAX + 1);
	const size_t key_len = (size_t)fuzz_number(in, 1);
	const size_t len = other_length(in, sizeof(plan));
	memcpy(message, &sound, sizeof(sound));
	spoil(in, message, sizeof(sound));
	send_raw(pair[0], message, len, file, n_fds);
	if (key_len != 255)
		send_raw(pair[0], secret, key_len, file, 0);
	shutdown(pair[0], SHUT_WR);
	int rc = cf_ipc_recv_order(pair[1], &plan, &key, &image);
	fuzz_must(rc == 0 || rc == -EPIPE || rc == -EPROTO);
	fuzz_must(rc == 0 || (!key && !image.n_parts));
	fuzz_must(rc != 0 || (n_fds >= 1 && len == sizeof(plan) && (key != NULL) == (plan.cipher.key_bytes != 0)));
	if (rc)
		return;
	check_order(&plan, &image);
	check_open(&plan, &image);
}

static void parts(struct fuzz_in *in, int pair[2])
{
	struct cf_serve_part got[CF_SERVE_PARTS_MAX];
	size_t len = (size_t)fuzz_number(in, 2) % 4096;
	const uint8_t *bytes = fuzz_take(in, &len);
	send_raw(pair[0], bytes, len, -1, 0);
	int rc = cf_ipc_recv_parts(pair[1], got);
	fuzz_must(rc == -EPIPE || rc == -EPROTO || rc == -EAGAIN || (rc >= 0 && rc <= (int)CF_SERVE_PARTS_MAX));
	fuzz_must(rc <= 0 || (size_t)rc * sizeof(got[0]) == len);
}

static void answer(struct fuzz_in *in, int pair[2])
{
	struct cf_ipc_answer sound = {.kind = CF_IPC_NOTE, .text = "note"}, got;
	uint8_t message[sizeof(sound) + 64] = {0};
	const size_t len = other_length(in, sizeof(sound));
	memcpy(message, &sound, sizeof(sound));
	spoil(in, message, sizeof(sound));
	send_raw(pair[0], message, len, -1, 0);
	shutdown(pair[0], SHUT_WR);
	int rc = cf_ipc_recv_answer(pair[1], &got);
	fuzz_must(rc == 0 || rc == -EPIPE || rc == -EPROTO);
	fuzz_must(rc || (len == sizeof(got) && memchr(got.text, 0, sizeof(got.text))));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, len};
	const int before = lowest_free();
	int pair[2], file = memfd_create("fuzz", MFD_CLOEXEC);
	fuzz_must(file >= 0 && ftruncate(file, (off_t)4 << 20) == 0 && cf_ipc_pair(pair) == 0);
	switch (fuzz_number(&in, 1) % 4) {
	case 0:
		parts(&in, pair);
		break;
	case 1:
		answer(&in, pair);
		break;
	default:
		order(&in, pair, file);
	}
	close(file);
	close(pair[0]);
	close(pair[1]);
	fuzz_must(lowest_free() == before);
	return 0;
}
