/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* mount.c - cryptfuse mount: open a volume, look inside, and mount the file system in it.
 *
 *     mount -- fork --> opener -- fork --> daemon      (as `open` does it, then the look inside)
 *       |                  ends              serves BASE/mount-XXXXXX/volume/volume
 *       `---- fork ----> keeper -- fork --> program   (mounter.h)
 *
 * The first process holds no secret and holds signals back, so that whatever becomes of the others it is there to undo
 * it all: a failure or a signal leaves nothing mounted, nothing running and no directory. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "choose.h"
#include "cli.h"
#include "cryptfuse/clock.h"
#include "cryptfuse/err.h"
#include "cryptfuse/mounts.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/session.h"
#include "cryptfuse/spec.h"
#include "mounter.h"
#include "udisks.h"
#include "undo.h"

#define ENDING_NS 20000000L

static const struct cli_option inner_options[] = {
	{.name = "fs",
	 .kind = CLI_STRING,
	 .arg = "TYPE",
	 .help = "the file system inside, e.g. ext4 (what is found)",
	 CLI_FIELD(fs)},
	{.name = "inner-partition",
	 .kind = CLI_NUMBER,
	 .arg = "N",
	 .help = "mount this partition of the volume (the one file system in it)",
	 CLI_FIELD(inner_partition),
	 .min = 1,
	 .max = 128},
	{.name = "mount-options",
	 .kind = CLI_STRING,
	 .arg = "OPTIONS",
	 .help = "for the program that mounts it, with commas between",
	 CLI_FIELD(mount_options)},
	{.name = "udisks",
	 .kind = CLI_SET,
	 .help = "let udisks mount it, by the kernel, at a place that udisks chooses",
	 CLI_FIELD(udisks),
	 .value = 1},
	{.name = "allow-root",
	 .kind = CLI_SET,
	 .help = "let root use the files too",
	 CLI_FIELD(share),
	 .value = CF_SHARE_ROOT},
	{.name = "allow-other",
	 .kind = CLI_SET,
	 .help = "let everybody use the files whom their modes permit",
	 CLI_FIELD(share),
	 .value = CF_SHARE_OTHER},
	{.name = NULL},
};

static const struct cli_group mount_groups[] = {
	{"Volume", cli_volume_options},
	{"Key", cli_key_options},
	{"From crypttab", cli_crypttab_options},
	{"File system", inner_options},
	{"Journal", cli_journal_options},
	{"General", cli_quiet_options},
	{"Help", cli_help_options},
	{"Accepted, without effect", cli_compat_options},
	{NULL, NULL},
};

/** What the opener found out, in memory that it shares with its parent. */
struct outcome {
	int rc;
	int is_open; /* the daemon serves; it must be closed by whoever gives up */
	struct cf_err err;
	struct cli_choice choice;
	struct cf_open_plan plan;
};

struct mounting {
	struct cli_opts o;
	struct cf_serve_opts serve;
	struct cli_place place;
	struct outcome *out;
	struct cli_signals signals;
};

/* ---- the opener ---- */

/* What `mount` was told beyond the volume, for the command that does the same again. */
static void add_own_words(const struct cli_opts *o, struct cf_open_plan *plan)
{
	char number[24];
	if (o->fs)
		cf_open_command_add(plan, "--fs", o->fs);
	if (o->inner_partition) {
		snprintf(number, sizeof(number), "%llu", (unsigned long long)o->inner_partition);
		cf_open_command_add(plan, "--inner-partition", number);
	}
	if (o->mount_options)
		cf_open_command_add(plan, "--mount-options", o->mount_options);
	if (o->udisks)
		cf_open_command_add(plan, "--udisks", NULL);
	if (o->share != CF_SHARE_OWNER)
		cf_open_command_add(plan, o->share == CF_SHARE_ROOT ? "--allow-root" : "--allow-other", NULL);
}

static int serve_volume(const struct cli_opts *o, struct cf_serve *daemon, struct cf_open_plan *plan,
						struct cf_err *err)
{
	const struct cf_open_ui ui = cli_open_ui(o);
	CF_CLEANUP(cf_opening_fini) struct cf_opening opening = {0};
	int rc = cli_guard_secrets(err);
	if (rc || (rc = cf_open_plan(&o->volume, &ui, &opening, err)))
		return rc;
	cli_say_plan(o, o->args[0], &opening.plan);
	if ((rc = cf_open_key(&o->volume, &ui, &opening, err)))
		return rc;
	cf_open_command(&o->volume, &opening.plan);
	add_own_words(o, &opening.plan);
	*plan = opening.plan;
	rc = cf_serve_start(daemon, plan, opening.key, &opening.image, &ui, err);
	opening.new_journal = opening.new_journal && rc;
	return rc;
}

static int open_and_look(struct mounting *m)
{
	struct cf_serve daemon = {.sock = -1};
	struct outcome *out = m->out;
	char path[2 * PATH_MAX];
	int rc = cf_serve_fork(&daemon, &m->serve, &out->err);
	if (rc)
		return rc;
	rc = serve_volume(&m->o, &daemon, &out->plan, &out->err);
	cf_secret_fini();
	if (rc) {
		cf_serve_abandon(&daemon);
		return rc;
	}
	struct cli_opts quiet = m->o;
	quiet.batch = 1;
	(void)!cli_look_inside(&quiet, &m->serve, &out->plan, &daemon);
	snprintf(path, sizeof(path), "%s/%s", m->serve.mountpoint, m->serve.name);
	return cli_choose(&m->o, path, m->serve.name, &out->choice, &out->err);
}

/* ---- the first process ---- */

/* Wait for @pid; a signal that is held is passed on once, and stays. */
static int wait_passing_on(pid_t pid, const struct cli_signals *signals)
{
	CF_CLEANUP(cf_close_fd) int end = (int)syscall(SYS_pidfd_open, pid, 0);
	CF_CLEANUP(cf_close_fd) int held = signalfd(-1, &signals->held, SFD_CLOEXEC | SFD_NONBLOCK);
	struct pollfd p[] = {{.fd = end, .events = POLLIN}, {.fd = held, .events = POLLIN}};
	int status = 0;
	while (end >= 0 && (poll(p, CF_ARRAY_LEN(p), -1) < 0 || !p[0].revents))
		if (p[1].revents) {
			kill(pid, SIGTERM);
			p[1].fd = -1;
		}
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* All that an opener which failed or was killed has left behind: the daemon, and its mount. */
static void wait_for_orphans(const struct cli_place *place)
{
	const int64_t deadline_ms = cf_now_ms() + (int64_t)CLI_ENDING_TIMEOUT_S * 1000;
	const struct timespec pause = {.tv_nsec = ENDING_NS};
	pid_t pid;
	while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0 && cf_now_ms() < deadline_ms) {
		if (pid == 0 && cf_mounts_top(place->volume) == CF_TOP_CRYPTFUSE)
			(void)!cf_mounts_unmount(place->volume, CF_UNMOUNT_NORMAL, NULL);
		if (pid == 0)
			nanosleep(&pause, NULL);
	}
}

static int open_volume(struct mounting *m, struct cf_err *err)
{
	struct outcome *out = m->out;
	out->rc = -EINTR;
	const pid_t opener = fork();
	if (opener < 0)
		return cf_fail(err, -errno, "cannot fork: %s", strerror(errno));
	if (opener == 0) {
		cli_let_signals(&m->signals);
		out->rc = open_and_look(m);
		_exit(0);
	}
	wait_passing_on(opener, &m->signals);
	if (out->rc == 0)
		return 0;
	wait_for_orphans(&m->place);
	return cf_fail(err, out->rc, "%s", out->err.code ? out->err.text : "interrupted");
}

static int run_programs(struct mounting *m, const struct cli_mounter *mounter, const struct cf_mount *before,
						struct cf_err *err)
{
	const enum cli_verbosity verbosity = m->o.verbose ? CLI_VERBOSE : CLI_QUIET;
	struct cf_err why = {0};
	int rc = 0;
	if (mounter->before.path[0])
		rc = cli_mounter_run(&mounter->before, &m->place, before, verbosity, &m->signals, err);
	if (rc || (rc = cli_interrupted(&m->signals)))
		return rc;
	rc = cli_mounter_run(&mounter->mount, &m->place, before, verbosity, &m->signals, &why);
	return rc ? cli_mounter_explain(mounter, rc, &why, err) : 0;
}

static int run_mounter(struct mounting *m, const struct cli_mounter *mounter, struct cf_err *err)
{
	const char *program = mounter->mount.argv[0], *target = m->place.target;
	struct cf_mount before = {0};
	int rc = cf_mounts_find_any(target, &before);
	if (rc < 0)
		return cf_fail(err, rc, "the list of mounts cannot be read: %s", strerror(-rc));
	rc = run_programs(m, mounter, &before, err);
	/* Again, for a keeper that was killed before it could. */
	const int is_there = cli_place_record(&m->place, &before, err);
	if (rc || is_there < 0)
		return rc ? rc : is_there;
	if (!is_there)
		return cf_fail(err, -EIO, "%s ended without an error, but nothing is mounted at %s", program, target);
	rc = cli_answers(target);
	return rc ? cf_fail(err, rc, "%s has mounted %s, but it does not answer: %s", program, target, strerror(-rc)) : 0;
}

/* Only what --fs says overrules what udisks finds. */
static int mount_by_udisks(const struct mounting *m, const struct cli_mount_job *job, struct cf_err *err)
{
	const char *type = NULL;
	int rc = cli_mounter_kernel_type(job, &type, err);
	if (rc ||
		(rc = cli_udisks_mount(&m->place, job, m->o.fs ? type : NULL, m->o.verbose ? CLI_VERBOSE : CLI_QUIET, err)))
		return rc;
	return cli_interrupted(&m->signals);
}

static int mount_inside(struct mounting *m, struct cf_err *err)
{
	char file[2 * PATH_MAX];
	struct cli_mounter mounter;
	snprintf(file, sizeof(file), "%s/%s", m->place.volume, m->out->choice.name);
	const struct cli_mount_job job = {.type = m->out->choice.type,
									  .file = file,
									  .directory = m->place.target,
									  .access = m->o.volume.access,
									  .share = m->o.share,
									  .more = m->o.mount_options};
	if (m->o.udisks)
		return mount_by_udisks(m, &job, err);
	int rc = cli_mounter_find(&job, &mounter, err);
	if (rc || (rc = run_mounter(m, &mounter, err)))
		return rc;
	return cli_interrupted(&m->signals);
}

static void say_mounted(const struct mounting *m)
{
	char size[32], cipher[CF_SPEC_TEXT], where[32] = "", at[PATH_MAX];
	const struct cf_open_plan *plan = &m->out->plan;
	const struct cli_choice *c = &m->out->choice;
	if (m->o.batch)
		return;
	cli_format_bytes(plan->bytes, size, sizeof(size));
	cf_spec_format_cipher(&plan->cipher, cipher, sizeof(cipher));
	if (c->partition)
		snprintf(where, sizeof(where), " in partition %u", c->partition);
	const int elsewhere = cli_place_read(&m->place, "at", at);
	cli_say("%s is mounted at %s: %s, %s, %s%s, %s%s%s%s", m->o.args[0], elsewhere ? at : m->place.target, plan->type,
			size, cipher, plan->access == CF_READ_ONLY ? ", read-only" : "", c->type, c->label[0] ? ", label " : "",
			c->label, where);
	if (elsewhere)
		cli_say("not at %s, since udisks chooses the place; 'cryptfuse umount %s' undoes it", m->place.target,
				m->place.target);
}

/* ---- before anything is done ---- */

static int check_target(struct mounting *m, struct cf_serve_opts *target, struct cf_err *err)
{
	char abs[PATH_MAX], by[PATH_MAX];
	struct cli_place old = {.lock = -1};
	struct cf_mount there;
	if (cf_mounts_resolve(m->o.args[1], abs) == 0 && cli_place_find(abs, &old)) {
		const int is_there = cli_place_read(&old, "at", by) ||
							 (cf_mounts_find_any(abs, &there) == 1 && cli_place_is_device(&old, &there));
		cli_place_fini(&old);
		return cf_fail(err, -EBUSY,
					   is_there ? "%s: something is mounted here already; 'cryptfuse umount %s' undoes it"
								: "%s: what was mounted here is not closed yet; 'cryptfuse umount %s' waits for it",
					   abs, abs);
	}
	int rc = cli_mountpoint_check(m->o.args[1], m->o.args[0], target, err);
	if (!rc)
		rc = cli_journal_check(m->o.volume.journal, target, err);
	if (rc)
		return rc;
	if (target->kind != CF_MOUNT_DIRECTORY)
		return cf_fail(err, -ENOTDIR, "%s is not a directory", m->o.args[1]);
	if (m->o.udisks && (rc = cli_udisks_check(m->o.share, err)))
		return rc;
	return cli_fuse_check(m->o.share, err);
}

/* A setuid program that mounts is root to the volume's file. Where sharing is permitted, root is let in: he can do as
 * he likes anyway. */
static enum cf_mount_share volume_share(void)
{
	struct cf_err why = {0};
	return geteuid() != 0 && cli_fuse_check(CF_SHARE_ROOT, &why) == 0 ? CF_SHARE_ROOT : CF_SHARE_OWNER;
}

static int prepare(struct mounting *m, struct cf_err *err)
{
	int rc = check_target(m, &m->serve, err);
	if (rc || (rc = cli_place_make(m->serve.mountpoint, &m->place, err)))
		return rc;
	snprintf(m->serve.directory, sizeof(m->serve.directory), "%s", m->serve.mountpoint);
	snprintf(m->serve.mountpoint, sizeof(m->serve.mountpoint), "%s", m->place.volume);
	snprintf(m->serve.name, sizeof(m->serve.name), "%s", m->o.name);
	m->serve.mode = m->o.volume.access == CF_READ_ONLY ? 0400 : 0600;
	m->serve.stop_timeout_s = (unsigned)m->o.stop_timeout_s;
	m->serve.share = volume_share();
	m->out = mmap(NULL, sizeof(*m->out), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (m->out == MAP_FAILED)
		return cf_fail(err, -ENOMEM, "out of memory");
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	return 0;
}

static int do_all(struct mounting *m, struct cf_err *err)
{
	int rc = prepare(m, err);
	if (rc || (rc = open_volume(m, err)) || (rc = mount_inside(m, err)))
		return rc;
	say_mounted(m);
	return 0;
}

static int run_mount(const struct cli_opts *given, struct cf_err *err)
{
	struct mounting m = {.o = *given, .place = {.lock = -1}};
	struct cf_err undoing = {0};
	m.o.volume.image = m.o.args[0];
	cli_hold_signals(&m.signals);
	const int rc = do_all(&m, err);
	if (rc && m.place.dir[0] && cli_undo(&m.place, &undoing) != 0)
		cli_say("it could not be undone: %s", undoing.text);
	cli_place_fini(&m.place);
	cli_let_signals(&m.signals);
	return rc;
}

const struct cli_command cli_mount = {
	.name = "mount",
	.args = "IMAGE DIRECTORY",
	.about = "Open a volume and mount the file system in it at DIRECTORY, without root",
	.min_args = 2,
	.max_args = 2,
	.groups = mount_groups,
	.run = run_mount,
};
