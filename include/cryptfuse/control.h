/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* control.h - what commands say to a running daemon, past the file system: it answers also when all its workers wait.
 *
 *     DIRECTORY/MAJOR:MINOR.sock      SOCK_SEQPACKET; DIRECTORY as in runtime.h, MAJOR:MINOR the device of the mount
 *
 *     command -> daemon   a request; RESUME: then the key, as a message of its own, into the arena of both
 *     daemon -> command   an answer; STATUS: then the JSON text, as a message of its own
 *
 * One request a connection. The daemon listens to its own user and to root (SO_PEERCRED), the command talks to the
 * user that the mount belongs to. Both may be of different releases: numbers keep their meaning, new ones are
 * appended, and a daemon that does not know one says -ENOSYS. */
#ifndef CRYPTFUSE_CONTROL_H
#define CRYPTFUSE_CONTROL_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "cryptfuse/err.h"

struct cf_mount;
struct cf_ops;
struct cf_suspend;

enum cf_control_word {
	CF_CONTROL_STATUS = 1,
	CF_CONTROL_SUSPEND = 2,
	CF_CONTROL_RESUME = 3,
	CF_CONTROL_REFUSE = 4, /* while suspended: what waits and what comes gets EIO */
	CF_CONTROL_PARK = 5,   /* the opposite: it waits again */
};

#define CF_CONTROL_CLIENTS 8u
#define CF_CONTROL_STATUS_MAX (1u << 17) /* bytes of JSON */
#define CF_CONTROL_TIMEOUT_S 5u
#define CF_CONTROL_LONG_TIMEOUT_S 600u /* a suspend that writes out what is cached */

/* ---- the daemon's side ---- */

struct cf_control {
	int sock; /* listens; -1 none */
	uid_t uid;
	struct cf_ops *ops;
	struct cf_suspend *suspend;
	pthread_t thread;
	bool running;
	pthread_mutex_t mutex; /* below */
	pthread_cond_t ended;
	unsigned n;
	int client[CF_CONTROL_CLIENTS]; /* -1 free */
};

/** cf_control_listen - open the socket of a mount. Before the sandbox; a stale one is replaced. 0 or -errno. */
int cf_control_listen(struct cf_control *c, const struct cf_mount *m, struct cf_err *err) CF_MUST_CHECK;

/** cf_control_start - answer from now on, in a thread of its own. Without a socket nothing is done. 0 or -errno. */
int cf_control_start(struct cf_control *c, struct cf_ops *ops, struct cf_suspend *s) CF_MUST_CHECK;

/** cf_control_stop - answer no more; waits for those being answered. True; false: one of them hangs. */
bool cf_control_stop(struct cf_control *c) CF_MUST_CHECK;

/** cf_control_forget - remove a socket of the caller's that nobody listens to any more. */
void cf_control_forget(const struct cf_mount *m);

/* ---- a command's side ---- */

/** cf_control_ask - STATUS: the JSON of the mount @m
 * @json: out, CF_CONTROL_STATUS_MAX bytes. Returns 0; -ENOENT there is no socket that this user can reach; -EACCES;
 * -ETIMEDOUT. */
int cf_control_ask(const struct cf_mount *m, char *json) CF_MUST_CHECK;

/** cf_control_tell - any other word
 * @key: with CF_CONTROL_RESUME, @key_bytes of the arena; NULL. Returns 0; -ENOENT as above; what the daemon answers,
 * and its line. */
int cf_control_tell(const struct cf_mount *m, enum cf_control_word word, const uint8_t *key, size_t key_bytes,
					struct cf_err *err) CF_MUST_CHECK;

/* ---- what travels ---- */

#define CF_CONTROL_MAGIC 0x63664331u

struct cf_control_request {
	uint32_t magic, word;
	uint32_t key_bytes; /* CF_CONTROL_RESUME */
};

struct cf_control_answer {
	uint32_t magic;
	int32_t code; /* 0 or -errno */
	char text[CF_ERR_TEXT];
};

/** cf_control_path - where in @base the socket of @m is. 0; -ENAMETOOLONG for a socket. */
int cf_control_path(const char *base, const struct cf_mount *m, char *path, size_t path_size) CF_MUST_CHECK;

/** cf_control_send, cf_control_recv - one message of exactly @len bytes. 0; -EPIPE, -EPROTO, -ETIMEDOUT, -errno. */
int cf_control_send(int sock, const void *data, size_t len) CF_MUST_CHECK;
int cf_control_recv(int sock, void *data, size_t len, unsigned timeout_s) CF_MUST_CHECK;

#endif
