#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# An image with places that cannot be read: an error, or zeros and a list, in decrypt and in a read-only volume; never in
# one that can be written.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need python3

IMG=$S/disk/image M=$S/m BYTES=$((1024 * 1024)) KEY=$(random_hex 64)
new_image "$S/platter" $BYTES
table "$S/table" $(((BYTES - 8192) / 512)) aes-xts-plain64 "$KEY" 0 16 sector_size:4096
cryptref -c xts -k "$KEY" -s 4096 "$S/platter" 8192 0 $((BYTES - 8192)) >"$S/plain"
mkdir "$S/disk" "$M"
# pages 0, 1 and 2 of the volume (bytes 8192 to 20480), one in the middle, the last
"$CRYPTFUSE_TOOLS/crashfs" "$S/platter" "$S/disk" 8192 12288 500000 1 $((BYTES - 1)) 1 &
wait_for "the disk" test -e "$IMG"
middle=$(((500000 - 8192) / 4096 * 4096)) last=$((BYTES - 8192 - 4096))
python3 - "$S/plain" "$S/want" $middle $last <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
for at, n in ((0, 12288), (int(sys.argv[3]), 4096), (int(sys.argv[4]), 4096)):
    data[at:at + n] = bytes(n)
open(sys.argv[2], "wb").write(data)
END

assert_exit 1 "$IMG cannot be read at byte 0: Input/output error" "$CRYPTFUSE" decrypt -q --table "$S/table" "$IMG" "$S/out"
[ ! -e "$S/out" ] || fail "a file that is not whole"
assert_exit 4 '20480 bytes of .* in 3 ranges could not be read' "$CRYPTFUSE" decrypt --bad-sectors zero --table "$S/table" "$IMG" "$S/out"
assert_same "with zeros" "$S/want" "$S/out"
list=$(sed -nE 's/.*unreadable: ([0-9]+) bytes at byte ([0-9]+) of the volume, byte ([0-9]+) of .*/\1 \2 \3/p' "$S/exit.err")
assert_eq "the list" "12288 0 8192
4096 $middle $((middle + 8192))
4096 $last $((last + 8192))" "$list"

# in a volume
assert_exit 1 'bad-sectors zero needs --readonly' "$CRYPTFUSE" open --bad-sectors zero --table "$S/table" "$IMG" "$M"
open_vol "$M" --readonly --bad-sectors zero --table "$S/table" "$IMG" </dev/null
assert_same "the volume" "$S/want" "$M/volume"
"$CRYPTFUSE" status --json "$M" >"$S/status"
python3 - "$S/status" $middle $last <<'END' || fail "the status: $(cat "$S/status")"
import json, sys
s = json.load(open(sys.argv[1]))
want = [[0, 12288], [int(sys.argv[2]), 4096], [int(sys.argv[3]), 4096]]
assert s["bad_sectors"] == "zero", s
assert s["unreadable"]["bytes"] == 20480 and s["unreadable"]["complete"], s
assert [[r["offset"], r["bytes"]] for r in s["unreadable"]["ranges"]] == want, s
END
close_vol "$M"
open_vol "$M" --readonly --table "$S/table" "$IMG" </dev/null
assert_eq "without the option" EIO "$(fileop pread 0 512 "$M/volume")"
close_vol "$M"
