#!/bin/bash
# needs: user
# --direct: the same bytes as through the page cache, at an odd offset and up to the last sector of a file that ends
# inside a block; the image never grows, and its ciphertext stays out of the page cache.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need fincore

M=$S/m V=$S/m/volume IMG=$S/img
SKIP=$((63 * 512)) BYTES=$((3 * 1024 * 1024))
KEY=$(random_hex 64)
open_it() { open_vol "$M" --direct --table "$S/table" "$@" "$IMG" </dev/null; }
resident() { fincore -nbo RES "$IMG" | tr -d ' '; }

new_image "$IMG" $((SKIP + 512))
table "$S/table" 1 aes-xts-plain64 "$KEY" 0 63
if ! "$CRYPTFUSE" open --direct --table "$S/table" "$IMG" "$(mkdir -p "$M" && echo "$M")" 2>"$S/open.err" </dev/null; then
	assert_match "a file system without O_DIRECT" 'O_DIRECT' "$(cat "$S/open.err")"
	skip "no O_DIRECT in $S"
fi
close_vol "$M"

for du in 512 4096 65536; do
	image_bytes=$((SKIP + BYTES + 300)) # no multiple of any block
	new_image "$IMG" $image_bytes
	cp "$IMG" "$S/before"
	table "$S/table" $((BYTES / 512)) aes-xts-plain64 "$KEY" 0 63 sector_size:$du
	plain() { cryptref -c xts -k "$KEY" -s $du "$IMG" $SKIP 0 $BYTES; }
	plain >"$S/plain"
	sync "$IMG"
	dd if="$IMG" iflag=nocache count=0 status=none # out of the page cache
	before=$(resident)
	open_it
	assert_eq "status" true "$(status_field "$V" direct)"
	assert_same "content, DU $du" "$S/plain" "$V"
	echo "0 1
511 2
4095 4098
70000 700001
$((BYTES - 1)) 1
$((BYTES - 9000)) 8999" | fileop poke $du "$V" "$S/plain" >"$S/out"
	assert_eq "writes, DU $du" ok "$(cat "$S/out")"
	model -d -t 0.3 -u $du "$V" || fail "model, DU $du"
	fileop pread 0 $BYTES "$V" >"$S/plain"
	[ "$before" != 0 ] || [ "$(resident)" -le 65536 ] || fail "$(resident) bytes of the image are in the page cache"
	close_vol "$M"
	assert_eq "the image's length" $image_bytes "$(stat -c %s "$IMG")"
	plain | assert_same "the image, DU $du" - "$S/plain"
	cmp -n $SKIP "$S/before" "$IMG" || fail "changed before the volume"
	cmp -i $((SKIP + BYTES)) "$S/before" "$IMG" || fail "changed behind the volume"
	open_it --readonly
	assert_same "read-only, DU $du" "$S/plain" "$V"
	close_vol "$M"
done
