#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: root
# After suspend the memory of the daemon and its helper, as root can read it, holds nothing of the key or of what is computed
# from it, nor what was read and written; after resume the key is in the arena again. By every sort of engine, a wrong key in between.
. "$(dirname "$0")/lib.sh"
need_root "$@"
need python3

M=$S/m V=$S/m/volume IMG=$S/img TEXT=$(random_hex 20) # no word that a message has
new_image "$IMG" $((4 << 20))
head -c 64 /dev/urandom >"$S/key64"
head -c 32 "$S/key64" >"$S/key32"
head -c 64 /dev/urandom >"$S/other64"
head -c 32 "$S/other64" >"$S/other32"

# search BYTES: what is found of the key, of TEXT, and of the mount point's name, which is in the memory of daemon and helper:
# a search that does not find it proves nothing
printf %s "$TEXT" >"$S/text"
search() {
	# shellcheck disable=SC2046
	"$(dirname "$0")/memory.py" --key "$S/key$1" --passphrase "$S/text" --text "$M" search $(daemons_of "$M")
}

assert_clean() { # WHAT BYTES
	search "$2" >"$S/suspended"
	assert_eq "$1: processes" 2 "$(sed -n 's/ .*: the text in .*//p' "$S/suspended" | sort -u | wc -l)"
	assert_eq "$1: what is left" '' "$(grep -v ': the text in' "$S/suspended" || :)"
}

n=0 cpu=no
for engine in openssl gcrypt cpu-aesni cpu-vaes256 cpu-vaes512 cpu-arm64; do
	if [[ $engine = cpu-* && $cpu = yes ]]; then continue; fi # they have one frame
	for bytes in 64 32; do
		cipher=aes-xts-plain64
		[ $bytes = 64 ] || cipher=aes-cbc-essiv:sha256
		what="$cipher by $engine"
		mkdir -p "$M"
		if ! "$CRYPTFUSE" open -q --engine $engine --cipher $cipher --key-size $((bytes * 8)) --key-file "$S/key$bytes" "$IMG" "$M" \
			</dev/null 2>"$S/open.err"; then # this machine or build lacks it
			assert_match "$what" "no engine '$engine'|engine $engine" "$(cat "$S/open.err")"
			continue
		fi
		n=$((n + 1))
		[[ $engine != cpu-* ]] || cpu=yes
		printf %s "$TEXT" | dd of="$V" bs=1M seek=12345 oflag=seek_bytes conv=notrunc,fsync status=none
		cat "$V" >/dev/null
		printf %s "$TEXT" | dd of="$V" bs=1M seek=0 conv=notrunc,fsync status=none
		search $bytes >"$S/open"
		assert_match "$what: open" ': the key from byte 0 in arena' "$(cat "$S/open")"
		assert_match "$what: open" ': the passphrase in' "$(cat "$S/open")"
		"$CRYPTFUSE" suspend "$M" || fail "$what: suspend: exit $?"
		assert_clean "$what, suspended" $bytes
		assert_exit 2 'not the key' "$CRYPTFUSE" resume --key-file "$S/other$bytes" "$M"
		assert_clean "$what, after a wrong key" $bytes
		"$CRYPTFUSE" resume "$M" </dev/null || fail "$what: resume: exit $?"
		assert_eq "$what, resumed" "$TEXT" "$(fileop pread 12345 ${#TEXT} "$V")"
		assert_match "$what, resumed" ': the key from byte 0 in arena' "$(search $bytes)"
		close_vol "$M"
	done
done
[ $n -ge 4 ] || fail "only $n volumes were opened"
