#!/bin/bash
# needs: user
# --volume-key-keyring: the volume key from a key of type user, named in each way keyctl(1) has; what is no key there, is of
# another type, is too short or is wrong is refused for that reason.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need keyctl cryptsetup python3
if [ -z "${IN_SESSION:-}" ]; then # a keyring of this script alone
	keyctl session - true >/dev/null 2>&1 || lacking "the kernel's keyring"
	rm -rf "$S"
	IN_SESSION=1 exec keyctl session - bash "$0" "$@" 2> >(grep -v '^Joined session keyring' >&2)
fi
cd "$S"
M=$S/m V=$S/m/volume
NAME=cryptfuse:test

truncate -s 18M luks.img
cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 luks.img <<<"open sesame" || fail "luksFormat"
(umask 077 && cryptsetup luksDump -q --dump-volume-key --volume-key-file volume.key luks.img <<<"open sesame" >dump) || fail "luksDump"
open_vol "$M" luks.img <<<"open sesame"
fileop pattern 100000 | fileop pwrite 0 "$V" >/dev/null
sha256sum <"$V" >sum
close_vol "$M"

id=$(keyctl padd user "$NAME" @s <volume.key)
for key in "$NAME" "%user:$NAME" "$id"; do
	open_vol "$M" --volume-key-keyring "$key" luks.img </dev/null
	assert_eq "the volume by $key" "$(cat sum)" "$(sha256sum <"$V")"
	open_again "$M" </dev/null
	assert_eq "the volume by $key, again" "$(cat sum)" "$(sha256sum <"$V")"
	! "$CRYPTFUSE" status --json "$M" | grep -qF "$(od -An -v -tx1 volume.key | tr -d ' \n' | head -c 32)" || fail "the key is shown"
	close_vol "$M"
done
"$CRYPTFUSE" decrypt -q --volume-key-keyring "%user:$NAME" luks.img out </dev/null || fail "decrypt: exit $?"
assert_eq "decrypt" "$(cat sum)" "$(sha256sum <out)"

refused() { # CODE WHY KEY
	assert_exit "$1" "$2" "$CRYPTFUSE" open --volume-key-keyring "$3" luks.img "$M"
	assert_gone "$M"
}
head -c 64 /dev/urandom | keyctl padd user "$NAME:wrong" @s >/dev/null
head -c 63 volume.key | keyctl padd user "$NAME:short" @s >/dev/null
keyctl padd logon "$NAME:logon" @s <volume.key >/dev/null
refused 1 "cannot be read from the keyring" "$(keyctl search @s logon "$NAME:logon")"
refused 2 'not the .*key|does not' "$NAME:wrong"
refused 1 'has 63 bytes, not the 64 of the volume key' "$NAME:short"
refused 1 'only keys of type user can be read' "%logon:$NAME:logon"
refused 1 'not in a keyring of this process' "$NAME:none"
keyctl unlink "$id" @s
refused 1 'not in a keyring of this process' "%user:$NAME"
