#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# LUKS images that the real cryptsetup makes here: both versions, data units, key derivations, keyslots, key files, a header of
# its own, the volume key itself. Truth: the volume key that cryptsetup dumps, and cryptref.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need cryptsetup

M=$S/m V=$S/m/volume IMG=$S/img PASS='the passphrase' OTHER='another one'
BYTES=$((1024 * 1024))
head -c 3000 /dev/urandom >"$S/keyfile"
head -c $BYTES /dev/urandom >"$S/plain"
FAST=(-q --pbkdf pbkdf2 --pbkdf-force-iterations 1000)
ARGON=(-q --pbkdf argon2id --pbkdf-force-iterations 4 --pbkdf-memory 1024 --pbkdf-parallel 1)

# format FILE BYTES OPTION…: a new image with the keyslots 0 (PASS), 1 (OTHER) and 2 (keyfile, bytes 100 to 600)
format() {
	local file=$1 bytes=$2
	shift 2
	rm -f "$file"
	truncate -s "$bytes" "$file"
	printf %s "$PASS" | cryptsetup luksFormat "$@" "$file" - || fail "luksFormat $*"
}

add_keys() { # FILE OPTION…
	local file=$1
	shift
	printf '%s' "$OTHER" >"$S/other"
	printf '%s' "$PASS" >"$S/pass"
	cryptsetup luksAddKey "$@" -S 1 --key-file "$S/pass" "$file" "$S/other" || fail "luksAddKey 1"
	cryptsetup luksAddKey "$@" -S 2 --key-file "$S/pass" --new-keyfile-offset 100 --new-keyfile-size 500 "$file" "$S/keyfile" ||
		fail "luksAddKey 2"
}

volume_key() { # FILE
	rm -f "$S/vk"
	cryptsetup luksDump -q --dump-volume-key --volume-key-file "$S/vk" --key-file <(printf %s "$PASS") "$1" >/dev/null || fail "luksDump"
	od -An -v -tx1 "$S/vk" | tr -d ' \n'
}

# fill OFFSET DU: make the plaintext the volume's, by cryptref alone
fill() {
	cryptref -e -c xts -k "$KEY" -s "$2" "$S/plain" 0 0 $BYTES >"$S/cipher"
	dd if="$S/cipher" of="$IMG" bs=4096 seek=$(($1 / 4096)) conv=notrunc status=none
}

# opens WHAT OPTION…: opens read-only, with the content; standard input is the caller's
opens() {
	local what=$1
	shift
	open_vol "$M" --readonly "$@" "$IMG"
	head -c $BYTES "$V" | assert_same "$what" - "$S/plain"
	close_vol "$M"
}

refused() { # CODE PATTERN OPTION… <passphrase
	local code=$1 pattern=$2 rc=0
	shift 2
	timeout 60 "$CRYPTFUSE" open "$@" "$IMG" "$M" 2>"$S/exit.err" || rc=$?
	assert_eq "exit of open $*: $(cat "$S/exit.err")" "$code" $rc
	assert_match "open $*" "$pattern" "$(cat "$S/exit.err")"
	assert_eq "lines" 1 "$(wc -l <"$S/exit.err")"
	assert_gone "$M"
}

