#!/bin/bash
# needs: user
# Key and passphrase show nowhere: not in status, messages or the debug trace, not on a command line; and the daemon
# cannot be dumped or traced by its own user.
. "$(dirname "$0")/lib.sh"
need_user "$@"

M=$S/m V=$S/m/volume IMG=$S/img
PASS="a passphrase $(random_hex 8)" TEXT="plaintext $(random_hex 8)"
KEY=$(printf %s "$PASS" | sha512sum | cut -d' ' -f1)
new_image "$IMG" $((1024 * 1024))
table "$S/table" 2048 aes-xts-plain64 "$KEY" 0 0

# assert_clean WHAT FILE: neither passphrase nor any 16 hex digits of the key, in either case, nor its raw bytes
assert_clean() {
	local i
	if grep -aqF -- "$PASS" "$2"; then fail "the passphrase is in $1"; fi
	for i in 0 16 32 48 64 80 96 112; do
		if grep -aqiF -- "${KEY:i:16}" "$2"; then fail "a piece of the key is in $1"; fi
		if od -An -v -tx1 "$2" | tr -d ' \n' | grep -qF -- "${KEY:i:16}"; then fail "raw key bytes are in $1"; fi
	done
}

# a copy that must be found, or the search proves nothing
echo "x${KEY:16:20}" >"$S/planted"
(assert_clean planted "$S/planted") 2>/dev/null && fail "the search does not find a planted key"

ways=(table passphrase)
if command -v cryptsetup >/dev/null; then
	ways=(luks2 "${ways[@]}")
	truncate -s 20M "$S/luks"
	printf %s "$PASS" | cryptsetup luksFormat -q --type luks2 --sector-size 512 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 \
		--volume-key-file <(printf %s "$PASS" | openssl dgst -sha512 -binary) "$S/luks" -
fi
for how in "${ways[@]}"; do
	rm -f "$S/trace.err"
	mkdir -p "$M"
	if [ "$how" = luks2 ]; then
		echo "$PASS" | "$CRYPTFUSE" open --debug --foreground -v "$S/luks" "$M" >"$S/trace.out" 2>"$S/trace.err" &
	elif [ "$how" = table ]; then
		"$CRYPTFUSE" open --debug --foreground --table "$S/table" "$IMG" "$M" >"$S/trace.out" 2>"$S/trace.err" </dev/null &
	else
		echo "$PASS" | "$CRYPTFUSE" open --debug --foreground -v -c aes-xts-plain64 -s 512 -h sha512 "$IMG" "$M" \
			>"$S/trace.out" 2>"$S/trace.err" &
	fi
	wait_for "the mount" test -e "$V"
	printf %s "$TEXT" | fileop pwrite 100 "$V" >/dev/null
	assert_eq "read back" "$TEXT" "$(fileop pread 100 ${#TEXT} "$V")"
	fileop getxattr user.cryptfuse.status "$V" >"$S/xattr"
	"$CRYPTFUSE" status "$M" >"$S/status"
	"$CRYPTFUSE" status --json "$M" >"$S/status.json"
	pid=$(daemon_pid "$V")
	for p in $(daemons_of "$M"); do
		cat "/proc/$p/cmdline" >"$S/cmdline.$p"
		assert_clean "the command line of $p" "$S/cmdline.$p"
	done
	# what may not be dumped belongs to root in /proc, and its memory is closed to its owner
	assert_eq "the daemon's dumpable flag: owner of its /proc files" 0 "$(stat -c %u "/proc/$pid/mem")"
	if head -c 1 "/proc/$pid/environ" >/dev/null 2>&1; then fail "the daemon can be traced: environ is readable"; fi
	close_vol "$M"
	wait
	for f in xattr status status.json trace.out trace.err; do
		assert_clean "$f ($how)" "$S/$f"
		if grep -aqF -- "$TEXT" "$S/$f"; then fail "content of the volume is in $f"; fi
	done
	[ -s "$S/trace.err" ] || fail "--debug said nothing"
done
cryptref -c xts -k "$KEY" -s 512 "$IMG" 0 0 512 >"$S/piece"
assert_eq "the key that was searched is the key in use" "$TEXT" "$(fileop pread 100 ${#TEXT} "$S/piece")"
