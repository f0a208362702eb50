#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# What is no file where one is expected: as image, key file, header and table. Each is refused at once, by name, and nothing stays
# mounted. Links and pipes that lead to something sound are as good as files.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need python3

M=$S/m IMG=$S/img KEY=$S/key
mkdir "$M" "$S/dir"
new_image "$IMG" 1M
head -c 64 /dev/urandom >"$KEY"
mkfifo "$S/fifo"
ln -s nowhere "$S/dangling"
ln -s loop "$S/loop"
ln -s img "$S/link"
ln -s key "$S/keylink"
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$S/sock"
PLAIN=(--type plain -c aes-xts-plain64 -s 512)

refuse() { # EXIT PATTERN OPTION…
	assert_exit "$1" "$2" "$CRYPTFUSE" open "${@:3}" "$M"
	assert_gone "$M"
	[ -z "$(ls -A "$M")" ] || fail "something is in $M"
}

as_image() { # EXIT PATTERN PATH
	local access
	for access in '' --readonly; do
		refuse "$1" "$2" "${PLAIN[@]}" -d "$KEY" $access "$3"
		refuse "$1" "$2" $access "$3"
	done
	assert_exit "$1" "$2" "$CRYPTFUSE" info "$3"
}

as_image 4 'fifo is a FIFO, not a file or block device' "$S/fifo"
as_image 4 'dir is a directory, not a file or block device' "$S/dir"
as_image 4 'sock is a socket, not a file or block device' "$S/sock"
as_image 4 '/dev/zero is a character device, not a file or block device' /dev/zero
as_image 4 'dangling: No such file or directory' "$S/dangling"
as_image 4 'loop: Too many levels of symbolic links' "$S/loop"

as_key() { # PATTERN PATH
	refuse 1 "$1" "${PLAIN[@]}" -d "$2" "$IMG"
	refuse 1 "$1" --table "$2" "$IMG"
}

as_key 'dir is a directory' "$S/dir"
as_key 'sock: No such device or address' "$S/sock"
as_key 'dangling: No such file or directory' "$S/dangling"
refuse 1 'null has fewer than the 64 bytes' "${PLAIN[@]}" -d /dev/null "$IMG"
refuse 1 'nothing to read on /dev/null' --table /dev/null "$IMG"
refuse 1 'zero has more than 8388608 bytes' --table /dev/zero "$IMG"
refuse 1 'zero has more than 8388608 bytes' --type loopaes -d /dev/zero "$IMG"

as_header() { # EXIT PATTERN PATH
	refuse "$1" "$2" --header "$3" "$IMG"
}

as_header 4 'fifo is a FIFO' "$S/fifo"
as_header 4 'dir is a directory' "$S/dir"
as_header 4 'sock is a socket' "$S/sock"
as_header 4 'null is a character device' /dev/null
as_header 4 'dangling: No such file or directory' "$S/dangling"
as_header 4 'no header found in .*key' "$KEY"
: >"$S/empty"
as_header 4 'no header found in .*empty' "$S/empty"
refuse 1 'beyond the image' "${PLAIN[@]}" -d "$KEY" "$S/empty"

# links, and a pipe with a writer
open_vol "$M" "${PLAIN[@]}" -d "$S/keylink" "$S/link"
assert_eq "image in the status" "$IMG" "$(status_field "$M/volume" image)"
close_vol "$M"
cat "$KEY" >"$S/fifo" &
open_vol "$M" "${PLAIN[@]}" -d "$S/fifo" "$IMG"
close_vol "$M"
wait
