/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* daemon.c - the daemon's life: start in a fixed order, serve, end.
 *
 * Order (HAZARDS 1): unmount helper, arena, not dumpable, key, self-test, mount, sandbox, then threads.
 * Invariant: before "ready" it ends when its parent does; after it, only the kernel ends it: SIGTERM is passed to the
 * helper, which unmounts (HAZARDS 2). Threads: the main one and libfuse's workers; one that waits for signals; those of
 * the control socket. */
#include "config.h"

#include "cryptfuse/daemon.h"

#define FUSE_USE_VERSION 312
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "cryptfuse/clock.h"
#include "cryptfuse/control.h"
#include "cryptfuse/err.h"
#include "cryptfuse/helper.h"
#include "cryptfuse/ipc.h"
#include "cryptfuse/loop.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/session.h"
#include "cryptfuse/suspend.h"
#include "cryptfuse/voice.h"
#include "cryptfuse/volume.h"

#define NOTICE_MS 5000 /* how soon trouble is said aloud */
#define READY_MS 20000 /* for the kernel's first request, which comes with the mount */

struct daemon {
	const struct cf_serve_opts *opts;
	int sock;   /* to the parent; -1 once nothing more can come */
	int helper; /* to the unmount helper */
	int signals;
	struct cf_open_plan plan;
	struct cf_image image; /* for its lock */
	struct cf_volume *volume;
	struct cf_voice voice;
	struct cf_ops ops;
	struct cf_suspend suspend;
	struct cf_control control; /* the socket that commands use */
	struct fuse_session *session;
	struct cf_loop *loop; /* NULL: libfuse's own */
	pthread_t main_thread;
	atomic_int ready; /* the parent was told so */
	atomic_int ended; /* the loop has returned */
};

/* ---- signals ---- */

static void wake_up(int sig)
{
	(void)sig;
}

/* SIGTERM, SIGINT and SIGHUP are read from a descriptor by one thread. SIGUSR1 only interrupts a wait (end_loop). */
static int init_signals(struct daemon *d)
{
	sigset_t set;
	struct sigaction wake = {.sa_handler = wake_up};
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	if (sigprocmask(SIG_SETMASK, &set, NULL) != 0 || sigaction(SIGUSR1, &wake, NULL) != 0)
		return -errno;
	d->signals = signalfd(-1, &set, SFD_CLOEXEC);
	return d->signals < 0 ? -errno : 0;
}

/* libfuse's main thread sleeps on a semaphore and looks at its exit flag only when something interrupts that. The
 * signal can come between look and sleep: repeat it until the loop has returned. */
static void end_loop(struct daemon *d)
{
	static const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
	fuse_session_exit(d->session);
	while (!atomic_load(&d->ended)) {
		pthread_kill(d->main_thread, SIGUSR1);
		nanosleep(&pause, NULL);
	}
}

/* What the parent found inside, or its end. Returns 1 when nothing more can come. The socket is say_ready's until that
 * has returned. */
static int hear_parent(struct daemon *d)
{
	static const struct timespec pause = {.tv_nsec = 2 * 1000 * 1000};
	struct cf_serve_part parts[CF_SERVE_PARTS_MAX];
	if (!atomic_load(&d->ready)) {
		nanosleep(&pause, NULL);
		return 0;
	}
	int n = cf_ipc_recv_parts(d->sock, parts);
	if (n == -EAGAIN)
		return 0;
	int r = n < 0 ? n : cf_ops_publish(&d->ops, parts, (unsigned)n);
	(void)!cf_ipc_answer(d->sock, r < 0 ? CF_IPC_ERROR : CF_IPC_READY, r,
						 r < 0 ? "the daemon refuses the list of partitions" : NULL);
	cf_close_fd(&d->sock);
	return 1;
}

/* 0: it has gone. */
static int hear_helper(struct daemon *d)
{
	const int word = cf_helper_hear(d->helper);
	if (word == CF_HELPER_DETACHED)
		end_loop(d);
	else
		cf_suspend_heard(&d->suspend, word);
	return word;
}

