#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# Images from cryptsetup's own test suite: each opens with the content that the real dm-crypt shows, or is refused for a reason.
# CRYPTFUSE_PEER_IMAGES names the folder that holds them, unpacked, and manifest.jsonl, which says how each opens, what the
# SHA-256 of its content is, and which are refused. The last line counts.
. "$(dirname "$0")/lib.sh"
[ -n "${CRYPTFUSE_PEER_IMAGES:-}" ] || skip "CRYPTFUSE_PEER_IMAGES is not set"
need_user "$@"
need python3

M=$S/m
mkdir "$M"
cd "$CRYPTFUSE_PEER_IMAGES"
opened=0 refused=0 without=0 repeated=' '

# rows: rc, SHA-256, image, passphrase, arguments; none of them has a character that a tab would not tell apart
rows() {
	python3 - <<-'PYTHON'
		import json
		for line in open("manifest.jsonl"):
		    r = json.loads(line)
		    print(r["rc"], r.get("sha256", "-"), r["image"], r["passphrase"] or "-", " ".join(r["args"]) or "-", sep="\t")
	PYTHON
}

while IFS=$'\t' read -r rc sum image pass args <&7; do
	[ "$pass" != - ] || pass=
	[ "$args" != - ] || args=
	got=0
	# shellcheck disable=SC2086 # the arguments are words
	timeout 100 "$CRYPTFUSE" open --readonly $args "$image" "$M" 2>"$S/open.err" <<<"$pass" || got=$?
	if [ $got -ne 0 ]; then
		assert_gone "$M"
		assert_eq "lines about $image" 1 "$(wc -l <"$S/open.err")"
	fi
	if [ "$rc" = 0 ] && [ $got -eq 0 ]; then
		assert_eq "$image" "$sum" "$(sha256sum <"$M/volume" | cut -d' ' -f1)"
		case $repeated in *" ${image%%[-_]*}${args:+ file} "*) ;; *) # the first of a kind: by the status's command again
			repeated+="${image%%[-_]*}${args:+ file} "
			open_again "$M" <<<"$pass"
			assert_eq "$image, again" "$sum" "$(sha256sum <"$M/volume" | cut -d' ' -f1)"
			;;
		esac
		close_vol "$M"
		opened=$((opened + 1))
	elif [ "$rc" = 0 ]; then
		grep -qE 'no engine here|needs the kernel.s AF_ALG' "$S/open.err" || fail "$image $args: exit $got: $(cat "$S/open.err")"
		without=$((without + 1))
		echo "$image: $(cat "$S/open.err")"
	else
		assert_eq "exit of $image" "$rc" $got
		refused=$((refused + 1))
	fi
done 7< <(rows)

[ $((opened + refused + without)) -gt 0 ] || fail "the manifest is empty"
[ $opened -gt $((without * 3)) ] || fail "only $opened images opened; no cipher for $without"
echo "$opened images opened with the right content, $refused refused as they should be, $without without a cipher here"
