/* SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception */
/* check_cli.c - the options of every command as data, and what a command line becomes.
 *
 * Includes main.c, so that the table of commands under test is the program's own. */
int cryptfuse_main(int argc, char **argv);
#define main cryptfuse_main
#include "cli/main.c"
#undef main

#include "run.h"

#include "cryptfuse/spec.h"

#define N_COMMANDS ((int)CF_ARRAY_LEN(cli_commands) - 1)

/* ---- the tables ---- */

static unsigned flatten(const struct cli_command *cmd, const struct cli_option *rows[static CLI_OPTIONS_MAX])
{
	unsigned n = 0;
	for (const struct cli_group *g = cmd->groups; g->title; g++)
		for (const struct cli_option *o = g->options; o->name; o++) {
			ck_assert_uint_lt(n, CLI_OPTIONS_MAX);
			rows[n++] = o;
		}
	return n;
}

START_TEST(options__names_and_letters_are_unique)
{
	const struct cli_option *rows[CLI_OPTIONS_MAX];
	const unsigned n = flatten(cli_commands[_i], rows);
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = i + 1; j < n; j++) {
			ck_assert_str_ne(rows[i]->name, rows[j]->name);
			ck_assert_msg(!rows[i]->letter || rows[i]->letter != rows[j]->letter, "-%c is --%s and --%s",
						  rows[i]->letter, rows[i]->name, rows[j]->name);
		}
}
END_TEST

START_TEST(options__each_row_is_whole)
{
	const struct cli_option *rows[CLI_OPTIONS_MAX];
	const unsigned n = flatten(cli_commands[_i], rows);
	ck_assert_uint_gt(n, 0);
	for (unsigned i = 0; i < n; i++) {
		const struct cli_option *o = rows[i];
		const int takes = o->kind != CLI_SET && o->kind != CLI_NO_USE;
		ck_assert_msg(o->help && strlen(o->help) > 5 && strlen(o->help) < 70, "--%s: help", o->name);
		ck_assert_msg((o->arg != NULL) == takes, "--%s: argument", o->name);
		ck_assert_msg((o->field_bytes == 0) == (o->kind == CLI_NO_USE), "--%s: field", o->name);
		ck_assert_msg(o->field_off + o->field_bytes <= sizeof(struct cli_opts), "--%s: field", o->name);
		ck_assert_msg((o->words != NULL) == (o->kind == CLI_WORD), "--%s: words", o->name);
		if (o->kind == CLI_NUMBER || o->kind == CLI_SECTORS || o->kind == CLI_SIZE || o->kind == CLI_OCTAL)
			ck_assert_msg(o->field_bytes == sizeof(uint64_t), "--%s: a number needs 64 bits", o->name);
	}
}
END_TEST

START_TEST(commands__have_help_and_words)
{
	const struct cli_command *cmd = cli_commands[_i];
	const struct cli_option *rows[CLI_OPTIONS_MAX];
	const unsigned n = flatten(cmd, rows);
	unsigned helps = 0;
	for (unsigned i = 0; i < n; i++)
		helps += !strcmp(rows[i]->name, "help") && rows[i]->letter == '?';
	ck_assert_uint_eq(helps, 1);
	ck_assert(cmd->about && *cmd->about && cmd->run);
	ck_assert_uint_le(cmd->min_args, cmd->max_args);
	ck_assert_uint_le(cmd->max_args, CLI_ARGS_MAX);
	ck_assert_ptr_eq(find_command(cmd->name), cmd);
}
END_TEST

static const struct {
	char letter;
	const char *name;
} cryptsetup_letters[] = {
	{'c', "cipher"},       {'s', "key-size"}, {'h', "hash"},     {'d', "key-file"},
	{'l', "keyfile-size"}, {'o', "offset"},   {'p', "skip"},     {'b', "size"},
	{'r', "readonly"},     {'t', "timeout"},  {'T', "tries"},    {'y', "verify-passphrase"},
	{'q', "batch-mode"},   {'v', "verbose"},  {'S', "key-slot"},
};

