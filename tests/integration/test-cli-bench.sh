#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# cryptfuse bench: every engine and path once for each size and direction, one of them chosen; JSON and the table agree in form;
# its time; what it refuses; no progress in a pipe, some on a terminal; nothing half when it is interrupted.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need python3

bench() {
	timeout -k 5 60 "$CRYPTFUSE" bench "$@" 2>"$S/bench.err" </dev/null || fail "bench $*: exit $?: $(cat "$S/bench.err")"
}

# check_json SIZES: standard input is the JSON of a bench of these sizes; prints the rows as the table should have them.
check_json() {
	python3 -c '
import json, sys
bench, sizes = json.load(sys.stdin), [int(n) for n in sys.argv[1:]]
rows, seen = bench["results"], set()
fields = {"engine", "path", "direction", "sector_size", "batch_bytes", "mb_per_s", "cpu_s_per_gib", "chosen"}
for r in rows:
    assert set(r) == fields, r
    assert r["path"] in ("batch", "per-du", "native"), r
    assert r["batch_bytes"] >= r["sector_size"] and r["batch_bytes"] % r["sector_size"] == 0, r
    assert isinstance(r["mb_per_s"], float) and 0.1 < r["mb_per_s"] < 1e6, r
    assert isinstance(r["cpu_s_per_gib"], float) and 0 <= r["cpu_s_per_gib"] < 1e4, r
    assert isinstance(r["chosen"], bool), r
    key = r["sector_size"], r["direction"], r["engine"], r["path"]
    assert key not in seen, ("twice", key)
    seen.add(key)
contenders = {key[2:] for key in seen}
assert seen == {(n, d) + c for n in sizes for d in ("encrypt", "decrypt") for c in contenders}, seen
for n in sizes:
    for d in ("encrypt", "decrypt"):
        chosen = [r for r in rows if (r["sector_size"], r["direction"]) == (n, d) and r["chosen"]]
        assert len(chosen) == 1, (n, d, chosen)
for r in rows:
    print(r["sector_size"], r["direction"], r["engine"], r["path"])
' "$@" || fail "the JSON is not what it should be"
}

# ---- results ----
start=$SECONDS
bench --seconds 1 --json | check_json 512 4096 65536 >"$S/rows"
[ $((SECONDS - start)) -lt 10 ] || fail "--seconds 1 took $((SECONDS - start)) s"
grep -q ' openssl batch$' "$S/rows" || fail "no openssl batch: $(cat "$S/rows")"
grep -q ' openssl native$' "$S/rows" || fail "no openssl native: $(cat "$S/rows")"
assert_eq "stderr of a bench in a pipe" "" "$(cat "$S/bench.err")"

bench --seconds 1 >"$S/table"
assert_eq "stderr of a table in a pipe" "" "$(cat "$S/bench.err")"
awk '$2 ~ /crypt$/ { print $1, $2, $3, $4 }' "$S/table" >"$S/table.rows"
assert_same "the rows of table and JSON" "$S/rows" "$S/table.rows"
assert_eq "marks in the table" 6 "$(grep -c '  \*$' "$S/table")"
assert_match "head of the table" '^aes-xts-plain64, key of 512 bits' "$(head -n 1 "$S/table")"

bench --seconds 1 --json --engine openssl --cipher aes-cbc-essiv:sha256 --sector-size 4096,512 --sector-size 4096 |
	check_json 4096 512 >"$S/rows"
assert_eq "engines of --engine openssl" openssl "$(cut -d' ' -f3 "$S/rows" | sort -u)"
assert_eq "sizes in the order given" "4096 512" "$(cut -d' ' -f1 "$S/rows" | uniq | xargs)"

bench --seconds 1 -v -c null --sector-size 512 >"$S/table"
assert_match "who is left out" 'engine openssl is left out: ' "$(cat "$S/bench.err")"
bench --seconds 1 -c aes:64-cbc-lmk --json | check_json 512 >/dev/null # the usual sizes it cannot have are dropped

# ---- refusals ----
B=("$CRYPTFUSE" bench)
assert_exit 4 'no engine here has cbc\(nonsense\)' "${B[@]}" -c nonsense-cbc-plain64
assert_exit 4 'no engine here has cast6-cbc' "${B[@]}" -c cast6-cbc-plain64 --engine openssl
assert_exit 4 'no engine here has aes-xts .*null' "${B[@]}" --engine null
assert_exit 4 'a key of 320 bits does not fit aes-xts' "${B[@]}" --key-size 320
assert_exit 1 "unknown engine 'nobody'" "${B[@]}" --engine nobody
assert_exit 1 "unknown IV mode 'plain65'" "${B[@]}" -c aes-xts-plain65
assert_exit 1 '--key-size 257 is not a multiple of 8' "${B[@]}" -s 257
assert_exit 1 'data units of 513 bytes' "${B[@]}" --sector-size 512,513
assert_exit 1 '512-byte sectors only' "${B[@]}" -c aes:64-cbc-lmk --sector-size 512,4096
assert_eq "standard output of a refusal" "" "$(cat "$S/exit.out")"
assert_exit 1 'cannot be written' sh -c "\"\$1\" bench --seconds 1 --sector-size 512 >/dev/full" sh "$CRYPTFUSE"

# ---- a terminal, and Ctrl-C there ----
python3 - "$CRYPTFUSE" <<'END' || fail "on a terminal"
import os, pty, re, signal, subprocess, sys, time

def start(*options):
    master, slave = pty.openpty()
    run = subprocess.Popen([sys.argv[1], "bench", "--sector-size", "512", *options], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=slave)
    os.close(slave)
    return run, master

def read_on(fd, text=b""):
    try:
        return text + os.read(fd, 4096)
    except OSError:  # the other side is gone
        return None

def read_all(fd, text=b""):
    while (more := read_on(fd, text)) is not None:
        text = more
    return text

run, terminal = start("--seconds", "1")
table = run.communicate(timeout=60)[0]
said = read_all(terminal)
assert run.returncode == 0, run.returncode
assert re.search(rb" %  [a-z0-9-]+ (batch|native|per-du), (en|de)crypt, data units of 512 bytes", said), said
assert said.endswith(b"\r") and not said.rstrip(b"\r").rpartition(b"\r")[2].strip(), said  # the line is gone
assert b"%" not in table and table.count(b" openssl ") == 4, table

for sig in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
    run, terminal = start("--seconds", "600", "--engine", "openssl", "--json")
    said = b""
    while b" %  " not in said:  # it measures
        said = read_on(terminal, said)
    run.send_signal(sig)
    sent = time.monotonic()
    out = run.communicate(timeout=30)[0]
    assert run.returncode not in (0, None), run.returncode
    assert time.monotonic() - sent < 5, (sig, time.monotonic() - sent)
    assert out == b"", out

# What is ignored stays so: nohup.
signal.signal(signal.SIGHUP, signal.SIG_IGN)
run, terminal = start("--seconds", "2")
while b" %  " not in (said := read_on(terminal)):
    pass
run.send_signal(signal.SIGHUP)
assert run.communicate(timeout=60)[0].count(b" openssl ") == 4
assert run.returncode == 0, run.returncode
END
