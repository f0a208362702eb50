/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* ipc.h - what parent and daemon say to each other over their socketpair (SOCK_SEQPACKET: a message is whole or
 * absent).
 *
 *     parent -> daemon   order (plan, the image's descriptors), then the key as a message of its own
 *     daemon -> parent   any number of notes, then ready or an error
 *     parent -> daemon   perhaps a list of parts of the volume, which is answered in the same way
 *
 * The key is received straight into the secret arena, so that no other copy is made in either process. Blocking;
 * one thread at a time on each end. */
#ifndef CRYPTFUSE_IPC_H
#define CRYPTFUSE_IPC_H

#include "cryptfuse/err.h"
#include "cryptfuse/serve.h"

enum cf_ipc_kind { CF_IPC_NOTE, CF_IPC_READY, CF_IPC_ERROR };

/** What the daemon answers. */
struct cf_ipc_answer {
	enum cf_ipc_kind kind;
	int code;               /* -errno with CF_IPC_ERROR */
	char text[CF_ERR_TEXT]; /* NUL-terminated */
};

/** cf_ipc_pair - two connected ends, close-on-exec. 0 or -errno. */
int cf_ipc_pair(int fds[static 2]) CF_MUST_CHECK;

/** cf_ipc_keep_only - close every descriptor but 0, 1, 2 and @sock, which moves to 3, close-on-exec. For a process that
 * was just forked. 0 or -errno. */
int cf_ipc_keep_only(int *sock) CF_MUST_CHECK;

enum cf_ipc_stderr { CF_IPC_STDERR_KEPT, CF_IPC_STDERR_GONE };

/** cf_ipc_let_go - the same, and leave the terminal, the caller's folder and its standard descriptors, but perhaps one
 * that is open. 0 or -errno. */
int cf_ipc_let_go(int *sock, enum cf_ipc_stderr what) CF_MUST_CHECK;

/** cf_ipc_send_order - @key: borrowed, plan->cipher.key_bytes (NULL when 0); @image: the receiver gets its own copies.
 * 0 or -errno; -EPIPE the daemon has gone. */
int cf_ipc_send_order(int sock, const struct cf_open_plan *plan, const uint8_t *key,
					  const struct cf_image *image) CF_MUST_CHECK;

/** cf_ipc_recv_order - the daemon's side of it
 * @key: out, owned, from cf_secret_alloc; NULL when the cipher has none   @image: out, owned
 * Returns 0; -EPIPE the parent has gone; -EPROTO what came is no order; -ENOMEM. */
int cf_ipc_recv_order(int sock, struct cf_open_plan *plan, uint8_t **key, struct cf_image *image) CF_MUST_CHECK;

/** cf_ipc_send_parts - what else is to be shown; @n at most CF_SERVE_PARTS_MAX. 0 or -errno. */
int cf_ipc_send_parts(int sock, const struct cf_serve_part *parts, unsigned n) CF_MUST_CHECK;

/** cf_ipc_recv_parts - the daemon's side: how many; -EPIPE the parent has gone; -EPROTO. Does not wait. */
int cf_ipc_recv_parts(int sock, struct cf_serve_part parts[static CF_SERVE_PARTS_MAX]) CF_MUST_CHECK;

/** cf_ipc_answer - one message to the parent; @text may be NULL. 0 or -errno: -EPIPE it has gone. */
int cf_ipc_answer(int sock, enum cf_ipc_kind kind, int code, const char *text) CF_MUST_CHECK;

/** cf_ipc_recv_answer - 0; -EPIPE the daemon has gone; -EPROTO. */
int cf_ipc_recv_answer(int sock, struct cf_ipc_answer *out) CF_MUST_CHECK;

#endif
