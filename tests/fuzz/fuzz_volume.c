/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* fuzz_volume.c - operations on a volume, one after the other, against a model of its bytes, over a backing that fails
 * where the input says so.
 *
 * A byte of the model is known, or it lies in a range that a failed operation was to change. Known bytes must read as
 * they are, whatever failed beside them; no call fails while the backing is well. At the end what lies around the
 * volume in the backing is as before, and without discards its ciphertext decrypts, without the volume, to the model.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "cryptfuse/secret.h"
#include "cryptfuse/volume.h"
#include "fuzz.h"
#include "tests/unit/test_backing.h"

#define BYTES_MAX ((size_t)4 * 65536)
#define OPS_MAX 64u
#define AROUND 0x5au

struct shape {
	uint32_t du_bytes;
	uint64_t data_off, bytes;
	bool xts, discards;
};

struct model {
	struct cf_volume *v;
	struct cf_worker *w;
	struct test_backing *t; /* the volume's */
	struct shape shape;
	bool faults;   /* since the last time the backing was made well */
	bool unsynced; /* a sync has failed */
	uint8_t byte[BYTES_MAX], known[BYTES_MAX];
};

static struct model m;
static uint8_t buf[CF_IO_MAX];

/* Making one takes longer than a whole input: each is made once, and the volumes free none. */
void __wrap_cf_cipher_free(struct cf_cipher **c);
void __wrap_cf_cipher_free(struct cf_cipher **c)
{
	*c = NULL;
}

static struct cf_cipher *cipher_of(const struct shape *s)
{
	static const uint8_t key[64] = "two halves that differ, of thirty-two bytes, as xts is given all";
	static struct cf_cipher *made[2][8];
	struct cf_cipher_spec spec = {.cipher = "aes", .iv = "plain64", .keycount = 1, .du_bytes = s->du_bytes};
	const struct cf_cipher_opts opts = {.engine = "openssl", .path = CF_PATH_NATIVE, .n_workers = 1};
	struct cf_cipher **c = &made[s->xts][cf_units_log2(s->du_bytes) - CF_SECTOR_SHIFT];
	strcpy(spec.mode, s->xts ? "xts" : "cbc");
	spec.key_bytes = s->xts ? 64 : 32;
	fuzz_must(*c || cf_cipher_new(c, &spec, key, &opts, NULL) == 0);
	return *c;
}

/* Without the volume. */
static void decrypt_backing(uint8_t *out)
{
	const struct shape *s = &m.shape;
	const uint8_t *src = m.t->data + s->data_off;
	fuzz_must(cf_cipher_crypt(cipher_of(s), 0, CF_DECRYPT, 0, s->bytes / s->du_bytes, src, out) == 0);
}

static void open_volume(struct fuzz_in *in)
{
	static const uint32_t units[] = {512, 512, 1024, 4096, 4096, 65536};
	static const uint32_t granules[] = {512, 512, 4096};
	const uint64_t bits = fuzz_number(in, 3);
	struct shape *s = &m.shape;
	*s = (struct shape){.du_bytes = units[bits % 6], .xts = bits & 8, .discards = bits & 16};
	s->data_off = 512 * (bits >> 5 & 127);
	s->bytes = s->du_bytes * (1 + (bits >> 12 & 3) * (s->du_bytes < 4096 ? 5 : 1));
	m.t = test_backing_new(s->data_off + s->bytes + 512, granules[(bits >> 14 & 3) % 3]);
	m.t->base.discard_granule = bits & 1 << 16 ? 4096 : 512;
	m.t->piece = bits & 1 << 17 ? 1000 : 0;
	memset(m.t->data, AROUND, m.t->base.bytes);
	const struct cf_volume_opts opts = {.data_off = s->data_off,
										.bytes = s->bytes,
										.access = CF_READ_WRITE,
										.discards = s->discards ? CF_DISCARDS_ALLOWED : CF_DISCARDS_REFUSED,
										.n_workers = 1};
	struct cf_backing *b = &m.t->base;
	struct cf_cipher *c = cipher_of(s);
	fuzz_must(cf_volume_new(&m.v, &b, &c, &opts, NULL) == 0);
	m.w = cf_volume_enter(m.v);
	decrypt_backing(m.byte);
	memset(m.known, 1, sizeof(m.known));
	m.faults = m.unsynced = false;
}

