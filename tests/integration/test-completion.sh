#!/bin/bash
# needs: user
# The scripts that `cryptfuse completion` prints: shells can parse them, and complete with them what a person would type,
# mount points of open volumes too.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need python3 bash
HERE=$(dirname "$(realpath "$0")")

assert_exit 1 "no completion for the shell 'sh'" "$CRYPTFUSE" completion sh
mkdir "$S/cwd"
cd "$S/cwd"
truncate -s 1M disk.img
table table 2048 aes-xts-plain64 "$(random_hex 64)" 0 0
echo decoy >mnt.txt
mkdir diverse
open_vol "$S/volume" --table table disk.img

# typed SHELL TEXT: the command line that TEXT and TAB become
typed() {
	HISTFILE='' ZDOTDIR=$S HOME=$S timeout -k 5 60 python3 "$HERE/complete.py" "$1" "$S/$1" "$2"
}

# completes SHELL EXPECTED TEXT; only bash shows a folder's slash at once
completes() {
	local is
	is=$(typed "$1" "$3")
	assert_eq "$1: $3" "$2" "${is%/}"
}

for shell in bash zsh; do
	"$CRYPTFUSE" completion $shell >"$S/$shell"
	if ! command -v $shell >/dev/null; then
		lacking=$shell
		continue
	fi
	$shell -n "$S/$shell" || fail "$shell cannot parse it"
	completes $shell 'cryptfuse decrypt' 'cryptfuse decr'
	completes $shell 'cryptfuse open --readonly' 'cryptfuse open --reado'
	completes $shell 'cryptfuse open -r --cipher aes-cbc-essiv:sha256' 'cryptfuse open -r --cipher aes-cbc-e'
	completes $shell 'cryptfuse open --cipher aes-cbc-essiv:sha256' 'cryptfuse open --cipher aes-cbc-essiv:s'
	completes $shell 'cryptfuse open --cipher=aes-cbc-essiv:sha256' 'cryptfuse open --cipher=aes-cbc-e'
	completes $shell 'cryptfuse open --type plain' 'cryptfuse open --type pl'
	completes $shell 'cryptfuse open -h whirlpool' 'cryptfuse open -h whi'
	completes $shell 'cryptfuse create --type luks2' 'cryptfuse create --type l'
	completes $shell 'cryptfuse create --mkfs btrfs' 'cryptfuse create --mkfs b'
	completes $shell 'cryptfuse bench --engine openssl' 'cryptfuse bench --engine open'
	completes $shell 'cryptfuse open --key-file disk.img' 'cryptfuse open --key-file dis'
	completes $shell 'cryptfuse open -d x disk.img' 'cryptfuse open -d x dis'
	completes $shell 'cryptfuse info disk.img' 'cryptfuse info dis'
	completes $shell 'cryptfuse mount disk.img diverse' 'cryptfuse mount disk.img di'
	completes $shell "cryptfuse close $S/volume" "cryptfuse close $S/v"
	completes $shell "cryptfuse status --json $S/volume" "cryptfuse status --json $S/v"
	completes $shell 'cryptfuse completion fish' 'cryptfuse completion f'
done

"$CRYPTFUSE" completion fish >"$S/fish"
if command -v fish >/dev/null; then
	fish -n "$S/fish" || fail "fish cannot parse it"
	offered() { # TEXT: what fish offers after it is in $S/offered
		HOME=$S XDG_CONFIG_HOME=$S XDG_DATA_HOME=$S fish --no-config -c "source $S/fish; complete -C '$1'" | cut -f1 >"$S/offered"
	}
	offers() { # EXPECTED TEXT
		offered "$2"
		grep -qxF -- "$1" "$S/offered" || fail "fish: no '$1' after '$2': $(cat "$S/offered")"
	}
	offers decrypt 'cryptfuse decr'
	offers --readonly 'cryptfuse open --read'
	offers -r 'cryptfuse open -'
	offers aes-cbc-essiv:sha256 'cryptfuse open --cipher '
	offers whirlpool 'cryptfuse open -h '
	offers luks2 'cryptfuse create --type '
	! grep -qx luks1 "$S/offered" || fail "fish: create takes the types of open"
	offers disk.img 'cryptfuse open --key-file d'
	offers disk.img 'cryptfuse info '
	refuses() { # WORD TEXT
		offered "$2"
		! grep -qxF -- "$1" "$S/offered" || fail "fish: '$1' after '$2'"
	}
	offers disk.img 'cryptfuse mount '
	offers diverse/ 'cryptfuse mount disk.img '
	refuses disk.img 'cryptfuse mount disk.img '
	offers disk.img 'cryptfuse mount -r -d key --offset=1 --tries 2 '
	refuses disk.img 'cryptfuse mount -r -d key --offset=1 --tries 2 disk.img '
	refuses disk.img 'cryptfuse mount -r -- -d '
	refuses disk.img 'cryptfuse open --offset '
	refuses disk.img 'cryptfuse info disk.img '
	offers "$S/volume" 'cryptfuse close '
	offers fish 'cryptfuse completion '
else
	lacking=fish
fi

close_vol "$S/volume"
[ -z "${lacking:-}" ] || lacking "$lacking"
