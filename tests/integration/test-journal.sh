#!/bin/bash
# needs: user
# --journal: what is written is in the file first, survives kill -9 of the daemon, and reaches the image when the volume is opened
# again or closed; a reader is only shown it; whatever is no journal of this volume, or no file of its own, is refused.
. "$(dirname "$0")/lib.sh"
need_user "$@"

IMG=$S/img J=$S/journal M=$S/m V=$S/m/volume BYTES=$((4 << 20))
KEY=$(random_hex 32)
table "$S/table" $((BYTES / 512)) aes-cbc-plain64 "$KEY" 0 0 sector_size:4096
table "$S/other" $((BYTES / 512)) aes-cbc-plain64 "$(random_hex 32)" 0 0 sector_size:4096
open_j() { open_vol "$M" --table "$S/table" --journal "$J" "$@" "$IMG" </dev/null; }
plain_of() { cryptref -c cbc -k "$KEY" -s 4096 "$1" 0 0 $BYTES; }
pending() { status_field "$V" pending; }
nothing_pending() { [ "$(pending)" = 0 ]; }
kill_daemon() {
	kill -KILL "$(daemon_pid "$V")"
	wait_for "the helper to unmount" gone "$M"
}
write_some() { # SEED-FILE: random bytes at odd places, synced
	head -c 300000 /dev/urandom >"$S/new"
	dd if="$S/new" of="$V" bs=30000 seek=7 conv=notrunc,fsync status=none
	cp "$V" "$S/expected"
}

# made, used, closed
new_image "$IMG" $BYTES
open_j --journal-size 2M
assert_eq "the journal's size" $((2 << 20)) "$(stat -c %s "$J")"
assert_eq "its mode" 600 "$(stat -c %a "$J")"
cp "$IMG" "$S/before"
write_some
[ "$(status_field "$V" records)" -gt 70 ] || fail "no records in the status"
assert_match "the status" "^journal.file: $J" "$("$CRYPTFUSE" status "$M")"
wait_for "what lies idle to reach the image" nothing_pending
plain_of "$IMG" | cmp - "$S/expected" || fail "the image is not what was written"
open_again "$M" # the command of the status names the journal
close_vol "$M"
head -c 20 "$J" | cmp -s - <(printf 'CRYPTFUSEJOURNAL\1\0\0\0') || fail "this is no journal"
assert_eq "what is left in it" 0 "$(head -c 4096 "$J" | tail -c +21 | tr -d '\0' | wc -c)"

# killed: a reader sees it, and changes nothing; a writer brings it to the image
open_j
write_some
cp "$IMG" "$S/torn"
kill_daemon
sha256sum "$J" "$IMG" >"$S/sums"
open_j --readonly
assert_same "a reader" "$V" "$S/expected"
assert_eq "what is pending for a reader" "$(status_field "$V" replayed)" "$(pending)"
close_vol "$M"
sha256sum -c --quiet "$S/sums" || fail "a reader changed something"

# refused, and nothing changed: another key, no key of ours, an image that was changed since
refuse() { # CODE PATTERN OPTIONS…
	assert_exit "$1" "$2" "$CRYPTFUSE" open --table "$S/table" "${@:3}" "$IMG" "$M"
	assert_gone "$M"
}
assert_exit 4 "$J: .*another key" "$CRYPTFUSE" open --table "$S/other" --journal "$J" "$IMG" "$M"
cp "$IMG" "$S/kept"
cp "$S/before" "$IMG"
refuse 4 "changed at sector [0-9]+ since" --journal "$J"
assert_same "the refused image" "$IMG" "$S/before"
cp "$S/kept" "$IMG"
sha256sum -c --quiet "$S/sums" || fail "a refusal changed something"
open_j
assert_same "after the replay" "$V" "$S/expected"
close_vol "$M"
plain_of "$IMG" | cmp - "$S/expected" || fail "the image is not what was written"

# no file of its own
sha256sum "$IMG" >"$S/sums"
ln -s "$J" "$S/link"
mkfifo "$S/fifo"
echo "not a journal, but much longer than nothing" >"$S/text"
: >"$S/empty"
ln "$IMG" "$S/twin"
mkdir "$S/locked"
chmod 500 "$S/locked"
refuse 4 "symbolic link" --journal "$S/link"
refuse 4 "FIFO" --journal "$S/fifo"
refuse 4 "directory" --journal "$S"
refuse 4 "not a journal" --journal "$S/text"
refuse 4 "no journal .*read-only volume makes none" --readonly --journal "$S/none"
refuse 4 "none/journal" --journal "$S/none/journal"
refuse 1 "image itself" --journal "$IMG"
refuse 1 "image itself" --journal "$S/twin"
refuse 2 "Permission denied" --journal "$S/locked/journal"
refuse 1 "under the mount point" --journal "$M/journal"
refuse 1 "needs --journal" --journal-size 2M
refuse 1 "1 MiB to 1 GiB" --journal "$S/none" --journal-size 100K
chmod 400 "$J"
refuse 2 "Permission denied" --journal "$J"
chmod 600 "$J"
sha256sum -c --quiet "$S/sums" || fail "a refusal changed the image"
[ ! -e "$S/none" ] || fail "a refused open left a journal"
assert_eq "a file that is no journal" "not a journal, but much longer than nothing" "$(cat "$S/text")"

# in use
open_j
mkdir "$S/n"
new_image "$S/img2" $BYTES
assert_exit 5 "in use" "$CRYPTFUSE" open --table "$S/table" --journal "$J" "$S/img2" "$S/n"
close_vol "$M"

# a journal that came to nothing is not left behind, an empty file is taken
head -c 100 /dev/zero >"$S/tiny"
assert_exit 1 "." "$CRYPTFUSE" open --table "$S/table" --journal "$S/none" "$S/tiny" "$M"
printf '0 8192 crypt aes-cbc-plain64 00 0 7:0 0\n' >"$S/bad"
assert_exit 4 "." "$CRYPTFUSE" open --table "$S/bad" --journal "$S/none" "$IMG" "$M"
[ ! -e "$S/none" ] || fail "a failed open left a journal"
J=$S/empty
open_j --journal-size 1M
assert_eq "the size of an empty file" $((1 << 20)) "$(stat -c %s "$J")"
write_some
close_vol "$M"
open_j --journal-size 3M # nothing is in it: it may have another size
assert_eq "its new size" $((3 << 20)) "$(stat -c %s "$J")"
assert_same "after all this" "$V" "$S/expected"
close_vol "$M"
