#!/bin/bash
# needs: user
# The daemon's ends: killed with and without its helper, asked to stop with dirty pages in the kernel, closed while in
# use, its parent killed at the prompt. Nothing stays mounted or running, and no byte is lost that could be kept.
. "$(dirname "$0")/lib.sh"
need_user "$@"

M=$S/m V=$S/m/volume IMG=$S/img
KEY=$(random_hex 64)
new_image "$IMG" $((1024 * 1024))
table "$S/table" 2048 aes-xts-plain64 "$KEY" 0 0
open_it() { open_vol "$M" "$@" --table "$S/table" "$IMG" </dev/null; }

# ---- kill -9 of the daemon: the helper takes the mount away ----
open_it
kill -KILL "$(daemon_pid "$V")"
wait_for "the helper to unmount" gone "$M"

# ---- and of the helper too: open explains, close cleans up ----
open_it
pid=$(daemon_pid "$V")
for p in $(daemons_of "$M"); do
	[ "$p" = "$pid" ] || kill -KILL "$p"
done
kill -KILL "$pid"
wait_for "the processes to die" unserved "$M"
mounted "$M" || fail "without a helper somebody unmounted"
rc=0
"$CRYPTFUSE" open --table "$S/table" "$IMG" "$M" 2>"$S/open.err" </dev/null || rc=$?
[ $rc != 0 ] || fail "open on a stale mount succeeded"
assert_match "open on a stale mount" 'cryptfuse close' "$(cat "$S/open.err")"
close_vol "$M"
open_it
close_vol "$M"

# ---- SIGTERM with dirty pages and an open file: every byte is in the backing ----
open_it --stop-timeout 1
pid=$(daemon_pid "$V")
start_hold "$V" 'SIGTERM keeps this'
kill -TERM "$pid"
wait_for "the daemon to end" gone "$M"
stop_hold
for at in 1000 300000; do
	cryptref -c xts -k "$KEY" -s 512 "$IMG" $((at / 512 * 512)) $((at / 512 * 512)) 1024 >"$S/piece"
	assert_eq "written at $at before SIGTERM" 'SIGTERM keeps this' "$(fileop pread $((at % 512)) 18 "$S/piece")"
done

# ---- SIGTERM when idle ----
open_it
kill -TERM "$(daemon_pid "$V")"
wait_for "the daemon to end" gone "$M"

# ---- close while in use: busy, and says who; then it closes ----
open_it
start_hold "$V" 'close keeps this'
assert_exit 5 "$HOLDER" "$CRYPTFUSE" close "$M"
mounted "$M" || fail "a busy close unmounted"
fileop pread 1000 16 "$V" >"$S/piece"
assert_eq "still served" 'close keeps this' "$(cat "$S/piece")"
stop_hold
close_vol "$M"
cryptref -c xts -k "$KEY" -s 512 "$IMG" 299520 299520 1024 >"$S/piece"
assert_eq "mapped before close" 'close keeps this' "$(fileop pread 480 16 "$S/piece")"
assert_exit 4 'nothing is open at' "$CRYPTFUSE" close "$M"

# ---- --foreground ends with the signal; one that comes before the parent waits for it kills the parent, and the daemon
# follows. (A shell without job control starts background jobs deaf to SIGINT.) ----
for signal in INT TERM HUP; do
	rm -f "$S/foreground.err" # the shell that empties it may be slower than the first look for the line
	env --default-signal=INT "$CRYPTFUSE" open --foreground --table "$S/table" "$IMG" "$M" 2>"$S/foreground.err" </dev/null &
	front=$!
	wait_for "the foreground mount" grep -q 'is open at' "$S/foreground.err"
	printf %s "until SIG$signal" | fileop pwrite 2000 "$V" >/dev/null
	kill -$signal $front
	rc=0
	wait $front || rc=$?
	[ $rc = 0 ] || [ $rc = $((128 + $(kill -l $signal))) ] || fail "--foreground, SIG$signal: exit $rc"
	wait_for "the foreground daemon to end" gone "$M"
	cryptref -c xts -k "$KEY" -s 512 "$IMG" 1536 1536 1024 >"$S/piece"
	assert_eq "written before SIG$signal" "until SIG$signal" "$(fileop pread 464 $((9 + ${#signal})) "$S/piece")"
done

# ---- the parent dies at the prompt: so do daemon and helper ----
prompting() { # parent, daemon and helper are there, and the parent has said which defaults it took
	[ "$(daemons_of "$M" | wc -l)" -ge 3 ] && grep -q defaults "$S/prompt.err"
}
for signal in KILL TERM; do
	rm -f "$S/fifo"
	mkfifo "$S/fifo"
	"$CRYPTFUSE" open -c aes-xts-plain64 "$IMG" "$M" 2>"$S/prompt.err" <"$S/fifo" &
	front=$!
	exec 8>"$S/fifo"
	wait_for "the daemon to be there" prompting
	kill -$signal $front
	wait $front 2>/dev/null && fail "open ended well after SIG$signal"
	exec 8>&-
	wait_for "everything to end after SIG$signal at the prompt" gone "$M"
done
