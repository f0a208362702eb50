/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* tables_odd.c - faults for random tables: in the words, the numbers, the counts, single characters. See tables.h. */
#include "tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CIPHER, KEY, IV_OFFSET, DEVICE, OFFSET, COUNT, FIRST_OPTION };

#define WORDS_MAX 40u

/* A table in words, each with room to grow. */
struct words {
	struct rng *r;
	struct table *t;
	unsigned n;
	char *at[WORDS_MAX];
};

static void set(struct words *w, unsigned i, const char *text)
{
	if (i >= WORDS_MAX)
		return;
	for (; w->n <= i; w->n++)
		w->at[w->n] = strdup("0");
	free(w->at[i]);
	w->at[i] = strdup(text);
	if (!w->at[i])
		abort();
}

#define PICK(w, list) list[rng_below((w)->r, CF_ARRAY_LEN(list))]

/* ---- the faults ---- */

static void fault_key_length(struct words *w)
{
	char key[1024];
	unsigned digits = (unsigned)(rng_below(w->r, 4) ? 2 * rng_below(w->r, 100) : rng_below(w->r, 200));
	for (unsigned i = 0; i < digits; i++)
		key[i] = "0123456789abcdef"[rng_below(w->r, 16)];
	key[digits] = '\0';
	set(w, KEY, digits ? key : "-");
}

static void fault_key_form(struct words *w)
{
	static const char *const keys[] = {"-",
									   "00",
									   "0",
									   ":64:user:none",
									   ":32:logon:none",
									   ":32:user",
									   ":x:user:none",
									   "::",
									   "0x00112233445566778899aabbccddeeff",
									   "-00",
									   "gg"};
	size_t len = strlen(w->at[KEY]);
	unsigned how = len < 2 ? 2 : (unsigned)rng_below(w->r, 4);
	if (how == 0)
		w->at[KEY][len - 1] = '\0'; /* an odd number of digits */
	else if (how == 1)
		w->at[KEY][rng_below(w->r, len)] = "gG-x:+"[rng_below(w->r, 6)];
	else
		set(w, KEY, PICK(w, keys));
}

static const char *const numbers[] = {"-1",
									  "+5",
									  "+8",
									  "0x10",
									  "5x",
									  "08",
									  "00000000000000000000000008",
									  "18446744073709551616",
									  "18446744073709551624",
									  "1",
									  "2",
									  "3",
									  "4",
									  "7",
									  "8.0",
									  "8,0",
									  "18446744073709551608",
									  "36893488147419103232",
									  "9",
									  "1e3",
									  "012",
									  "-8",
									  "-0",
									  "",
									  "9223372036854775808",
									  "4294967296",
									  "99999999999999999999"};

static void fault_iv_offset(struct words *w)
{
	set(w, IV_OFFSET, PICK(w, numbers));
}

static void fault_offset(struct words *w)
{
	char text[32];
	set(w, OFFSET, PICK(w, numbers));
	if (rng_below(w->r, 3) == 0) { /* about the end */
		snprintf(text, sizeof(text), "%lld",
				 (long long)(TABLE_BACKING / 512 - w->t->sectors) + (long long)rng_below(w->r, 20) - 10);
		set(w, OFFSET, text);
	}
}

static void fault_length(struct words *w)
{
	const uint64_t lengths[] = {
		0, w->t->sectors + 1, w->t->sectors + 4, TABLE_BACKING / 512, TABLE_BACKING / 512 + 8, (uint64_t)1 << 40};
	w->t->sectors = lengths[rng_below(w->r, CF_ARRAY_LEN(lengths))];
}

static void fault_count(struct words *w)
{
	static const char *const counts[] = {"0",   "1",  "2",  "3",          "-1", "+1", "1x",
										 "0x1", "99", "01", "4294967297", "",   "one"};
	set(w, COUNT, PICK(w, counts));
}

static void add_option(struct words *w, const char *option)
{
	char count[32];
	set(w, w->n < FIRST_OPTION ? FIRST_OPTION : w->n, option);
	snprintf(count, sizeof(count), "%u", w->n - FIRST_OPTION);
	set(w, COUNT, count);
}

static void fault_option(struct words *w)
{
	static const char *const options[] = {"sector_size:0",
										  "sector_size:1",
										  "sector_size:256",
										  "sector_size:511",
										  "sector_size:513",
										  "sector_size:768",
										  "sector_size:1536",
										  "sector_size:8192",
										  "sector_size:65536",
										  "sector_size:69632",
										  "sector_size:131072",
										  "sector_size:-512",
										  "sector_size:4294971392",
										  "sector_size:00512",
										  "sector_size:512x",
										  "sector_size:",
										  "sector_size:+512",
										  "sector_size:0x200",
										  "sector_size",
										  "SECTOR_SIZE:512",
										  "Sector_Size:4096",
										  "sector_size:512",
										  "sector_size:4096",
										  "IV_Large_Sectors",
										  "iv_large_sector",
										  "iv_large_sectors:1",
										  "allow_discard",
										  "ALLOW_DISCARDS",
										  "allow_discards ",
										  "Same_CPU_crypt",
										  "made_up",
										  "integrity:16",
										  "integrity:16:aead",
										  "integrity:28:none",
										  "integrity_key_size:32",
										  "high_priority",
										  "High_Priority",
										  "no_read_workqueues",
										  "No_Read_Workqueue",
										  "no_write_workqueue=1",
										  "submit_from_crypt",
										  "-1",
										  "sector_size:2048",
										  "iv_large_sectors\\",
										  "allow\\_discards"};
	add_option(w, PICK(w, options));
}