mkdir "$M"
for kind in "luks1 512" "luks2 512" "luks2 4096" "luks2 argon"; do
	type=${kind% *} du=${kind#* } options=("${FAST[@]}")
	[ "$du" != argon ] || { options=("${ARGON[@]}"); du=512; }
	if [ "$type" = luks1 ]; then
		format "$IMG" 8M --type luks1 "${options[@]}"
		offset=$((2 * 1024 * 1024))
	else
		format "$IMG" 24M --type luks2 --sector-size "$du" "${options[@]}"
		offset=$((16 * 1024 * 1024))
	fi
	add_keys "$IMG" "${options[@]}"
	KEY=$(volume_key "$IMG")
	fill $offset "$du"
	cp "$IMG" "$S/before"
	opens "$kind, passphrase" <<<"$PASS"
	opens "$kind, --type luks" --type luks <<<"$OTHER"
	opens "$kind, its own type" --type "$type" <<<"$OTHER"
	opens "$kind, standard input whole" --key-file - < <(printf %s "$PASS")
	opens "$kind, key file" --key-file "$S/keyfile" --keyfile-offset 100 --keyfile-size 500 </dev/null
	opens "$kind, keyslot" --key-slot 1 <<<"$OTHER"
	opens "$kind, volume key" --volume-key-file "$S/vk" </dev/null
	refused 2 'no key available' <<<"wrong"
	refused 2 'no key available' --key-slot 0 <<<"$OTHER"
	refused 2 'keyslot 5 is not in use' --key-slot 5 <<<"$PASS"
	refused 2 'no key available' --key-file "$S/keyfile" </dev/null
	refused 2 'not the volume key' --volume-key-file "$S/keyfile" </dev/null
	refused 1 "${type^^} header: --cipher is for plain" --cipher aes-xts-plain64 <<<"$PASS"
	refused 1 "${type^^} header: --offset is for plain" --offset 8 <<<"$PASS"
	assert_same "$kind: the image after all that" "$S/before" "$IMG"

	# what is written is what dm-crypt would have written
	open_vol "$M" "$IMG" <<<"$PASS"
	assert_eq "type" "$type" "$(status_field "$V" type)"
	assert_eq "uuid" "$(cryptsetup luksUUID "$IMG")" "$(status_field "$V" uuid)"
	assert_eq "keyslot" 0 "$(status_field "$V" keyslot)"
	printf 'written here' | fileop pwrite 5000 "$V" >/dev/null
	close_vol "$M"
	cryptref -c xts -k "$KEY" -s "$du" "$IMG" $((offset + 4096)) 4096 4096 >"$S/piece"
	assert_eq "$kind: what was written" 'written here' "$(tail -c +905 "$S/piece" | head -c 12)"
	cmp -s <(head -c $offset "$IMG") <(head -c $offset "$S/before") || fail "$kind: the header changed"
done

# ---- --size, and an image whose end is no whole data unit ----
format "$IMG" 17M --type luks2 --sector-size 4096 "${FAST[@]}"
truncate -s +512 "$IMG"
refused 1 'device-size 1048576 would fit' <<<"$PASS"
open_vol "$M" --device-size 1M "$IMG" <<<"$PASS"
assert_eq "bytes" $BYTES "$(stat -c %s "$V")"
close_vol "$M"

# ---- the header in a file of its own ----
truncate -s 16M "$S/head"
truncate -s 2M "$IMG"
printf %s "$PASS" | cryptsetup luksFormat --type luks2 "${FAST[@]}" --header "$S/head" "$IMG" - || fail "luksFormat --header"
KEY=$(volume_key "$S/head")
fill 0 "$(cryptsetup luksDump "$S/head" | sed -n 's/^.sector: *\([0-9]*\).*/\1/p')"
cp "$S/head" "$S/before"
opens "detached header" --header "$S/head" <<<"$PASS"
assert_same "the detached header" "$S/before" "$S/head"
refused 4 'no header found.*--type plain' <<<"$PASS"
refused 4 "no header found in $S/plain" --header "$S/plain" <<<"$PASS"
refused 1 '--header is for volumes with a header' --type plain --header "$S/head" <<<"$PASS"
refused 1 'only LUKS keeps' --type bitlk --header "$S/head" <<<"$PASS"

# ---- what cannot be opened says why; the JSON is changed in place, as is the checksum over it ----
format "$S/good" 20M --type luks2 --sector-size 512 "${FAST[@]}"
edit() { # what python makes of the JSON "j"
	cp "$S/good" "$IMG"
	python3 - "$IMG" "$1" <<-'PYTHON'
		import hashlib, json, sys
		with open(sys.argv[1], "r+b") as f:
		    for at in (0, 16384):
		        f.seek(at)
		        h = bytearray(f.read(16384))
		        j = json.loads(h[4096:].split(b"\0")[0])
		        exec(sys.argv[2])
		        h[4096:] = json.dumps(j).encode().ljust(16384 - 4096, b"\0")
		        h[448:512] = bytes(64)
		        h[448:480] = hashlib.sha256(h).digest()
		        f.seek(at)
		        f.write(h)
	PYTHON
}
edit 'pass'
open_vol "$M" --readonly "$IMG" <<<"$PASS"
close_vol "$M"
edit 'j["config"]["requirements"] = {"mandatory": ["flux-capacitor"]}'
refused 1 'does not know: flux-capacitor' <<<"$PASS"
edit 'j["config"]["requirements"] = {"mandatory": ["offline-reencrypt"]}'
refused 1 're-encryption has not ended' <<<"$PASS"
edit 'pass'
cryptsetup reencrypt --init-only --key-file "$S/pass" --resilience none "${FAST[@]}" "$IMG" || fail "reencrypt --init-only"
refused 1 're-encryption has not ended' <<<"$PASS"
edit 'j["config"]["requirements"] = {"mandatory": ["opal"]}'
refused 1 'OPAL' <<<"$PASS"
edit 'j["segments"]["0"]["integrity"] = {"type": "hmac(sha256)", "journal_encryption": "none", "journal_integrity": "none"}'
refused 1 'hmac\(sha256\).*dm-integrity' <<<"$PASS"
edit 'j["segments"]["0"] = {"type": "linear", "offset": "16777216", "size": "dynamic"}'
refused 1 "type 'linear', not encrypted" <<<"$PASS"

# ---- several data segments, one key: as device-mapper would put them one after the other ----
edit 's = j["segments"]["0"]; j["segments"] = {
	"0": dict(s, offset="18874368", size="1048576", iv_tweak="0"),
	"1": dict(s, offset="16777216", size="2097152", iv_tweak="2048")}; j["digests"]["0"]["segments"] = ["0", "1"]'
