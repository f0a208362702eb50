/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* sandbox.c - gives up rights, then everything that is not an open descriptor.
 *
 * Order: capabilities, no_new_privs, Landlock, seccomp; each needs the one before. What a library opens once, at its
 * first use, is used once before. Invariant: nothing here can be taken back. One thread. */
#include "config.h"

#include "cryptfuse/sandbox.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cryptfuse/err.h"

#ifndef PR_SET_IO_FLUSHER
#define PR_SET_IO_FLUSHER 57 /* Linux 5.6 */
#endif

/* The same numbers on every architecture; headers older than Linux 5.13 lack them. */
#ifndef SYS_landlock_create_ruleset
#define SYS_landlock_create_ruleset 444
#define SYS_landlock_restrict_self 446
#endif

/* ---- rights ---- */

static int drop_capabilities(struct cf_err *err)
{
	cap_t none = cap_init();
	int r = none ? cap_set_proc(none) : -1;
	int code = errno;
	if (none)
		cap_free(none);
	return r == 0 ? 0 : cf_fail(err, -code, "cannot drop capabilities: %s", strerror(code));
}

int cf_sandbox_drop_rights(struct cf_err *err)
{
	static const struct rlimit no_core = {0};
	prctl(PR_SET_IO_FLUSHER, 1, 0, 0, 0); /* only with CAP_SYS_RESOURCE; without it serving works all the same */
	int r = drop_capabilities(err);
	if (r < 0)
		return r;
	if (setrlimit(RLIMIT_CORE, &no_core) != 0)
		return cf_fail(err, -errno, "cannot forbid core dumps: %s", strerror(errno));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return cf_fail(err, -errno, "cannot set no_new_privs: %s", strerror(errno));
	return 0;
}

/* ---- Landlock ---- */

/** struct landlock_ruleset_attr of Linux 6.12; an older kernel takes the front of it that it knows. */
struct ruleset {
	uint64_t fs, net, scoped;
};

/** What each version of the interface added, and all of it is denied: files by bit, TCP, signals and abstract sockets
 * to outside. */
static const struct {
	unsigned since;
	struct ruleset handled;
	size_t bytes; /* of the struct in that version */
} additions[] = {
	{1, {.fs = 0x1fff}, 8},   /* execute, read, write, list, remove, make */
	{2, {.fs = 0x2000}, 8},   /* link or rename across directories */
	{3, {.fs = 0x4000}, 8},   /* truncate */
	{4, {.net = 0x3}, 16},    /* bind and connect TCP */
	{5, {.fs = 0x8000}, 16},  /* ioctl on devices */
	{6, {.scoped = 0x3}, 24}, /* abstract Unix sockets, signals */
};

/* Everything is handled and nothing allowed: only what is open already can be used. */
int cf_sandbox_files(void)
{
	const long version = syscall(SYS_landlock_create_ruleset, NULL, 0, 1u /* LANDLOCK_CREATE_RULESET_VERSION */);
	if (version <= 0)
		return 0;
	struct ruleset set = {0};
	size_t bytes = 0;
	for (size_t i = 0; i < CF_ARRAY_LEN(additions) && (long)additions[i].since <= version; i++) {
		set.fs |= additions[i].handled.fs;
		set.net |= additions[i].handled.net;
		set.scoped |= additions[i].handled.scoped;
		bytes = additions[i].bytes;
	}
	CF_CLEANUP(cf_close_fd) int fd = (int)syscall(SYS_landlock_create_ruleset, &set, bytes, 0u);
	return fd >= 0 && syscall(SYS_landlock_restrict_self, fd, 0u) == 0 ? (int)version : -errno;
}

/* ---- the whole ---- */

static void *end_thread(void *arg)
{
	(void)arg;
	pthread_exit(NULL);
}

/* The C library opens the unwinder's library when a thread is first ended from outside its main function. */
static int load_unwinder(void)
{
	pthread_t t;
	int r = pthread_create(&t, NULL, end_thread, NULL);
	return r == 0 ? -pthread_join(t, NULL) : -r;
}

int cf_sandbox_enter(struct cf_sandbox *out, enum cf_transport transport, struct cf_err *err)
{
	int r = load_unwinder();
	if (r < 0)
		return cf_fail(err, r, "cannot start a thread: %s", strerror(-r));
	if ((r = cf_sandbox_files()) < 0)
		return cf_fail(err, r, "cannot shut the sandbox: Landlock: %s", strerror(-r));
	const unsigned landlock = (unsigned)r;
	if ((r = cf_sandbox_filter(transport)) < 0)
		return cf_fail(err, r, "cannot shut the sandbox: seccomp: %s", strerror(-r));
	*out = (struct cf_sandbox){.use = CF_SANDBOX_ON, .landlock = landlock, .seccomp = r > 0};
	return 0;
}
