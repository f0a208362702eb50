/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* dm.c - see dm.h. Source of the ioctl interface: Linux include/uapi/linux/dm-ioctl.h and loop.h. */
#include "config.h"

#include "dm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/dm-ioctl.h>
#include <linux/loop.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define SPEC_AT ((sizeof(struct dm_ioctl) + 7) & ~(size_t)7)

static int fail(const char *what)
{
	int code = -errno;
	fprintf(stderr, "%s: %s\n", what, strerror(-code));
	return code;
}

static void die(const char *what)
{
	fail(what);
	exit(99);
}

void *aligned_new(size_t len)
{
	void *p = NULL;
	if (posix_memalign(&p, 4096, len) != 0)
		die("memory");
	memset(p, 0, len);
	return p;
}

void whole_pread(int fd, void *buf, size_t len, uint64_t off)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pread(fd, (char *)buf + done, len - done, (off_t)(off + done));
		if (n <= 0)
			die("read");
		done += (size_t)n;
	}
}

void whole_pwrite(int fd, const void *buf, size_t len, uint64_t off)
{
	for (size_t done = 0; done < len;) {
		ssize_t n = pwrite(fd, (const char *)buf + done, len - done, (off_t)(off + done));
		if (n <= 0)
			die("write");
		done += (size_t)n;
	}
}

void dm_pread(const struct dm *d, void *buf, size_t len, uint64_t off)
{
	whole_pread(d->node, buf, len, off);
}

void dm_pwrite(const struct dm *d, const void *buf, size_t len, uint64_t off)
{
	whole_pwrite(d->node, buf, len, off);
}

static struct dm_ioctl request(const struct dm *d, size_t size)
{
	struct dm_ioctl r = {.version = {DM_VERSION_MAJOR, 0, 0}, .data_size = (uint32_t)size, .data_start = SPEC_AT};
	memcpy(r.name, d->name, sizeof(d->name));
	return r;
}

/* A command that says no more than the device's name. */
static int command(const struct dm *d, unsigned long number, struct dm_ioctl *reply)
{
	*reply = request(d, sizeof(*reply));
	return ioctl(d->control, number, reply) == 0 ? 0 : -errno;
}

static int loop_open(struct dm *d, uint64_t bytes)
{
	struct loop_config config = {.info.lo_flags = LO_FLAGS_AUTOCLEAR};
	struct stat st;
	char path[32];
	CF_CLEANUP(cf_close_fd) int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
	int n = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
	if (n < 0)
		return fail("/dev/loop-control");
	d->backing = memfd_create("backing", MFD_CLOEXEC);
	if (d->backing < 0 || ftruncate(d->backing, (off_t)bytes) != 0)
		return fail("memfd_create");
	snprintf(path, sizeof(path), "/dev/loop%d", n);
	d->loop = open(path, O_RDWR | O_CLOEXEC);
	config.fd = (uint32_t)d->backing;
	if (d->loop < 0 || ioctl(d->loop, LOOP_CONFIGURE, &config) != 0 || fstat(d->loop, &st) != 0)
		return fail(path);
	snprintf(d->device, sizeof(d->device), "%u:%u", major(st.st_rdev), minor(st.st_rdev));
	return 0;
}

/* The crypt target's version, out of the list of all. */
static int find_target(struct dm *d)
{
	union {
		struct dm_ioctl head;
		char bytes[16384];
	} list = {.head = request(&(struct dm){0}, sizeof(list))};
	if (ioctl(d->control, DM_LIST_VERSIONS, &list) != 0)
		return fail("DM_LIST_VERSIONS");
	for (size_t at = list.head.data_start;;) {
		struct dm_target_versions v;
		memcpy(&v, list.bytes + at, sizeof(v));
		if (!strcmp(list.bytes + at + sizeof(v), "crypt")) {
			snprintf(d->target, sizeof(d->target), "%u.%u.%u", v.version[0] % 1000, v.version[1] % 1000,
					 v.version[2] % 1000);
			return 0;
		}
		if (!v.next)
			break;
		at += v.next;
	}
	fprintf(stderr, "this kernel has no crypt target\n");
	return -ENODEV;
}

