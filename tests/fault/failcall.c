/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* failcall.c - to be preloaded: the n-th use of a call fails (calls.h has the calls, failcall.h the order).
 *
 * FAILCALL names the file that the driver has made. Only cryptfuse is meant, not the programs it starts. A use is
 * counted by how many forks lie between the first process and the one that calls, and by who calls, told from the
 * return address: the program itself or one of its libraries. Any number of threads. It makes no system call of its own
 * after its start, so the daemon's sandbox changes nothing. */
#include "config.h"

#include <blkid.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <gcrypt.h>
#include <libcryptsetup.h>
#include <linux/fuse.h>
#include <link.h>
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>
#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#include "failcall.h"

/* ---- what there is ---- */

#define CALL(type, failed, name, params, args, ...) NAME_##name,
#define CODE(name, params, args, ...) NAME_##name,
#define CODE_NEGATIVE(name, params, args, ...) NAME_##name,
#define XFER(name, params, args, half, ...) NAME_##name,
#define OWN(name, ...) NAME_##name,
enum {
#include "calls.h"
	N_CALLS
};
_Static_assert(N_CALLS <= FAILCALL_CALLS_MAX, "the state has room for them");
#undef CALL
#undef CODE
#undef CODE_NEGATIVE
#undef XFER
#undef OWN

#define CODES_MAX 8
static const struct {
	const char *name;
	uint32_t codes[CODES_MAX];
} calls[] = {
#define CALL(type, failed, name, params, args, ...) {#name, {__VA_ARGS__}},
#define CODE(name, params, args, ...) {#name, {__VA_ARGS__}},
#define CODE_NEGATIVE(name, params, args, ...) {#name, {__VA_ARGS__}},
#define XFER(name, params, args, half, ...) {#name, {__VA_ARGS__}},
#define OWN(name, ...) {#name, {__VA_ARGS__}},
#include "calls.h"
#undef CALL
#undef CODE
#undef CODE_NEGATIVE
#undef XFER
#undef OWN
};

/* The beginnings of their files' names; what is none of them is the last. */
static const char *const origins[FAILCALL_ORIGINS] = {
	"cryptfuse",   "libc.so",   "libfuse3",  "libcrypto",  "libcryptsetup",
	"libblkid.so", "libjson-c", "libgcrypt", "libseccomp", "other",
};
#define OTHER (FAILCALL_ORIGINS - 1)

const char *failcall_name(unsigned call)
{
	return call < N_CALLS ? calls[call].name : NULL;
}

uint32_t failcall_code(unsigned call, unsigned k)
{
	return call < N_CALLS && k < CODES_MAX ? calls[call].codes[k] : 0;
}

const char *failcall_origin(unsigned origin)
{
	return origin < FAILCALL_ORIGINS ? origins[origin] : NULL;
}

/* ---- who calls ---- */

#define OBJECTS_MAX 64
static struct {
	uintptr_t base, from, to;
	unsigned origin;
} objects[OBJECTS_MAX];
static unsigned n_objects;

static struct failcall_state *state;
static unsigned depth;

static unsigned origin_of_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	if (!*path)
		return 0;
	for (unsigned i = 1; i < OTHER; i++)
		if (!strncmp(name, origins[i], strlen(origins[i])))
			return i;
	return OTHER;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	for (unsigned i = 0; i < info->dlpi_phnum && n_objects < OBJECTS_MAX; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		objects[n_objects].base = info->dlpi_addr;
		objects[n_objects].from = info->dlpi_addr + p->p_vaddr;
		objects[n_objects].to = info->dlpi_addr + p->p_vaddr + p->p_memsz;
		objects[n_objects++].origin = origin_of_name(info->dlpi_name);
	}
	return 0;
}

static unsigned origin_of(const void *at, uintptr_t *off)
{
	for (unsigned i = 0; i < n_objects; i++)
		if ((uintptr_t)at >= objects[i].from && (uintptr_t)at < objects[i].to) {
			*off = (uintptr_t)at - objects[i].base;
			return objects[i].origin;
		}
	*off = 0;
	return OTHER;
}

/* A daemon's death is seen by nobody else. */
static void crashed(int sig)
{
	void *frames[FAILCALL_FRAMES + 2];
	int n = backtrace(frames, FAILCALL_FRAMES + 2);
	atomic_store(&state->crashed, (uint32_t)sig);
	for (int i = 2; i < n; i++) {
		uintptr_t off;
		atomic_store(&state->frame[i - 2][0], origin_of(frames[i], &off) + 1);
		atomic_store(&state->frame[i - 2][1], (uint32_t)off);
	}
	raise(sig);
}

__attribute__((constructor)) static void start(void)
{
	static const int deadly[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE, SIGSYS};
	const struct sigaction act = {.sa_handler = crashed, .sa_flags = (int)SA_RESETHAND | SA_NODEFER};
	const char *path = getenv("FAILCALL");
	void *frame[1];
	if (!path || strcmp(program_invocation_short_name, "cryptfuse") != 0)
		return;
	dl_iterate_phdr(add_object, NULL);
	(void)backtrace(frame, 1); /* loads what it needs */
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *at = fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*state), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		_exit(126);
	close(fd);
	for (size_t i = 0; i < sizeof(deadly) / sizeof(deadly[0]); i++)
		sigaction(deadly[i], &act, NULL);
	state = at;
}

/* ---- the fate of one use ---- */