START_TEST(options__letters_are_cryptsetups)
{
	const struct cli_option *rows[CLI_OPTIONS_MAX];
	const unsigned n = flatten(&cli_open, rows);
	unsigned found = 0;
	for (unsigned i = 0; i < n; i++)
		if (rows[i]->letter == cryptsetup_letters[_i].letter) {
			ck_assert_str_eq(rows[i]->name, cryptsetup_letters[_i].name);
			found++;
		}
	ck_assert_uint_eq(found, 1);
}
END_TEST

/* ---- a command line ---- */

/* The command's name is put in front; words are separated by '|'. */
static int parse_for(const struct cli_command *cmd, const char *line, struct cli_opts *o, struct cf_err *err)
{
	static char copy[1024]; /* struct cli_opts borrows from it */
	static char *argv[64];
	int argc = 0;
	char *save = NULL;
	snprintf(copy, sizeof(copy), "%s|%s", cmd->name, line);
	for (char *w = strtok_r(copy, "|", &save); w; w = strtok_r(NULL, "|", &save))
		argv[argc++] = w;
	ck_assert_int_lt(argc, (int)CF_ARRAY_LEN(argv));
	argv[argc] = NULL;
	*err = (struct cf_err){0};
	return cli_options_parse(cmd, argc, argv, o, err);
}

static int parse(const char *line, struct cli_opts *o, struct cf_err *err)
{
	return parse_for(&cli_open, line, o, err);
}

static struct cli_opts parse_ok(const char *line)
{
	struct cli_opts o;
	struct cf_err err;
	int rc = parse(line, &o, &err);
	ck_assert_msg(rc == 0, "%s: %s", line, err.text);
	return o;
}

/* Sectors as in cryptsetup; a size only when it has a unit. */
static const struct {
	const char *text;
	uint64_t sectors;
} sector_texts[] = {
	{"0", 0},        {"2048", 2048},  {"18446744073709551615", UINT64_MAX},
	{"1M", 2048},    {"1m", 2048},    {"1MiB", 2048},
	{"2K", 4},       {"1G", 2097152}, {"1T", 2147483648},
	{"512KB", 1000}, {"7S", 7},       {"0K", 0},
};

START_TEST(sectors__with_and_without_a_unit)
{
	char line[128];
	const char *text = sector_texts[_i].text;
	snprintf(line, sizeof(line), "--offset=%s|-p|%s|--size|%s|image|mnt", text, text, text);
	const struct cli_opts o = parse_ok(line);
	ck_assert_uint_eq(o.volume.offset_sectors, sector_texts[_i].sectors);
	ck_assert_uint_eq(o.volume.skip_sectors, sector_texts[_i].sectors);
	ck_assert_uint_eq(o.volume.size_sectors, sector_texts[_i].sectors);
}
END_TEST

START_TEST(parse__defaults)
{
	struct cli_opts o = parse_ok("image|mnt");
	ck_assert_str_eq(o.args[0], "image");
	ck_assert_str_eq(o.args[1], "mnt");
	ck_assert_uint_eq(o.n_args, 2);
	ck_assert_int_eq(o.volume.type, CF_TYPE_AUTO);
	ck_assert_str_eq(o.name, "volume");
	ck_assert_uint_eq(o.volume.tries, 3);
	ck_assert_uint_eq(o.timeout_s, 0);
	ck_assert_uint_eq(o.stop_timeout_s, 10);
	ck_assert_uint_eq(o.mode, CLI_MODE_DEFAULT);
	ck_assert_int_eq(o.share, CF_SHARE_OWNER);
	ck_assert_int_eq(o.volume.access, CF_READ_WRITE);
	ck_assert_int_eq(o.volume.lock, CF_LOCK);
	ck_assert_int_eq(o.volume.discards, CF_DISCARDS_REFUSED);
	ck_assert_int_eq(o.volume.compat, CF_COMPAT_2_7);
	ck_assert_ptr_null(o.volume.cipher);
	ck_assert_ptr_null(o.volume.hash);
	ck_assert_ptr_null(o.volume.key_file);
	ck_assert_uint_eq(o.volume.key_bits + o.volume.offset_sectors + o.volume.skip_sectors, 0);
	ck_assert_uint_eq(o.volume.size_sectors + o.volume.device_size_bytes + o.volume.sector_size_bytes, 0);
}
END_TEST

