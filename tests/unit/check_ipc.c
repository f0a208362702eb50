/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_ipc.c - what passes between parent and daemon, and what each sees when the other is gone or talks nonsense. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cryptfuse/ipc.h"
#include "cryptfuse/secret.h"
#include "run.h"

static int pair[2];
static int image = -1;

static void setup(void)
{
	ck_assert_int_eq(cf_secret_init(NULL), 0);
	ck_assert_int_eq(cf_ipc_pair(pair), 0);
	image = open("/dev/null", O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(image, 0);
}

static void teardown(void)
{
	cf_close_fd(&pair[0]);
	cf_close_fd(&pair[1]);
	cf_close_fd(&image);
}

static struct cf_open_plan make_plan(uint32_t key_bytes)
{
	struct cf_open_plan p = {
		.data_off = UINT64_C(1) << 40, .bytes = 4096, .n_workers = 4, .n_permits = 2, .access = CF_READ_WRITE};
	strcpy(p.cipher.cipher, "aes");
	strcpy(p.cipher.mode, "xts");
	strcpy(p.cipher.iv, "plain64");
	p.cipher.key_bytes = key_bytes;
	p.cipher.du_bytes = 4096;
	return p;
}

static const uint32_t key_sizes[] = {0, 1, 32, 64, CF_KEY_MAX};
static const unsigned part_counts[] = {1, 2, 3, 20, CF_IMAGE_PARTS_MAX};

/* Parts that can be told apart. */
static struct cf_image make_image(unsigned n_parts)
{
	struct cf_image m = {.access = CF_READ_WRITE, .n_parts = n_parts};
	for (unsigned i = 0; i < n_parts; i++)
		ck_assert_int_ge(m.fd[i] = memfd_create("part", MFD_CLOEXEC), 0);
	return m;
}

START_TEST(order__arrives_whole_with_key_and_descriptor)
{
	uint8_t key[CF_KEY_MAX], *got = NULL;
	struct cf_open_plan sent = make_plan(key_sizes[_i]), plan;
	struct cf_image sent_image = make_image(part_counts[_i]), came = {0};
	struct stat a, b;
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 7 + (i >> 8));
	ck_assert_int_eq(cf_ipc_send_order(pair[0], &sent, key_sizes[_i] ? key : NULL, &sent_image), 0);
	ck_assert_int_eq(cf_ipc_recv_order(pair[1], &plan, &got, &came), 0);
	ck_assert_mem_eq(&plan, &sent, sizeof(plan));
	if (key_sizes[_i])
		ck_assert_mem_eq(got, key, key_sizes[_i]);
	ck_assert_int_eq(got != NULL, key_sizes[_i] > 0);
	ck_assert_int_eq(got && !cf_secret_contains(got), 0);
	ck_assert_uint_eq(came.n_parts, part_counts[_i]);
	ck_assert_int_eq(came.access, sent.access);
	for (unsigned i = 0; i < came.n_parts; i++) {
		ck_assert_int_ne(came.fd[i], sent_image.fd[i]);
		ck_assert_int_eq(fcntl(came.fd[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
		ck_assert_int_eq(fstat(came.fd[i], &a) | fstat(sent_image.fd[i], &b), 0);
		ck_assert_uint_eq(a.st_ino, b.st_ino);
	}
	cf_secret_free(got);
	cf_image_close(&came);
	cf_image_close(&sent_image);
}
END_TEST

/* Behind all parts, whatever their number. */
START_TEST(order__carries_the_journal)
{
	struct cf_open_plan sent = make_plan(0), plan;
	struct cf_image whole = make_image(part_counts[_i]), came = {0};
	struct stat a, b;
	uint8_t *key = NULL;
	strcpy(sent.journal, "/a/journal");
	whole.n_journals = 1;
	ck_assert_int_ge(whole.journal = memfd_create("journal", MFD_CLOEXEC), 0);
	ck_assert_int_eq(cf_ipc_send_order(pair[0], &sent, NULL, &whole), 0);
	ck_assert_int_eq(cf_ipc_recv_order(pair[1], &plan, &key, &came), 0);
	ck_assert_uint_eq(came.n_parts, part_counts[_i]);
	ck_assert_uint_eq(came.n_journals, 1);
	ck_assert_int_eq(fcntl(came.journal, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	ck_assert_int_eq(fstat(came.journal, &a) | fstat(whole.journal, &b), 0);
	ck_assert_uint_eq(a.st_ino, b.st_ino);
	cf_image_close(&came);
	cf_image_close(&whole);
	ck_assert_int_eq(fcntl(came.journal, F_GETFD), -1);
}
END_TEST

static const unsigned list_lengths[] = {0, 1, 2, CF_SERVE_PARTS_MAX};

START_TEST(parts__arrive_whole)
{
	struct cf_serve_part sent[CF_SERVE_PARTS_MAX], got[CF_SERVE_PARTS_MAX];
	const unsigned n = list_lengths[_i];
	for (unsigned i = 0; i < n; i++)
		sent[i] = (struct cf_serve_part){.number = i + 1, .off = UINT64_MAX - i, .bytes = i};
	ck_assert_int_eq(cf_ipc_send_parts(pair[0], sent, n), 0);
	ck_assert_int_eq(cf_ipc_recv_parts(pair[1], got), (int)n);
	for (unsigned i = 0; i < n; i++) {
		ck_assert_uint_eq(got[i].number, sent[i].number);
		ck_assert_uint_eq(got[i].off, sent[i].off);
		ck_assert_uint_eq(got[i].bytes, sent[i].bytes);
	}
}
END_TEST

START_TEST(parts__are_not_waited_for)
{
	struct cf_serve_part got[CF_SERVE_PARTS_MAX];
	ck_assert_int_eq(cf_ipc_recv_parts(pair[1], got), -EAGAIN);
	cf_close_fd(&pair[0]);
	ck_assert_int_eq(cf_ipc_recv_parts(pair[1], got), -EPIPE);
}
END_TEST

START_TEST(parts__nonsense_is_refused)
{
	struct cf_serve_part many[CF_SERVE_PARTS_MAX + 1] = {{.number = 1}}, got[CF_SERVE_PARTS_MAX];
	const size_t len = _i == 0 ? sizeof(many) : sizeof(many[0]) + (size_t)_i;
	ck_assert_int_eq(send(pair[0], many, len, 0), (ssize_t)len);
	ck_assert_int_eq(cf_ipc_recv_parts(pair[1], got), -EPROTO);
	ck_assert_int_eq(cf_ipc_send_parts(pair[0], many, CF_SERVE_PARTS_MAX + 1), -E2BIG);
}
END_TEST

static int recv_fails(void)
{
	struct cf_open_plan plan;
	uint8_t *key = NULL;
	struct cf_image came = {0};
	int r = cf_ipc_recv_order(pair[1], &plan, &key, &came);
	ck_assert_int_lt(r, 0);
	ck_assert_ptr_null(key);
	ck_assert_uint_eq(came.n_parts, 0);
	return r;
}

/* The next descriptor that would be given out: the same before and after means that none was leaked. */
static int next_fd(void)
{
	int fd = dup(image);
	ck_assert_int_ge(fd, 0);
	close(fd);
	return fd;
}

/* A message with @n descriptors, as a broken sender would make it. */
static void send_raw(const void *data, size_t len, unsigned n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE((CF_IMAGE_PARTS_MAX + 1) * sizeof(int))];
	} control = {0};
	int fds[CF_IMAGE_PARTS_MAX + 1];
	for (unsigned i = 0; i < n; i++)
		fds[i] = image;
	struct iovec iov = {.iov_base = (void *)data, .iov_len = len};
	struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};
	if (n) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
		struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	}
	ck_assert_int_eq(sendmsg(pair[0], &msg, 0), (ssize_t)len);
}

START_TEST(order__parent_gone_before_it)
{
	cf_close_fd(&pair[0]);
	ck_assert_int_eq(recv_fails(), -EPIPE);
}
END_TEST

START_TEST(order__parent_gone_before_the_key)
{
	struct cf_open_plan plan = make_plan(64);
	send_raw(&plan, sizeof(plan), 1);
	cf_close_fd(&pair[0]);
	int before = next_fd();
	ck_assert_int_eq(recv_fails(), -EPIPE);
	ck_assert_int_eq(next_fd(), before);
}
END_TEST

static const size_t wrong_key_sizes[] = {1, 63, 65, 128};

START_TEST(order__with_a_key_of_another_size_is_refused)
{
	struct cf_open_plan plan = make_plan(64);
	uint8_t key[128] = {0};
	int before = next_fd();
	send_raw(&plan, sizeof(plan), 1);
	ck_assert_int_eq(send(pair[0], key, wrong_key_sizes[_i], 0), (ssize_t)wrong_key_sizes[_i]);
	ck_assert_int_eq(recv_fails(), -EPROTO);
	ck_assert_int_eq(next_fd(), before);
}
END_TEST

static const unsigned wrong_fd_counts[] = {0, CF_IMAGE_PARTS_MAX + 1};

START_TEST(order__with_another_number_of_descriptors_is_refused)
{
	struct cf_open_plan plan = make_plan(0);
	int before = next_fd();
	send_raw(&plan, sizeof(plan), wrong_fd_counts[_i]);
	ck_assert_int_eq(recv_fails(), -EPROTO);
	ck_assert_int_eq(next_fd(), before);
}
END_TEST

START_TEST(order__of_another_size_is_refused)
{
	uint8_t data[sizeof(struct cf_open_plan) + 1] = {0};
	int before = next_fd();
	send_raw(data, _i ? sizeof(data) : sizeof(data) - 2, 1);
	ck_assert_int_eq(recv_fails(), -EPROTO);
	ck_assert_int_eq(next_fd(), before);
}
END_TEST

#define INSANE(name, field, bad)                  \
	static void name(struct cf_open_plan *p)      \
	{                                             \
		memset(&p->field, bad, sizeof(p->field)); \
	}
#define TWO 2 /* in every byte: no value of any of the enums */
#define NO_END 'x'

INSANE(no_end_of_cipher, cipher.cipher, NO_END)
INSANE(no_end_of_mode, cipher.mode, NO_END)
INSANE(no_end_of_iv, cipher.iv, NO_END)
INSANE(no_end_of_hash, cipher.essiv_hash, NO_END)
INSANE(no_end_of_engine, engine, NO_END)
INSANE(no_end_of_type, type, NO_END)
INSANE(no_end_of_uuid, uuid, NO_END)
INSANE(no_end_of_journal, journal, NO_END)
INSANE(no_end_of_command, command, NO_END)
INSANE(numbering, cipher.iv_numbering, TWO)
INSANE(no_worker, n_workers, 0)
INSANE(no_permit, n_permits, 0)
INSANE(access_mode, access, TWO)
INSANE(lock, lock, TWO)
INSANE(cache, image_cache, TWO)
INSANE(discards, discards, TWO)
INSANE(bad_sectors, bad_sectors, TWO)

static void huge_key(struct cf_open_plan *p)
{
	p->cipher.key_bytes = CF_KEY_MAX + 1;
}

static void many_workers(struct cf_open_plan *p)
{
	p->n_workers = CF_WORKERS_MAX + 1;
}

static void many_permits(struct cf_open_plan *p)
{
	p->n_permits = p->n_workers + 1;
}

static void many_segments(struct cf_open_plan *p)
{
	p->n_segments = CF_SEGMENTS_MAX + 1;
}

static void segment_kind(struct cf_open_plan *p)
{
	p->n_segments = CF_SEGMENTS_MAX;
	p->segment[CF_SEGMENTS_MAX - 1].kind = (enum cf_segment_kind)TWO;
}

/* Then the one descriptor is the journal's, and there is no image. */
static void journal_alone(struct cf_open_plan *p)
{
	strcpy(p->journal, "/a/journal");
}

/* One end of the words is not enough: the last is the empty one. */
static void half_an_end(struct cf_open_plan *p)
{
	memset(p->command, NO_END, CF_COMMAND_MAX - 1);
}

static void (*const insane[])(struct cf_open_plan *p) = {
	no_end_of_cipher,
	no_end_of_mode,
	no_end_of_iv,
	no_end_of_hash,
	no_end_of_engine,
	no_end_of_type,
	no_end_of_uuid,
	no_end_of_command,
	half_an_end,
	huge_key,
	numbering,
	no_worker,
	many_workers,
	no_permit,
	many_permits,
	many_segments,
	access_mode,
	lock,
	cache,
	discards,
	bad_sectors,
	segment_kind,
	no_end_of_journal,
	journal_alone,
};

START_TEST(order__that_is_insane_is_refused)
{
	struct cf_open_plan plan = make_plan(0);
	int before = next_fd();
	insane[_i](&plan);
	send_raw(&plan, sizeof(plan), 1);
	ck_assert_int_eq(recv_fails(), -EPROTO);
	ck_assert_int_eq(next_fd(), before);
}
END_TEST

/* The parts of a split image have no blocks in common coordinates. */
START_TEST(order__of_a_split_image_past_the_page_cache_is_refused)
{
	struct cf_open_plan plan = make_plan(0);
	plan.image_cache = CF_IMAGE_DIRECT;
	send_raw(&plan, sizeof(plan), 2);
	ck_assert_int_eq(recv_fails(), -EPROTO);
}
END_TEST

START_TEST(order__daemon_gone)
{
	struct cf_open_plan plan = make_plan(0);
	CF_CLEANUP(cf_image_close) struct cf_image one = make_image(1);
	cf_close_fd(&pair[1]);
	ck_assert_int_eq(cf_ipc_send_order(pair[0], &plan, NULL, &one), -EPIPE);
}
END_TEST

/* ---- answers ---- */

START_TEST(answers__arrive_in_order)
{
	struct cf_ipc_answer a;
	ck_assert_int_eq(cf_ipc_answer(pair[1], CF_IPC_NOTE, 0, "first"), 0);
	ck_assert_int_eq(cf_ipc_answer(pair[1], CF_IPC_ERROR, -EBUSY, "second"), 0);
	ck_assert_int_eq(cf_ipc_answer(pair[1], CF_IPC_READY, 0, NULL), 0);
	ck_assert_int_eq(cf_ipc_recv_answer(pair[0], &a), 0);
	ck_assert_int_eq(a.kind, CF_IPC_NOTE);
	ck_assert_str_eq(a.text, "first");
	ck_assert_int_eq(cf_ipc_recv_answer(pair[0], &a), 0);
	ck_assert_int_eq(a.kind, CF_IPC_ERROR);
	ck_assert_int_eq(a.code, -EBUSY);
	ck_assert_str_eq(a.text, "second");
	ck_assert_int_eq(cf_ipc_recv_answer(pair[0], &a), 0);
	ck_assert_int_eq(a.kind, CF_IPC_READY);
	ck_assert_str_eq(a.text, "");
}
END_TEST

START_TEST(answer__too_long_is_cut)
{
	char text[2 * CF_ERR_TEXT];
	struct cf_ipc_answer a;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	ck_assert_int_eq(cf_ipc_answer(pair[1], CF_IPC_NOTE, 0, text), 0);
	ck_assert_int_eq(cf_ipc_recv_answer(pair[0], &a), 0);
	ck_assert_uint_eq(strlen(a.text), CF_ERR_TEXT - 1);
}
END_TEST

START_TEST(answer__without_an_end_is_refused)
{
	struct cf_ipc_answer a;
	memset(&a, 'x', sizeof(a));
	ck_assert_int_eq(send(pair[1], &a, sizeof(a), 0), (ssize_t)sizeof(a));
	ck_assert_int_eq(cf_ipc_recv_answer(pair[0], &a), -EPROTO);
}
END_TEST

START_TEST(answer__other_side_gone)
{
	struct cf_ipc_answer a;
	cf_close_fd(&pair[1]);
	ck_assert_int_eq(cf_ipc_recv_answer(pair[0], &a), -EPIPE);
	ck_assert_int_eq(cf_ipc_answer(pair[0], CF_IPC_READY, 0, NULL), -EPIPE);
}
END_TEST

/* ---- descriptors of a new process ---- */

START_TEST(keep_only__leaves_standard_descriptors_and_one)
{
	int other = fcntl(image, F_DUPFD, 100);
	ck_assert_int_ge(other, 100);
	pid_t pid = fork();
	if (pid == 0) {
		int kept = pair[1];
		int r = cf_ipc_keep_only(&kept);
		_exit(!(r == 0 && kept == 3 && fcntl(3, F_GETFD) == FD_CLOEXEC && fcntl(other, F_GETFD) < 0 &&
				fcntl(4, F_GETFD) < 0 && fcntl(2, F_GETFD) >= 0 && cf_ipc_answer(kept, CF_IPC_READY, 0, NULL) == 0));
	}
	struct cf_ipc_answer a;
	int status = -1;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	ck_assert_int_eq(cf_ipc_recv_answer(pair[0], &a), 0);
	close(other);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("ipc");
	TCase *t = tcase_create("ipc");
	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_loop_test(t, parts__arrive_whole, 0, CF_ARRAY_LEN(list_lengths));
	tcase_add_test(t, parts__are_not_waited_for);
	tcase_add_loop_test(t, parts__nonsense_is_refused, 0, 3);
	tcase_add_loop_test(t, order__arrives_whole_with_key_and_descriptor, 0, (int)CF_ARRAY_LEN(key_sizes));
	tcase_add_loop_test(t, order__carries_the_journal, 0, (int)CF_ARRAY_LEN(part_counts));
	tcase_add_test(t, order__parent_gone_before_it);
	tcase_add_test(t, order__parent_gone_before_the_key);
	tcase_add_loop_test(t, order__with_a_key_of_another_size_is_refused, 0, (int)CF_ARRAY_LEN(wrong_key_sizes));
	tcase_add_loop_test(t, order__with_another_number_of_descriptors_is_refused, 0, (int)CF_ARRAY_LEN(wrong_fd_counts));
	tcase_add_loop_test(t, order__of_another_size_is_refused, 0, 2);
	tcase_add_loop_test(t, order__that_is_insane_is_refused, 0, CF_ARRAY_LEN(insane));
	tcase_add_test(t, order__of_a_split_image_past_the_page_cache_is_refused);
	tcase_add_test(t, order__daemon_gone);
	tcase_add_test(t, answers__arrive_in_order);
	tcase_add_test(t, answer__too_long_is_cut);
	tcase_add_test(t, answer__without_an_end_is_refused);
	tcase_add_test(t, answer__other_side_gone);
	tcase_add_test(t, keep_only__leaves_standard_descriptors_and_one);
	suite_add_tcase(s, t);
	return test_run(s);
}
