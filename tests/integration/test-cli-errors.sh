#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# Wrong input: each has its own line on stderr and cryptsetup's exit code, and leaves nothing mounted or running.
. "$(dirname "$0")/lib.sh"
need_user "$@"

M=$S/m IMG=$S/img
mkdir "$M"
new_image "$IMG" $((64 * 1024 + 700))
head -c 64 /dev/urandom >"$S/key"
head -c 31 "$S/key" >"$S/short"
table "$S/table" 128 aes-xts-plain64 "$(random_hex 64)" 0 0
XTS=(-c aes-xts-plain64 -s 512 -d "$S/key")

# refuse CODE PATTERN ARGUMENT…: that exit code; exactly one line, which says it; nothing on stdout; nothing left.
refuse() {
	local code=$1 pattern=$2
	shift 2
	assert_exit "$code" "$pattern" "$CRYPTFUSE" "$@"
	assert_eq "lines of '$*'" 1 "$(wc -l <"$S/exit.err")"
	assert_match "'$*'" '^cryptfuse: ' "$(cat "$S/exit.err")"
	[ ! -s "$S/exit.out" ] || fail "'$*' wrote to stdout: $(cat "$S/exit.out")"
	assert_gone "$M"
}

# ---- the command line ----
refuse 1 'a command is needed'
refuse 1 "no command 'frobnicate'" frobnicate
refuse 1 'command comes first' -r open "$IMG" "$M"
refuse 1 'no option --frobnicate' open --frobnicate=SECRET "$IMG" "$M"
! grep -q SECRET "$S/exit.err" || fail "an unknown option's text was echoed"
refuse 1 'no option -Z' open -Z "$IMG" "$M"
refuse 1 'IMAGE MOUNTPOINT' open "$IMG"
refuse 1 'no more' open "$IMG" "$M" passphrase
refuse 1 'needs its' open "$IMG" "$M" --cipher
refuse 1 'MOUNTPOINT' close
refuse 1 "'12x'" open --offset 12x "$IMG" "$M"
refuse 1 'contradict' open --allow-root --allow-other "$IMG" "$M"
refuse 4 'no luks2 header found' open --type luks2 "$IMG" "$M"
refuse 4 'no header found.*--type plain' open "$IMG" "$M"
refuse 1 'must be one of' open --type zip "$IMG" "$M"
for name in . .. a/b ../x; do refuse 1 '--name' open --name "$name" "${XTS[@]}" "$IMG" "$M"; done
refuse 1 '--name' open --name "$(printf 'x%.0s' {1..256})" "${XTS[@]}" "$IMG" "$M"
for good in --help -? --version -V help; do
	"$CRYPTFUSE" "$good" >"$S/out" 2>"$S/err" || fail "$good: exit $?"
	if [ ! -s "$S/out" ] || [ -s "$S/err" ]; then fail "$good: not on stdout"; fi
done
for command in open close status; do
	"$CRYPTFUSE" $command -? >"$S/out" || fail "$command -?: exit $?"
	grep -q '^Usage: cryptfuse '$command "$S/out" || fail "$command -?: no usage"
done
# shellcheck disable=SC2016
assert_exit 1 'standard output' bash -c '"$0" --help >/dev/full' "$CRYPTFUSE"

