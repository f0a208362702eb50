/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* say.c - words for a person. Standard error only, one line a call, one write a line. */
#include "config.h"

#include "cli.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <json.h>

#include "cryptfuse/err.h"
#include "cryptfuse/json.h"
#include "cryptfuse/text.h"
#include "cryptfuse/units.h"

void cli_printable(char *text)
{
	cf_text_make_printable(text);
}

void cli_say(const char *fmt, ...)
{
	static const char prefix[] = "cryptfuse: ";
	char line[2 * PATH_MAX];
	size_t len = sizeof(prefix) - 1;
	memcpy(line, prefix, sizeof(prefix));
	va_list args;
	va_start(args, fmt);
	vsnprintf(line + len, sizeof(line) - len - 1, fmt, args);
	va_end(args);
	cli_printable(line);
	len = strlen(line);
	line[len++] = '\n';
	/* Nobody is left to tell when standard error is gone. */
	ssize_t n = write(STDERR_FILENO, line, len);
	(void)n;
}

int cli_print_json(struct json_object *document, struct cf_err *err)
{
	CF_CLEANUP(cf_freep)
	char *text =
		cf_json_text(document, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (!text)
		return cf_fail(err, -ENOMEM, "out of memory");
	puts(text);
	return 0;
}

void cli_format_bytes(uint64_t bytes, char *text, size_t text_size)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	unsigned u = 0;
	while (u + 1 < CF_ARRAY_LEN(units) && bytes >> (10 * u) >= 1024)
		u++;
	const uint64_t unit = UINT64_C(1) << (10 * u), rest = bytes % unit;
	uint64_t tenths = bytes / unit * 10 + (rest * 10 + unit / 2) / unit;
	if (tenths >= 10240 && u + 1 < CF_ARRAY_LEN(units)) { /* 1023.95 and more */
		tenths = 10;
		u++;
	}
	if (tenths % 10)
		snprintf(text, text_size, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10, units[u]);
	else
		snprintf(text, text_size, "%" PRIu64 " %s", tenths / 10, units[u]);
}
