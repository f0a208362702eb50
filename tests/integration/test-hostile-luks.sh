#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# LUKS headers with right checksums that ask for the impossible: work, memory, sizes near 2^64, segments that overlap. Each is refused
# in seconds, with the reason; and info, which must always answer, does.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need cryptsetup python3

M=$S/m IMG=$S/img PASS=first
mkdir "$M"
printf second >"$S/second"
printf %s $PASS >"$S/pass"

# make TYPE OPTION…: "first" in keyslot 0, "second" in keyslot 1
make() {
	rm -f "$S/good"
	truncate -s 20M "$S/good"
	cryptsetup luksFormat -q --type "$@" "$S/good" "$S/pass"
	cryptsetup luksAddKey -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file "$S/pass" "$S/good" "$S/second"
}

luks2() { # PATH=VALUE…
	cp "$S/good" "$IMG"
	python3 "$(dirname "$0")/luks2.py" "$IMG" "$@"
}

luks1() { # OFFSET BYTES
	cp "$S/good" "$IMG"
	printf %b "$2" | dd of="$IMG" bs=1 seek="$1" conv=notrunc status=none
}

refuse() { # EXIT PATTERN OPTION…
	assert_exit "$1" "$2" "$CRYPTFUSE" open -d "$S/pass" "${@:3}" "$IMG" "$M"
	assert_gone "$M"
	timeout 20 "$CRYPTFUSE" info "$IMG" >"$S/info.out" 2>"$S/info.err" || [ $? -le 4 ] || fail "info: exit $?: $(cat "$S/info.err")"
}

# Whatever the reason is: one line of it, and soon.
refuse_somehow() {
	local rc=0
	timeout -k 5 20 "$CRYPTFUSE" open -d "$S/pass" "$IMG" "$M" 2>"$S/open.err" </dev/null || rc=$?
	case $rc in 1 | 2 | 4) ;; *) fail "exit $rc: $(cat "$S/open.err")" ;; esac
	assert_eq "lines" 1 "$(grep -c '^cryptfuse: ' "$S/open.err")"
	assert_gone "$M"
	timeout 20 "$CRYPTFUSE" info "$IMG" >"$S/info.out" 2>"$S/info.err" || [ $? -le 4 ] || fail "info: exit $?: $(cat "$S/info.err")"
	cat "$S/open.err"
}

opens() { # OPTION…
	open_vol "$M" "$@" "$IMG"
	close_vol "$M"
}

# ---- LUKS2: work and memory ----
make luks2 --pbkdf argon2id --pbkdf-force-iterations 4 --pbkdf-memory 64 --pbkdf-parallel 1
luks2
opens -d "$S/pass"
ASKED='keyslot 0 asks for'
luks2 keyslots.0.kdf.memory=4294967296
refuse 1 "$ASKED 2097151 MiB of memory, more than the 4096 MiB that are accepted; if another keyslot is yours, name it with --key-slot"
refuse 1 "$ASKED 2097151 MiB of memory, more than the 4096 MiB that are accepted$" --key-slot 0
opens -d "$S/second" --key-slot 1
cryptsetup luksDump --dump-volume-key --volume-key-file "$S/vk" -q --key-file "$S/pass" "$S/good" >"$S/dump" 2>&1
opens --volume-key-file "$S/vk"
luks2 keyslots.0.kdf.memory=4294967296 keyslots.0.priority=0 # tried only when it is named
opens -d "$S/second"
luks2 keyslots.0.kdf.time=4294967295
refuse 1 "$ASKED 2147483647 passes over 64 KiB of memory; 2097152 MiB in all are accepted"
luks2 keyslots.0.kdf.time=2049 keyslots.0.kdf.memory=1048576
refuse 1 "$ASKED 2049 passes over 1048576 KiB of memory"
luks2 keyslots.0.kdf.cpus=65536 keyslots.0.kdf.memory=1048576
refuse 1 "$ASKED 65536 threads, more than the 64"
luks2 keyslots.1.kdf.iterations=4294967295
refuse 1 'keyslot 1 asks for 2147483647 iterations for a key of 64 bytes; 1073741824 in all are accepted'
opens -d "$S/pass" --key-slot 0
luks2 keyslots.0.area.key_size=2147483647
refuse 1 "$ASKED a key of 2147483647 bytes, more than the 16384"
luks2 keyslots.0.kdf.memory=-1
refuse 1 "$ASKED 4194303 MiB of memory"
luks2 digests.0.iterations=4294967295
refuse 1 'to check the volume key the header asks for more than the 1073741824 iterations'
refuse 1 'to check the volume key' --key-slot 1
assert_exit 1 'to check the volume key' "$CRYPTFUSE" open --volume-key-file "$S/vk" "$IMG" "$M"

# ---- LUKS2: where things lie ----
for change in segments.0.offset='"18446744073709551104"' segments.0.offset='"9223372036854775296"' segments.0.size='"18446744073709551104"' \
	segments.0.size='"9223372036854775296"' segments.0.size='"0"' segments.0.sector_size=0 segments.0.sector_size=2147483648 \
	segments.0.iv_tweak='"18446744073709551616"' segments.0.iv_tweak='"x"' segments.0=- segments={} \
	keyslots.0.area.offset='"18446744073709547520"' keyslots.0.area.size='"18446744073709547520"' keyslots.0.area.size='"0"' \
	keyslots.0.key_size=2147483647 \
	config.json_size='"18446744073709551615"' config.keyslots_size='"18446744073709547520"' digests.0.type='"none"' \
	keyslots.0.kdf.type='"scrypt"' keyslots.0.area.encryption='"nothing-at-all"' segments.0.encryption='"nothing-at-all"'; do
	luks2 "$change"
	refuse_somehow
done
# overlapping segments: the same bytes twice in the volume
luks2 segments.0.size='"2097152"' segments.1=@0 digests.0.segments='["0","1"]'
refuse_somehow

# two that follow each other are one volume, of its own length only: no other number means the same
luks2 segments.0.size='"2097152"' segments.1=@0 segments.1.offset='"18874368"' segments.1.size='"dynamic"' digests.0.segments='["0","1"]'
opens -d "$S/pass" --size $((4 * 1024 * 1024 / 512))
refuse 1 'several pieces' --size $((4 * 1024 * 1024 / 512 + (1 << 55)))

# ---- LUKS1 ----
HUGE='\xff\xff\xff\xff' ZERO='\0\0\0\0'
make luks1 --pbkdf-force-iterations 1000
luks1 0 LUKS
opens -d "$S/pass"
luks1 212 "$HUGE"
refuse 1 "$ASKED 4294967295 iterations for a key of 64 bytes; 1073741824 in all are accepted"
opens -d "$S/second" --key-slot 1
luks1 164 "$HUGE"
refuse 1 'to check the volume key the header asks for more than'
for change in 104:$HUGE 108:$HUGE 108:$ZERO 248:$HUGE 252:$HUGE 252:$ZERO; do # payload, key bytes, material, stripes
	luks1 "${change%%:*}" "${change#*:}"
	refuse_somehow
done