START_TEST(parse__every_field_of_a_volume)
{
	struct cli_opts o = parse_ok("-c|aes-cbc-plain|-s|512|-h|sha512:32|-d|-|-l|7|--keyfile-offset=9|-o|1|-p|2|-b|3|"
								 "--device-size|1MiB|--sector-size=4096|--iv-large-sectors|-r|--shared|"
								 "--allow-discards|--direct|--engine|openssl|--table|t|--compat=2.6|image|mnt");
	ck_assert_str_eq(o.volume.cipher, "aes-cbc-plain");
	ck_assert_uint_eq(o.volume.key_bits, 512);
	ck_assert_str_eq(o.volume.hash, "sha512:32");
	ck_assert_str_eq(o.volume.key_file, "-");
	ck_assert_uint_eq(o.volume.keyfile_size_bytes, 7);
	ck_assert_uint_eq(o.volume.keyfile_offset_bytes, 9);
	ck_assert_uint_eq(o.volume.offset_sectors, 1);
	ck_assert_uint_eq(o.volume.skip_sectors, 2);
	ck_assert_uint_eq(o.volume.size_sectors, 3);
	ck_assert_uint_eq(o.volume.device_size_bytes, 1048576);
	ck_assert_uint_eq(o.volume.sector_size_bytes, 4096);
	ck_assert(o.volume.iv_large_sectors);
	ck_assert_int_eq(o.volume.access, CF_READ_ONLY);
	ck_assert_int_eq(o.volume.lock, CF_LOCK_NONE);
	ck_assert_int_eq(o.volume.image_cache, CF_IMAGE_DIRECT);
	ck_assert_int_eq(o.volume.discards, CF_DISCARDS_ALLOWED);
	ck_assert_str_eq(o.volume.engine, "openssl");
	ck_assert_str_eq(o.volume.table_file, "t");
	ck_assert_int_eq(o.volume.compat, CF_COMPAT_2_6);
}
END_TEST

START_TEST(parse__every_field_of_the_rest)
{
	struct cli_opts o =
		parse_ok("-yqv|-T5|-t|60|--name=x|--mode=0640|--allow-root|--stop-timeout|0|--foreground|--debug|"
				 "--type=plain|--cache=writeback|--readahead|1024|--io-uring|image|mnt");
	ck_assert(o.verify && o.batch && o.verbose && o.foreground && o.debug);
	ck_assert_uint_eq(o.volume.tries, 5);
	ck_assert_uint_eq(o.timeout_s, 60);
	ck_assert_str_eq(o.name, "x");
	ck_assert_uint_eq(o.mode, 0640);
	ck_assert_int_eq(o.share, CF_SHARE_ROOT);
	ck_assert_uint_eq(o.stop_timeout_s, 0);
	ck_assert_int_eq(o.cache, CF_CACHE_WRITEBACK);
	ck_assert_uint_eq(o.readahead_kib, 1024);
	ck_assert_int_eq(o.transport, CF_TRANSPORT_IO_URING);
}
END_TEST

START_TEST(parse__options_without_effect_change_nothing)
{
	struct cli_opts o = parse_ok("--disable-locks|--perf-same_cpu_crypt|--perf-submit_from_crypt_cpus|"
								 "--perf-no_read_workqueue|--perf-no_write_workqueue|image|mnt");
	ck_assert_str_eq(o.args[0], "image");
	ck_assert_uint_eq(o.n_args, 2);
	ck_assert_int_eq(o.volume.access, CF_READ_WRITE);
	ck_assert_int_eq(o.volume.lock, CF_LOCK);
	ck_assert_uint_eq(o.help, 0);
}
END_TEST

START_TEST(parse__the_last_of_two_counts)
{
	struct cli_opts o = parse_ok("-o|1|image|--offset=2|mnt|-r|-r");
	ck_assert_uint_eq(o.volume.offset_sectors, 2);
	ck_assert_str_eq(o.args[1], "mnt");
	ck_assert_int_eq(o.volume.access, CF_READ_ONLY);
}
END_TEST

