#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# decrypt gives the bytes that another implementation gives, to a file, a pipe, a FIFO; its digests are those of other
# programs; holes stay holes when asked for; and nothing that exists is overwritten unless it is asked for.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need sha256sum md5sum sha1sum sha512sum

IMG=$S/img OUT=$S/out
decrypt() { timeout -k 5 60 "$CRYPTFUSE" decrypt -q "$@" 2>"$S/decrypt.err" </dev/null; }

# ---- content, over ciphers, data units, lengths and places ----
check() { # CIPHER MODE IV KEY_BYTES DU BYTES SECTOR
	local cipher=$1 mode=$2 iv=$3 key du=$5 bytes=$6 sector=$7
	key=$(random_hex "$4")
	new_image "$IMG" $((bytes + sector * 512 + 300))
	table "$S/table" $((bytes / 512)) "$cipher" "$key" 0 "$sector" "sector_size:$du"
	cryptref -c "$mode" -v "$iv" -k "$key" -s "$du" "$IMG" $((sector * 512)) 0 "$bytes" >"$S/plain"
	decrypt --table "$S/table" --digest sha256,md5,sha1,sha512 "$IMG" "$OUT" >"$S/sums" || fail "decrypt: $(cat "$S/decrypt.err")"
	assert_same "$cipher, $du, $bytes" "$S/plain" "$OUT"
	assert_eq "digests" "$(for sum in sha256sum md5sum sha1sum sha512sum; do $sum "$OUT"; done)" "$(cat "$S/sums")"
	decrypt --table "$S/table" "$IMG" - >"$S/piped"
	assert_same "standard output" "$S/plain" "$S/piped"
	rm "$OUT"
}
check aes-xts-plain64 xts plain64 64 4096 $((3 * 1024 * 1024 + 4096)) 0
check aes-xts-plain64 xts plain64 32 512 $((256 * 1024)) 63
check aes-xts-plain64 xts plain64 64 512 512 1
check aes-xts-plain64 xts plain64 64 65536 $((10 * 65536)) 1
check aes-cbc-essiv:sha256 cbc essiv 32 512 $((256 * 1024 + 512)) 2048
check aes-cbc-plain64 cbc plain64 16 4096 $((1024 * 1024)) 0
# (one volume goes on to the rest)
new_image "$IMG" $((1024 * 1024))
KEY=$(random_hex 64)
table "$S/table" 2048 aes-xts-plain64 "$KEY" 0 0
cryptref -c xts -k "$KEY" -s 512 "$IMG" 0 0 $((1024 * 1024)) >"$S/plain"
D=(decrypt --table "$S/table")

# ---- where to ----
"${D[@]}" "$IMG" - | cat >"$OUT"
assert_same "a pipe" "$S/plain" "$OUT"
"${D[@]}" --digest sha256 "$IMG" - >/dev/null
assert_match "the digest beside the data" "^$(sha256sum <"$S/plain" | cut -d' ' -f1)  -\$" "$(cat "$S/decrypt.err")"
mkfifo "$S/fifo"
cat "$S/fifo" >"$OUT" &
"${D[@]}" "$IMG" "$S/fifo"
wait $!
assert_same "a FIFO" "$S/plain" "$OUT"
assert_eq "to /dev/null" "$(sha256sum <"$S/plain" | cut -d' ' -f1)  /dev/null" "$("${D[@]}" --digest sha256 "$IMG" /dev/null)"
rc=0
{ "${D[@]}" "$IMG" - || echo $? >"$S/rc"; } | head -c 10 >/dev/null
assert_eq "whoever stops reading" 141 "$(cat "$S/rc")"
rm "$OUT"
(umask 0 && "${D[@]}" "$IMG" "$OUT")
assert_eq "mode" 600 "$(stat -c %a "$OUT")"

# ---- what exists ----
echo precious >"$OUT"
echo elsewhere >"$S/target"
ln -s target "$S/link"
ln -s nowhere "$S/dangling"
refuse() { # CODE PATTERN ARGUMENT…
	assert_exit "$1" "$2" "$CRYPTFUSE" decrypt -q --table "$S/table" "${@:3}"
	assert_eq "what was there" "precious" "$(cat "$OUT")"
	assert_eq "what was there" "elsewhere" "$(cat "$S/target")"
	if [ -e "$OUT.partial" ] || [ -e "$S/nowhere" ]; then fail "something was left behind"; fi
}
refuse 5 'exists; --force' "$IMG" "$OUT"
refuse 5 'exists; --force' "$IMG" "$S/link"
refuse 1 'leads nowhere' "$IMG" "$S/dangling"
refuse 1 'leads nowhere' --force "$IMG" "$S/dangling"
refuse 5 'exists; --force' "$IMG" "$IMG"
refuse 1 'itself' --force "$IMG" "$IMG"
ln "$IMG" "$S/hard"
refuse 1 'itself' --force "$IMG" "$S/hard"
refuse 1 'directory' --force "$IMG" "$S"
refuse 1 'cannot be made' "$IMG" "$S/none/out"
refuse 2 'directory' "$IMG" /proc/out
refuse 1 'does not name a file' "$IMG" "$S/new/"
refuse 1 'holes' --sparse "$IMG" -
refuse 1 "no 'sha257'" --digest sha256,sha257 "$IMG" "$S/new"
refuse 1 "more than 8" --digest md5,md5,md5,md5,md5,md5,md5,md5,md5 "$IMG" "$S/new"
"${D[@]}" --force "$IMG" "$OUT"
assert_same "replaced" "$S/plain" "$OUT"
"${D[@]}" --force "$IMG" "$S/link"
assert_same "replaced behind a link" "$S/plain" "$S/target"
[ -L "$S/link" ] || fail "the link was replaced"
# a target that a daemon has open for writing is not pulled away from under it
head -c 1048576 /dev/zero >"$S/used"
open_vol "$S/m" --table "$S/table" "$S/used" </dev/null
assert_exit 5 'in use' "$CRYPTFUSE" decrypt -q --force --table "$S/table" "$IMG" "$S/used"
close_vol "$S/m"

# ---- holes ----
new_image "$S/zeros" $((8 * 1024 * 1024)) sparse
{ head -c 1048576 /dev/zero && head -c 4096 "$IMG" && head -c 7335936 /dev/zero; } >"$S/mostly"
sed "s/^0 2048/0 16384/" "$S/table" >"$S/table8"
"$CRYPTFUSE" encrypt -q --force --table "$S/table8" "$S/mostly" "$S/zeros"
decrypt --sparse --table "$S/table8" "$S/zeros" "$S/sparse"
assert_same "sparse" "$S/mostly" "$S/sparse"
[ "$(stat -c %b "$S/sparse")" -lt 64 ] || fail "no holes: $(stat -c %b "$S/sparse") blocks"
decrypt --table "$S/table8" "$S/zeros" "$S/full"
assert_same "not sparse" "$S/mostly" "$S/full"
[ "$(stat -c %b "$S/full")" -ge 16384 ] || fail "holes without --sparse"

# ---- a name that would break a line of digests ----
odd=$S/$'back\\slash and\nnewline'
(cd "$S" && "${D[@]}" --digest sha256 "$IMG" "${odd##*/}" >"$S/sums" && sha256sum -c --quiet "$S/sums") || fail "sha256sum cannot read it"
