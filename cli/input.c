/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* input.c - opens what is to be encrypted. A file or device is locked for reading and its access time is left alone, as
 * for an image. */
#include "config.h"

#include "input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cryptfuse/err.h"

static int open_stream(struct cli_input *in, const char *path, struct cf_err *err)
{
	in->stream.fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY) : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	if (in->stream.fd < 0)
		return cf_fail(err, errno == EACCES ? -EACCES : -EINVAL, "cannot open %s: %s", in->shown, strerror(errno));
	if (isatty(in->stream.fd))
		return cf_fail(err, -EINVAL, "%s is a terminal", in->shown);
	in->bytes = CF_COPY_UNKNOWN;
	return 0;
}

static int open_file(struct cli_input *in, const char *path, struct cf_err *err)
{
	int rc = cf_backing_open_fd(path, CF_READ_ONLY, CF_LOCK, &in->file.fd, err);
	if (rc)
		return rc;
	in->image = (struct cf_image){.access = CF_READ_ONLY, .n_parts = 1, .fd = {in->file.fd}};
	rc = cf_backing_size_fd(in->file.fd, &in->bytes, err);
	return rc || in->bytes ? rc : cf_fail(err, -EINVAL, "%s is empty", path);
}

int cli_input_open(struct cli_input *in, const char *path, struct cf_err *err)
{
	struct stat st;
	*in = (struct cli_input)CLI_INPUT_NONE;
	in->shown = path;
	if (!strcmp(path, "-")) {
		in->shown = "standard input";
		return open_stream(in, NULL, err);
	}
	if (stat(path, &st) != 0)
		return cf_fail(err, errno == EACCES ? -EACCES : -ENODEV, "cannot open %s: %s", path, strerror(errno));
	return S_ISREG(st.st_mode) || S_ISBLK(st.st_mode) || S_ISDIR(st.st_mode) ? open_file(in, path, err)
																			 : open_stream(in, path, err);
}

struct cf_copy_source cli_input_source(struct cli_input *in)
{
	return in->bytes == CF_COPY_UNKNOWN ? cf_copy_from_stream(&in->stream) : cf_copy_from_file(&in->file, in->bytes);
}

void cli_input_fini(struct cli_input *in)
{
	cf_close_fd(&in->stream.fd);
	cf_close_fd(&in->file.fd);
	in->image.n_parts = 0;
}