START_TEST(parse__two_dashes_end_the_options)
{
	struct cli_opts o = parse_ok("--|-r|--shared");
	ck_assert_str_eq(o.args[0], "-r");
	ck_assert_str_eq(o.args[1], "--shared");
	ck_assert_int_eq(o.volume.access, CF_READ_WRITE);
}
END_TEST

static const char *const help_lines[] = {"-?", "--help", "a|b|c|--help", "-q?"};

START_TEST(parse__help_is_help_with_any_arguments)
{
	ck_assert_uint_eq(parse_ok(help_lines[_i]).help, 1);
}
END_TEST

static const struct {
	const char *line, *message; /* the message names what was wrong */
} wrong[] = {
	{"--offset|5x|a|b", "--offset '5x'"},
	{"--offset|+5|a|b", "--offset '+5'"},
	{"--offset|-5|a|b", "--offset '-5'"},
	{"--offset|0x10|a|b", "--offset '0x10'"},
	{"--offset| 5|a|b", "--offset ' 5'"},
	{"--offset=|a|b", "--offset ''"},
	{"--offset|1000B|a|b", "--offset '1000B'"},
	{"--offset|1KB|a|b", "not a multiple of 512 bytes"},
	{"--skip|M|a|b", "--skip 'M'"},
	{"--size|1.5M|a|b", "--size '1.5M'"},
	{"--size|16777216T|a|b", "too large"},
	{"--offset|18446744073709551616|a|b", "18446744073709551615"},
	{"--key-size|1.5|a|b", "--key-size '1.5'"},
	{"--sector-size|511|a|b", "512 to 65536"},
	{"--sector-size|65537|a|b", "512 to 65536"},
	{"--sector-size|0|a|b", "512 to 65536"},
	{"--tries|0|a|b", "--tries '0'"},
	{"--device-size|5Q|a|b", "--device-size '5Q'"},
	{"--device-size|9999999999999T|a|b", "too large"},
	{"--mode|8|a|b", "--mode '8'"},
	{"--mode|01000|a|b", "--mode '01000'"},
	{"--mode|07777777777777777777777777|a|b", "--mode"},
	{"--mode=|a|b", "--mode ''"},
	{"--compat|2.5|a|b", "2.6|2.7"},
	{"--type|tcrypt|a|b", "must be one of auto|plain|luks"},
	{"--cipher=|a|b", "--cipher ''"},
	{"--allow-root|--allow-other|a|b", "contradict"},
	{"--readonly=yes|a|b", "--readonly takes no argument"},
	{"--perf-same_cpu_crypt=1|a|b", "takes no argument"},
	{"a|b|--cipher", "--cipher needs its CIPHER"},
	{"a|b|-h", "--hash needs its HASH"},
	{"-Z|a|b", "no option -Z"},
	{"--nothing|a|b", "no option --nothing"},
	{"-r", "IMAGE MOUNTPOINT"},
	{"a", "IMAGE MOUNTPOINT, but 1 argument was given"},
	{"--crypttab|x|a|b", "IMAGE MOUNTPOINT (IMAGE is what --crypttab names) and no more, but 2 arguments were"},
	{"--crypttab|x", "(IMAGE is what --crypttab names), but 0 arguments were given"},
	{"a|b|c", "no more"},
};

START_TEST(parse__refuses_and_says_what)
{
	struct cli_opts o;
	struct cf_err err;
	ck_assert_int_eq(parse(wrong[_i].line, &o, &err), -EINVAL);
	ck_assert_msg(strstr(err.text, wrong[_i].message) != NULL, "%s: %s", wrong[_i].line, err.text);
	ck_assert_int_eq(cf_err_exit_code(err.code), 1);
}
END_TEST

/* A passphrase typed where it does not belong must not come back on the screen or in a log. */
static const char *const slips[] = {"--passphrase=SECRET|a|b", "a|b|SECRET", "--readonly=SECRET|a|b", "-rZSECRET|a|b"};

