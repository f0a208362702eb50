#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# The passphrase prompt on a real terminal: never echoed, echo put back whatever happens, tries, verification, time-out,
# signals, ^Z; and what was typed makes the same key as the same passphrase on standard input.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need python3

M=$S/m IMG=$S/img
mkdir "$M"
new_image "$IMG" $((1024 * 1024))
cp "$IMG" "$S/pristine"
at_prompt() { python3 "$(dirname "$0")/prompt.py" "$1" "$CRYPTFUSE" "$IMG" "$M" || fail "at the prompt: $1"; }

# same SCENARIO PASSPHRASE: the scenario opens; what the volume shows is what that passphrase on stdin shows.
same() {
	at_prompt "$1"
	mounted "$M" || fail "$1: not open"
	cp "$M/volume" "$S/typed"
	close_vol "$M"
	printf '%s\n' "$2" | open_vol "$M" -q --type plain "$IMG"
	assert_same "$1" "$S/typed" "$M/volume"
	close_vol "$M"
}
same right 'hidden horse'
same dash_is_the_terminal 'hidden horse'
same second_try 'hidden horse'
same stopped 'hidden horse'
same empty ''
same long "hidden $(printf 'x%.0s' {1..505})"

for scenario in tries_run_out timeout interrupt terminated end_of_input offset; do
	at_prompt $scenario
	assert_gone "$M"
done
assert_same "the image after all this" "$S/pristine" "$IMG"