int dm_open(struct dm *d, const char *name, uint64_t backing_bytes)
{
	struct dm_ioctl reply;
	*d = (struct dm){.control = open("/dev/mapper/control", O_RDWR | O_CLOEXEC),
					 .kmsg = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC),
					 .loop = -1,
					 .backing = -1,
					 .node = -1};
	snprintf(d->name, sizeof(d->name), "%s", name);
	if (d->control < 0 || d->kmsg < 0)
		return fail("/dev/mapper/control, /dev/kmsg");
	int rc = find_target(d);
	if (!rc)
		rc = loop_open(d, backing_bytes);
	if (rc)
		return rc;
	if (command(d, DM_DEV_CREATE, &reply) != 0)
		return fail("DM_DEV_CREATE");
	return 0;
}

void dm_close(struct dm *d)
{
	struct dm_ioctl reply;
	cf_close_fd(&d->node);
	if (d->control >= 0 && command(d, DM_DEV_REMOVE, &reply) != 0)
		fail("DM_DEV_REMOVE");
	cf_close_fd(&d->loop);
	cf_close_fd(&d->backing);
	cf_close_fd(&d->kmsg);
	cf_close_fd(&d->control);
}

/* What the kernel logged since the log was last read, one line. */
static void read_log(const struct dm *d, char why[static DM_WHY])
{
	char record[2048];
	ssize_t n;
	*why = '\0';
	while ((n = read(d->kmsg, record, sizeof(record) - 1)) > 0 || (n < 0 && errno == EPIPE)) {
		record[n < 0 ? 0 : n] = '\0';
		const char *text = strchr(record, ';');
		size_t len = strlen(why);
		if (text && strstr(text, "device-mapper"))
			snprintf(why + len, DM_WHY - len, "%s%.*s", len ? " | " : "", (int)strcspn(text + 1, "\n"), text + 1);
	}
}

/* The table as DM_TABLE_LOAD wants it: header, target, parameters. */
static struct dm_ioctl *load_request(const struct dm *d, uint64_t sectors, const char *params)
{
	struct dm_target_spec spec = {.length = sectors, .target_type = "crypt"};
	size_t size = SPEC_AT + sizeof(spec) + strlen(params) + sizeof(d->device) + 8;
	struct dm_ioctl *r = calloc(1, size);
	if (!r)
		die("memory");
	*r = request(d, size);
	r->target_count = 1;
	memcpy((char *)r + SPEC_AT, &spec, sizeof(spec));
	char *to = (char *)r + SPEC_AT + sizeof(spec);
	const char *at = strstr(params, DM_DEVICE);
	int head = at ? (int)(at - params) : (int)strlen(params);
	sprintf(to, "%.*s%s%s", head, params, at ? d->device : "", at ? at + strlen(DM_DEVICE) : "");
	return r;
}

/* The device appears with its first table. */
static void open_node(struct dm *d, uint64_t dev)
{
	char path[32];
	snprintf(path, sizeof(path), "/dev/dm-%u", minor(dev));
	d->node = open(path, O_RDWR | O_DIRECT | O_CLOEXEC);
	if (d->node < 0)
		die(path);
}

int dm_load(struct dm *d, uint64_t sectors, const char *params, char why[static DM_WHY])
{
	struct dm_ioctl reply, *r = load_request(d, sectors, params);
	read_log(d, why);
	int rc = ioctl(d->control, DM_TABLE_LOAD, r) == 0 ? 0 : -errno;
	free(r);
	if (!rc)
		rc = command(d, DM_DEV_SUSPEND, &reply); /* without a flag it resumes, with the new table */
	if (!rc && d->node < 0)
		open_node(d, reply.dev);
	read_log(d, why);
	return rc;
}
