#!/bin/bash
# needs: user
# The examples of cryptfuse(1), and the README's volume with 64 KiB data units, do what they say. Lines for root are left
# out, and so is what they need: the table is made here, and --allow-root has a test of its own.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need mkfs.ext4 debugfs python3
TOP=$(cd "$(dirname "$0")/../.." && pwd)

mkdir "$S/bin" "$S/man" "$S/readme"
ln -s "$CRYPTFUSE" "$S/bin/cryptfuse"
PATH=$S/bin:$PATH

# ---- the manual: the lines that begin with "$ ", in order, in one folder ----
cd "$S/man"
truncate -s 16M old.img copy-of-the-disk.img
head -c 64 /dev/urandom >key
table table 32768 aes-xts-plain64 "$(random_hex 64)" 0 0
sed -n '/^\.Sh EXAMPLES/,/^\.Sh DIAGNOSTICS/p' "$TOP/man/cryptfuse.1" | sed -n 's/^\$ //p' | grep -v -e --allow-root >"$S/lines"
[ "$(wc -l <"$S/lines")" -ge 10 ] || fail "only $(wc -l <"$S/lines") example lines found"
while read -r line; do
	echo "\$ $line"
	echo "the passphrase" | sh -c "$line" || fail "exit $?: $line"
	# an example that ends with a volume open is a complete one: the next starts afresh
	case $line in
	*--compat* | *" -d key"*) cryptfuse close mnt ;;
	esac
	case $line in
	debugfs*) cryptfuse status mnt ;;
	esac
done <"$S/lines"
! mounted "$S/man/mnt" || fail "the examples of the manual leave mnt open"

# ---- the README: an indented block under the heading ----
cd "$S/readme"
sed -n '/^## Data units/,/^There are/p' "$TOP/README.md" | sed -n 's/^    //p' >script
want=$(sed -n 's/^# \([0-9a-f]\{64\}\).*/\1/p' script)
[ -n "$want" ] || fail "no checksum in the README"
mkdir mnt
sh -e script >out || fail "the README's example: exit $?"
assert_eq "checksum of the image" "$want" "$(cut -d' ' -f1 out)"
