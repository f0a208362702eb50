/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* status.c - what is open and how, as JSON.
 *
 * Invariant: built from names, numbers and counters only; the key is not within reach. Any thread. */
#include "config.h"

#include "cryptfuse/ops.h"

#include <json.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cryptfuse/journal.h"
#include "cryptfuse/json.h"
#include "cryptfuse/secret.h"
#include "cryptfuse/spec.h"
#include "cryptfuse/voice.h"

#define RANGES_MAX 128u /* of unreadable bytes: the status has to fit in an xattr */

static void put_cipher(struct json_object *o, const struct cf_cipher_spec *c)
{
	char text[CF_SPEC_TEXT];
	cf_spec_format_cipher(c, text, sizeof(text));
	cf_json_add_text(o, "cipher", text);
	cf_json_add_number(o, "key_bits", (uint64_t)c->key_bytes * 8);
	cf_json_add_number(o, "sector_size", c->du_bytes);
	cf_json_add_number(o, "iv_offset", c->iv_offset);
	cf_json_add_flag(o, "iv_large_sectors", c->iv_numbering == CF_IV_LARGE_SECTORS);
}

/* From how many data units on the batch path is taken: null is never. */
static struct json_object *path(size_t batch_from)
{
	struct json_object *o = json_object_new_object();
	cf_json_add_known(o, "batch_from", batch_from, batch_from != SIZE_MAX);
	return o;
}

/* The engines that were measured at open, the first is the one that serves: empty if one was named or only one has the
 * cipher. */
static struct json_object *candidates(const struct cf_cipher_info *info)
{
	struct json_object *list = json_object_new_array();
	for (unsigned i = 0; i < info->n_candidates; i++) {
		struct json_object *o = json_object_new_object();
		cf_json_add_text(o, "engine", info->candidates[i].engine);
		cf_json_add_flag(o, "constant_time", info->candidates[i].constant_time);
		cf_json_add_number(o, "encrypt_mb_per_s", info->candidates[i].mb_per_s[CF_ENCRYPT]);
		cf_json_add_number(o, "decrypt_mb_per_s", info->candidates[i].mb_per_s[CF_DECRYPT]);
		cf_json_append(list, o);
	}
	return list;
}

static void put_engine(struct json_object *o, const struct cf_cipher *c)
{
	struct cf_cipher_info info;
	cf_cipher_info(c, &info);
	cf_json_add_text(o, "engine", info.engine);
	if (*info.driver)
		cf_json_add_text(o, "driver", info.driver);
	cf_json_add_flag(o, "constant_time", info.constant_time);
	struct json_object *paths = json_object_new_object();
	cf_json_add(paths, "encrypt", path(info.batch_from[CF_ENCRYPT]));
	cf_json_add(paths, "decrypt", path(info.batch_from[CF_DECRYPT]));
	if (info.native_path)
		cf_json_add_text(paths, "below", info.native_path);
	cf_json_add(o, "paths", paths);
	cf_json_add_number(o, "tile_du", info.tile_du);
	cf_json_add(o, "candidates", candidates(&info));
	if (info.standby)
		cf_json_add_text(o, "standby", info.standby);
	else
		cf_json_add_null(o, "standby");
	cf_json_add_flag(o, "engine_lost", info.lost);
	cf_json_add_number(o, "fallbacks", info.fallbacks);
}

static const char *cache_name(enum cf_cache cache)
{
	static const char *const names[] = {
		[CF_CACHE_DEFAULT] = "default", [CF_CACHE_WRITEBACK] = "writeback", [CF_CACHE_DIRECT] = "direct"};
	return names[cache];
}

/* How the kernel treats the file. */
static void put_mount(struct json_object *o, const struct cf_ops *ops)
{
	cf_json_add_text(o, "cache", cache_name(ops->opts->cache));
	cf_json_add_number(o, "request_bytes", cf_ops_io_bytes(ops));
	cf_json_add_known(o, "readahead_kib", ops->readahead_kib, ops->readahead_kib != 0);
	cf_json_add_text(o, "transport", ops->transport == CF_TRANSPORT_IO_URING ? "io_uring" : "device");
	cf_json_add_flag(o, "direct", ops->plan->image_cache == CF_IMAGE_DIRECT);
	cf_json_add_flag(o, "shared", ops->plan->lock == CF_LOCK_NONE);
}

