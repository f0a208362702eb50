/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* filesystems.c - the table of file systems, and of what must be opened in another way.
 *
 * An ordinary user has FUSE programs, root the kernel's own, and the programs where the kernel lacks it. Read-only
 * means that not even a journal is replayed. No option lets others in unless that was asked for. */
#include "config.h"

#include "filesystems.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "cryptfuse/err.h"

/** Whom a program serves. exfat-fuse 1.3 gives fusermount3 an option that it does not know, unless it runs as root. */
enum user { ANYBODY, ROOT_ONLY };

struct filesystem {
	const char *type;
	const char *kernel, *kernel_ro; /* its name there; what makes it read-only, beside ro */
	const char *program, *package;  /* NULL: only the kernel has it */
	const char *flag;               /* before the file; NULL none */
	const char *rw, *ro;            /* NULL rw: it cannot write */
	const char *mine;               /* for one who does not share it */
	enum user user;
};

static const struct filesystem table[] = {
	{"ext4", "ext4", "noload", "fuse2fs", "fuse2fs", NULL, "rw", "ro,norecovery", "fakeroot", ANYBODY},
	{"ext3", "ext3", "noload", "fuse2fs", "fuse2fs", NULL, "rw", "ro,norecovery", "fakeroot", ANYBODY},
	{"ext2", "ext2", NULL, "fuse2fs", "fuse2fs", NULL, "rw", "ro,norecovery", "fakeroot", ANYBODY},
	{"ntfs", "ntfs3", NULL, "ntfs-3g", "ntfs-3g", NULL, "rw", "ro", "no_def_opts,silent", ANYBODY},
	{"exfat", "exfat", NULL, "mount.exfat-fuse", "exfat-fuse", NULL, "rw", "ro", NULL, ROOT_ONLY},
	{"vfat", "vfat", NULL, "fusefat", "fusefat", NULL, "rw+", "ro", NULL, ANYBODY},
	{"squashfs", "squashfs", NULL, "squashfuse", "squashfuse", NULL, NULL, "ro", NULL, ANYBODY},
	{"iso9660", "iso9660", NULL, "fuseiso", "fuseiso", "-n", NULL, "ro", NULL, ANYBODY},
	{"udf", "udf", NULL, NULL, NULL, NULL, "rw", "ro", NULL, ANYBODY},
	{"xfs", "xfs", "norecovery", NULL, NULL, NULL, "rw", "ro", NULL, ANYBODY},
	{"btrfs", "btrfs", "rescue=nologreplay", NULL, NULL, NULL, "rw", "ro", NULL, ANYBODY},
	{"f2fs", "f2fs", "norecovery", NULL, NULL, NULL, "rw", "ro", NULL, ANYBODY},
	{"erofs", "erofs", NULL, NULL, NULL, NULL, NULL, "ro", NULL, ANYBODY},
	{"hfsplus", "hfsplus", NULL, NULL, NULL, NULL, "rw", "ro", NULL, ANYBODY},
	{"jfs", "jfs", NULL, NULL, NULL, NULL, "rw", "ro", NULL, ANYBODY},
	{"reiserfs", "reiserfs", "nolog", NULL, NULL, NULL, "rw", "ro", NULL, ANYBODY},
	{"minix", "minix", NULL, NULL, NULL, NULL, "rw", "ro", NULL, ANYBODY},
};

struct other {
	const char *type, *what;
};

/* What libblkid finds that is no file system, or none that one file can hold. */
static const struct other others[] = {
	{"LVM2_member", "an LVM physical volume, whose logical volumes only root can activate: losetup, then vgchange -ay"},
	{"crypto_LUKS", "another LUKS volume: 'cryptfuse open' this one, then 'cryptfuse mount' the file it shows"},
	{"BitLocker", "another BitLocker volume: 'cryptfuse open' this one, then 'cryptfuse mount' the file it shows"},
	{"swap", "swap space, not a file system"},
	{"swsuspend", "a hibernated system's memory, not a file system"},
	{"zfs_member", "part of a ZFS pool, which only root can import: losetup, then zpool import"},
	{"linux_raid_member", "part of a RAID array, which only root can assemble: losetup, then mdadm --assemble"},
	{"ambiguous", "more than one signature: say which is right with --fs"},
	{"apfs", "APFS, which Linux cannot mount"},
};