/* ---- what happened to a range ---- */

static void forget(uint64_t off, uint64_t len)
{
	if (off < m.shape.bytes)
		memset(m.known + off, 0, len < m.shape.bytes - off ? len : m.shape.bytes - off);
}

static void learn(uint64_t off, const uint8_t *bytes, size_t len)
{
	memcpy(m.byte + off, bytes, len);
	memset(m.known + off, 1, len);
}

static uint64_t undo_failures(void)
{
	struct cf_volume_stats s;
	cf_volume_stats(m.v, &s);
	return s.undo_failures;
}

/* A data unit that could not be put back is damaged as a whole. */
static void forget_failed(uint64_t off, uint64_t len, uint64_t undo_before)
{
	const uint64_t du = m.shape.du_bytes;
	if (undo_failures() != undo_before && off < m.shape.bytes) {
		const uint64_t end = len < m.shape.bytes - off ? off + len : m.shape.bytes;
		off -= off % du;
		len = cf_units_round_up(end, du) - off;
	}
	forget(off, len);
}

/* ---- operations ---- */

/* Mostly in the volume and at its edges, sometimes anywhere at all. */
static uint64_t take_off(struct fuzz_in *in)
{
	const uint64_t n = fuzz_number(in, 3);
	if (n >> 20 == 15)
		return fuzz_odd_number(in);
	return n >> 20 == 14 ? m.shape.bytes - n % 3 : n % (m.shape.bytes + 2);
}

static size_t take_len(struct fuzz_in *in)
{
	const uint64_t n = fuzz_number(in, 3);
	return (size_t)(n >> 20 == 15 ? CF_IO_MAX - n % 2 : n >> 20 > 7 ? n % m.shape.du_bytes : n % (m.shape.bytes + 2));
}

static uint64_t clamp(uint64_t off, uint64_t len)
{
	return off >= m.shape.bytes ? 0 : len < m.shape.bytes - off ? len : m.shape.bytes - off;
}

static void read_some(uint64_t off, size_t len)
{
	memset(buf, 0xee, len);
	ssize_t n = cf_volume_read(m.v, m.w, buf, len, off);
	if (n < 0) {
		fuzz_must(m.faults);
		return;
	}
	fuzz_must((uint64_t)n == clamp(off, len));
	if (n && memcmp(buf, m.byte + off, (size_t)n) != 0)
		for (size_t i = 0; i < (size_t)n; i++)
			fuzz_must(!m.known[off + i] || m.byte[off + i] == buf[i]);
	if (!m.faults && n)
		learn(off, buf, (size_t)n);
}

static void write_some(struct fuzz_in *in, uint64_t off, size_t len)
{
	const uint64_t undo = undo_failures(), inside = clamp(off, len);
	memset(buf, (int)fuzz_number(in, 1), len);
	for (size_t i = 0; i < len; i += 251)
		buf[i] = (uint8_t)i;
	ssize_t n = cf_volume_write(m.v, m.w, buf, len, off);
	if (!inside) {
		fuzz_must(n == (len ? -ENOSPC : 0));
		return;
	}
	fuzz_must(m.faults || (uint64_t)n == inside);
	fuzz_must(n <= (ssize_t)inside);
	if (n != (ssize_t)inside)
		forget_failed(off, inside, undo);
	if (n > 0 && undo == undo_failures())
		learn(off, buf, (size_t)n);
}

static void zeroed(int rc, uint64_t off, uint64_t len, uint64_t undo)
{
	if (rc) {
		fuzz_must(m.faults);
		forget_failed(off, len, undo);
		return;
	}
	memset(buf, 0, len);
	if (len)
		learn(off, buf, len);
}

static void zero(uint64_t off, uint64_t len)
{
	const uint64_t undo = undo_failures();
	int rc = cf_volume_zero(m.v, m.w, off, len);
	if (clamp(off, len) < len)
		fuzz_must(rc == -ENOSPC);
	else
		zeroed(rc, off, len, undo);
}

