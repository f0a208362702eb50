/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* session.c - mounts the volume with the options it must always have.
 *
 * Invariant: no mount without default_permissions, nosuid and nodev: the low-level library checks no permission itself
 * (HAZARDS 7). What libfuse and the setuid fusermount3 write to standard error is caught and becomes one line. */
#include "config.h"

#include "cryptfuse/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cryptfuse/err.h"
#include "cryptfuse/ops_slots.h"

/* ---- options ---- */

static int build_options(const struct cf_ops *ops, char **out)
{
	char fixed[160], fsname[PATH_MAX + 16];
	const struct cf_serve_opts *o = ops->opts;
	snprintf(fixed, sizeof(fixed), "default_permissions,nosuid,nodev,subtype=cryptfuse,max_read=%u%s%s%s%s%s",
			 cf_ops_io_bytes(ops), ops->plan->access == CF_READ_ONLY ? ",ro" : "",
			 o->share == CF_SHARE_OTHER ? ",allow_other" : "", o->share == CF_SHARE_ROOT ? ",allow_root" : "",
			 o->debug ? ",debug" : "", cf_ops_transport_option(o->transport));
	snprintf(fsname, sizeof(fsname), "fsname=%s", o->image);
	/* The name may hold commas and backslashes; libfuse passes it on to fusermount3 escaped as well. */
	return fuse_opt_add_opt(out, fixed) == 0 && fuse_opt_add_opt_escaped(out, fsname) == 0 ? 0 : -ENOMEM;
}

static int new_session(struct fuse_session **out, struct cf_ops *ops, struct cf_err *err)
{
	CF_CLEANUP(cf_freep) char *options = NULL;
	if (build_options(ops, &options) < 0)
		return cf_fail(err, -ENOMEM, "no memory for the mount options");
	char *argv[] = {(char *)"cryptfuse", (char *)"-o", options, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);
	*out = fuse_session_new(&args, &cf_ops_table, sizeof(cf_ops_table), ops);
	fuse_opt_free_args(&args);
	return *out ? 0 : -EINVAL;
}

/* ---- what the mount said ---- */

/** What a message of libfuse or fusermount3 means, and what to do about it. The first line that fits counts. */
static const struct {
	const char *part;
	int code;
	const char *advice;
} meanings[] = {
	{"user_allow_other", -EPERM, "--allow-root and --allow-other need the line user_allow_other in /etc/fuse.conf"},
	{"failed to open /dev/fuse: Permission denied", -EACCES,
	 "no permission for /dev/fuse: FUSE is closed to this user"},
	{"device not found", -ENODEV, "there is no /dev/fuse here: the kernel's fuse module is not loaded"},
	{"failed to exec", -ENODEV, "fusermount3 is missing (Debian: apt install fuse3)"},
	{"too many FUSE filesystems", -EBUSY, "this user has too many FUSE mounts (mount_max in /etc/fuse.conf)"},
	{"no write access", -EACCES, NULL},
	{"not owned by user", -EACCES, NULL},
	{"Permission denied", -EACCES, NULL},
	{"not permitted", -EPERM, NULL},
	{"busy", -EBUSY, NULL},
	{"No such", -ENOENT, NULL},
	{"memory allocation failed", -ENOMEM, NULL},
	{"failed to allocate", -ENOMEM, NULL},
	{"failed to init", -ENOMEM, NULL},
};

/* The last line of @text, without its end. */
static char *last_line(char *text)
{
	size_t n = strlen(text);
	while (n > 0 && text[n - 1] == '\n')
		text[--n] = '\0';
	char *start = strrchr(text, '\n');
	return start ? start + 1 : text;
}

static int explain(const char *mountpoint, char *text, struct cf_err *err)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(meanings); i++)
		if (strstr(text, meanings[i].part))
			return cf_fail(err, meanings[i].code, "cannot mount on %s: %s", mountpoint,
						   meanings[i].advice ? meanings[i].advice : last_line(text));
	return cf_fail(err, -EIO, "cannot mount on %s: %s", mountpoint,
				   *text ? last_line(text) : "libfuse does not say why");
}

static int make_and_mount(struct fuse_session **out, struct cf_ops *ops, struct cf_err *err)
{
	CF_CLEANUP(cf_session_free) struct fuse_session *se = NULL;
	int r = new_session(&se, ops, err);
	if (r == 0)
		r = fuse_session_mount(se, ops->opts->mountpoint);
	if (r == 0 && cf_ops_own_killpriv(ops, se) < 0) {
		fuse_session_unmount(se);
		r = cf_fail(err, -ENOMEM, "no memory for the FUSE session");
	}
	if (r == 0)
		*out = cf_take(se);
	return r;
}

/* Standard error goes to a memory file meanwhile: libfuse's own lines, and those of the child it starts. */
int cf_session_mount(struct fuse_session **out, struct cf_ops *ops, struct cf_err *err)
{
	char text[2048] = "";
	CF_CLEANUP(cf_close_fd) int said = memfd_create("mount messages", MFD_CLOEXEC);
	CF_CLEANUP(cf_close_fd) int saved = fcntl(2, F_DUPFD_CLOEXEC, 3);
	if (said < 0 || saved < 0 || dup2(said, 2) < 0)
		return cf_fail(err, -errno, "cannot redirect standard error: %s", strerror(errno));
	int r = make_and_mount(out, ops, err);
	ssize_t n = pread(said, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	if (dup2(saved, 2) < 0) {
		if (r == 0)
			fuse_session_unmount(*out);
		return cf_fail(err, -errno, "cannot give standard error back: %s", strerror(errno));
	}
	if (ops->opts->debug)
		fputs(text, stderr);
	return r == 0 || err->code ? r : explain(ops->opts->mountpoint, text, err);
}

static void free_config(struct fuse_loop_config **c)
{
	if (*c)
		fuse_loop_cfg_destroy(*c);
	*c = NULL;
}

int cf_session_loop(struct fuse_session *se, unsigned n_threads)
{
	CF_CLEANUP(free_config) struct fuse_loop_config *c = fuse_loop_cfg_create();
	if (!c)
		return -ENOMEM;
	fuse_loop_cfg_set_max_threads(c, n_threads);
	fuse_loop_cfg_set_idle_threads(c, n_threads);
	fuse_loop_cfg_set_clone_fd(c, 0);
	int r = fuse_session_loop_mt(se, c);
	return r > 0 ? -EIO : r;
}

void cf_session_free(struct fuse_session **se)
{
	if (*se)
		fuse_session_destroy(*se);
	*se = NULL;
}
