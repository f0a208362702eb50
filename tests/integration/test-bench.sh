#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
# needs: user
# The benchmark: short as it can be, it gives every figure, ratio and target, and a chart; a peer that is missing is left out
# and said so; an interrupted run leaves no mount, process or file. What it measures is not judged here.
. "$(dirname "$0")/lib.sh"
need_user "$@"
need python3 fio

TOP=$(cd "$(dirname "$0")/../.." && pwd)
COPY=$CRYPTFUSE_TOOLS/../bench/copy
[ -x "$COPY" ] || fail "no $COPY: make test-tools"
mkdir "$S/tmpfs" "$S/bin"

BENCH=("$TOP/tests/bench/run" --quick --size 16M --tmpfs "$S/tmpfs" --cryptfuse "$CRYPTFUSE" --copy "$COPY")
bench() { "${BENCH[@]}" "$@"; }

assert_nothing_left() {
	assert_eq "folders after $1" "" "$(ls "$S/tmpfs")"
	assert_eq "mounts after $1" "" "$(awk -v m="$S/tmpfs" 'index($5, m) == 1' /proc/self/mountinfo)"
	assert_eq "processes after $1" "" "$(grep -lF -f <(echo "$S/tmpfs") /proc/[0-9]*/cmdline 2>/dev/null)"
}

# ---- all programs, all jobs of cryptfuse ----
bench --rounds 1 --only '*/read-1m' --only '*/write-1m' --only 'cryptfuse/*' --only named/start --json "$S/json" --svg "$S/svg" \
	>"$S/out" 2>"$S/bench.err" </dev/null || fail "bench: exit $?: $(tail -5 "$S/out" "$S/bench.err")"
assert_nothing_left "a run"
python3 - "$S/json" "$S/svg" <<'E2' || fail "JSON or chart are not what they should be"
import json, sys
import xml.etree.ElementTree as tree

found = json.load(open(sys.argv[1]))
assert set(found) == {"machine", "settings", "jobs", "left_out", "programs", "results", "ciphers", "targets"}, set(found)
assert found["settings"]["rounds"] == 1 and found["settings"]["mib"] == 16, found["settings"]
always = {"copy", "cryptfuse", "null", "du4096", "du65536", "essiv512", "essiv4096", "named"}
assert always <= set(found["programs"]), found["programs"]
assert {"qemu", "nbdkit", "aesni"} == (set(found["programs"]) | set(found["left_out"])) - always, found["left_out"]
assert found["programs"]["du4096"]["sector_size"] == 4096
assert found["programs"]["essiv512"]["cipher"] == "aes-cbc-essiv:sha256"
assert found["programs"]["null"]["engine"] == "null"
for p in found["programs"].values():
    assert p["ready_ms"]["median"] > 0 and 0.5 < p["peak_rss_mb"] < 1000, p

rows = {(r["program"], r["job"]): r for r in found["results"]}
assert len(rows) == len(found["results"])
assert {job for program, job in rows if program == "cryptfuse"} == set(found["jobs"])
assert {job for program, job in rows if program == "copy"} == set(found["jobs"])
assert {(p, rw) for p in found["programs"] if p != "named" for rw in ("read-1m", "write-1m")} <= set(rows)
for (program, job), r in rows.items():
    for field in ("mb_s", "iops", "ratio", "cpu_s_per_gib"):
        s = r[field]
        assert 0 < s["min"] <= s["q1"] <= s["median"] <= s["q3"] <= s["max"], r
    ours, copy = r["mb_s"]["median"], rows["copy", job]["mb_s"]["median"]
    assert abs(r["ratio"]["median"] - ours / copy) < 0.01 * ours / copy, r
for t in found["targets"]:
    assert (t["met"] is None) == (t["reached"] is None), t
    if t["met"] is not None:
        assert t["met"] == (t["reached"] >= t["wanted"] if t["sense"] == ">=" else t["reached"] <= t["wanted"]), t
measured = {t["what"] for t in found["targets"] if t["met"] is not None}
assert {"read 1 MiB / copy", "peak memory, MB", "CPU per GiB read / (copy + bare cipher)",
        "start to readable, engine named, ms"} <= measured, measured
