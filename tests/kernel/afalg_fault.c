/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* afalg_fault.c - calls to the kernel that fail, one after the other (failsock preloaded): what is returned as done is
 * right, sources stay intact, and the request after the failed one is right too, so that no socket kept bytes. Sockets
 * are closed on exec and none is left at the end. Truth is libcrypto's. With "async" in the arguments the kernel's
 * cryptd makes AES asynchronous first, and the reads of several requests must be outstanding together; without AIO
 * there is one. Linux 6.1.192 and others of 2026 read AF_ALG synchronously whatever the driver: there no more is asked.
 *
 * usage: LD_PRELOAD=failsock.so afalg_fault [async]; exit 0, 1, or 77 without AF_ALG. */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/if_alg.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/engine/afalg.h"
#include "cryptfuse/cipher.h"
#include "cryptfuse/engine.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/spec.h"

#define DU_BYTES 1024u
#define N_DU 17u
#define BYTES (N_DU * DU_BYTES)

struct subject {
	const char *cipher;
	uint32_t key_bytes;
	enum cf_path path;
};

static const struct subject subjects[] = {
	{"aes-xts-plain64", 64, CF_PATH_BATCH},       {"aes-xts-plain64", 64, CF_PATH_NATIVE},
	{"aes-cbc-essiv:sha256", 32, CF_PATH_NATIVE}, {"aes-cbc-plain64", 32, CF_PATH_BATCH},
	{"aes-ctr-plain64", 32, CF_PATH_BATCH},       {"aes-ctr-plain64", 32, CF_PATH_NATIVE},
	{"aes:2-lrw-benbi", 80, CF_PATH_BATCH},
};

static const char *const calls[] = {"accept", "sendmsg", "recv", "io_submit", "io_getevents", "result"};
static const char *const hows[] = {"before:%d", "after:%d", "short"};
static const int may_pass[] = {ENOMEM, EAGAIN, ENOBUFS};
static const int for_good[] = {EBADF, ENOTCONN, ENODEV, EPIPE};

static void (*arm)(const char *plan);
static unsigned (*fired)(void), (*peak)(void);
static uint8_t src[2][BYTES], truth[2][BYTES], dst[BYTES], copy[BYTES];
static unsigned n_right, n_wrong, n_fired;

static void complain(const struct subject *s, enum cf_dir dir, const char *plan, const char *what)
{
	printf("%s, path %d, %s, %s: %s\n", s->cipher, (int)s->path, dir == CF_ENCRYPT ? "encryption" : "decryption", plan,
		   what);
	n_wrong++;
}

static struct cf_cipher *open_cipher(const struct subject *s, const char *engine, enum cf_path path)
{
	uint8_t key[128];
	struct cf_err err = {0};
	struct cf_cipher_spec spec = {.keycount = 1};
	struct cf_cipher_opts opts = {.engine = engine, .path = path, .n_workers = 1};
	struct cf_cipher *c = NULL;
	for (unsigned i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 7 + 1);
	int rc = cf_spec_parse_cipher(s->cipher, &spec, &err);
	spec.key_bytes = s->key_bytes;
	spec.du_bytes = DU_BYTES;
	if (rc || cf_cipher_new(&c, &spec, key, &opts, &err) != 0) {
		printf("%s: %s\n", s->cipher, err.text);
		exit(99);
	}
	return c;
}

/* One call with data set @k; what is said to be done must be right. */
static int attempt(struct cf_cipher *c, const struct subject *s, enum cf_dir dir, unsigned k, const char *plan)
{
	memcpy(copy, src[k], BYTES);
	memset(dst, 0, BYTES);
	int rc = cf_cipher_crypt(c, 0, dir, 3, N_DU, copy, dst);
	if (memcmp(copy, src[k], BYTES) != 0)
		complain(s, dir, plan, "the source was changed");
	if (rc == 0 && memcmp(dst, truth[k], BYTES) != 0)
		complain(s, dir, plan, "wrong bytes");
	return rc;
}

/* The n-th call fails, for n until the failure does not come any more; of many, every seventh. */
static void every_call(struct cf_cipher *c, const struct subject *s, enum cf_dir dir, const char *call, const char *how)
{
	char plan[64];
	for (unsigned n = 1, again = 1; again; n += n < 12 ? 1 : 7) {
		snprintf(plan, sizeof(plan), "%s:%u:%s", call, n, how);
		arm(plan);
		int rc = attempt(c, s, dir, 0, plan);
		again = fired();
		n_fired += again;
		arm(NULL);
		if (rc != 0)
			complain(s, dir, plan, "one failure was too much");
		n_right += rc == 0;
		if (attempt(c, s, dir, 1, plan) != 0)
			complain(s, dir, plan, "the next request failed too");
	}
}