static const struct filesystem *find_row(const char *type)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(table); i++)
		if (!strcmp(type, table[i].type))
			return &table[i];
	return NULL;
}

static int refuse_type(const struct cli_mount_job *job, struct cf_err *err)
{
	for (size_t i = 0; i < CF_ARRAY_LEN(others); i++)
		if (!strcmp(job->type, others[i].type))
			return cf_fail(err, -EINVAL, "inside is %s", others[i].what);
	return cf_fail(err, -EINVAL, "%s: no program is known here that mounts it; 'cryptfuse open' shows it as a file",
				   job->type);
}

/* ---- programs ---- */

/* Where distributions keep such programs; an ordinary user's PATH often lacks it. */
int cli_program_locate(const char *program, char path[static PATH_MAX])
{
	static const char *const folders[] = {"/usr/sbin", "/sbin",           "/usr/bin",
										  "/bin",      "/usr/local/sbin", "/usr/local/bin"};
	for (size_t i = 0; i < CF_ARRAY_LEN(folders); i++) {
		snprintf(path, PATH_MAX, "%s/%s", folders[i], program);
		if (access(path, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

static void add_option(struct cli_mounter *m, const char *text)
{
	const size_t len = strlen(m->options);
	if (text)
		snprintf(m->options + len, sizeof(m->options) - len, "%s%s", len ? "," : "", text);
}

static int add_more(const struct cli_mount_job *job, struct cli_mounter *m, struct cf_err *err)
{
	add_option(m, job->more);
	return strlen(m->options) + 1 < sizeof(m->options)
			   ? 0
			   : cf_fail(err, -EINVAL, "--mount-options: more than can be told");
}

static void set_argv(struct cli_program *p, const char *const words[static CLI_PROGRAM_ARGS])
{
	unsigned n = 0;
	for (unsigned i = 0; i < CLI_PROGRAM_ARGS - 1; i++)
		if (words[i])
			p->argv[n++] = words[i];
	p->argv[n] = NULL;
}

/* fuse2fs 1.47 crashes where it should replay a journal; e2fsck does it well, and does nothing where there is none to
 * replay. Without e2fsck fuse2fs has to do. */
static void replay_before(const struct filesystem *fs, const struct cli_mount_job *job, struct cli_mounter *m)
{
	if (strcmp(fs->program, "fuse2fs") != 0 || job->access == CF_READ_ONLY)
		return;
	if (cli_program_locate("e2fsck", m->before.path) != 0)
		m->before.path[0] = '\0';
	m->before.ok_status = 1; /* it has corrected something */
	set_argv(&m->before, (const char *const[CLI_PROGRAM_ARGS]){"e2fsck", "-p", "-E", "journal_only", job->file});
}

static const char *or_udisks(void)
{
	char path[PATH_MAX];
	return cli_program_locate("udisksctl", path) == 0 ? ", or --udisks" : "";
}

static int missing(const struct filesystem *fs, struct cf_err *err)
{
	if (!fs->program)
		return cf_fail(
			err, -ENOENT,
			"%s: only the kernel can mount it, and so only root%s; 'cryptfuse open' shows the volume as a file",
			fs->type, or_udisks());
	return cf_fail(err, -ENOENT, "%s: needs %s (Debian: apt install %s), or root%s", fs->type, fs->program, fs->package,
				   or_udisks());
}

/* A setuid program is root to FUSE, whatever it has dropped. */
static int is_setuid(const char *path)
{
	struct stat st;
	return geteuid() != 0 && stat(path, &st) == 0 && (st.st_mode & S_ISUID);
}

static int by_daemon(const struct filesystem *fs, const struct cli_mount_job *job, struct cli_mounter *m,
					 struct cf_err *err)
{
	struct cf_err why = {0};
	*m = (struct cli_mounter){.mount.purpose = CLI_MOUNTS};
	if (fs->user == ROOT_ONLY && geteuid() != 0)
		return cf_fail(
			err, -EPERM,
			"%s: %s works for root only: 'sudo cryptfuse mount' mounts it%s, 'cryptfuse open' shows the volume as a "
			"file to every user",
			fs->type, fs->program, or_udisks());
	if (!fs->program || cli_program_locate(fs->program, m->mount.path) != 0)
		return missing(fs, err);
	m->mount.access = job->access;
	if (is_setuid(m->mount.path) && cli_fuse_check(CF_SHARE_ROOT, &why) != 0)
		return cf_fail(err, -EPERM,
					   "%s: %s works only where /etc/fuse.conf has a line 'user_allow_other' (only root can add it)",
					   fs->type, fs->program);
	add_option(m, job->access == CF_READ_ONLY || !fs->rw ? fs->ro : fs->rw);
	if (job->share == CF_SHARE_OWNER)
		add_option(m, fs->mine);
	else
		add_option(m,
				   job->share == CF_SHARE_ROOT ? "allow_root,default_permissions" : "allow_other,default_permissions");
	set_argv(&m->mount,
			 (const char *const[CLI_PROGRAM_ARGS]){fs->program, fs->flag, job->file, job->directory, "-o", m->options});
	replay_before(fs, job, m);
	return add_more(job, m, err);
}

static int by_kernel(const struct filesystem *fs, const struct cli_mount_job *job, struct cli_mounter *m,
					 struct cf_err *err)
{
	*m = (struct cli_mounter){.mount.purpose = CLI_MOUNTS, .by_kernel = fs};
	if (cli_program_locate("mount", m->mount.path) != 0)
		return cf_fail(err, -ENOENT, "%s: needs mount (Debian: apt install mount)", fs->type);
	add_option(m, "loop,nosuid,nodev");
	add_option(m, job->access == CF_READ_ONLY || !fs->rw ? "ro" : "rw");
	if (job->access == CF_READ_ONLY)
		add_option(m, fs->kernel_ro);
	set_argv(&m->mount, (const char *const[CLI_PROGRAM_ARGS]){"mount", "-i", "-t", fs->kernel, "-o", m->options,
															  job->file, job->directory});
	return add_more(job, m, err);
}

/* ---- the kernel's own ---- */

static int kernel_has(const char *name)
{
	CF_CLEANUP(cf_close_stream) FILE *f = fopen("/proc/filesystems", "re");
	char line[128];
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		const char *tab = strrchr(line, '\t');
		if (!strcmp(tab ? tab + 1 : line, name))
			return 1;
	}
	return 0;
}

/* A module may bring it; only where a program could do it as well is the kernel's list the last word. */
static int prefer_kernel(const struct filesystem *fs)
{
	char path[PATH_MAX];
	return geteuid() == 0 && (kernel_has(fs->kernel) || !fs->program || cli_program_locate(fs->program, path) != 0);
}

int cli_mounter_find(const struct cli_mount_job *job, struct cli_mounter *out, struct cf_err *err)
{
	const struct filesystem *fs = find_row(job->type);
	if (!fs)
		return refuse_type(job, err);
	return prefer_kernel(fs) ? by_kernel(fs, job, out, err) : by_daemon(fs, job, out, err);
}

int cli_mounter_kernel_type(const struct cli_mount_job *job, const char **type, struct cf_err *err)
{
	const struct filesystem *fs = find_row(job->type);
	if (!fs)
		return refuse_type(job, err);
	*type = fs->kernel;
	return 0;
}

int cli_mounter_explain(const struct cli_mounter *m, int rc, const struct cf_err *why, struct cf_err *err)
{
	const struct filesystem *fs = m->by_kernel;
	if (!fs || rc == -EINTR || kernel_has(fs->kernel))
		return cf_fail(err, rc, "%s", why->text);
	if (!fs->program)
		return cf_fail(err, -ENODEV, "%s: the kernel has no %s, and no program is known here that mounts it", fs->type,
					   fs->kernel);
	return cf_fail(err, -ENODEV, "%s: the kernel has no %s, and %s is missing (Debian: apt install %s)", fs->type,
				   fs->kernel, fs->program, fs->package);
}