assert found["ciphers"]["aes-xts-plain64"], "no cipher alone"

svg = tree.parse(sys.argv[2]).getroot()
words = " ".join(svg.itertext())
assert "cryptfuse" in words and found["machine"]["date"] in words and found["machine"]["cpu"] in words, words
E2
assert_match "the table" '^  cryptfuse +[0-9]' "$(cat "$S/out")"
assert_match "the targets" 'read 1 MiB / copy .* (yes|no)$' "$(cat "$S/out")"

# ---- no peers: said, and no failure ----
for folder in ${PATH//:/ }; do
	ln -s -t "$S/bin" "$folder"/* 2>/dev/null || : # what an earlier folder has counts
done
rm -f "$S/bin/"{nbdkit,nbdfuse,qemu-storage-daemon,cryptsetup}
PATH=$S/bin bench --rounds 1 --no-engines --only 'qemu/read-1m' --only 'nbdkit/read-1m' --only 'cryptfuse/read-1m' --json "$S/json" \
	>"$S/out" 2>"$S/bench.err" </dev/null || fail "without peers: exit $?: $(tail -5 "$S/bench.err")"
assert_match "a missing peer" '^nbdkit is left out: there is no ' "$(cat "$S/bench.err")"
assert_eq "what is left out" "nbdkit qemu" \
	"$(python3 -c 'import json, sys; print(*sorted(json.load(open(sys.argv[1]))["left_out"]))' "$S/json")"

# ---- variants, and what is no option ----
bench --rounds 1 --no-engines --only '*/read-4k' --variant four="du=4096 --engine openssl" --variant other="$CRYPTFUSE --shared" \
	--json "$S/json" >"$S/out" 2>"$S/bench.err" </dev/null || fail "variants: exit $?: $(tail -5 "$S/bench.err")"
assert_eq "the variant" "openssl 4096" \
	"$(python3 -c 'import json, sys; p = json.load(open(sys.argv[1]))["programs"]["four"]; print(p["engine"], p["sector_size"])' "$S/json")"
assert_match "the other program" '^  other +[0-9]' "$(cat "$S/out")"
if bench --rounds 1 --variant none="$S/none" >"$S/out" 2>&1; then fail "no program, and no error"; fi
assert_match "what it says" "there is no program $S/none" "$(cat "$S/out")"
if bench --rounds 0 >"$S/out" 2>&1; then fail "no rounds, and no error"; fi

# ---- instructions, counted by somebody who says 1000 for each request and 77 for the start ----
rm -f "$S/bin/valgrind"
cat >"$S/bin/valgrind" <<'E3'
#!/bin/sh
for last; do :; done
echo "==1== Collected : $((77 + 1000 * last))" >&2
E3
chmod +x "$S/bin/valgrind"
PATH=$S/bin:$PATH bench --rounds 1 --no-engines --only 'cryptfuse/read-4k' --instructions --volume "$COPY" --json "$S/json" \
	>"$S/out" 2>"$S/bench.err" </dev/null || fail "instructions: exit $?: $(tail -5 "$S/bench.err")"
assert_eq "instructions" "{1000} valgrind" "$(python3 -c 'import json, sys; j = json.load(open(sys.argv[1])); print({n for e in
	("null", "openssl") for n in j["instructions_per_request"][e].values()}, j["counted_by"])' "$S/json")"
assert_match "instructions in the report" '^  openssl +write 1048576 +1,000$' "$(cat "$S/out")"

# ---- interrupted while a job runs ----
"${BENCH[@]}" --rounds 1 --no-engines --no-peers --runtime 60000 --only cryptfuse/read-1m >"$S/out" 2>&1 </dev/null &
PID=$!
volume_is_read() { grep -lzq -f <(echo "^--filename=$S/tmpfs") /proc/[0-9]*/cmdline; }
wait_for "fio at work" volume_is_read
kill -TERM $PID
rc=0
wait $PID || rc=$?
assert_eq "exit code of an interrupted run" 143 $rc
assert_nothing_left "an interrupted run"