/* What holds the daemon: null is nothing of the kind. */
static void put_sandbox(struct json_object *o, const struct cf_sandbox *s)
{
	struct json_object *box = json_object_new_object();
	cf_json_add_flag(box, "on", s->use == CF_SANDBOX_ON);
	cf_json_add_known(box, "landlock", s->landlock, s->landlock != 0);
	cf_json_add_flag(box, "seccomp", s->seccomp);
	cf_json_add(o, "sandbox", box);
}

/* What the daemon had to say since open, also what nobody has looked for yet. */
static struct json_object *messages(struct cf_voice *v)
{
	struct cf_voice_line last[CF_VOICE_KEPT];
	struct json_object *list = json_object_new_array();
	cf_voice_notice(v);
	const unsigned n = cf_voice_last(v, last);
	for (unsigned i = 0; i < n; i++) {
		struct json_object *o = json_object_new_object();
		cf_json_add_number(o, "time", (uint64_t)last[i].at);
		cf_json_add_text(o, "text", last[i].text);
		cf_json_append(list, o);
	}
	return list;
}

/* What else is shown, as NAME.p1 and so on. */
static struct json_object *partitions(const struct cf_ops *ops)
{
	struct json_object *list = json_object_new_array();
	for (unsigned i = 1; i < atomic_load(&ops->n_files); i++) {
		struct json_object *o = json_object_new_object();
		cf_json_add_number(o, "number", ops->file[i].number);
		cf_json_add_number(o, "offset", ops->file[i].off);
		cf_json_add_number(o, "bytes", ops->file[i].bytes);
		cf_json_append(list, o);
	}
	return list;
}

static struct json_object *counters(struct cf_volume *v)
{
	struct cf_volume_stats s;
	cf_volume_stats(v, &s);
	struct json_object *o = json_object_new_object();
	cf_json_add_number(o, "reads", s.reads);
	cf_json_add_number(o, "read_bytes", s.read_bytes);
	cf_json_add_number(o, "writes", s.writes);
	cf_json_add_number(o, "write_bytes", s.write_bytes);
	cf_json_add_number(o, "rmw", s.rmw);
	cf_json_add_number(o, "syncs", s.syncs);
	cf_json_add_number(o, "punched_bytes", s.punched_bytes);
	cf_json_add_number(o, "zeroed_bytes", s.zeroed_bytes);
	cf_json_add_number(o, "read_errors", s.read_errors);
	cf_json_add_number(o, "write_errors", s.write_errors);
	cf_json_add_number(o, "sync_errors", s.sync_errors);
	cf_json_add_number(o, "undo_failures", s.undo_failures);
	return o;
}

static void put_journal(struct json_object *o, const struct cf_ops *ops)
{
	struct cf_journal_stats s;
	if (!cf_volume_journal(ops->volume, &s))
		return;
	struct json_object *j = json_object_new_object();
	cf_json_add_text(j, "file", ops->plan->journal);
	cf_json_add_number(j, "bytes", s.bytes);
	cf_json_add_number(j, "replayed", s.replayed);
	cf_json_add_number(j, "records", s.records);
	cf_json_add_number(j, "pending", s.pending);
	cf_json_add_number(j, "commits", s.commits);
	cf_json_add_number(j, "rounds", s.rounds);
	cf_json_add_text(j, "error", s.error ? strerror(-s.error) : "none");
	cf_json_add(o, "journal", j);
}

/* What could not be read so far; the first of the ranges. */
static void put_unreadable(struct json_object *o, struct cf_volume *v)
{
	struct cf_bad_range bad[RANGES_MAX];
	struct cf_bad_total total;
	const unsigned n = cf_volume_bad(v, bad, RANGES_MAX, &total);
	struct json_object *u = json_object_new_object(), *list = json_object_new_array();
	cf_json_add_number(u, "bytes", total.bytes);
	cf_json_add_flag(u, "complete", total.complete && n == total.ranges);
	for (unsigned i = 0; i < n; i++) {
		struct json_object *range = json_object_new_object();
		cf_json_add_number(range, "offset", bad[i].off);
		cf_json_add_number(range, "bytes", bad[i].bytes);
		cf_json_add_number(range, "image_offset", bad[i].image_off);
		cf_json_append(list, range);
	}
	cf_json_add(u, "ranges", list);
	cf_json_add(o, "unreadable", u);
}

static void add_word(struct json_object *list, const char *word)
{
	cf_json_append(list, json_object_new_string(word));
}

static void add_text(struct json_object *list, const char *option, const char *value)
{
	add_word(list, option);
	add_word(list, value);
}

static void add_number(struct json_object *list, const char *option, unsigned value)
{
	char text[16];
	snprintf(text, sizeof(text), "%u", value);
	add_text(list, option, text);
}

