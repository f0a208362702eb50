# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# mounting.sh - what the scripts about mount and umount share. Source it after lib.sh and need_user or need_root.
#
# D is the directory to mount at, OPTS how the volumes of `encrypted` are opened, PASS their passphrase. Everything runs
# as AS says, which is the caller by default.

D=$S/files
PASS="open sesame"
OPTS=(--type plain -c aes-xts-plain64 -s 512 -h sha512)
RUN=$S/run
"${AS[@]}" mkdir "$D"
"${AS[@]}" mkdir -m 0700 "$RUN"
if [ "$(id -u)" = 0 ]; then # root's own places, in this namespace: another run at the same time has others
	[ -d /run/cryptfuse ] || mkdir -m 0700 /run/cryptfuse
	mount -t tmpfs -o mode=0700 places /run/cryptfuse
fi

cf() {
	timeout -k 5 120 "${AS[@]}" env "XDG_RUNTIME_DIR=$RUN" "$CRYPTFUSE" "$@"
}

cf_exit() { # CODE PATTERN ARGUMENT…: as assert_exit
	local code=$1 pattern=$2
	shift 2
	assert_exit "$code" "$pattern" "${AS[@]}" env "XDG_RUNTIME_DIR=$RUN" "$CRYPTFUSE" "$@"
}

mount_vol() { # OPTIONS… IMAGE
	cf mount "$@" "$D" <<<"$PASS" >"$S/mount.out" 2>"$S/mount.err" || fail "mount $*: exit $?: $(cat "$S/mount.err")"
	mounted "$D" || fail "mount $* returned, but nothing is mounted"
}

umount_vol() {
	cf umount "$D" 2>"$S/umount.err" || fail "umount: exit $?: $(cat "$S/umount.err")"
	assert_nothing
}

# refused CODE PATTERN OPTIONS… IMAGE: mount exits with that code, says that, and leaves nothing.
refused() {
	local want=$1 pattern=$2 rc=0
	shift 2
	cf mount "$@" "$D" <<<"$PASS" >"$S/mount.out" 2>"$S/mount.err" || rc=$?
	[ $rc = "$want" ] || fail "mount $*: exit $rc, not $want: $(cat "$S/mount.err")"
	assert_match "mount $*" "$pattern" "$(cat "$S/mount.err")"
	assert_nothing
}

nobody_runs() {
	! pgrep -f "$S/(files|run|.*\.enc)" >/dev/null
}

# places - what is left of this test's mounts; /run/cryptfuse is root's, whoever else mounts
places() {
	find "$RUN" -name 'mount-*' 2>/dev/null
	find /run/cryptfuse -name target -lname "$S/*" 2>/dev/null
}

no_place() {
	[ -z "$(places)" ]
}

# Nothing mounted, nothing running, no directory, no loop device.
assert_nothing() {
	assert_eq "mounts left" "" "$(awk -v d="$D" -v r="$RUN/" '$5 == d || index($5, r) == 1 { print $5 }' /proc/self/mountinfo)"
	assert_eq "places left" "" "$(places)"
	wait_for "the processes to end" nobody_runs
}

encrypted() { # PLAIN: PLAIN.enc holds the same, as a volume
	rm -f "$1.enc"
	printf %s "$PASS" | cf encrypt -q "${OPTS[@]}" "$1" "$1.enc" || fail "encrypt $1"
}

decrypted() { # VOLUME: its plaintext is in $S/plain
	rm -f "$S/plain"
	printf %s "$PASS" | cf decrypt -q "${OPTS[@]}" "$1" "$S/plain" || fail "decrypt $1"
}

checked() { # VOLUME: a clean ext4
	decrypted "$1"
	e2fsck -fn "$S/plain" >"$S/fsck.err" 2>&1 || fail "e2fsck: exit $?"
}
