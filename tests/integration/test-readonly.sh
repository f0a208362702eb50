#!/bin/bash
# needs: user
# A read-only volume: nothing can write to it, and not a bit or a time stamp of the image changes, even if the image
# could be written.
. "$(dirname "$0")/lib.sh"
need_user "$@"

M=$S/m V=$S/m/volume IMG=$S/img
KEY=$(random_hex 64)
new_image "$IMG" $((1024 * 1024))
table "$S/table" 2048 aes-xts-plain64 "$KEY" 0 0
touch -d '2001-02-03 04:05:06' "$IMG"
cp -p "$IMG" "$S/before"
cryptref -c xts -k "$KEY" -s 512 "$IMG" 0 0 $((1024 * 1024)) >"$S/plain"

for image_mode in 600 400; do
	chmod $image_mode "$IMG"
	before=$(stat -c '%s %Y %Z %b' "$IMG")
	open_vol "$M" --readonly --table "$S/table" "$IMG" </dev/null
	assert_same "content" "$S/plain" "$V"
	assert_eq "mode" 400 "$(stat -c %a "$V")"
	for how in w rw trunc append; do
		assert_match "open for $how" '^(EROFS|EACCES)$' "$(fileop open $how "$V")"
	done
	assert_match "truncate" '^(EPERM|EROFS|EACCES)$' "$(fileop ftruncate 0 "$V")"
	assert_eq "read" "" "$(fileop open r "$V" | grep -v ok || :)"
	close_vol "$M"
	assert_same "the image" "$S/before" "$IMG"
	assert_eq "the image's size and times" "$before" "$(stat -c '%s %Y %Z %b' "$IMG")"
done

# without --readonly an image that cannot be written is refused, and nothing is mounted
assert_exit 2 "$IMG" "$CRYPTFUSE" open --table "$S/table" "$IMG" "$M"
assert_gone "$M"