# ---- the mount point ----
refuse 4 'No such file' open "${XTS[@]}" "$IMG" "$S/nowhere"
mkdir "$S/full" && : >"$S/full/file"
refuse 1 'not empty' open "${XTS[@]}" "$IMG" "$S/full"
mkfifo "$S/fifo"
refuse 1 'neither' open "${XTS[@]}" "$IMG" "$S/fifo"
refuse 1 'both image and mount point' open "${XTS[@]}" "$IMG" "$IMG"
ln "$IMG" "$S/full/link"
refuse 1 'both image and mount point' open "${XTS[@]}" "$IMG" "$S/full/link"
refuse 1 'lies under' open "${XTS[@]}" "$S/full/link" "$S/full"
mkdir -m 0555 "$S/locked"
refuse 2 'not writable' open "${XTS[@]}" "$IMG" "$S/locked"
for sticky in /var/tmp /dev/shm /tmp; do
	case $S in "$sticky"/*) continue ;; esac
	if [ ! -k $sticky ] || [ -O $sticky ]; then continue; fi
	refuse 2 'belongs to somebody else' open "${XTS[@]}" "$IMG" $sticky
done
refuse 4 'nothing is open' close "$M"
refuse 4 'nothing is open' status "$M"
refuse 4 'nowhere' close "$S/nowhere/m"

# ---- FUSE ----
mkdir "$S/empty"
assert_exit 4 'fuse3' env PATH="$S/empty" "$CRYPTFUSE" open "${XTS[@]}" "$IMG" "$M"
assert_gone "$M"

# ---- the image ----
refuse 4 "$S/gone: No such file" open "${XTS[@]}" "$S/gone" "$M"
refuse 4 'directory' open "${XTS[@]}" "$S/empty" "$M"
refuse 4 "$S/fifo" open "${XTS[@]}" "$S/fifo" "$M"
cp "$IMG" "$S/unreadable" && chmod 0 "$S/unreadable"
refuse 2 "$S/unreadable" open "${XTS[@]}" "$S/unreadable" "$M"
chmod 0400 "$S/unreadable"
refuse 2 "$S/unreadable" open "${XTS[@]}" "$S/unreadable" "$M"

# ---- what the volume is ----
refuse 4 'nocipher' open -c nocipher-xts-plain64 -s 512 -d "$S/key" "$IMG" "$M"
refuse 4 'nomode' open -c aes-nomode-plain64 -s 512 -d "$S/key" "$IMG" "$M"
refuse 4 'key' open -c aes-xts-plain64 -s 320 -d "$S/key" "$IMG" "$M"
refuse 4 'key' open -c aes-cbc-plain64 -s 8 -d "$S/key" "$IMG" "$M"
refuse 1 'key-size' open -c aes-cbc-plain64 -s 12 -d "$S/key" "$IMG" "$M"
refuse 1 'sector-size' open --sector-size 1000 "${XTS[@]}" "$IMG" "$M"
refuse 1 'iv-large-sectors' open --iv-large-sectors "${XTS[@]}" "$IMG" "$M"
refuse 1 'skip' open --skip 1 --sector-size 4096 --device-size 65536 "${XTS[@]}" "$IMG" "$M"
refuse 1 'beyond the image' open --offset 130 "${XTS[@]}" "$IMG" "$M"
refuse 1 'beyond the image' open --offset 36028797018963968 "${XTS[@]}" "$IMG" "$M"
refuse 1 'beyond the image' open --size 130 "${XTS[@]}" "$IMG" "$M"
refuse 1 'beyond the image' open --offset 1 --size 129 "${XTS[@]}" "$IMG" "$M"
refuse 1 'device-size 65536' open --sector-size 4096 "${XTS[@]}" "$IMG" "$M"
refuse 1 'together' open --size 1 --device-size 512 "${XTS[@]}" "$IMG" "$M"
refuse 1 'cipher.*table' open --table "$S/table" -c aes-xts-plain64 "$IMG" "$M"
refuse 1 'noengine' open --engine noengine "${XTS[@]}" "$IMG" "$M"

# ---- the key (with -q: notes on what was planned come before it) ----
refuse 1 'nohash' open -q -c aes-xts-plain64 -s 512 -h nohash "$IMG" "$M"
refuse 1 'above the key size' open -q -c aes-xts-plain64 -s 512 -h sha256:65 "$IMG" "$M"
refuse 1 "$S/short" open -q -c aes-xts-plain64 -s 256 -d "$S/short" "$IMG" "$M"
refuse 1 "$S/key" open -q -c aes-xts-plain64 -s 256 -d "$S/key" --keyfile-offset 33 "$IMG" "$M"
refuse 1 "$S/nokey" open -q -c aes-xts-plain64 -s 256 -d "$S/nokey" "$IMG" "$M"
refuse 1 "$S/notable" open -q --table "$S/notable" "$IMG" "$M"
assert_exit 1 'standard input' "$CRYPTFUSE" open -q --type plain "$IMG" "$M"
assert_gone "$M"
assert_exit 1 'standard input' "$CRYPTFUSE" open -q --type plain -d - "$IMG" "$M"
assert_gone "$M"

# ---- busy ----
open_vol "$M" "${XTS[@]}" "$IMG"
mkdir "$S/second"
assert_exit 5 'already open here' "$CRYPTFUSE" open "${XTS[@]}" "$S/key" "$M"
ln -s "$M" "$S/way"
assert_exit 5 'already open here' "$CRYPTFUSE" open "${XTS[@]}" "$S/key" "$S/way"
assert_exit 5 "$IMG" "$CRYPTFUSE" open "${XTS[@]}" "$IMG" "$S/second"
assert_gone "$S/second"
exec 9<"$M/volume"
assert_exit 5 "busy: .*$$ \(bash\)" "$CRYPTFUSE" close "$M"
exec 9<&-
cd "$M"
assert_exit 5 "busy: .*$$ \(bash\)" "$CRYPTFUSE" close "$M"
cd "$S"
"$CRYPTFUSE" close "$S/way" || fail "close by a symbolic link: exit $?"
assert_gone "$M"

# ---- -q says nothing when all is given, and only which defaults were used when not; otherwise the notes are there ----
open_vol "$M" -q "${XTS[@]}" "$IMG"
[ ! -s "$S/open.err" ] || fail "-q: $(cat "$S/open.err")"
close_vol "$M"
open_vol "$M" -q --type plain --compat 2.6 -d "$S/key" "$IMG"
assert_match "-q with defaults" 'defaults of cryptsetup 2.6 were used' "$(cat "$S/open.err")"
assert_eq "lines with -q" 1 "$(wc -l <"$S/open.err")"
close_vol "$M"
open_vol "$M" --type plain -d "$S/key" "$IMG"
assert_match "notes" 'defaults' "$(cat "$S/open.err")"
assert_match "notes" 'last 188 bytes' "$(cat "$S/open.err")"
assert_match "notes" 'nothing known' "$(cat "$S/open.err")"
close_vol "$M"

# ---- without descriptors 0, 1 and 2 the image still is not written to ----
cp "$IMG" "$S/before"
"$CRYPTFUSE" open "${XTS[@]}" "$IMG" "$M" <&- >&- 2>&- || fail "without standard descriptors: exit $?"
mounted "$M" || fail "without standard descriptors: not mounted"
close_vol "$M"
assert_same "image opened without standard descriptors" "$S/before" "$IMG"
