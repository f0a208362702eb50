#!/bin/bash
# needs: user
# umount returns when every byte is in the image, however much was pending; what is in use stays, a crash of either
# daemon is cleaned up, a journal is replayed for writing only, and a signal to mount undoes it.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need pgrep mkfs.ext4 e2fsck debugfs dumpe2fs fuse2fs
. "$(dirname "$0")/mounting.sh"
OWNER=root_owner=$(id -u):$(id -g)

truncate -s 32M "$S/ext4"
mkfs.ext4 -q -E "$OWNER" "$S/ext4"
encrypted "$S/ext4"

program_pid() {
	pgrep -f "^fuse2fs $RUN"
}

# ---- 100 MiB pending at umount ----
truncate -s 160M "$S/big"
mkfs.ext4 -q -E "$OWNER" "$S/big"
encrypted "$S/big"
rm "$S/big"
head -c 104857600 /dev/urandom >"$S/data"
mount_vol "${OPTS[@]}" "$S/big.enc"
cp "$S/data" "$D/data"
umount_vol
checked "$S/big.enc"
debugfs -R "dump data $S/back" "$S/plain" 2>/dev/null
assert_same "100 MiB" "$S/data" "$S/back"
rm "$S/data" "$S/back" "$S/big.enc"

# ---- in use: exit 5, who it is, and everything stays ----
mount_vol "${OPTS[@]}" "$S/ext4.enc"
exec 7>"$D/open"
cf_exit 5 "busy: process .*\(bash\)" umount "$D"
echo more >&7
exec 7>&-
umount_vol

# ---- half undone: a second umount finishes ----
mount_vol "${OPTS[@]}" "$S/ext4.enc"
echo text >"$D/half"
VOLUME=$(echo "$RUN"/cryptfuse/mount-*/volume)
exec 7<"$VOLUME/volume"
cf_exit 5 "$VOLUME is busy" umount "$D"
! mounted "$D" || fail "the file system is still mounted"
refused_while_half() { cf mount "${OPTS[@]}" "$S/ext4.enc" "$D" <<<"$PASS" 2>"$S/half.err"; }
if refused_while_half; then fail "mounted over what is half undone"; fi
assert_match "mount while half undone" "$D: what was mounted here is not closed yet; 'cryptfuse umount" "$(cat "$S/half.err")"
exec 7<&-
umount_vol

# ---- somebody else unmounts the file system: the volume is closed too ----
mount_vol "${OPTS[@]}" "$S/ext4.enc"
assert_eq "half undone" text "$(cat "$D/half")"
fusermount3 -u "$D"
wait_for "the volume to be closed" no_place
assert_nothing
cf_exit 4 'nothing that you mounted' umount "$D"

# ---- the file system's program is killed: said, and cleaned up ----
mount_vol "${OPTS[@]}" "$S/ext4.enc"
kill -KILL "$(program_pid)"
cf_exit 1 'ended badly \(killed by signal 9\)' umount "$D"
assert_nothing

# ---- the volume's daemon is killed, with its helper ----
mount_vol "${OPTS[@]}" "$S/ext4.enc"
for pid in $(pgrep -f "^$CRYPTFUSE mount .*$S/ext4.enc"); do
	kill -KILL "$pid"
done
cf umount "$D" 2>"$S/umount.err" || :
cf umount "$D" 2>"$S/umount.err" || :
assert_nothing
cp "$S/ext4.enc" "$S/after-crash.enc"

# ---- a journal that wants a replay: for writing only ----
truncate -s 32M "$S/dirty"
mkfs.ext4 -q -E "$OWNER" "$S/dirty"
printf 'jo\njw -b 3000 /dev/zero\njc\n' >"$S/commands"
debugfs -w -f "$S/commands" "$S/dirty" >/dev/null 2>&1
needs_recovery() { dumpe2fs -h "$1" 2>/dev/null | grep -q needs_recovery; }
needs_recovery "$S/dirty" || fail "the journal is clean"
encrypted "$S/dirty"
sha256sum "$S/dirty.enc" >"$S/before"
mount_vol --readonly "${OPTS[@]}" "$S/dirty.enc"
[ -d "$D/lost+found" ] || fail "nothing to be seen"
umount_vol
sha256sum -c --quiet "$S/before" || fail "a read-only mount changed the image"
mount_vol "${OPTS[@]}" "$S/dirty.enc"
umount_vol
decrypted "$S/dirty.enc"
! needs_recovery "$S/plain" || fail "the journal was not replayed"
checked "$S/dirty.enc"

# ---- a signal at the prompt ----
mkfifo "$S/prompt"
prompting() { pgrep -f "^$CRYPTFUSE mount .*ext4.enc" >/dev/null && [ -d "$(echo "$RUN"/cryptfuse/mount-*/volume)" ]; }
for sig in TERM HUP KILL-OPENER; do
	rm -f "$S/prompt"
	mkfifo "$S/prompt"
	XDG_RUNTIME_DIR=$RUN "$CRYPTFUSE" mount "${OPTS[@]}" "$S/ext4.enc" "$D" <"$S/prompt" 2>"$S/prompt.err" &
	mount_pid=$!
	exec 7>"$S/prompt"
	wait_for "the prompt" prompting
	if [ $sig = KILL-OPENER ]; then
		wait_for "the opener" pgrep -P $mount_pid
		pkill -KILL -o -P $mount_pid
	else
		kill -$sig $mount_pid
	fi
	rc=0
	wait $mount_pid || rc=$?
	exec 7>&-
	[ $rc != 0 ] || fail "SIG$sig: exit 0"
	assert_nothing
done