static void punch(uint64_t off, uint64_t len)
{
	const uint64_t undo = undo_failures();
	int rc = cf_volume_punch(m.v, m.w, off, len);
	fuzz_must(m.shape.discards || rc == -EOPNOTSUPP);
	if (rc != -EOPNOTSUPP) /* which is said before any change */
		zeroed(rc, off, clamp(off, len), undo);
}

static void sync_all(void)
{
	int rc = cf_volume_sync(m.v);
	fuzz_must(!m.unsynced || rc < 0);
	fuzz_must(m.unsynced || rc == m.t->sync_code);
	m.unsynced = rc < 0;
}

static void seek(uint64_t off, enum cf_seek what)
{
	int64_t at = cf_volume_seek(m.v, off, what);
	if (off >= m.shape.bytes)
		fuzz_must(at == -ENXIO);
	else
		fuzz_must((at >= (int64_t)off && (uint64_t)at <= m.shape.bytes) || (at == -ENXIO && what == CF_SEEK_DATA));
}

/* A disk that fails after some bytes, now and then or from now on, whose failed writes may leave a mess. */
static void break_backing(struct fuzz_in *in)
{
	static const int codes[] = {-EIO, -ENOSPC, 0, -EIO};
	const uint64_t bits = fuzz_number(in, 3), n_calls = bits & 4 ? TEST_FOREVER : 1 + (bits >> 3 & 3);
	const struct test_fault fault = {
		.code = codes[bits & 3], .after_bytes = (bits >> 8) * 16 % (2 * BYTES_MAX), .n_calls = n_calls};
	m.faults = true;
	m.t->tear = bits & 32 ? TEST_TORN : TEST_CLEAN;
	if (bits & 64)
		m.t->read_fault = fault;
	else
		m.t->write_fault = fault;
	m.t->punch_code = bits & 128 ? -EIO : 0;
	m.t->punch_code_after = m.t->n_punches;
}

static void mend_backing(void)
{
	m.t->read_fault = m.t->write_fault = (struct test_fault){.n_calls = 0};
	m.t->punch_code = m.t->sync_code = 0;
	m.faults = false;
}

static void operate(struct fuzz_in *in)
{
	const unsigned op = (unsigned)fuzz_number(in, 1) % 16;
	const uint64_t off = op < 13 ? take_off(in) : 0;
	const size_t len = op < 11 ? take_len(in) : 0;
	if (op < 3)
		read_some(off, len);
	else if (op < 7)
		write_some(in, off, len);
	else if (op < 8)
		zero(off, len);
	else if (op < 10)
		punch(off, len);
	else if (op < 11)
		fuzz_must(cf_volume_allocate(m.v, off, len) == (clamp(off, len) < len ? -ENOSPC : 0));
	else if (op < 13)
		seek(off, op == 11 ? CF_SEEK_DATA : CF_SEEK_HOLE);
	else if (op < 14)
		break_backing(in);
	else if (op < 15)
		mend_backing();
	else {
		m.t->sync_code = fuzz_number(in, 1) > 200 ? -EIO : 0;
		sync_all();
	}
}

static bool is_around(uint64_t from, uint64_t to)
{
	memset(buf, AROUND, to - from);
	return memcmp(buf, m.t->data + from, to - from) == 0;
}

static void check_end(void)
{
	const struct shape *s = &m.shape;
	mend_backing();
	fuzz_must(is_around(0, s->data_off) && is_around(s->data_off + s->bytes, m.t->base.bytes));
	read_some(0, s->bytes);
	if (s->discards)
		return;
	decrypt_backing(buf);
	fuzz_must(memcmp(buf, m.byte, s->bytes) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct fuzz_in in = {data, len};
	open_volume(&in);
	for (unsigned i = 0; i < OPS_MAX && in.left; i++)
		operate(&in);
	check_end();
	cf_volume_leave(m.v, m.w);
	cf_volume_free(&m.v);
	return 0;
}
