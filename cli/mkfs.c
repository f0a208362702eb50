/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* mkfs.c - the table of file systems, and the program of each run on a file in memory.
 *
 * The volume is noise where nothing was written, but a file in memory reads as zeros there, and a program that sees a
 * file may rely on it. So it is told not to take holes for zeros; those that write every zero they need have no such
 * switch. Plaintext never reaches a disk. */
#include "config.h"

#include "mkfs.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "cryptfuse/err.h"

#define CHILD_FD 3
#define ARGS_MAX 8
#define E2FS_EXTENDED "nodiscard,lazy_itable_init=1,lazy_journal_init=1,root_owner"

struct cli_mkfs {
	const char *name, *program, *package;
	const char *args[ARGS_MAX - 2]; /* before the path */
};

static const struct cli_mkfs table[] = {
	{"ext4", "mkfs.ext4", "e2fsprogs", {"-q", "-F", "-E", E2FS_EXTENDED}},
	{"ext3", "mkfs.ext3", "e2fsprogs", {"-q", "-F", "-E", E2FS_EXTENDED}},
	{"ext2", "mkfs.ext2", "e2fsprogs", {"-q", "-F", "-E", "nodiscard,root_owner"}},
	{"vfat", "mkfs.vfat", "dosfstools", {NULL}},
	{"exfat", "mkfs.exfat", "exfatprogs", {NULL}},
	{"ntfs", "mkntfs", "ntfs-3g", {"-q", "-Q", "-F"}},
	{"xfs", "mkfs.xfs", "xfsprogs", {"-q", "-f", "-K"}},
	{"btrfs", "mkfs.btrfs", "btrfs-progs", {"-q", "-f", "-K"}},
};

const char *cli_mkfs_name(size_t i)
{
	return i < CF_ARRAY_LEN(table) ? table[i].name : NULL;
}

/* Where distributions keep such programs; an ordinary user's PATH often lacks it. */
static const char *const folders[] = {"/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin"};

static int locate(const char *program, char path[static PATH_MAX])
{
	for (size_t i = 0; i < CF_ARRAY_LEN(folders); i++) {
		snprintf(path, PATH_MAX, "%s/%s", folders[i], program);
		if (access(path, X_OK) == 0)
			return 0;
	}
	return -ENOENT;
}

static int refuse_name(const char *name, struct cf_err *err)
{
	char names[128] = "";
	for (size_t i = 0; i < CF_ARRAY_LEN(table); i++) {
		const size_t len = strlen(names);
		snprintf(names + len, sizeof(names) - len, "%s%s", i ? ", " : "", table[i].name);
	}
	return cf_fail(err, -EINVAL, "--mkfs %s: no such file system here; there are %s", name, names);
}

int cli_mkfs_find(const char *name, const struct cli_mkfs **out, struct cf_err *err)
{
	char path[PATH_MAX];
	for (size_t i = 0; i < CF_ARRAY_LEN(table); i++) {
		if (strcmp(name, table[i].name) != 0)
			continue;
		*out = &table[i];
		if (locate(table[i].program, path) == 0)
			return 0;
		return cf_fail(err, -ENOENT, "--mkfs %s needs the program %s (Debian: apt install %s)", name, table[i].program,
					   table[i].package);
	}
	return refuse_name(name, err);
}

/* What the program said: on failure, and with --verbose. */
static void pass_on(int said)
{
	char text[4096];
	const ssize_t n = pread(said, text, sizeof(text) - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	char *save = NULL;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		cli_say("%s", line);
}

static int wait_for(pid_t child)
{
	int status;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The child has the file in memory as CHILD_FD, what it says in @said, and nothing else of ours. Returns its exit
 * status; -1 if it was killed; 127 if it could not be started, as a shell has it. */
static int run(const struct cli_mkfs *fs, int file, int said)
{
	char path[PATH_MAX], target[32];
	char *argv[ARGS_MAX] = {(char *)(uintptr_t)fs->program};
	char *const env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", "UNIX_IO_NOZEROOUT=1", NULL};
	unsigned n = 1;
	pid_t child;
	posix_spawn_file_actions_t actions;
	snprintf(target, sizeof(target), "/proc/self/fd/%d", CHILD_FD);
	for (; fs->args[n - 1]; n++)
		argv[n] = (char *)(uintptr_t)fs->args[n - 1];
	argv[n] = target;
	if (locate(fs->program, path) != 0)
		return 127;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, said, STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO);
	posix_spawn_file_actions_adddup2(&actions, file, CHILD_FD);
	const int rc = posix_spawn(&child, path, &actions, NULL, argv, env);
	posix_spawn_file_actions_destroy(&actions);
	return rc ? 127 : wait_for(child);
}

int cli_mkfs_run(const struct cli_mkfs *fs, uint64_t bytes, unsigned verbose, int *out_fd, struct cf_err *err)
{
	CF_CLEANUP(cf_close_fd) int fd = memfd_create("cryptfuse file system", MFD_CLOEXEC);
	CF_CLEANUP(cf_close_fd) int said = memfd_create("cryptfuse mkfs output", MFD_CLOEXEC);
	if (fd < 0 || said < 0 || ftruncate(fd, (off_t)bytes) != 0)
		return cf_fail(err, -errno, "cannot make a file in memory: %s", strerror(errno));
	const int status = run(fs, fd, said);
	if (status || verbose)
		pass_on(said);
	if (status)
		return cf_fail(err, -EIO, "%s failed (%d): no file system was made", fs->program, status);
	*out_fd = fd;
	fd = -1;
	return 0;
}
