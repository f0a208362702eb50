/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* err.c - one line for a person, one code for a caller. No state. */
#include "cryptfuse/err.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

int(cf_fail)(struct cf_err *err, int code, const char *fmt, ...) /* also where it is a macro */
{
	assert(code < 0);
	if (!err || err->code)
		return code;
	err->code = code;
	va_list args;
	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	/* One line: a name that holds a newline or an escape must not forge another message. */
	for (char *p = err->text; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = '?';
	return code;
}

int cf_err_exit_code(int code)
{
	switch (code) {
	case 0:
		return 0;
	case -EPERM:
	case -EACCES:
		return 2;
	case -ENOMEM:
		return 3;
	case -ENODEV:
	case -ENOENT:
	case -ENOTBLK:
	case -ENXIO:
		return 4;
	case -EBUSY:
	case -EEXIST:
		return 5;
	default:
		return 1;
	}
}