START_TEST(parse__never_echoes_what_may_be_secret)
{
	struct cli_opts o;
	struct cf_err err;
	ck_assert_int_eq(parse(slips[_i], &o, &err), -EINVAL);
	ck_assert_ptr_null(strstr(err.text, "SECRET"));
}
END_TEST

START_TEST(parse__edges_of_numbers)
{
	ck_assert_uint_eq(parse_ok("-p|18446744073709551615|a|b").volume.skip_sectors, UINT64_MAX);
	ck_assert_uint_eq(parse_ok("-p|0|a|b").volume.skip_sectors, 0);
	ck_assert_uint_eq(parse_ok("-p|007|a|b").volume.skip_sectors, 7);
	ck_assert_uint_eq(parse_ok("--sector-size|65536|a|b").volume.sector_size_bytes, 65536);
	ck_assert_uint_eq(parse_ok("--sector-size|512|a|b").volume.sector_size_bytes, 512);
	ck_assert_uint_eq(parse_ok("--mode|0|a|b").mode, 0);
	ck_assert_uint_eq(parse_ok("--mode|777|a|b").mode, 0777);
	ck_assert_uint_eq(parse_ok("--device-size|3S|a|b").volume.device_size_bytes, 1536);
	ck_assert_uint_eq(parse_ok("--device-size|4294967296|a|b").volume.device_size_bytes, UINT64_C(1) << 32);
}
END_TEST

/* ---- a list of numbers ---- */

static const struct {
	const char *line;
	struct cli_numbers sizes;
} lists[] = {
	{"", {0, {0}}},
	{"--sector-size|512", {1, {512}}},
	{"--sector-size=65536,512", {2, {65536, 512}}},
	{"--sector-size=512,1024|--json|--sector-size|00004096", {3, {512, 1024, 4096}}},
	{"--sector-size|512,513,514,515,516,517,518,519", {8, {512, 513, 514, 515, 516, 517, 518, 519}}},
};

START_TEST(numbers__add_up)
{
	struct cli_opts o;
	struct cf_err err;
	ck_assert_msg(parse_for(&cli_bench, lists[_i].line, &o, &err) == 0, "%s", err.text);
	ck_assert_mem_eq(&o.sector_sizes, &lists[_i].sizes, sizeof(o.sector_sizes));
	ck_assert_uint_eq(o.volume.sector_size_bytes, 0);
}
END_TEST

static const struct {
	const char *line, *message;
} bad_lists[] = {
	{"--sector-size|512,,4096", "--sector-size ''"},
	{"--sector-size|512,", "--sector-size ''"},
	{"--sector-size|,512", "--sector-size ''"},
	{"--sector-size=", "--sector-size ''"},
	{"--sector-size|512 4096", "--sector-size '512 4096'"},
	{"--sector-size|512,4k", "--sector-size '4k'"},
	{"--sector-size|512,511", "must be 512 to 65536"},
	{"--sector-size|512,65537", "must be 512 to 65536"},
	{"--sector-size|0000000000000000000000000000000000000000x,512", "not a number"},
	{"--sector-size|512,512,512,512,512,512,512,512,512", "more than 8"},
	{"--sector-size|1024,1024,1024,1024|--sector-size|512,512,512,512,512", "more than 8"},
	{"--seconds|0", "1 to 3600"},
	{"--seconds|3601", "1 to 3600"},
	{"--key-size|131073", "0 to 131072"},
	{"image", "takes no argument"},
};

START_TEST(numbers__refused_and_said_what)
{
	struct cli_opts o;
	struct cf_err err;
	ck_assert_int_eq(parse_for(&cli_bench, bad_lists[_i].line, &o, &err), -EINVAL);
	ck_assert_msg(strstr(err.text, bad_lists[_i].message) != NULL, "%s: %s", bad_lists[_i].line, err.text);
}
END_TEST

/* ---- words ---- */