assert_eq "where the first segment is" 18874368 "$("$CRYPTFUSE" info --json "$IMG" | sed -n 's/^ *"data_offset": \([0-9]*\),$/\1/p')"
KEY=$(volume_key "$IMG")
cryptref -e -c xts -k "$KEY" -s 512 "$S/plain" 0 0 $BYTES | dd of="$IMG" bs=1M seek=18 conv=notrunc status=none
cryptref -e -c xts -k "$KEY" -s 512 "$S/plain" 0 $BYTES $BYTES | dd of="$IMG" bs=1M seek=16 conv=notrunc status=none
open_vol "$M" "$IMG" <<<"$PASS"
assert_eq "bytes of both segments" $((3 * BYTES)) "$(stat -c %s "$V")"
head -c $((2 * BYTES)) "$V" | assert_same "two segments" - <(cat "$S/plain" "$S/plain")
printf 'across the seam' | fileop pwrite $((BYTES - 6)) "$V" >/dev/null
close_vol "$M"
cryptref -c xts -k "$KEY" -s 512 "$IMG" $((18874368 + BYTES - 512)) $((BYTES - 512)) 512 >"$S/piece"
assert_eq "before the seam" 'across' "$(tail -c 6 "$S/piece")"
cryptref -c xts -k "$KEY" -s 512 "$IMG" 16777216 $BYTES 512 >"$S/piece"
assert_eq "after the seam" ' the seam' "$(head -c 9 "$S/piece")"
refused 1 'several pieces' --allow-discards <<<"$PASS"

# ---- --type plain on an image with a header is a warning ----
printf %s x | "$CRYPTFUSE" open --type plain -r "$S/good" "$M" 2>"$S/open.err" || fail "--type plain: exit $?"
assert_match "the warning" 'has a LUKS header, which --type plain ignores' "$(cat "$S/open.err")"
close_vol "$M"
