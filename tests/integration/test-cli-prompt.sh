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

# ---- a volume with a header: a wrong passphrase is asked for again ----
need cryptsetup
IMG=$S/luks
truncate -s 20M "$IMG"
printf 'hidden horse' | cryptsetup luksFormat -q --type luks2 --pbkdf pbkdf2 --pbkdf-force-iterations 1000 "$IMG" -
at_prompt luks_third_try
close_vol "$M"
for scenario in luks_all_wrong luks_one_try; do
	at_prompt $scenario
	assert_gone "$M"
done

# ---- --askpass: run with the prompt, says the passphrase; inherits no descriptor of ours, and no secret ----
cat >"$S/askpass" <<'SH'
#!/bin/sh
echo "$1" >>"$S/prompts"
ls /proc/self/fd >"$S/askpass.fds"
case $(wc -l <"$S/prompts") in 1) echo 'hidden house' ;; *) printf 'hidden horse\nand more' ;; esac
SH
chmod +x "$S/askpass"
open_vol "$M" --askpass "$S/askpass" "$IMG" </dev/null
close_vol "$M"
assert_eq "prompts" "Passphrase for $IMG (1 of 3): |Passphrase for $IMG (2 of 3): |" "$(tr '\n' '|' <"$S/prompts")"
assert_eq "descriptors of the program" '0 1 2 3 ' "$(tr '\n' ' ' <"$S/askpass.fds")" # 3 is its own
assert_exit 2 'false gave none' "$CRYPTFUSE" open --askpass false "$IMG" "$M"
assert_exit 1 'nowhere cannot be run' "$CRYPTFUSE" open --askpass "$S/nowhere" "$IMG" "$M"
printf '#!/bin/sh\nexec sleep 100\n' >"$S/slow"
chmod +x "$S/slow"
assert_exit 1 'within 1 s' "$CRYPTFUSE" open --askpass "$S/slow" --timeout 1 "$IMG" "$M"
assert_gone "$M"

# ---- --require-signature: what is noise does not stay open ----
rc=0
"$CRYPTFUSE" open --type plain --require-signature "$S/pristine" "$M" <<<"wrong" 2>"$S/open.err" || rc=$?
assert_eq "exit of --require-signature: $(cat "$S/open.err")" 2 $rc
assert_match "its message" 'nothing known was found inside, and --require-signature' "$(cat "$S/open.err")"
for quiet in '' -q; do # decrypt copies nothing of it
	rc=0
	# shellcheck disable=SC2086
	"$CRYPTFUSE" decrypt $quiet --type plain --require-signature "$S/pristine" "$S/out" <<<"wrong" 2>"$S/open.err" || rc=$?
	assert_eq "decrypt: exit of --require-signature: $(cat "$S/open.err")" 2 $rc
	assert_match "its message" '--require-signature was given: nothing is copied' "$(cat "$S/open.err")"
	[ ! -e "$S/out" ] || fail "decrypt: there is an output"
done
assert_gone "$M"
open_vol "$M" --type plain "$S/pristine" <<<"right"
if command -v mkfs.ext4 >/dev/null; then mkfs.ext4 -q -F "$M/volume"; fi
close_vol "$M"
if command -v mkfs.ext4 >/dev/null; then
	"$CRYPTFUSE" decrypt -q --type plain --require-signature "$S/pristine" "$S/out" <<<"right" || fail "decrypt: exit $?"
	open_vol "$M" --type plain --require-signature "$S/pristine" <<<"right"
	close_vol "$M"
fi