static void may_pass_all(struct cf_cipher *c, const struct subject *s, enum cf_dir dir)
{
	for (unsigned call = 0; call < CF_ARRAY_LEN(calls); call++)
		for (unsigned how = 0; how < CF_ARRAY_LEN(hows); how++) {
			char text[32];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			snprintf(text, sizeof(text), hows[how], may_pass[(call + how) % CF_ARRAY_LEN(may_pass)]);
#pragma GCC diagnostic pop
			every_call(c, s, dir, calls[call], text);
		}
	struct cf_cipher_info info;
	cf_cipher_info(c, &info);
	if (info.lost)
		complain(s, dir, "what may pass", "the engine was given up");
}

/* A failure that does not pass: the standby does the work, and all that follows. */
static void for_good_all(const struct subject *s, enum cf_dir dir)
{
	for (unsigned call = 1; call < CF_ARRAY_LEN(calls); call++) {
		char plan[64];
		struct cf_cipher_info info;
		CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = open_cipher(s, "afalg", s->path);
		snprintf(plan, sizeof(plan), "%s:2+:before:%d", calls[call], for_good[call % CF_ARRAY_LEN(for_good)]);
		arm(plan);
		for (unsigned k = 0; k < 2; k++)
			if (attempt(c, s, dir, k, plan) != 0)
				complain(s, dir, plan, "no standby");
		cf_cipher_info(c, &info);
		if (fired() && !info.lost && strcmp(calls[call], "io_getevents") != 0)
			complain(s, dir, plan, "the engine was not given up");
		arm(NULL);
	}
}

/* How many AF_ALG sockets are open; @kept: how many of them a program that is executed would get. */
static unsigned count_sockets(unsigned *kept)
{
	unsigned n = 0;
	*kept = 0;
	for (int fd = 0; fd < 4096; fd++) {
		int domain = 0;
		socklen_t len = sizeof(domain);
		if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) != 0 || domain != AF_ALG)
			continue;
		n++;
		*kept += !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	}
	return n;
}

static void check_sockets(const struct subject *s)
{
	unsigned kept, before = count_sockets(&kept);
	struct cf_cipher *c = open_cipher(s, "afalg", s->path);
	unsigned during = count_sockets(&kept);
	arm("accept:1+:before:24");
	if (during == before || kept)
		complain(s, CF_ENCRYPT, "none", "sockets that survive exec");
	if (attempt(c, s, CF_DECRYPT, 0, "none") != 0 || fired())
		complain(s, CF_ENCRYPT, "none", "a socket was accepted while data flowed");
	arm(NULL);
	cf_cipher_free(&c);
	if (count_sockets(&kept) != before)
		complain(s, CF_ENCRYPT, "none", "sockets are left");
}

static void try_subject(const struct subject *s)
{
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *reference = open_cipher(s, "openssl", CF_PATH_AUTO);
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = open_cipher(s, "afalg", s->path);
	for (enum cf_dir dir = CF_ENCRYPT; dir <= CF_DECRYPT; dir++) {
		for (unsigned k = 0; k < 2; k++)
			if (cf_cipher_crypt(reference, 0, dir, 3, N_DU, src[k], truth[k]) != 0)
				exit(99);
		may_pass_all(c, s, dir);
		for_good_all(s, dir);
	}
	check_sockets(s);
}

/* The most requests that were outstanding in one call. */
static unsigned outstanding(const struct subject *s, const char *plan)
{
	arm(plan);
	CF_CLEANUP(cf_cipher_free) struct cf_cipher *c = open_cipher(s, "afalg", s->path);
	arm(NULL);
	if (cf_cipher_crypt(c, 0, CF_DECRYPT, 3, N_DU, src[0], dst) != 0)
		complain(s, CF_DECRYPT, "none", "failed");
	return peak();
}

