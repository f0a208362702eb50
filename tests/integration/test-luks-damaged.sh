#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: root
# A damaged LUKS2 header is not repaired by looking at it (HAZARDS 28): as root, an image with one byte of either header
# wrong opens, and neither its bytes nor its times change. With both headers wrong it does not open, and says why.
. "$(dirname "$0")/lib.sh"
need_root "$@"
need cryptsetup

M=$S/m IMG=$S/img PASS='the passphrase'
mkdir "$M"
truncate -s 20M "$S/good"
printf %s "$PASS" | cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "$S/good" -

damage() { # FILE OFFSET…
	local at
	for at in "${@:2}"; do printf '\252' | dd of="$1" bs=1 seek="$at" conv=notrunc status=none; done
}

sum() { sha256sum <"$1" | cut -d' ' -f1; }

for at in none 200 5000 16584 21000; do
	cp "$S/good" "$IMG"
	[ $at = none ] || damage "$IMG" $at
	content=$(sum "$IMG") header=$(head -c 16M "$IMG" | sum /dev/stdin)
	touch -d '2001-02-03 04:05:06' "$IMG"
	before=$(stat -c '%s %X %Y %Z %b' "$IMG")
	open_vol "$M" --readonly "$IMG" <<<"$PASS"
	head -c 1000000 "$M/volume" >/dev/null
	close_vol "$M"
	"$CRYPTFUSE" open --readonly "$IMG" "$M" <<<"wrong" 2>/dev/null && fail "opened with a wrong passphrase"
	assert_eq "size and times, damaged at $at" "$before" "$(stat -c '%s %X %Y %Z %b' "$IMG")"
	assert_eq "content, damaged at $at" "$content" "$(sum "$IMG")"
	# for writing: the header stays as it was found all the same
	open_vol "$M" "$IMG" <<<"$PASS"
	close_vol "$M"
	assert_eq "header after it was open for writing" "$header" "$(head -c 16M "$IMG" | sum /dev/stdin)"
done

# the test must be able to fail: cryptsetup does repair it
cp "$S/good" "$IMG"
damage "$IMG" 200
before=$(sum "$IMG")
printf %s "$PASS" | cryptsetup open --test-passphrase "$IMG" - 2>/dev/null || :
[ "$before" != "$(sum "$IMG")" ] || echo "note: this cryptsetup does not repair what it reads"

cp "$S/good" "$IMG"
damage "$IMG" 200 16584
assert_exit 1 'the LUKS header is damaged' "$CRYPTFUSE" open --readonly "$IMG" "$M"
assert_gone "$M"
# the first header lost: the second one is found
cp "$S/good" "$IMG"
dd if=/dev/zero of="$IMG" bs=16K count=1 conv=notrunc status=none
open_vol "$M" --readonly "$IMG" <<<"$PASS"
close_vol "$M"
