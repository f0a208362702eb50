/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* spec_format.c - from the struct back to a cipher string, for status, messages and tables: what spec.c reads as the
 * same struct again. Pure. */
#include <stdio.h>
#include <string.h>

#include "cryptfuse/spec.h"

/* What the short form cannot say is said in the kernel's own terms. */
void cf_spec_format_cipher(const struct cf_cipher_spec *c, char *out, size_t size)
{
	bool essiv = c->essiv_hash[0];
	bool cts = strcmp(c->mode, "cts") == 0;
	if (strcmp(c->mode, CF_MODE_API) == 0) {
		snprintf(out, size, "capi:%s%s%s", c->cipher, c->iv[0] ? "-" : "", c->iv);
		return;
	}
	char keycount[16] = "", inner[2 * CF_NAME_MAX + 16];
	if (c->keycount > 1)
		snprintf(keycount, sizeof(keycount), ":%u", c->keycount);
	if (!cts && !(essiv && strcmp(c->iv, "plain64") != 0)) {
		snprintf(out, size, "%s%s-%s%s%s%s%s", c->cipher, keycount, c->mode, c->iv[0] ? "-" : "",
				 essiv ? "essiv" : c->iv, essiv ? ":" : "", c->essiv_hash);
		return;
	}
	if (cts)
		snprintf(inner, sizeof(inner), "cts(cbc(%s))", c->cipher);
	else
		snprintf(inner, sizeof(inner), "%s(%s)", c->mode, c->cipher);
	if (essiv)
		snprintf(out, size, "capi:essiv(%s,%s)-%s", inner, c->essiv_hash, c->iv);
	else
		snprintf(out, size, "capi:%s-%s", inner, c->iv);
}