/* What `open` says of the file. */
static void add_file(struct json_object *list, const struct cf_serve_opts *s, unsigned n_workers)
{
	char mode[8];
	add_text(list, "--cache", cache_name(s->cache));
	snprintf(mode, sizeof(mode), "%04o", (unsigned)s->mode);
	add_text(list, "--mode", mode);
	if (s->kind == CF_MOUNT_DIRECTORY)
		add_text(list, "--name", s->name);
	if (s->share != CF_SHARE_OWNER)
		add_word(list, s->share == CF_SHARE_ROOT ? "--allow-root" : "--allow-other");
	if (s->readahead_kib)
		add_number(list, "--readahead", s->readahead_kib);
	if (s->transport == CF_TRANSPORT_IO_URING)
		add_word(list, "--io-uring");
	add_number(list, "--stop-timeout", s->stop_timeout_s);
	add_number(list, "--threads", n_workers);
}

/* The whole command line that does the same again, every default spelled out; null if it is too long. */
static void put_command(struct json_object *o, const struct cf_ops *ops)
{
	const char *const end = ops->plan->command + CF_COMMAND_MAX;
	const struct cf_serve_opts *s = ops->opts;
	if (!ops->plan->command[0]) {
		cf_json_add_null(o, "command");
		return;
	}
	struct json_object *list = json_object_new_array();
	add_word(list, "cryptfuse");
	add_word(list, *s->directory ? "mount" : "open");
	for (const char *word = ops->plan->command; word < end && *word; word += strlen(word) + 1)
		add_word(list, word);
	if (!*s->directory)
		add_file(list, s, ops->plan->n_workers);
	add_word(list, s->image);
	add_word(list, *s->directory ? s->directory : s->mountpoint);
	cf_json_add(o, "command", list);
}

/* Null: it has its key. */
static void put_suspended(struct json_object *to, struct cf_gate *g)
{
	struct cf_gate_stats s;
	cf_gate_stats(g, &s);
	if (s.state == CF_GATE_OPEN) {
		cf_json_add_null(to, "suspended");
		return;
	}
	struct json_object *o = json_object_new_object();
	cf_json_add_number(o, "waiting_reads", s.reads);
	cf_json_add_number(o, "waiting_writes", s.writes);
	cf_json_add_number(o, "lost_writes", s.lost_writes);
	cf_json_add_number(o, "lost_bytes", s.lost_bytes);
	cf_json_add(to, "suspended", o);
}

char *cf_status_json(struct cf_ops *ops)
{
	struct json_object *o = json_object_new_object();
	struct cf_secret_stats secret;
	const struct cf_open_plan *plan = ops->plan;
	cf_secret_stats(&secret);
	cf_json_add_text(o, "version", PACKAGE_VERSION);
	cf_json_add_number(o, "pid", (uint64_t)getpid());
	cf_json_add_text(o, "image", ops->opts->image);
	cf_json_add_text(o, "mountpoint", ops->opts->mountpoint);
	cf_json_add_text(o, "type", plan->type);
	if (*plan->uuid)
		cf_json_add_text(o, "uuid", plan->uuid);
	if (plan->keyslot >= 0)
		cf_json_add_number(o, "keyslot", (uint64_t)plan->keyslot);
	put_cipher(o, &plan->cipher);
	cf_json_add_number(o, "data_offset", plan->data_off);
	cf_json_add_number(o, "bytes", plan->bytes);
	cf_json_add_flag(o, "read_only", plan->access == CF_READ_ONLY);
	cf_json_add_flag(o, "allow_discards", plan->discards == CF_DISCARDS_ALLOWED);
	put_mount(o, ops);
	put_suspended(o, &ops->gate);
	cf_json_add_text(o, "bad_sectors", plan->bad_sectors == CF_BAD_ZERO ? "zero" : "eio");
	put_unreadable(o, ops->volume);
	put_journal(o, ops);
	put_command(o, ops);
	put_engine(o, cf_volume_cipher(ops->volume));
	cf_json_add_number(o, "workers", plan->n_workers);
	cf_json_add_number(o, "permits", plan->n_permits);
	cf_json_add_flag(o, "memory_locked", secret.locked);
	put_sandbox(o, &ops->sandbox);
	cf_json_add(o, "partitions", partitions(ops));
	cf_json_add(o, "counters", counters(ops->volume));
	cf_json_add(o, "messages", messages(ops->voice));
	return cf_json_text(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
}
