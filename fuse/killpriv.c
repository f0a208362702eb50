/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* killpriv.c - spares every write a second round trip.
 *
 * A write must take privileges away from a file (set-user-ID, capabilities), so the kernel asks for security.capability
 * before each one, as long a way as the write itself, unless the file system says that it sees to this. Ours has
 * nothing to see to: its file never has any. libfuse knows how to say so from the release on that has
 * FUSE_CAP_HANDLE_KILLPRIV_V2; before, the flag is added to the answer to the kernel's first request, on its way out.
 * Two threads at most are here before that answer is sent, and the kernel sends the second one nothing. */
#include "config.h"

#include "cryptfuse/ops_slots.h"

#include <errno.h>
#include <linux/fuse.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#if defined(FUSE_CAP_HANDLE_KILLPRIV_V2) || FUSE_VERSION < FUSE_MAKE_VERSION(3, 13)

int cf_ops_own_killpriv(struct cf_ops *o, struct fuse_session *se)
{
	(void)o, (void)se;
	return 0;
}

#else

#define INIT_IN_BYTES (offsetof(struct fuse_init_in, flags) + sizeof(uint32_t)) /* all that is looked at */

/* Remember which request was the first, and whether it offers the flag. */
static void look_at(struct cf_ops *o, const void *buf, size_t len)
{
	struct fuse_in_header head;
	struct fuse_init_in init;
	if (len < sizeof(head) + INIT_IN_BYTES)
		return;
	memcpy(&head, buf, sizeof(head));
	memcpy(&init, (const char *)buf + sizeof(head), INIT_IN_BYTES);
	if (head.opcode == FUSE_INIT && (init.flags & FUSE_HANDLE_KILLPRIV_V2)) {
		o->init_unique = head.unique;
		atomic_store(&o->init_waits, true);
	}
}

static ssize_t receive(int fd, void *buf, size_t len, void *userdata)
{
	struct cf_ops *o = userdata;
	ssize_t n = read(fd, buf, len);
	if (n > 0 && !atomic_load_explicit(&o->init_seen, memory_order_relaxed) && !atomic_exchange(&o->init_seen, true))
		look_at(o, buf, (size_t)n);
	return n;
}

/* The answer: its header, then the body. */
static void complete(struct cf_ops *o, const struct iovec *iov, int count)
{
	struct fuse_out_header head;
	struct fuse_init_out *init;
	if (count != 2 || iov[0].iov_len != sizeof(head) || iov[1].iov_len < FUSE_COMPAT_22_INIT_OUT_SIZE)
		return;
	memcpy(&head, iov[0].iov_base, sizeof(head));
	if (head.unique != o->init_unique || head.error)
		return;
	init = iov[1].iov_base;
	init->flags |= FUSE_HANDLE_KILLPRIV_V2;
}

static ssize_t answer(int fd, struct iovec *iov, int count, void *userdata)
{
	struct cf_ops *o = userdata;
	if (atomic_load_explicit(&o->init_waits, memory_order_relaxed) && atomic_exchange(&o->init_waits, false))
		complete(o, iov, count);
	return writev(fd, iov, count);
}

int cf_ops_own_killpriv(struct cf_ops *o, struct fuse_session *se)
{
	static const struct fuse_custom_io io = {.read = receive, .writev = answer};
	(void)o; /* what libfuse passes on as userdata */
	return fuse_session_custom_io(se, &io, fuse_session_fd(se)) == 0 ? 0 : -ENOMEM;
}

#endif