static const struct {
	uint64_t bytes;
	const char *text;
} sizes[] = {
	{0, "0 bytes"},
	{512, "512 bytes"},
	{1023, "1023 bytes"},
	{1024, "1 KiB"},
	{1536, "1.5 KiB"},
	{16777216, "16 MiB"},
	{UINT64_C(1) << 41, "2 TiB"},
	{UINT64_MAX, "16 EiB"},
	{1075, "1 KiB"},
	{1076, "1.1 KiB"}, /* 1.0498, 1.0508 */
	{53739, "52.5 KiB"},
	{1024092405, "976.7 MiB"}, /* 52.4795, 976.65 and a little */
	{1048524, "1023.9 KiB"},
	{1048525, "1 MiB"}, /* on both sides of 1023.95 */
	{(UINT64_C(1) << 20) + 1, "1 MiB"},
	{(UINT64_C(1) << 60) - 1, "1 EiB"},
	{UINT64_C(17293822569102704640), "15 EiB"},
};

START_TEST(format_bytes__is_short)
{
	char text[32];
	cli_format_bytes(sizes[_i].bytes, text, sizeof(text));
	ck_assert_str_eq(text, sizes[_i].text);
}
END_TEST

static const char *const ciphers[] = {
	"aes-xts-plain64",
	"aes-cbc-essiv:sha256",
	"aes:64-cbc-lmk",
	"aes-ecb",
	"cipher_null-ecb",
	"des3_ede-cbc-tcw",
	"capi:essiv(cbc(aes),sha256)-plain64be",
	"capi:cts(cbc(aes))-plain64",
};

START_TEST(format_cipher__reads_back_as_the_same)
{
	struct cf_cipher_spec a = {0}, b = {0};
	struct cf_err err = {0};
	char text[CF_SPEC_TEXT];
	ck_assert_int_eq(cf_spec_parse_cipher(ciphers[_i], &a, &err), 0);
	cf_spec_format_cipher(&a, text, sizeof(text));
	ck_assert_int_eq(cf_spec_parse_cipher(text, &b, &err), 0);
	ck_assert_str_eq(text, ciphers[_i]);
	ck_assert_str_eq(a.mode, b.mode);
	ck_assert_str_eq(a.iv, b.iv);
	ck_assert_str_eq(a.essiv_hash, b.essiv_hash);
	ck_assert_uint_eq(a.keycount, b.keycount);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("cli");
	TCase *t = tcase_create("options");
	suite_add_tcase(s, t);
	tcase_add_loop_test(t, options__names_and_letters_are_unique, 0, N_COMMANDS);
	tcase_add_loop_test(t, options__each_row_is_whole, 0, N_COMMANDS);
	tcase_add_loop_test(t, commands__have_help_and_words, 0, N_COMMANDS);
	tcase_add_loop_test(t, options__letters_are_cryptsetups, 0, (int)CF_ARRAY_LEN(cryptsetup_letters));
	tcase_add_loop_test(t, sectors__with_and_without_a_unit, 0, CF_ARRAY_LEN(sector_texts));
	tcase_add_test(t, parse__defaults);
	tcase_add_test(t, parse__every_field_of_a_volume);
	tcase_add_test(t, parse__every_field_of_the_rest);
	tcase_add_test(t, parse__options_without_effect_change_nothing);
	tcase_add_test(t, parse__the_last_of_two_counts);
	tcase_add_test(t, parse__two_dashes_end_the_options);
	tcase_add_loop_test(t, parse__help_is_help_with_any_arguments, 0, (int)CF_ARRAY_LEN(help_lines));
	tcase_add_loop_test(t, parse__refuses_and_says_what, 0, (int)CF_ARRAY_LEN(wrong));
	tcase_add_loop_test(t, parse__never_echoes_what_may_be_secret, 0, (int)CF_ARRAY_LEN(slips));
	tcase_add_test(t, parse__edges_of_numbers);
	tcase_add_loop_test(t, numbers__add_up, 0, (int)CF_ARRAY_LEN(lists));
	tcase_add_loop_test(t, numbers__refused_and_said_what, 0, (int)CF_ARRAY_LEN(bad_lists));
	tcase_add_loop_test(t, format_bytes__is_short, 0, (int)CF_ARRAY_LEN(sizes));
	tcase_add_loop_test(t, format_cipher__reads_back_as_the_same, 0, (int)CF_ARRAY_LEN(ciphers));
	return test_run(s);
}
