/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* secrets.c - what a process that handles a key does first, and how core speaks to its user. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "cli.h"
#include "cryptfuse/err.h"
#include "cryptfuse/secret.h"

int cli_guard_secrets(struct cf_err *err)
{
	const struct rlimit none = {0, 0};
	if (setrlimit(RLIMIT_CORE, &none) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
		return cf_fail(err, -errno, "core dumps cannot be turned off: %s", strerror(errno));
	return cf_secret_init(err);
}

static void note(void *ctx, const char *text)
{
	const struct cli_opts *o = ctx;
	if (!o->batch)
		cli_say("%s", text);
}

static void warn(void *ctx, const char *text)
{
	(void)ctx;
	cli_say("%s", text);
}

struct cf_open_ui cli_open_ui(const struct cli_opts *o)
{
	return (struct cf_open_ui){.ctx = (void *)(uintptr_t)o, .note = note, .warn = warn, .passphrase = cli_passphrase};
}

void cli_say_plan(const struct cli_opts *o, const char *image, const struct cf_open_plan *plan)
{
	const struct cf_cipher_spec *c = &plan->cipher;
	if (o->verbose && !o->batch)
		cli_say(
			"%s: %llu bytes from byte %llu, data units of %u bytes, key of %u bits, IV offset %llu sectors, engine %s",
			image, (unsigned long long)plan->bytes, (unsigned long long)plan->data_off, c->du_bytes, c->key_bytes * 8,
			(unsigned long long)c->iv_offset, *plan->engine ? plan->engine : "auto");
}
