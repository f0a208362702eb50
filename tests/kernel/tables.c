/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* tables.c - sound random tables. See tables.h; the odd ones are in tables_odd.c. */
#include "tables.h"

#include <stdio.h>
#include <string.h>

#define MAX_SECTORS 600u /* of a volume: more data units of 512 bytes than two batches hold */

/* splitmix64 (Steele, Lea, Flood 2014) */
uint64_t rng_next(struct rng *r)
{
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

struct rng rng_new(uint64_t seed, uint64_t index)
{
	struct rng r = {seed};
	r.state = rng_next(&r) ^ (index * 0xd1342543de82ef95u);
	return r;
}

uint64_t rng_below(struct rng *r, uint64_t n)
{
	return (rng_next(r) >> 11) % n;
}

void rng_fill(struct rng *r, void *buf, size_t len)
{
	for (uint8_t *to = buf; len;) {
		uint64_t v = rng_next(r);
		size_t n = len < sizeof(v) ? len : sizeof(v);
		memcpy(to, &v, n);
		to += n;
		len -= n;
	}
}

/* ---- what there is ---- */

#define NUMBERS(mode)                                                        \
	{mode, "null"}, {mode, "plain"}, {mode, "plain64"}, {mode, "plain64be"}, \
	{                                                                        \
		mode, "benbi"                                                        \
	}
#define BLOCK_IVS(mode)                                   \
	{mode, "essiv"}, {mode, "eboiv"}, {mode, "elephant"}, \
	{                                                     \
		mode, "tcw"                                       \
	}

const struct table_combo table_combos[] = {
	{"ecb", ""},
	NUMBERS("cbc"),
	BLOCK_IVS("cbc"),
	{"cbc", "lmk"},
	NUMBERS("pcbc"),
	BLOCK_IVS("pcbc"),
	NUMBERS("cts"),
	BLOCK_IVS("cts"),
	NUMBERS("xts"),
	BLOCK_IVS("xts"),
	NUMBERS("lrw"),
	BLOCK_IVS("lrw"),
	NUMBERS("ctr"),
	{"ctr", "essiv"},
	{"ctr", "tcw"},
	NUMBERS("adiantum"),
	{"ofb", "plain64"},
	{"ofb", "essiv"},
	{"cfb", "benbi"},
	{"cfb", "null"},
	{"rfc3686", "plain64"},
	{"rfc3686", "plain64be"},
	{"chacha20", "plain64"},
	{"xchacha20", "plain64be"},
	{"des", "benbi"},
	{"des", "eboiv"},
	{"des", "tcw"},
	{"des", "lmk"},
};

unsigned table_combos_n(void)
{
	return CF_ARRAY_LEN(table_combos);
}

struct cipher {
	const char *name;
	unsigned block;
	const char *keys;   /* lengths in bytes */
	const char *hashes; /* for essiv: whose digest is a key */
};

/* The more often a cipher stands here, the more tables it gets. Those that every build of cryptfuse has come first. */
static const struct cipher ciphers[] = {
	{"aes", 16, "16 24 32", "md5 sha256 sha3-256 wp256"},
	{"aes", 16, "16 24 32", "md5 sha256 sha3-256 wp256"},
	{"aes", 16, "16 24 32", "sha256"},
	{"aes", 16, "16 24 32", "sha256"},
	{"aes", 16, "32", "sha256"},
	{"aes", 16, "16", "sha256"},
	{"camellia", 16, "16 24 32", "md5 sha256"},
	{"camellia", 16, "16 24 32", "md5 sha256"},
	{"camellia", 16, "16 24 32", "md5 sha256"},
	{"blowfish", 8, "4 16 32 56", "md5 sha1 rmd160 sha256 sha384 wp384"},
	{"cast5", 8, "5 9 10 11 16", "md5"},
	{"des3_ede", 8, "24", ""},
	{"serpent", 16, "16 24 32 32 9", "md5 sha1 sha224 sha256"},
	{"twofish", 16, "16 24 32", "md5 sha256"},
	{"cast6", 16, "16 20 24 28 32", "md5 sha1 rmd160 sha224 sha256"},
};
#define CIPHERS_EVERYWHERE 12u

/* What goes to the crypto API as it stands: its name there, and its old form where it has one. */
static const struct api {
	const char *mode, *name, *old_cipher, *old_mode;
	struct cipher cipher; /* its block: of the IV */
} apis[] = {
	{"ofb", "ofb(aes)", "aes", "ofb", {"aes", 16, "16 24 32", "md5 sha256"}},
	{"cfb", "cfb(aes)", "aes", "cfb", {"aes", 16, "16 24 32", "md5 sha256"}},
	{"rfc3686", "rfc3686(ctr(aes))", NULL, NULL, {"aes", 8, "20 28 36", ""}},
	{"chacha20", "chacha20", NULL, NULL, {"chacha20", 16, "32", ""}},
	{"xchacha20", "xchacha20", NULL, NULL, {"xchacha20", 32, "32", ""}},
	{"des", "cbc(des)", "des", "cbc", {"des", 8, "8", ""}},
};

static const struct api *find_api(const char *mode)
{
	for (unsigned i = 0; i < CF_ARRAY_LEN(apis); i++)
		if (strcmp(apis[i].mode, mode) == 0)
			return &apis[i];
	return NULL;
}

bool table_combo_is_api(const struct table_combo *c)
{
	return find_api(c->mode) != NULL;
}

/* ---- choosing ---- */

static bool is(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

/* A random word of a list with blanks between. */
static const char *one_of(struct rng *r, const char *list, char out[static 32])
{
	unsigned n = 1;
	for (const char *p = list; *p; p++)
		n += *p == ' ';
	for (unsigned skip = (unsigned)rng_below(r, n); skip; skip--)
		list = strchr(list, ' ') + 1;
	snprintf(out, 32, "%.*s", (int)strcspn(list, " "), list);
	return out;
}

static unsigned number_of(struct rng *r, const char *list)
{
	char word[32];
	unsigned n = 0;
	for (const char *p = one_of(r, list, word); *p; p++)
		n = n * 10 + (unsigned)(*p - '0');
	return n;
}

static const struct cipher *pick_cipher(struct rng *r, const struct table_combo *c, size_t n_ciphers)
{
	bool block16 = is(c->mode, "xts") || is(c->mode, "lrw");
	const struct api *api = find_api(c->mode);
	if (api)
		return &api->cipher;
	for (;;) {
		const struct cipher *cipher = &ciphers[rng_below(r, n_ciphers)];
		bool has_hash = !is(c->iv, "essiv") || *cipher->hashes;
		/* the Elephant's second half is an AES key, and as long as the first */
		bool halves = !is(c->iv, "elephant") || cipher->block == 16 || is(cipher->name, "blowfish");
		if (has_hash && halves && (!block16 || cipher->block == 16))
			return cipher;
	}
}

/* Shuffle the combinations, once a round over all of them; then let chance choose. */
static unsigned pick_combo(uint64_t seed, uint64_t index)
{
	unsigned order[CF_ARRAY_LEN(table_combos)], n = table_combos_n();
	uint64_t round = index / n;
	struct rng r = rng_new(seed, ~round);
	for (unsigned i = 0; i < n; i++) {
		unsigned j = (unsigned)rng_below(&r, i + 1);
		order[i] = order[j];
		order[j] = i;
	}
	if (round < 2)
		return order[index % n];
	r = rng_new(seed ^ 1, index);
	return (unsigned)rng_below(&r, n);
}

/* ---- the parts of a table ---- */

/* What is being built. */
struct draft {
	struct rng r;
	const struct table_combo *combo;
	const struct cipher *cipher;
	char adiantum[32]; /* its cipher's name */
	unsigned mode_key; /* bytes of key for the mode */
	struct table *t;
};

static unsigned mode_key_bytes(struct draft *d)
{
	bool xts = is(d->combo->mode, "xts"), lrw = is(d->combo->mode, "lrw");
	if (is(d->combo->mode, "adiantum"))
		return 32;
	if (is(d->combo->iv, "elephant")) /* as much again is an AES key: 32 at most */
		return xts || lrw ? 32 : number_of(&d->r, "16 32");
	return number_of(&d->r, d->cipher->keys) * (xts ? 2 : 1) + (lrw ? 16 : 0);
}

static void pick_keys(struct draft *d, bool several)
{
	const char *mode = d->combo->mode;
	d->mode_key = mode_key_bytes(d);
	d->t->keycount = 1;
	if (is(d->combo->iv, "lmk"))
		d->t->keycount = number_of(&d->r, find_api(mode) ? "64" : "64 64 64 2 1");
	else if (!is(mode, "cts") && !find_api(mode) && !is(d->combo->iv, "elephant") &&
			 (several || rng_below(&d->r, 10) == 0))
		d->t->keycount = number_of(&d->r, "2 4 8 16 64");
}

/* The volume key: subkeys, and what the IV kind needs beside them. */
static unsigned key_bytes(struct draft *d)
{
	unsigned keys = d->mode_key * d->t->keycount;
	if (is(d->combo->iv, "lmk") && d->t->keycount == 64 && d->mode_key >= 16 && rng_below(&d->r, 2))
		return keys + d->mode_key;
	if (is(d->combo->iv, "tcw"))
		return keys + d->cipher->block + 16;
	return is(d->combo->iv, "elephant") ? 2 * keys : keys;
}

static void pick_du(struct draft *d, bool du4096)
{
	bool only512 = is(d->combo->iv, "lmk") || is(d->combo->iv, "tcw");
	d->t->du_bytes = only512 ? 512 : number_of(&d->r, du4096 ? "4096" : "512 512 512 1024 2048 4096 4096");
	d->t->large = !du4096 && (d->t->du_bytes > 512 ? rng_below(&d->r, 2) == 0 : rng_below(&d->r, 12) == 0);
}

/* The number s0 at which the value that goes into the IV starts again from 0; 0 stands for 2^64. */
static uint64_t wrap_point(struct draft *d)
{
	unsigned shift = d->t->large ? (unsigned)__builtin_ctz(d->t->du_bytes / 512) : 0;
	const char *iv = d->combo->iv;
	unsigned bits = 64, block = is(d->combo->mode, "ctr") || is(d->combo->mode, "cfb") ? 1 : d->cipher->block;
	if (is(iv, "plain"))
		bits = 32;
	if (is(iv, "benbi"))
		bits = 64 - (9 - (unsigned)__builtin_ctz(block));
	if (is(iv, "eboiv") || is(iv, "elephant"))
		bits = 64 - (unsigned)__builtin_ctz(d->t->du_bytes);
	if (bits + shift >= 64 || rng_below(&d->r, 4) == 0)
		return 0;
	return (uint64_t)1 << (bits + shift);
}

static uint64_t pick_iv_offset(struct draft *d, bool wrap)
{
	uint64_t step = d->t->du_bytes / 512, n_du = d->t->sectors / step, any = rng_next(&d->r);
	d->t->wraps = n_du > 1 && *d->combo->iv && !is(d->combo->iv, "null") && (wrap || rng_below(&d->r, 8) == 0);
	if (d->t->wraps)
		return wrap_point(d) - step * (1 + rng_below(&d->r, n_du - 1));
	return rng_below(&d->r, 4) ? (any >> (1 + rng_below(&d->r, 62))) / step * step : 0;
}

static void name_api(struct draft *d, const struct api *api, char out[static 128])
{
	const char *iv = d->combo->iv;
	char hash[32] = "", essiv[48] = "", keycount[16] = "";
	if (is(iv, "essiv"))
		snprintf(essiv, sizeof(essiv), ":%s", one_of(&d->r, d->cipher->hashes, hash));
	if (d->t->keycount > 1)
		snprintf(keycount, sizeof(keycount), ":%u", d->t->keycount);
	if (api->old_mode && rng_below(&d->r, 3) == 0)
		snprintf(out, 128, "%s%s-%s-%s%s", api->old_cipher, keycount, api->old_mode, iv, essiv);
	else if (*essiv && rng_below(&d->r, 2))
		snprintf(out, 128, "capi:essiv(%s,%s)-plain64", api->name, hash);
	else
		snprintf(out, 128, "capi:%s-%s%s", api->name, iv, essiv);
}

static void name_cipher(struct draft *d, char out[static 128])
{
	const char *mode = d->combo->mode, *iv = d->combo->iv, *cipher = d->cipher->name;
	bool generic = rng_below(&d->r, 4) == 0 && is(cipher, "aes");
	char hash[32], keycount[16] = "", essiv[48] = "";
	if (d->t->keycount > 1)
		snprintf(keycount, sizeof(keycount), ":%u", d->t->keycount);
	if (is(iv, "essiv"))
		snprintf(essiv, sizeof(essiv), ":%s", one_of(&d->r, d->cipher->hashes, hash));
	if (is(mode, "adiantum"))
		cipher = one_of(&d->r, "xchacha12,aes xchacha20,aes", d->adiantum);
	bool capi = is(mode, "cts") || (d->t->keycount == (is(iv, "lmk") ? 64 : 1) && rng_below(&d->r, 4) == 0);
	const char *dash = *iv ? "-" : "";
	if (!capi)
		snprintf(out, 128, "%s%s-%s%s%s%s", cipher, keycount, mode, dash, iv, essiv);
	else if (is(mode, "cts"))
		snprintf(out, 128, "capi:cts(cbc(%s))-%s%s", cipher, iv, essiv);
	else if (is(iv, "essiv") && rng_below(&d->r, 2))
		snprintf(out, 128, "capi:essiv(%s(%s),%s)-%s", mode, cipher, hash,
				 rng_below(&d->r, 3) ? "plain64" : one_of(&d->r, "plain plain64be null benbi", essiv));
	else if (is(mode, "xts") && generic)
		snprintf(out, 128, "capi:xts(ecb(aes-generic))-%s%s", iv, essiv);
	else
		snprintf(out, 128, "capi:%s(%s)%s%s%s", mode, cipher, dash, iv, essiv);
}

/* Options that change nothing, besides those that do, in any order. */
static void write_options(struct draft *d, char *out, size_t size)
{
	static const char *const idle[] = {"allow_discards", "same_cpu_crypt", "submit_from_crypt_cpus",
									   "no_read_workqueue", "no_write_workqueue"};
	const char *words[CF_ARRAY_LEN(idle) + 2];
	char du[32];
	unsigned n = 0, at = 0;
	snprintf(du, sizeof(du), "sector_size:%u", d->t->du_bytes);
	if (d->t->du_bytes != 512 || rng_below(&d->r, 8) == 0)
		words[n++] = du;
	if (d->t->large)
		words[n++] = "iv_large_sectors";
	for (unsigned i = 0; i < CF_ARRAY_LEN(idle); i++)
		if (rng_below(&d->r, 8) == 0)
			words[n++] = idle[i];
	for (unsigned i = n; i > 1; i--) {
		unsigned j = (unsigned)rng_below(&d->r, i);
		const char *w = words[i - 1];
		words[i - 1] = words[j];
		words[j] = w;
	}
	*out = '\0';
	if (n || rng_below(&d->r, 8) == 0)
		at += (unsigned)snprintf(out, size, " %u", n);
	for (unsigned i = 0; i < n; i++)
		at += (unsigned)snprintf(out + at, size - at, " %s", words[i]);
}

static void write_params(struct draft *d, uint64_t iv_offset, uint64_t data_sector)
{
	char cipher[128], options[256], *to = d->t->params;
	uint8_t key[16384];
	unsigned len = key_bytes(d);
	const struct api *api = find_api(d->combo->mode);
	if (api)
		name_api(d, api, cipher);
	else
		name_cipher(d, cipher);
	write_options(d, options, sizeof(options));
	rng_fill(&d->r, key, len);
	to += sprintf(to, "%s ", cipher);
	for (unsigned i = 0; i < len; i++)
		to += sprintf(to, rng_below(&d->r, 9) ? "%02x" : "%02X", key[i]);
	sprintf(to, " %llu DEVICE %llu%s", (unsigned long long)iv_offset, (unsigned long long)data_sector, options);
}

void table_sound(struct table *t, uint64_t seed, uint64_t index)
{
	struct draft d = {.r = rng_new(seed, index), .t = t};
	*t = (struct table){.combo = pick_combo(seed, index)};
	d.combo = &table_combos[t->combo];
	/* the rounds that must reach everything do so with ciphers that every build has */
	d.cipher = pick_cipher(&d.r, d.combo, index < 2 * table_combos_n() ? CIPHERS_EVERYWHERE : CF_ARRAY_LEN(ciphers));
	pick_keys(&d, index % 5 == 2);
	pick_du(&d, index % 5 == 0);
	uint64_t step = t->du_bytes / 512, most[] = {3 * step, MAX_SECTORS / 4, MAX_SECTORS / 4, MAX_SECTORS};
	t->sectors = step * (1 + rng_below(&d.r, most[rng_below(&d.r, CF_ARRAY_LEN(most))] / step));
	uint64_t iv_offset = pick_iv_offset(&d, index % 5 == 1);
	uint64_t room = (TABLE_BACKING / 512 - t->sectors) / step;
	uint64_t data_sector = step * (rng_below(&d.r, 3) ? rng_below(&d.r, room + 1) : rng_below(&d.r, 2) * room);
	write_params(&d, iv_offset, data_sector);
}
