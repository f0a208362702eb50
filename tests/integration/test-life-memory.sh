#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: root
# What our processes have in their memory, as root can read it: the passphrase nowhere; the key, every 16 bytes of it and of what is
# computed from it, in the secret arena only (locked, left out of core dumps); and after the end of it nowhere at all, in the
# last moments of the process that asked, of the daemon and of its helper (HAZARDS 27, 37). For plain, ESSIV and LUKS2 volumes, every
# engine, a wrong passphrase, an open that fails.
. "$(dirname "$0")/lib.sh"
need_root "$@"
need cryptsetup openssl python3

M=$S/m V=$S/m/volume
random_hex 20 >"$S/pass" # no word that a message has
PASS=$(cat "$S/pass")
printf %s "$PASS" | openssl dgst -sha512 -binary >"$S/key64"
head -c 32 "$S/key64" >"$S/key32"
new_image "$S/plain" $((1024 * 1024))
truncate -s 20M "$S/luks2"
printf %s "$PASS" | cryptsetup luksFormat -q --type luks2 --pbkdf argon2id --pbkdf-force-iterations 4 --pbkdf-memory 4096 \
	--volume-key-file "$S/key64" "$S/luks2" -

# memory KEY-BYTES MODE…: the text is in every process of ours: a search that does not find it proves nothing
memory() {
	local bytes=$1
	shift
	"$(dirname "$0")/memory.py" --key "$S/key$bytes" --passphrase "$S/pass" --text "$M" "$@"
}

# ---- the search itself: a process with a copy of everything ----

for bytes in 32 64; do
	rm -f "$S/fifo"
	mkfifo "$S/fifo"
	memory $bytes plant <"$S/fifo" >"$S/plant.out" &
	planted=$!
	exec 6>"$S/fifo"
	wait_for "a copy to be planted" grep -q . "$S/plant.out"
	# a schedule is there by bytes or by words
	memory $bytes names | sed 's/, by words$//' | sort -u >"$S/names"
	memory $bytes search "$(cat "$S/plant.out")" | sed -E 's/^[0-9]+ [^:]*: (.*) in [^ ]*$/\1/;s/, by words$//' | sort -u >"$S/found"
	exec 6>&-
	wait $planted
	assert_same "what the search finds of a copy of $bytes bytes" "$S/names" "$S/found"
done

# ---- ours ----

# Nothing but the text, and key material in the arena.
clean() { # WHAT FILE
	assert_match "$1: what is found" ': the text in' "$(cat "$2")"
	assert_eq "$1: what should not be found" '' "$(grep -vE ' starts$| ends$|: the text in | in arena$' "$2" || :)"
	assert_eq "$1: passphrases" '' "$(grep passphrase "$2" || :)"
}

# Each process that an open has started, and itself, at its end. In the last moments there is no arena any more.
ended_clean() { # WHAT PROCESSES
	clean "$1, at the end" "$S/ends"
	assert_eq "$1, at the end: processes" "$2" "$(grep -c ' cryptfuse ends$' "$S/ends")"
}

# The process that asks has ended, and what was in its memory is known.
asked() {
	local pid
	pid=$(sed -n 's/ starts$//p' "$S/ends")
	[ -n "$pid" ] && grep -qx "$pid cryptfuse ends" "$S/ends"
}

# Every byte of the volume goes through the engine, in both directions.
use() {
	cat "$V" >"$S/all"
	head -c 300000 "$S/all" | dd of="$V" conv=notrunc,fsync 2>/dev/null
	printf x | dd of="$V" bs=1 seek=1001 conv=notrunc,fsync 2>/dev/null
}

mkdir "$M"
n_open=0
for engine in openssl gcrypt cpu-aesni cpu-vaes256 cpu-vaes512 cpu-arm64; do
	for kind in plain essiv luks2; do
		what="$kind by $engine"
		bytes=64 image=$S/plain options=(--cipher aes-xts-plain64 --key-size 512 --hash sha512)
		[ $kind != essiv ] || options=(--cipher aes-cbc-essiv:sha256 --key-size 256 --hash plain --key-file "$S/key32") bytes=32
		[ $kind != luks2 ] || options=() image=$S/luks2
		memory $bytes run "$CRYPTFUSE" open "${options[@]}" --engine $engine "$image" "$M" <"$S/pass" >"$S/ends" 2>"$S/open.err" &
		traced=$!
		wait_for "the process that asks to end" asked
		if ! mounted "$M"; then # this machine or build lacks it
			assert_match "$what" "no engine '$engine'|engine $engine" "$(cat "$S/open.err")"
			wait $traced || :
			continue
		fi
		n_open=$((n_open + 1))
		use
		# shellcheck disable=SC2046
		memory $bytes search $(daemons_of "$M") >"$S/open"
		clean "$what, open" "$S/open"
		assert_match "$what, open" ': the key from byte 0 in arena' "$(cat "$S/open")"
		close_vol "$M"
		wait $traced || fail "$what: exit $?"
		ended_clean "$what" 3
		if grep -q arena "$S/ends"; then fail "$what: keys outlive the volume: $(grep arena "$S/ends")"; fi
	done
done
[ $n_open -ge 3 ] || fail "only $n_open volumes were opened"

# ---- in the foreground, where the process that asked stays ----

for options in '--cipher aes-xts-plain64 --key-size 512 --hash sha512 plain' luks2; do
	# shellcheck disable=SC2086
	(cd "$S" && exec "$CRYPTFUSE" open --foreground $options "$M") <"$S/pass" 2>"$S/open.err" &
	foreground=$!
	wait_for "the volume" test -e "$V"
	use
	# shellcheck disable=SC2046
	memory 64 search $(daemons_of "$M") >"$S/open"
	clean "$options in the foreground" "$S/open"
	assert_eq "$options in the foreground: processes" 3 "$(cut -d' ' -f1 "$S/open" | sort -u | wc -l)"
	assert_eq "$options in the foreground: the process that asked" '' "$(grep "^$foreground .*arena" "$S/open" || :)"
	close_vol "$M"
	wait $foreground || fail "$options in the foreground: exit $?"
done

# ---- an open that fails: with a wrong passphrase, and late, when everything is there already ----

fails() { # WHAT EXIT OPTION…
	local what=$1 want=$2 rc=0
	shift 2
	memory 64 run "$CRYPTFUSE" open "$@" "$M" <"$S/pass" >"$S/ends" 2>"$S/open.err" || rc=$?
	assert_eq "$what: exit" "$want" "$rc"
	ended_clean "$what" 3
	if grep -q arena "$S/ends"; then fail "$what: keys outlive it: $(grep arena "$S/ends")"; fi
	assert_gone "$M"
}

fails "nothing known inside" 2 --cipher aes-xts-plain64 --key-size 512 --hash sha512 --require-signature "$S/plain"
fails "nothing known inside, LUKS2" 2 --require-signature "$S/luks2"
random_hex 20 >"$S/pass" # another, which is looked for now
fails "a wrong passphrase" 2 "$S/luks2"
