#!/bin/bash
# needs: user
# Every option of every command stands in the manual, with its letter; the manual names no option that does not exist; what
# README and SECURITY tell people to type exists too.
. "$(dirname "$0")/lib.sh"
TOP=$(cd "$(dirname "$0")/../.." && pwd)
PAGES=("$TOP"/man/*.1)

COMMANDS=(open close status info decrypt encrypt create bench)
for command in "${COMMANDS[@]}"; do
	"$CRYPTFUSE" "$command" --help || fail "$command --help: exit $?"
done | sed -nE 's/^ +((-(.), )?--([a-z0-9_-]+)).*/\4 \3/p' | sort -u >"$S/options"
[ "$(wc -l <"$S/options")" -gt 20 ] || fail "--help lists hardly an option: $(cat "$S/options")"

while read -r name letter; do
	grep -qhE "Fl Fl $name( |\$)" "${PAGES[@]}" || fail "--$name is not in the manual"
	[ -z "$letter" ] || [ "$letter" = '?' ] || grep -q "^\.It Fl $letter , Fl Fl $name" "${PAGES[@]}" ||
		fail "-$letter does not stand beside --$name in the manual"
done <"$S/options"

known() { # WHERE NAME
	cut -d' ' -f1 "$S/options" | grep -qxF -- "$2" || [ "$2" = version ] || [ "$2" = help ] || fail "$1: there is no --$2"
}
mapfile -t in_manual < <(grep -hoE 'Fl Fl [a-z0-9][a-z0-9_-]+' "$TOP"/man/*.[1-9] | sed 's/Fl Fl //' | sort -u)
for name in "${in_manual[@]}"; do known "manual" "$name"; done
mapfile -t elsewhere < <(grep -hE 'cryptfuse (open|close|status|info|decrypt|encrypt|create|bench) ' "$TOP/README.md" "$TOP/SECURITY.md" | grep -oE -- ' --[a-z-]+' |
	sed 's/ --//' | sort -u)
[ ${#elsewhere[@]} -gt 3 ] || fail "no commands found in README and SECURITY"
for name in "${elsewhere[@]}"; do known "README or SECURITY" "$name"; done

# A page of one command: what it lists is an option of that command, and the command's options stand there or in
# cryptfuse(1).
for command in "${COMMANDS[@]}"; do
	page=$TOP/man/cryptfuse-$command.1
	[ -e "$page" ] || continue
	"$CRYPTFUSE" "$command" --help | sed -nE 's/^ +((-(.), )?--([a-z0-9_-]+)).*/\4/p' | sort -u >"$S/own"
	sed -nE '/^\.It (Xo|Fl)/,/^[^.]/p' "$page" | grep -E '^\.(It )?Fl' | grep -oE 'Fl Fl [a-z0-9][a-z0-9_-]+' | sed 's/Fl Fl //' | sort -u >"$S/listed"
	[ -s "$S/listed" ] || fail "no options in $page"
	strange=$(comm -13 "$S/own" "$S/listed")
	[ -z "$strange" ] || fail "$page lists what $command does not have: $strange"
	while read -r name; do
		grep -qhE "Fl Fl $name( |\$)" "$page" "$TOP/man/cryptfuse.1" || fail "--$name of $command is neither in $page nor in cryptfuse(1)"
	done <"$S/own"
done
