#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: root
# Trouble after the start is said: in the status, and in the system's log, by image and mount point, without a name or
# byte of what is inside (HAZARDS 5). Also when a log that takes nothing stands in the way, nothing waits for it.
. "$(dirname "$0")/lib.sh"
need_root "$@"
need python3

M=$S/m V=$S/m/volume
AS=("${AS_USER[@]}")

# A /dev of our own, with a log in it; the namespace is ours alone.
mkdir "$S/dev"
mount -t tmpfs -o mode=0755 none "$S/dev"
for node in 'null 1 3' 'zero 1 5' 'urandom 1 9' 'fuse 10 229'; do
	read -r name major minor <<<"$node"
	mknod -m 0666 "$S/dev/$name" c "$major" "$minor" || lacking "device nodes"
done
ln -s /proc/self/fd "$S/dev/fd"
mount --bind "$S/dev" /dev

# The log: writes down what it gets, until told to stop listening.
python3 - "$S/log" "$S/listening" <<-'PYTHON' &
	import os, socket, sys
	s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
	s.bind("/dev/log")
	os.chmod("/dev/log", 0o666)
	open(sys.argv[2], "w").close()
	with open(sys.argv[1], "wb", 0) as log:
	    while True:
	        log.write(s.recv(65536) + b"\n")
PYTHON
logger=$!
wait_for "the log" test -e "$S/listening"

# What was read once is in the kernel's cache: another 4 KiB each time.
read_at() { # OFFSET
	as_user dd if="$V" of=/dev/null bs=4096 skip="$1" count=1 2>/dev/null
}

new_image "$S/an image" $((1024 * 1024))
chown "$USER_NAME" "$S/an image"
head -c 64 /dev/urandom >"$S/key"
chmod 0644 "$S/key"
open_vol "$M" --cipher aes-xts-plain64 --key-size 512 --key-file "$S/key" --readahead 4 "$S/an image" </dev/null
as_user "$CRYPTFUSE" status "$M" >"$S/status"
if grep -q '^messages\.' "$S/status"; then fail "there are messages before any trouble: $(grep ^messages "$S/status")"; fi

truncate -s 4096 "$S/an image" # the rest cannot be read any more
if read_at 100; then fail "what the image has no more was read"; fi
as_user "$CRYPTFUSE" status "$M" >"$S/status"
assert_match "the status" '^messages\.0\.text: reads failed' "$(cat "$S/status")"
wait_for "a line in the log" grep -q 'reads failed' "$S/log"
assert_eq "lines in the log" 1 "$(wc -l <"$S/log")"
assert_match "the line" "^<27>... .. ..:..:.. cryptfuse\[[0-9]+\]: $S/an image on $M: reads failed" "$(cat "$S/log")"

# The log takes nothing any more, and is full: the daemon and its helper go on.
kill -STOP "$logger"
python3 - <<-'PYTHON'
	import socket
	s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
	s.setblocking(False)
	s.connect("/dev/log")
	try:
	    while True:
	        s.send(b"x" * 1000)
	except BlockingIOError:
	    pass
PYTHON
if as_user dd if=/dev/zero of="$V" bs=100 seek=7001 count=1 conv=notrunc,fsync 2>/dev/null; then
	fail "a part of what cannot be read was written"
fi
as_user "$CRYPTFUSE" status "$M" >"$S/status"
assert_match "the status" '^messages\.1\.text: writes failed' "$(cat "$S/status")"
kill -CONT "$logger"
timeout 60 "${AS_USER[@]}" "$CRYPTFUSE" close "$M" 2>"$S/close.err" || :
assert_gone "$M"
kill "$logger"
