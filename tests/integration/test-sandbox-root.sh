#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: root
# What only root sees of an ordinary user's daemon: which descriptors it has. And a program that somebody made setuid,
# setgid or capable refuses to run.
. "$(dirname "$0")/lib.sh"
need_root "$@"

M=$S/m
AS=("${AS_USER[@]}")
new_image "$S/img" $((1024 * 1024))
chown "$USER_NAME" "$S/img"
head -c 64 /dev/urandom >"$S/key"
chmod 0644 "$S/key"

# ---- descriptors: what the caller has open does not get in ----

# Each kind of thing that process has open, and how often.
descriptors() { # PID
	find "/proc/$1/fd" -mindepth 1 -printf '%l\n' | sed "s/:\[[0-9]*\]\$//;s|^$S/img\$|IMAGE|" | sort | uniq -c | sed 's/^ *//'
}

exec 7<"$S/key" 8< <(:)
open_vol "$M" --cipher aes-xts-plain64 --key-size 512 --engine openssl --key-file "$S/key" "$S/img" </dev/null
exec 7<&- 8<&-
pid=$(as_user "$CRYPTFUSE" status "$M" | sed -n 's/^pid: //p')
n_sockets() { descriptors "$pid" | sed -n 's/ socket$//p'; }
only_two() { [ "$(n_sockets)" = 2 ]; }
wait_for "the parent's socket to be closed" only_two # the helper's and the one that commands use stay
assert_eq "the daemon's descriptors" "1 /dev/fuse
3 /dev/null
2 IMAGE
1 anon_inode:[signalfd]
2 socket" "$(descriptors "$pid")"
helper=$(daemons_of "$M" | grep -vx "$pid")
assert_eq "the helper's descriptors" "3 /dev/null
1 socket" "$(descriptors "$helper")"
close_vol "$M"

# ---- setuid ----

need setcap
mkdir -m 0755 "$S/bin"
refuse() { # WHAT
	(AS=() && assert_exit 2 'must not be' "${AS_USER[@]}" "$S/bin/$1" --version)
}

for bits in u g; do
	cp "$CRYPTFUSE" "$S/bin/$bits"
	chmod 0755 "$S/bin/$bits"
	assert_eq "the copy runs" 0 "$(as_user "$S/bin/$bits" --version >/dev/null && echo 0)"
	chmod $bits+s "$S/bin/$bits"
	refuse $bits
	"$S/bin/$bits" --version >/dev/null || fail "root gains nothing by it, and was refused"
done
cp "$CRYPTFUSE" "$S/bin/capable"
chmod 0755 "$S/bin/capable"
setcap cap_dac_override+ep "$S/bin/capable"
refuse capable
