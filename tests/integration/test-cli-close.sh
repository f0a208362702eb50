#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# close and status when something is wrong: a daemon that does not answer, one that has died, a disk that does not take
# the last writes; a file as mount point; JSON that a program can read.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need python3

M=$S/m V=$S/m/volume IMG=$S/img BYTES=$((1024 * 1024))
new_image "$IMG" $BYTES
table "$S/table" $((BYTES / 512)) aes-xts-plain64 "$(random_hex 64)" 0 0

# ---- a daemon that hangs holds nobody up ----
open_vol "$M" --table "$S/table" "$IMG" </dev/null
pid=$(daemon_pid "$V")
kill -STOP "$pid"
assert_exit 1 'does not answer' "$CRYPTFUSE" status "$M"
assert_exit 1 'does not answer' "$CRYPTFUSE" close "$M"
assert_match "list" "$M: $IMG \(the daemon does not answer\)" "$("$CRYPTFUSE" status)"
assert_exit 5 'already open here' "$CRYPTFUSE" open --table "$S/table" "$IMG" "$M"
kill -CONT "$pid"
close_vol "$M"

# ---- fusermount3 cannot do it, as where there is no /etc/mtab: what it says is handed on ----
open_vol "$M" --table "$S/table" "$IMG" </dev/null
mkdir "$S/bin"
printf '#!/bin/sh\necho "fusermount3: failed to open /etc/mtab: No such file" >&2\necho more >&2\nexit 1\n' >"$S/bin/fusermount3"
chmod +x "$S/bin/fusermount3"
PATH=$S/bin:$PATH assert_exit 2 'cannot be unmounted: fusermount3: failed to open /etc/mtab: No such file$' "$CRYPTFUSE" close "$M"
printf '#!/bin/sh\nexit 1\n' >"$S/bin/fusermount3"
PATH=$S/bin:$PATH assert_exit 2 'fusermount3 failed and did not say why' "$CRYPTFUSE" close "$M"
close_vol "$M"

# ---- one that has died, its helper too: a dead mount ----
open_vol "$M" --table "$S/table" "$IMG" </dev/null
pid=$(daemon_pid "$V")
for p in $(daemons_of "$M"); do
	[ "$p" = "$pid" ] || kill -KILL "$p"
done
kill -KILL "$pid"
wait_for "the processes to die" test -z "$(daemons_of "$M")"
assert_exit 4 'has died; clean up' "$CRYPTFUSE" status "$M"
assert_match "list" 'the daemon has died' "$("$CRYPTFUSE" status --json)"
assert_exit 5 'has died; clean up' "$CRYPTFUSE" open --table "$S/table" "$IMG" "$M"
assert_exit 0 'has been removed' "$CRYPTFUSE" close "$M"
assert_gone "$M"

# ---- the disk goes away under written data: closed, but it says what was lost ----
mkdir "$S/disk"
new_image "$S/platter" $BYTES
"$CRYPTFUSE_TOOLS/crashfs" "$S/platter" "$S/disk" &
power=$!
wait_for "the disk" test -e "$S/disk/image"
open_vol "$M" --table "$S/table" "$S/disk/image" </dev/null
exec 9<>"$V"
printf 'not yet on the disk' >&9
kill -KILL $power
wait $power 2>/dev/null || :
exec 9>&- || :
assert_exit 1 'last writes did not reach' "$CRYPTFUSE" close "$M"
assert_gone "$M"
fusermount3 -uz "$S/disk"

# ---- a file as mount point, and an odd name ----
F="$S/a file, \"quoted\" \\ and more" && : >"$F"
"$CRYPTFUSE" open -q --table "$S/table" "$IMG" "$F" </dev/null || fail "open on a file: exit $?"
assert_eq "size" $BYTES "$(stat -c %s "$F")"
read_json() { python3 -c 'import json, sys; print(eval(sys.argv[1], {"j": json.load(sys.stdin)}))' "$1"; }
assert_eq "status --json" "$F" "$("$CRYPTFUSE" status --json "$F" | read_json 'j["mountpoint"]')"
assert_eq "status --json, the list" "$IMG $BYTES" "$("$CRYPTFUSE" status --json |
	read_json '[m["image"] + " " + str(m["status"]["bytes"]) for m in j if m["mountpoint"].startswith("'"$S"'")][0]')"
assert_match "status" "^bytes: $BYTES\$" "$("$CRYPTFUSE" status "$F")"
"$CRYPTFUSE" close "$F" || fail "close of a file: exit $?"
assert_gone "$F"
assert_eq "the file below" 0 "$(stat -c %s "$F")"