/* Does this kernel leave a read outstanding at all? Asked by the bare calls, without the engine. */
static bool reads_are_asynchronous(void)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(uint32_t))];
	} control = {.bytes = {0}};
	char key[16] = {1}, data[16] = {2};
	const uint32_t op = ALG_OP_ENCRYPT;
	struct iovec iov = {data, sizeof(data)};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	CF_CLEANUP(cf_close_fd) int tfm = cf_afalg_bind("ecb(aes)");
	CF_CLEANUP(cf_close_fd) int fd = -1;
	aio_context_t ctx = 0;
	control.head = (struct cmsghdr){.cmsg_level = SOL_ALG, .cmsg_type = ALG_SET_OP, .cmsg_len = CMSG_LEN(sizeof(op))};
	memcpy(CMSG_DATA(&control.head), &op, sizeof(op));
	if (tfm < 0 || setsockopt(tfm, SOL_ALG, ALG_SET_KEY, key, sizeof(key)) != 0)
		exit(99);
	fd = accept4(tfm, NULL, NULL, SOCK_CLOEXEC);
	struct iocb cb = {.aio_lio_opcode = IOCB_CMD_PREAD,
					  .aio_fildes = (uint32_t)fd,
					  .aio_buf = (uintptr_t)data,
					  .aio_nbytes = sizeof(data)};
	struct iocb *list[] = {&cb};
	struct io_event event;
	if (fd < 0 || sendmsg(fd, &m, 0) != sizeof(data) || syscall(SYS_io_setup, 1, &ctx) != 0)
		exit(99);
	arm(NULL);
	if (syscall(SYS_io_submit, ctx, 1, list) != 1)
		exit(99);
	bool outstanding = peak() == 1;
	if (syscall(SYS_io_getevents, ctx, 1, 1, &event, NULL) != 1 || syscall(SYS_io_destroy, ctx) != 0)
		exit(99);
	return outstanding;
}

/* Real-time priority keeps the one CPU from cryptd's worker until this program waits: what is outstanding can be seen.
 */
static void check_flight(bool async)
{
	struct sched_param param = {.sched_priority = 1};
	if (sched_setscheduler(0, SCHED_FIFO, &param) != 0)
		exit(99);
	bool reads = async && reads_are_asynchronous();
	if (async && !reads)
		printf("this kernel reads AF_ALG synchronously, whatever the driver\n");
	for (unsigned i = 0; i < CF_ARRAY_LEN(subjects); i++) {
		unsigned with = outstanding(&subjects[i], NULL), without = outstanding(&subjects[i], "io_setup:1+:before:38");
		printf("%-22s path %d: %u requests outstanding at most, without AIO %u\n", subjects[i].cipher,
			   (int)subjects[i].path, with, without);
		if ((reads ? with < 2 : with > 1) || without != 1)
			complain(&subjects[i], CF_DECRYPT, "none", "not as many as there should be");
	}
	param.sched_priority = 0;
	sched_setscheduler(0, SCHED_OTHER, &param);
}

/* Once an instance of cryptd is there the kernel prefers it. */
static void make_asynchronous(void)
{
	static const char *const drivers[] = {"cryptd(ecb(aes-generic))", "cryptd(xts(ecb(aes-generic)))",
										  "cryptd(cbc(aes-generic))", "cryptd(ctr(aes-generic))"};
	for (unsigned i = 0; i < CF_ARRAY_LEN(drivers); i++) {
		int fd = cf_afalg_bind(drivers[i]);
		if (fd < 0) {
			printf("%s: %s\n", drivers[i], strerror(-fd));
			exit(99);
		}
	}
}

int main(int argc, char **argv)
{
	struct cf_err err = {0};
	const struct cf_engine *e;
	bool async = argc > 1 && strcmp(argv[1], "async") == 0;
	if (cf_secret_init(&err) != 0 || cf_engine_find("afalg", &e, &err) != 0) {
		fprintf(stderr, "%s\n", err.text);
		return 77;
	}
	*(void **)&arm = dlsym(RTLD_DEFAULT, "failsock_arm");
	*(void **)&fired = dlsym(RTLD_DEFAULT, "failsock_fired");
	*(void **)&peak = dlsym(RTLD_DEFAULT, "failsock_peak");
	if (!arm || !fired || !peak)
		return fprintf(stderr, "failsock.so is not preloaded\n"), 99;
	for (unsigned i = 0; i < BYTES; i++) {
		src[0][i] = (uint8_t)(i * 2654435761u >> 13);
		src[1][i] = (uint8_t)(i * 2246822519u >> 15);
	}
	if (async)
		make_asynchronous();
	check_flight(async);
	for (unsigned i = 0; i < CF_ARRAY_LEN(subjects); i++)
		try_subject(&subjects[i]);
	printf("%u failures made: %u calls right all the same; %u complaints\n", n_fired, n_right, n_wrong);
	return n_wrong || n_fired == 0;
}
