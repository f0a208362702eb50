#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# encrypt writes what another implementation would write: new plain images of any length, from files and pipes; LUKS2
# images that the real cryptsetup opens; and into images that exist, whose header and rest stay.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need sha256sum md5sum python3

IN=$S/in IMG=$S/img KEY=$(random_hex 64)
printf %s "$KEY" | python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex(sys.stdin.read()))' >"$S/key"
printf 'a passphrase' >"$S/pass"
FAST=(--pbkdf pbkdf2 --pbkdf-force-iterations 1000)
encrypt() { timeout -k 5 60 "$CRYPTFUSE" encrypt "$@" 2>"$S/encrypt.err"; }

# ---- a new plain image: every length, file and pipe ----
plain=(-q --type plain -c aes-xts-plain64 -s 512 -d "$S/key")
check() { # BYTES DU SECTOR
	local bytes=$1 du=$2 sector=$3 whole=$((($1 + $2 - 1) / $2 * $2)) how
	head -c "$bytes" /dev/urandom >"$IN"
	{ cat "$IN" && head -c $((whole - bytes)) /dev/zero; } >"$S/padded"
	cryptref -e -c xts -k "$KEY" -s "$du" "$S/padded" 0 0 $whole >"$S/want"
	for how in file pipe; do
		rm -f "$IMG"
		if [ $how = file ]; then
			encrypt "${plain[@]}" --sector-size "$du" --offset "$sector" --digest sha256,md5 "$IN" "$IMG" >"$S/sums" </dev/null
			assert_eq "digests" "$(sha256sum "$IN" && md5sum "$IN")" "$(cat "$S/sums")"
		else
			encrypt "${plain[@]}" --sector-size "$du" --offset "$sector" --digest sha256,md5 - "$IMG" >"$S/sums" < <(cat "$IN")
			assert_eq "digests" "$(sha256sum <"$IN" && md5sum <"$IN")" "$(cat "$S/sums")"
		fi || fail "$(cat "$S/encrypt.err")"
		assert_eq "$how of $bytes: length" $((sector * 512 + whole)) "$(stat -c %s "$IMG")"
		tail -c +$((sector * 512 + 1)) "$IMG" | cmp - "$S/want" || fail "$how of $bytes, $du"
	done
}
check 1 512 0
check 511 512 0
check 512 512 1
check 513 512 63
check 4096 4096 0
check 4097 4096 0
check 262144 4096 8
check 1048577 65536 0
check 5000000 4096 0
assert_eq "mode" 600 "$(stat -c %a "$IMG")"
# the padding is told
rm "$IMG"
head -c 1000 /dev/urandom >"$IN"
encrypt --type plain -c aes-xts-plain64 -s 512 -d "$S/key" "$IN" "$IMG" </dev/null
assert_match "the padding" '24 bytes of zeros follow' "$(cat "$S/encrypt.err")"

# ---- into an image that exists ----
cp "$IMG" "$S/before"
refuse() { # CODE PATTERN ARGUMENT…
	assert_exit "$1" "$2" "$CRYPTFUSE" encrypt -q "${@:3}"
	assert_same "the image" "$S/before" "$IMG"
}
refuse 5 'exists; --force' "${plain[@]}" "$IN" "$IMG"
refuse 1 'itself' --force "${plain[@]}" "$IMG" "$IMG"
ln -s img "$S/link"
refuse 1 'itself' --force "${plain[@]}" "$S/link" "$IMG"
head -c 1025 /dev/zero >"$S/longer"
refuse 1 'has 1025 bytes, but the volume' --force "${plain[@]}" "$S/longer" "$IMG"
: >"$S/empty"
refuse 1 'is empty' --force "${plain[@]}" "$S/empty" "$IMG"
refuse 1 'standard input is the plaintext' --force --type plain - "$IMG"
refuse 1 'standard input is the plaintext' --force --type plain -d - - "$IMG"
refuse 4 'directory' --force "${plain[@]}" "$S" "$IMG"
refuse 4 'cannot open' --force "${plain[@]}" "$S/none" "$IMG"
refuse 1 "no 'sha3'" --force --digest sha3 "${plain[@]}" "$IN" "$IMG"
head -c 600 /dev/urandom >"$S/part"
encrypt --force "${plain[@]}" "$S/part" "$IMG" </dev/null
{ cat "$S/part" && tail -c +601 "$IN" && head -c 24 /dev/zero; } >"$S/now"
"$CRYPTFUSE" decrypt "${plain[@]}" "$IMG" - </dev/null | cmp - "$S/now" || fail "what lies behind the input changed"
# longer than the volume, which shows only at the end
rc=0
head -c 5000 /dev/urandom | encrypt --force "${plain[@]}" - "$IMG" || rc=$?
assert_eq "a pipe that is too long" 1 $rc
assert_match "a pipe that is too long" 'No space left' "$(cat "$S/encrypt.err")"
assert_match "what it left" 'only a part' "$(cat "$S/encrypt.err")"
assert_eq "its length" 1024 "$(stat -c %s "$IMG")"
# nothing is made of nothing
rc=0
encrypt "${plain[@]}" - "$S/new" <"$S/empty" || rc=$?
assert_eq "an empty pipe" 1 $rc
[ ! -e "$S/new" ] || fail "an image of nothing"