/* Ended by cancellation, while it waits and nowhere else. Without its helper the daemon cannot unmount; it serves on,
 * so that nothing is lost, until somebody else does. */
static void *control(void *arg)
{
	struct daemon *d = arg;
	struct pollfd p[3] = {
		{.fd = d->signals, .events = POLLIN}, {.fd = d->helper, .events = POLLIN}, {.fd = d->sock, .events = POLLIN}};
	for (const int64_t start_ms = cf_now_ms();;) {
		struct signalfd_siginfo info;
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
		const int n = poll(p, 3, NOTICE_MS);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
		cf_voice_notice(&d->voice);
		/* libfuse answered it without us, for lack of memory: the kernel will send no other. */
		if (!atomic_load(&d->ready) && cf_now_ms() - start_ms > READY_MS)
			end_loop(d);
		if (n <= 0)
			continue;
		if (p[2].revents && hear_parent(d))
			p[2].fd = -1;
		if (p[0].revents && read(d->signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
			cf_suspend_stop(&d->suspend); /* the helper's flush would wait for the key */
			cf_helper_tell(d->helper, CF_HELPER_STOP, NULL);
		}
		if (p[1].revents && !hear_helper(d))
			p[1].fd = -1;
	}
	return NULL;
}

/* ---- the start, step by step ---- */

/* Before anything secret. */
static int init_process(struct daemon *d, struct cf_err *err)
{
	int r = cf_ipc_let_go(&d->sock, CF_IPC_STDERR_KEPT); /* for libfuse's trace */
	if (r < 0)
		return cf_fail(err, r, "cannot let go of the terminal: %s", strerror(-r));
	if ((r = init_signals(d)) < 0)
		return cf_fail(err, r, "cannot set signals up: %s", strerror(-r));
	if ((r = cf_helper_fork(d->opts, &d->helper)) < 0)
		return cf_fail(err, r, "cannot start the unmount helper: %s", strerror(-r));
	r = cf_secret_init(err);
	if (r == 0 && prctl(PR_SET_DUMPABLE, 0) != 0)
		r = cf_fail(err, -errno, "cannot forbid core dumps: %s", strerror(errno));
	if (d->opts->foreground)
		prctl(PR_SET_PDEATHSIG, SIGTERM); /* nobody would stop it else */
	return r;
}

/* What the parent should pass on: an engine that failed its self-test, keys that may reach the disk. */
static int say_notes(struct daemon *d)
{
	struct cf_secret_stats s;
	struct cf_cipher_info info;
	int r = 0;
	cf_cipher_info(cf_volume_cipher(d->volume), &info);
	if (*info.warning)
		r = cf_ipc_answer(d->sock, CF_IPC_NOTE, 0, info.warning);
	cf_secret_stats(&s);
	if (r == 0 && !s.locked)
		r = cf_ipc_answer(
			d->sock, CF_IPC_NOTE, 0,
			"memory for keys could not be locked and may reach the swap space: raise the limit on locked memory "
			"(ulimit -l, RLIMIT_MEMLOCK)");
	return r;
}

/* The parent's order becomes a volume; this runs the self-test of the engine. */
static int open_volume(struct daemon *d, struct cf_err *err)
{
	CF_CLEANUP(cf_secret_freep) uint8_t *key = NULL;
	int r = cf_ipc_recv_order(d->sock, &d->plan, &key, &d->image);
	if (r < 0)
		return cf_fail(err, r, "the order to open did not arrive: %s", strerror(-r));
	r = cf_open_volume(&d->plan, key, &d->image, &d->volume, err);
	if (r < 0)
		return r;
	r = say_notes(d);
	return r < 0 ? cf_fail(err, r, "the parent has gone") : 0;
}

/* Called by a worker when the kernel's first request has come: whoever opens the file now is answered. */
static void say_ready(void *arg)
{
	struct daemon *d = arg;
	if (cf_ipc_answer(d->sock, CF_IPC_READY, 0, NULL) < 0)
		cf_helper_tell(d->helper, CF_HELPER_STOP, NULL); /* nobody waits for it any more */
	atomic_store(&d->ready, 1);
}

/* Set before the kernel's first request is answered, which can only lower it. */
static int set_readahead(struct daemon *d, const struct cf_mount *m)
{
	char text[CF_ERR_TEXT];
	unsigned asked = d->opts->readahead_kib;
	d->ops.readahead_kib = cf_session_readahead(m, asked);
	if (d->ops.readahead_kib >= asked)
		return 0;
	snprintf(text, sizeof(text),
			 "--readahead %u: only root can make the kernel read ahead further than it does; %u KiB is it", asked,
			 d->ops.readahead_kib);
	return cf_ipc_answer(d->sock, CF_IPC_NOTE, 0, text);
}

static void say_aloud(void *arg, const char *text)
{
	const struct daemon *d = arg;
	cf_helper_say(d->helper, text);
}

/* Without it everything works but what needs it. */
static int listen_for_commands(struct daemon *d, const struct cf_mount *m)
{
	struct cf_err why = {0};
	return cf_control_listen(&d->control, m, &why) < 0 ? cf_ipc_answer(d->sock, CF_IPC_NOTE, 0, why.text) : 0;
}

/* Somebody else than the daemon can now take the mount away. */
static int hand_over_mount(struct daemon *d, struct cf_err *err)
{
	struct cf_mount m;
	int r = cf_mounts_find(d->opts->mountpoint, &m);
	if (r < 0)
		return cf_fail(err, r, "the list of mounts cannot be read: %s", strerror(-r));
	if (r == 0)
		return cf_fail(err, -EIO, "mounted on %s, but /proc/self/mountinfo does not show it", d->opts->mountpoint);
	r = cf_helper_tell(d->helper, CF_HELPER_MOUNTED, &m);
	if (r < 0)
		return cf_fail(err, r, "the unmount helper has ended");
	cf_suspend_init(&d->suspend, &d->ops, d->session, d->helper);
	r = listen_for_commands(d, &m);
	if (r == 0)
		r = set_readahead(d, &m);
	return r < 0 ? cf_fail(err, r, "the parent has gone") : 0;
}

static int mount_volume(struct daemon *d, struct cf_err *err)
{
	cf_voice_init(&d->voice, d->volume, d->plan.lock == CF_LOCK ? &d->image : NULL, say_aloud, d);
	cf_ops_init(&d->ops, d->volume, d->opts, &d->plan);
	d->ops.voice = &d->voice;
	d->ops.ready = say_ready;
	d->ops.ready_ctx = d;
	cf_helper_tell(d->helper, CF_HELPER_MOUNTING, NULL);
	int r = cf_session_mount(&d->session, &d->ops, err);
	if (r < 0)
		return r;
	r = hand_over_mount(d, err);
	if (r < 0)
		fuse_session_unmount(d->session); /* outside of the sandbox it still can */
	return r;
}

/* The walls that this kernel or build has not. */
static int note_gaps(struct daemon *d)
{
	static const char *const gaps[2][2] = {
		{"there is no sandbox: this kernel has no Landlock, and it or this build no seccomp",
		 "the sandbox is without Landlock, which this kernel lacks"},
		{"the sandbox is without seccomp, which this kernel or this build lacks", NULL}};
	const char *gap = gaps[d->ops.sandbox.landlock > 0][d->ops.sandbox.seccomp];
	return gap ? cf_ipc_answer(d->sock, CF_IPC_NOTE, 0, gap) : 0;
}

/* From here on: nothing but the open descriptors. The status was asked for once, since json-c opens a file for its
 * first random number. */
static int shut_box(struct daemon *d, struct cf_err *err)
{
	int r = cf_sandbox_drop_rights(err);
	if (r < 0 || d->opts->sandbox == CF_SANDBOX_OFF)
		return r;
	free(cf_status_json(&d->ops));
	if ((r = cf_sandbox_enter(&d->ops.sandbox, d->opts->transport, err)) < 0)
		return r;
	r = note_gaps(d);
	return r < 0 ? cf_fail(err, r, "the parent has gone") : 0;
}

static int start(struct daemon *d, struct cf_err *err)
{
	int r = init_process(d, err);
	if (r == 0)
		r = open_volume(d, err);
	if (r == 0)
		r = mount_volume(d, err);
	if (r == 0 && !d->opts->foreground && dup2(0, 2) < 0)
		r = cf_fail(err, -errno, "cannot let go of standard error: %s", strerror(errno));
	return r < 0 ? r : shut_box(d, err);
}

/* ---- serve and end ---- */

static unsigned waiting(void *arg)
{
	const struct daemon *d = arg;
	return cf_volume_waiting(d->volume);
}

static void ending(void *arg)
{
	struct daemon *d = arg;
	cf_suspend_stop(&d->suspend);
}

/* A second one also on a single CPU: that a call waits is seen only afterwards. */
static unsigned ready_threads(const struct daemon *d)
{
	return d->plan.n_permits > 2 ? d->plan.n_permits : 2;
}

/* libfuse's own loop has none. */
static int make_loop(struct daemon *d)
{
	const struct cf_loop_opts opts = {
		.n_threads = d->plan.n_workers, .n_ready = ready_threads(d), .waiting = waiting, .ending = ending, .ctx = d};
	int r = d->opts->transport == CF_TRANSPORT_IO_URING ? 0 : cf_loop_new(&d->loop, d->session, &opts);
	d->suspend.loop = d->loop;
	return r;
}

static int serve(struct daemon *d, struct cf_err *err)
{
	pthread_t thread;
	d->main_thread = pthread_self();
	int r = make_loop(d);
	if (r < 0)
		return cf_fail(err, r, "no memory for the threads that serve");
	r = pthread_create(&thread, NULL, control, d);
	if (r != 0)
		return cf_fail(err, -r, "cannot start a thread: %s", strerror(r));
	(void)!cf_volume_start(d->volume);
	if ((r = cf_control_start(&d->control, &d->ops, &d->suspend)) < 0)
		return cf_fail(err, r, "cannot start a thread: %s", strerror(-r));
	r = d->loop ? cf_loop_run(d->loop) : cf_session_loop(d->session, d->plan.n_workers);
	atomic_store(&d->ended, 1);
	pthread_cancel(thread);
	pthread_join(thread, NULL);
	return atomic_load(&d->ready)
			   ? 0
			   : cf_fail(err, r < 0 ? r : -EIO, "the kernel did not take up the mount on %s", d->opts->mountpoint);
}

/* Everything written reaches the image before the kernel's connection and the keys go. When this returns nothing is
 * mounted any more and the helper has ended; if a command's thread hangs in the kernel the end of the process has to
 * do. */
static int finish(struct daemon *d)
{
	int r = d->volume ? cf_volume_drain(d->volume) : 0;
	if (d->ops.voice)
		cf_voice_notice(d->ops.voice);
	if (!cf_control_stop(&d->control))
		return r;
	cf_loop_free(&d->loop);
	cf_session_free(&d->session);
	cf_helper_end(&d->helper);
	cf_volume_free(&d->volume);
	cf_image_close(&d->image);
	cf_secret_fini();
	return r;
}

_Noreturn void cf_daemon_main(int sock, const struct cf_serve_opts *opts)
{
	struct cf_err err = {0};
	struct daemon d = {.opts = opts, .sock = sock, .helper = -1, .signals = -1, .control.sock = -1};
	int r = start(&d, &err);
	if (r == 0)
		r = serve(&d, &err);
	int synced = finish(&d);
	if (r < 0 && !atomic_load(&d.ready))
		(void)!cf_ipc_answer(d.sock, CF_IPC_ERROR, r, err.text);
	_exit(r < 0 || synced < 0);
}