/* Words that go together only by chance. */
static void fault_cipher(struct words *w)
{
	static const char *const ciphers[] = {"aes",           "aes",           "camellia",    "blowfish", "des3_ede",
										  "cast5",         "serpent",       "AES",         "aesx",     "cipher_null",
										  "twofish",       "xchacha12,aes", "des",         "",         "aes ",
										  "xchacha20,aes", "null",          "aes-generic", "ecb(aes)", "aes"};
	static const char *const counts[] = {"",    "",   "",   "",  "",    "",    "",     "",     ":0",
										 ":1",  ":2", ":3", ":", ":2x", ":-1", ":256", ":512", ":4294967298",
										 ":+2", ":02"};
	static const char *const modes[] = {"cbc", "xts", "lrw", "ctr", "pcbc", "ecb",   "adiantum", "cts", "xxx",
										"",    "CBC", "ofb", "cfb", "gcm",  "plain", "essiv",    "cbc", "xts"};
	static const char *const ivs[] = {"plain",       "plain64",      "plain64be", "benbi",
									  "null",        "essiv:sha256", "eboiv",     "tcw",
									  "lmk",         "elephant",     "random",    "plain65",
									  "essiv",       "essiv:",       "PLAIN",     "",
									  "plain64:x",   "essiv:sha999", "plain64-",  "essiv:sha512",
									  "plain:",      "essiv:md5:x",  "essiv:sm3", "essiv:streebog256",
									  "essiv:crc32c"};
	char text[160];
	const char *cipher = PICK(w, ciphers), *mode = PICK(w, modes), *iv = PICK(w, ivs);
	const char *dash = rng_below(w->r, 10) ? "-" : "";
	switch (rng_below(w->r, 5)) {
	case 0:
		snprintf(text, sizeof(text), "capi:%s(%s)%s%s", mode, cipher, dash, iv);
		break;
	case 1:
		snprintf(text, sizeof(text), "capi:essiv(%s(%s),%s)%s%s", mode, cipher, "sha256", dash, iv);
		break;
	default:
		snprintf(text, sizeof(text), "%s%s-%s%s%s", cipher, PICK(w, counts), mode, dash, iv);
	}
	set(w, CIPHER, text);
}

/* One character more, less, or another. */
static void edit(struct words *w, unsigned i)
{
	static const char alphabet[] = "aescbxtplin0123468-:(),_ \\A";
	const char *old = w->at[i];
	size_t len = strlen(old), at = rng_below(w->r, len + 1);
	char c = alphabet[rng_below(w->r, sizeof(alphabet) - 1)], *text = malloc(len + 2);
	unsigned how = (unsigned)rng_below(w->r, 3);
	if (!text)
		abort();
	sprintf(text, "%.*s%.*s%s", (int)at, old, how > 0, &c, at < len ? old + at + (how != 1) : "");
	set(w, i, text);
	free(text);
}

static void fault_cipher_character(struct words *w)
{
	edit(w, CIPHER);
}

static void fault_character(struct words *w)
{
	unsigned i = (unsigned)rng_below(w->r, w->n);
	if (i != DEVICE && i != KEY)
		edit(w, i);
}

static void fault_drop(struct words *w)
{
	unsigned i = (unsigned)rng_below(w->r, w->n);
	if (i == DEVICE)
		return;
	free(w->at[i]);
	memmove(w->at + i, w->at + i + 1, (w->n - i - 1) * sizeof(w->at[0]));
	w->n--;
}

static void fault_repeat(struct words *w)
{
	set(w, w->n, w->at[rng_below(w->r, w->n)]);
}

static void fault_swap(struct words *w)
{
	static const unsigned pairs[][2] = {{CIPHER, KEY}, {KEY, IV_OFFSET}, {IV_OFFSET, OFFSET}, {CIPHER, OFFSET}};
	const unsigned *p = PICK(w, pairs);
	char *first = w->at[p[0]];
	w->at[p[0]] = w->at[p[1]];
	w->at[p[1]] = first;
}

typedef void fault(struct words *w);

static fault *const faults[] = {
	fault_key_length, fault_key_form,         fault_iv_offset, fault_offset,     fault_length,
	fault_count,      fault_option,           fault_option,    fault_option,     fault_cipher,
	fault_cipher,     fault_cipher,           fault_cipher,    fault_key_length, fault_character,
	fault_drop,       fault_cipher_character, fault_character, fault_repeat,     fault_swap,
};

/* ---- */

static void split(struct words *w, const char *params)
{
	char *copy = strdup(params), *rest = copy;
	if (!copy)
		abort();
	for (const char *word; (word = strsep(&rest, " ")) && w->n < WORDS_MAX;)
		set(w, w->n, word);
	free(copy);
}

/* dm-crypt 1.24 looks for a second colon in "integrity:16" and takes the whole kernel down when there is none. */
static void spare_the_kernel(char *word)
{
	static const char fatal[] = "integrity:";
	if (!strncmp(word, fatal, strlen(fatal)) && !strchr(word + strlen(fatal), ':'))
		*word = 'I';
}

static void join(struct words *w, char *to)
{
	*to = '\0';
	for (unsigned i = 0; i < w->n; i++) {
		spare_the_kernel(w->at[i]);
		to += sprintf(to, "%s%s", i ? " " : "", w->at[i]);
		free(w->at[i]);
	}
}

void table_odd(struct table *t, uint64_t seed, uint64_t index)
{
	table_sound(t, seed, index);
	struct rng r = rng_new(seed ^ 2, index);
	struct words w = {.r = &r, .t = t};
	split(&w, t->params);
	faults[rng_below(&r, CF_ARRAY_LEN(faults))](&w);
	if (w.n > OFFSET && rng_below(&r, 4) == 0)
		faults[rng_below(&r, CF_ARRAY_LEN(faults))](&w);
	join(&w, t->params);
}