# ---- LUKS2 ----
head -c 3000001 /dev/urandom >"$IN"
for how in file pipe; do
	rm -f "$S/luks"
	if [ $how = file ]; then
		encrypt -q --type luks2 "${FAST[@]}" -d "$S/pass" --label box "$IN" "$S/luks" </dev/null
	else
		encrypt -q --type luks2 "${FAST[@]}" -d "$S/pass" --label box - "$S/luks" < <(cat "$IN")
	fi || fail "$(cat "$S/encrypt.err")"
	"$CRYPTFUSE" decrypt -q -d "$S/pass" "$S/luks" - </dev/null | head -c 3000001 | cmp - "$IN" || fail "LUKS2 from a $how"
	if command -v cryptsetup >/dev/null; then
		cryptsetup open --test-passphrase -d "$S/pass" "$S/luks" || fail "cryptsetup does not open it"
		cryptsetup luksDump --dump-volume-key --batch-mode -d "$S/pass" "$S/luks" | sed -n '/MK dump/,$p' | sed 's/MK dump://' | tr -d ' \t\n' >"$S/mk"
		du=$(cryptsetup luksDump "$S/luks" | sed -n 's/.*sector: \([0-9]*\).*/\1/p' | head -n 1)
		whole=$(((3000001 + du - 1) / du * du))
		cryptref -c xts -k "$(cat "$S/mk")" -s "$du" "$S/luks" 16777216 0 $whole | head -c 3000001 | cmp - "$IN" ||
			fail "the data is not where LUKS2 has it"
	fi
done
head -c 16777216 "$S/luks" >"$S/header"
head -c 1000000 /dev/urandom >"$S/part"
encrypt -q --force -d "$S/pass" "$S/part" "$S/luks" </dev/null || fail "$(cat "$S/encrypt.err")"
head -c 16777216 "$S/luks" | cmp - "$S/header" || fail "the header changed"
{ cat "$S/part" && tail -c +1000001 "$IN"; } | cmp - <("$CRYPTFUSE" decrypt -q -d "$S/pass" "$S/luks" - </dev/null | head -c 3000001)
assert_exit 1 'plain or luks2' "$CRYPTFUSE" encrypt -q --type luks1 -d "$S/pass" "$IN" "$S/new"
assert_exit 1 'has no meaning for a new image' "$CRYPTFUSE" encrypt -q --type luks2 --partition 2 -d "$S/pass" "$IN" "$S/new"
assert_exit 1 'readonly' "$CRYPTFUSE" encrypt -q --force --readonly -d "$S/pass" "$IN" "$S/luks"
[ ! -e "$S/new" ] || fail "something was made"

# ---- interrupted ----
env --default-signal=INT true 2>/dev/null || lacking "env --default-signal"
mkfifo "$S/slow"
for signal in INT TERM; do
	env --default-signal=INT "$CRYPTFUSE" encrypt "${plain[@]}" - "$S/new" <"$S/slow" 2>"$S/encrypt.err" &
	PID=$!
	exec 7>"$S/slow"
	head -c 300000 /dev/zero >&7
	wait_for "its threads" grep -q 'Threads:.[2-9]' "/proc/$PID/status"
	kill -$signal $PID
	rc=0
	wait $PID || rc=$?
	exec 7>&-
	assert_eq "exit status" $((128 + $(kill -l $signal))) $rc
	if [ -e "$S/new" ] || [ -e "$S/new.partial" ]; then fail "something stays after SIG$signal"; fi
done
