/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* sandbox_calls.c - the system calls that serving needs; HACKING.md says how to add one.
 *
 * What is not listed is answered with EPERM: a call that nobody foresaw must not kill the daemon in the middle of a
 * write. Killed is what nothing honest here does: starting a program, tracing, a new socket (HAZARDS 6). A call without
 * a condition is remembered by the kernel (5.11 and later), which then does not run the filter for it: those of the
 * data path have none. */
#include "config.h"

#include "cryptfuse/sandbox.h"

#ifdef HAVE_SECCOMP

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__s390__) || defined(__CRIS__)
#define CLONE_FLAGS_ARG 1
#else
#define CLONE_FLAGS_ARG 0
#endif
#define THREAD_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD)

/** Names that an architecture or this libseccomp does not know are passed over. */
static const char *const allowed[] = {
	/* a request: from the kernel, the image, back */
	"read", "writev", "pread64", "pwrite64", "futex", "futex_time64", "getrusage", "write",
	/* space and durability */
	"fsync", "fdatasync", "sync_file_range", "fallocate", "lseek", "_llseek", "fadvise64", "fadvise64_64",
	/* what is open */
	"close", "fstat", "fstat64", "fstatfs", "fstatfs64",
	/* memory */
	"brk", "munmap", "mremap", "madvise", "mlock", "mlock2", "munlock",
	/* threads, signals, the end */
	"set_robust_list", "get_robust_list", "rseq", "sched_yield", "sched_getaffinity", "getcpu", "membarrier",
	"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigreturn", "sigaltstack", "restart_syscall", "exit",
	"exit_group",
	/* time, waiting */
	"clock_gettime", "clock_gettime64", "clock_getres", "clock_getres_time64", "gettimeofday", "time", "nanosleep",
	"clock_nanosleep", "clock_nanosleep_time64", "poll", "ppoll", "ppoll_time64",
	/* who and where */
	"getpid", "gettid", "getuid", "geteuid", "getgid", "getegid", "getrlimit", "ugetrlimit", "uname", "sysinfo",
	"getrandom",
	/* sockets that there are: parent, helper, control, AF_ALG */
	"accept", "accept4", "recvfrom", "recvmsg", "recv", "sendto", "sendmsg", "send", "shutdown", "getsockopt",
	"setsockopt",
	/* AF_ALG with several requests in flight */
	"io_submit", "io_getevents", "io_getevents_time64", "io_destroy"};

static const char *const killed[] = {"execve", "execveat", "ptrace", "socket", "socketpair"};

/** FUSE over io_uring. A ring can do what the filter denies, though not what Landlock does: only for who asks for it.
 */
static const char *const for_io_uring[] = {"io_uring_setup", "io_uring_enter", "io_uring_register", "eventfd2",
										   "sched_setaffinity"};

/** Allowed if that argument, under that mask, is that value. */
static const struct {
	const char *name;
	unsigned arg;
	uint64_t mask, value;
} conditions[] = {
	{"mmap", 2, PROT_EXEC, 0},
	{"mmap2", 2, PROT_EXEC, 0},
	{"mprotect", 2, PROT_EXEC, 0},
	{"clone", CLONE_FLAGS_ARG, THREAD_FLAGS, THREAD_FLAGS},
	{"newfstatat", 3, AT_EMPTY_PATH, AT_EMPTY_PATH}, /* fstat of the C library */
	{"statx", 2, AT_EMPTY_PATH, AT_EMPTY_PATH},
	{"prlimit64", 0, UINT32_MAX, 0}, /* its own */
	{"prctl", 0, UINT32_MAX, PR_SET_NAME},
	{"ioctl", 1, UINT32_MAX, BLKDISCARD},
	{"ioctl", 1, UINT32_MAX, BLKZEROOUT},
	{"fcntl", 1, UINT32_MAX, F_GETFD},
	{"fcntl", 1, UINT32_MAX, F_GETFL},
	{"fcntl", 1, UINT32_MAX, F_OFD_GETLK},
};

/* 0 or -errno. */
static int add(scmp_filter_ctx ctx, uint32_t action, const char *name, unsigned n, struct scmp_arg_cmp only)
{
	int nr = seccomp_syscall_resolve_name(name);
	return nr == __NR_SCMP_ERROR ? 0 : seccomp_rule_add(ctx, action, nr, n, only);
}

static int add_list(scmp_filter_ctx ctx, uint32_t action, const char *const *names, size_t n)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add(ctx, action, names[i], 0, (struct scmp_arg_cmp){0});
	return r;
}

static int add_conditions(scmp_filter_ctx ctx)
{
	int r = 0;
	for (size_t i = 0; r == 0 && i < CF_ARRAY_LEN(conditions); i++)
		r = add(ctx, SCMP_ACT_ALLOW, conditions[i].name, 1,
				SCMP_CMP(conditions[i].arg, SCMP_CMP_MASKED_EQ, conditions[i].mask, conditions[i].value));
	if (r == 0) /* to its own threads */
		r = add(ctx, SCMP_ACT_ALLOW, "tgkill", 1, SCMP_A0(SCMP_CMP_EQ, (uint64_t)getpid()));
	return r ? r : add(ctx, SCMP_ACT_ERRNO(ENOSYS), "clone3", 0, (struct scmp_arg_cmp){0});
}

/* By a tree, not a list, where the kernel remembers nothing. The mitigation against speculative stores that kernels
 * before 5.16 tie to a filter is for those who run foreign code, and slows ours. */
static int set_attributes(scmp_filter_ctx ctx)
{
	static const struct {
		enum scmp_filter_attr attr;
		uint32_t value;
	} wanted[] = {
		{SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS},
		{SCMP_FLTATR_CTL_OPTIMIZE, 2},
		{SCMP_FLTATR_CTL_SSB, 1},
		{SCMP_FLTATR_API_SYSRAWRC, 1}, /* the kernel's own error */
	};
	int r = 0;
	for (size_t i = 0; r == 0 && i < CF_ARRAY_LEN(wanted); i++)
		r = seccomp_attr_set(ctx, wanted[i].attr, wanted[i].value);
	return r;
}

static void release(scmp_filter_ctx *ctx)
{
	if (*ctx)
		seccomp_release(*ctx);
}

int cf_sandbox_filter(enum cf_transport transport)
{
	const uint32_t needed = SECCOMP_RET_KILL_PROCESS; /* Linux 4.14 */
	if (syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &needed) != 0)
		return 0;
	CF_CLEANUP(release) scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	if (!ctx)
		return -ENOMEM;
	int r = set_attributes(ctx);
	if (r == 0)
		r = add_list(ctx, SCMP_ACT_ALLOW, allowed, CF_ARRAY_LEN(allowed));
	if (r == 0 && transport == CF_TRANSPORT_IO_URING)
		r = add_list(ctx, SCMP_ACT_ALLOW, for_io_uring, CF_ARRAY_LEN(for_io_uring));
	if (r == 0)
		r = add_list(ctx, SCMP_ACT_KILL_PROCESS, killed, CF_ARRAY_LEN(killed));
	if (r == 0)
		r = add_conditions(ctx);
	if (r == 0)
		r = seccomp_load(ctx);
	return r == 0 ? 1 : r;
}

#else

int cf_sandbox_filter(enum cf_transport transport)
{
	(void)transport;
	return 0;
}

#endif
