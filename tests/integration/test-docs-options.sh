#!/bin/bash
# needs: user
# Every option of every command stands in the manual, with its letter, and in the completion of each shell; the manual names no option
# that does not exist; what README and SECURITY tell people to type exists too.
. "$(dirname "$0")/lib.sh"
TOP=$(cd "$(dirname "$0")/../.." && pwd)
PAGES=("$TOP"/man/*.1)

mapfile -t COMMANDS < <("$CRYPTFUSE" --help | sed -nE 's/^  ([a-z]+) .*/\1/p')
[ ${#COMMANDS[@]} -ge 9 ] || fail "--help lists hardly a command: ${COMMANDS[*]}"
for shell in bash zsh fish; do "$CRYPTFUSE" completion $shell >"$S/$shell" || fail "completion $shell: exit $?"; done
# shellcheck source=/dev/null
# shellcheck source=/dev/null
. "$S/bash"

# in_completions COMMAND NAME LETTER
in_completions() {
	local options='' long="-l $2 " letter=${3:+-s \'$3\' }
	_cryptfuse_command "$1"
	[[ " $options " == *" ${3:+-$3 }--$2 "* ]] || fail "bash completes no --$2 for $1"
	sed -n "/^_cryptfuse_$1()/,/^}/p" "$S/zsh" >"$S/zsh.one"
	grep -qE -- "--$2(=|\[)" "$S/zsh.one" || fail "zsh completes no --$2 for $1"
	[ -z "$3" ] || grep -qF -- ")-$3" "$S/zsh.one" || fail "zsh completes no -$3 for $1"
	grep -F -- "'__cryptfuse_is $1' $letter$long" "$S/fish" >/dev/null || fail "fish completes no --$2 for $1"
}

for command in "${COMMANDS[@]}"; do
	"$CRYPTFUSE" "$command" --help >"$S/help" || fail "$command --help: exit $?"
	sed -nE 's/^ +((-(.), )?--([a-z0-9_-]+)).*/\4 \3/p' "$S/help" >"$S/rows"
	while read -r name letter; do in_completions "$command" "$name" "$letter"; done <"$S/rows"
	cat "$S/rows" >>"$S/all"
done
sort -u "$S/all" >"$S/options"
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
mapfile -t elsewhere < <(grep -hE 'cryptfuse [a-z]+ ' "$TOP/README.md" "$TOP/SECURITY.md" | grep -oE -- ' --[a-z-]+' |
	sed 's/ --//' | sort -u)
[ ${#elsewhere[@]} -gt 3 ] || fail "no commands found in README and SECURITY"
for name in "${elsewhere[@]}"; do known "README or SECURITY" "$name"; done

# A page of one command: what it lists is an option of that command, and the command's options stand there or in
# cryptfuse(1).
for command in "${COMMANDS[@]}"; do
	page=$TOP/man/cryptfuse-$command.1
	if [ "$command" = completion ]; then continue; fi # cryptfuse(1) has all of it
	[ -e "$page" ] || fail "$command has no manual page"
	"$CRYPTFUSE" "$command" --help | sed -nE 's/^ +((-(.), )?--([a-z0-9_-]+)).*/\4/p' | sort -u >"$S/own"
	sed -nE '/^\.It (Xo|Fl)/,/^[^.]/p' "$page" | grep -E '^\.(It )?Fl' | grep -oE 'Fl Fl [a-z0-9][a-z0-9_-]+' | sed 's/Fl Fl //' | sort -u >"$S/listed"
	[ -s "$S/listed" ] || fail "no options in $page"
	strange=$(comm -13 "$S/own" "$S/listed")
	[ -z "$strange" ] || fail "$page lists what $command does not have: $strange"
	while read -r name; do
		grep -qhE "Fl Fl $name( |\$)" "$page" "$TOP/man/cryptfuse.1" || fail "--$name of $command is neither in $page nor in cryptfuse(1)"
	done <"$S/own"
done
