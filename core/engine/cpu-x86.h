/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* cpu-x86.h - what the instruction sets of x86-64 know of each other: which are here, and what the wider ones leave to
 * AES-NI, which has to be here for them. */
#ifndef CRYPTFUSE_CPU_X86_H
#define CRYPTFUSE_CPU_X86_H

#include "cpu.h"

/** Does this CPU, and the system, offer it? */
bool cf_cpu_here_aesni(void);
bool cf_cpu_here_vaes256(void);
bool cf_cpu_here_vaes512(void);

/** The blocks at the end of a run, and CBC encryption in lanes. */
extern const struct cf_cpu_isa cf_cpu_isa_aesni;

/** The key schedule's slots. */
uint32_t cf_cpu_aesni_sub_word(uint32_t w);
void cf_cpu_aesni_inv_mix(const uint8_t key[16], uint8_t out[16]);

#endif
