#!/bin/bash
# needs: user
# The examples of the manual, and the README's volume with 64 KiB data units, do what they say. Lines for root are left
# out, and so is what they need: the table is made here, and --allow-root has a test of its own.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need gzip mkfs.ext4 debugfs python3 cryptsetup sfdisk split jq
TOP=$(cd "$(dirname "$0")/../.." && pwd)

mkdir "$S/bin" "$S/man" "$S/readme"
ln -s "$CRYPTFUSE" "$S/bin/cryptfuse"
PATH=$S/bin:$PATH

# ---- the manual: the lines that begin with "$ ", in order, in one folder; not the block with --allow-root ----
cd "$S/man"
truncate -s 16M old.img copy-of-the-disk.img
truncate -s 32M luks.img
cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 luks.img <<<"the passphrase"
mkdir "$S/mnt"
cryptfuse open -q luks.img "$S/mnt" <<<"the passphrase" || fail "open"
mkfs.ext4 -q -F "$S/mnt/volume" || fail "mkfs.ext4"
cryptfuse close "$S/mnt" || fail "close"
date >notes
head -c 64 /dev/urandom >key
truncate -s 48M whole
printf 'start=2048, size=8192\nsize=65536\n' | sfdisk -q --label gpt whole || fail "sfdisk"
dd if=luks.img of=whole bs=1M seek=5 conv=notrunc status=none
split -b 5M -a 3 --numeric-suffixes=1 whole disk.img.
head -c 1000000 /dev/urandom >raw.img
gzip -k raw.img
table table 32768 aes-xts-plain64 "$(random_hex 64)" 0 0
# if_fuse2fs LINE - run it where the files in an ext4 can be had
if_fuse2fs() {
	if command -v fuse2fs >/dev/null; then sh -c "$1" <<<"the passphrase" || fail "exit $?: $1"; fi
}

lines_of() { # PAGE
	awk '/^\.Sh/ { here = $2 == "EXAMPLES" }
		/^\.Bd/ { block = "" }
		/^\$ / || more { line = more ? $0 : substr($0, 3); more = line ~ /\|$/; block = block line (more ? " " : "\n") }
		/^\.Ed/ && here && block !~ /--allow-root/ { print block }' "$TOP/man/$1"
}
for page in cryptfuse.1 cryptfuse-{open,close,suspend,resume,status,info,bench,decrypt,encrypt,create,mount}.1; do lines_of "$page"; done >"$S/lines"
[ "$(wc -l <"$S/lines")" -ge 10 ] || fail "only $(wc -l <"$S/lines") example lines found"
while read -r line; do
	case $line in
	'') ! mounted "$S/man/mnt" || cryptfuse close mnt ;; # the end of an example: the next starts afresh
	*' files' | *' files/') if_fuse2fs "$line" ;;
	*)
		echo "\$ $line"
		sh -c "$line" <<<"the passphrase" || fail "exit $?: $line"
		;;
	esac
done <"$S/lines"

# ---- the README, every day: each indented block in order, with less to write ----
mkdir "$S/everyday"
cd "$S/everyday"
ln "$S/man/luks.img" "$S/man"/disk.img.0* "$S/man/copy-of-the-disk.img" "$S/man/table" "$S/man/raw.img" .
for copy in evidence failing-disk; do ln luks.img $copy.img; done
sed -n '/^## Every day/,/^## Data units/p' "$TOP/README.md" |
	awk '/^    / { print substr($0, 5); was = 1; next } was { print ""; was = 0 }' |
	sed 's/ *#.*//; s/--size 1G/--size 64M/; s/^mkdir /mkdir -p /' >lines
[ "$(grep -c . lines)" -ge 20 ] || fail "only $(grep -c . lines) lines found in the README"
while read -r line; do
	case $line in
	'') ! mounted "$S/everyday/mnt" || cryptfuse close mnt ;;
	*' files '* | *' files' | *' files/') if_fuse2fs "$line" ;;
	*)
		echo "\$ $line"
		sh -c "$line" <<<"the passphrase" || fail "exit $?: $line"
		;;
	esac
done <lines

# ---- the README: an indented block under the heading ----
cd "$S/readme"
sed -n '/^## Data units/,/^There are/p' "$TOP/README.md" | sed -n 's/^    //p' >script
want=$(sed -n 's/^# \([0-9a-f]\{64\}\).*/\1/p' script)
[ -n "$want" ] || fail "no checksum in the README"
mkdir mnt
sh -e script >out || fail "the README's example: exit $?"
assert_eq "checksum of the image" "$want" "$(cut -d' ' -f1 out)"