/* 0: it passes; else how it fails. */
static uint32_t fate(unsigned call, const void *caller)
{
	uintptr_t off;
	if (!state)
		return 0;
	unsigned d = depth < FAILCALL_DEPTHS ? depth : FAILCALL_DEPTHS - 1, origin = origin_of(caller, &off);
	atomic_fetch_add(&state->used[d][origin][call], 1);
	if (atomic_load(&state->call) != call + 1 || atomic_load(&state->depth) != d ||
		atomic_load(&state->origin) != origin)
		return 0;
	uint32_t seen = atomic_fetch_add(&state->seen, 1) + 1, n = atomic_load(&state->n);
	if (seen != n && !(seen > n && atomic_load(&state->all_after)))
		return 0;
	atomic_fetch_add(&state->fired, 1);
	return atomic_load(&state->code);
}

static bool fails(unsigned call, const void *caller)
{
	uint32_t code = fate(call, caller);
	if (code)
		errno = (int)code;
	return code != 0;
}

int __open64_2(const char *path, int flags); /* open64 where the flags are a constant, by _FORTIFY_SOURCE */

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

/* The next one of that name, as a function of the same type. */
#define REAL(name)                                                            \
	__extension__({                                                           \
		static __typeof__(&name) real_;                                       \
		if (!real_)                                                           \
			real_ = __extension__(__typeof__(&name)) dlsym(RTLD_NEXT, #name); \
		real_;                                                                \
	})

#pragma GCC visibility push(default)

#define CALL(type, failed, name, params, args, ...)                   \
	type name params                                                  \
	{                                                                 \
		return fails(NAME_##name, CALLER) ? failed : REAL(name) args; \
	}
#define CODE(name, params, args, ...)                \
	int name params                                  \
	{                                                \
		uint32_t code_ = fate(NAME_##name, CALLER);  \
		return code_ ? (int)code_ : REAL(name) args; \
	}
#define CODE_NEGATIVE(name, params, args, ...)        \
	int name params                                   \
	{                                                 \
		uint32_t code_ = fate(NAME_##name, CALLER);   \
		return code_ ? -(int)code_ : REAL(name) args; \
	}
#define XFER(name, params, args, half, ...)         \
	ssize_t name params                             \
	{                                               \
		uint32_t code_ = fate(NAME_##name, CALLER); \
		if (code_ == FAILCALL_SHORT)                \
			return REAL(name) half;                 \
		if (!code_)                                 \
			return REAL(name) args;                 \
		errno = (int)code_;                         \
		return -1;                                  \
	}
#define OWN(name, ...)
#include "calls.h"

/* A reply that comes too late: who asked was interrupted, so he has that for an answer, and the daemon hears that
 * nobody waited. Only the daemon uses this call, and only for replies. */
ssize_t writev(int fd, const struct iovec *iov, int n)
{
	static atomic_bool initialised; /* the first reply: nobody can be interrupted */
	struct fuse_out_header head;
	if (!atomic_exchange(&initialised, true) || !fails(NAME_writev, CALLER))
		return REAL(writev)(fd, iov, n);
	memcpy(&head, iov[0].iov_base, sizeof(head));
	head = (struct fuse_out_header){.len = sizeof(head), .error = -EINTR, .unique = head.unique};
	const struct iovec interrupted = {.iov_base = &head, .iov_len = sizeof(head)};
	(void)!REAL(writev)(fd, &interrupted, 1);
	errno = ENOENT;
	return -1;
}

int open64(const char *path, int flags, ...)
{
	va_list ap;
	va_start(ap, flags);
	const mode_t mode = va_arg(ap, mode_t);
	va_end(ap);
	return fails(NAME_open64, CALLER) ? -1 : REAL(open64)(path, flags, mode);
}

int openat64(int dir, const char *path, int flags, ...)
{
	va_list ap;
	va_start(ap, flags);
	const mode_t mode = va_arg(ap, mode_t);
	va_end(ap);
	return fails(NAME_openat64, CALLER) ? -1 : REAL(openat64)(dir, path, flags, mode);
}

int fcntl64(int fd, int cmd, ...)
{
	va_list ap;
	va_start(ap, cmd);
	void *arg = va_arg(ap, void *);
	va_end(ap);
	return fails(NAME_fcntl64, CALLER) ? -1 : REAL(fcntl64)(fd, cmd, arg);
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list ap;
	va_start(ap, request);
	void *arg = va_arg(ap, void *);
	va_end(ap);
	return fails(NAME_ioctl, CALLER) ? -1 : REAL(ioctl)(fd, request, arg);
}

int prctl(int what, ...)
{
	unsigned long a[4];
	va_list ap;
	va_start(ap, what);
	for (unsigned i = 0; i < 4; i++)
		a[i] = va_arg(ap, unsigned long);
	va_end(ap);
	return fails(NAME_prctl, CALLER) ? -1 : REAL(prctl)(what, a[0], a[1], a[2], a[3]);
}

long syscall(long number, ...)
{
	long a[6];
	va_list ap;
	va_start(ap, number);
	for (unsigned i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	return fails(NAME_syscall, CALLER) ? -1 : REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

pid_t fork(void)
{
	pid_t pid = fails(NAME_fork, CALLER) ? -1 : REAL(fork)();
	if (pid == 0)
		depth++;
	return pid;
}

#pragma GCC visibility pop
