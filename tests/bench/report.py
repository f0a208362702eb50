# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""From samples to medians, spreads and ratios; the targets; the table and the JSON.

A ratio is taken round by round, between two measurements that stood seconds apart, and the median of these counts.
"""
import collections
import statistics

import engines

XTS, ESSIV = "aes-xts-plain64", "aes-cbc-essiv:sha256"
BOTH = ("encrypt", "decrypt")
Target = collections.namedtuple("Target", "what sense wanted aim value")


def spread(values):
    """Median, quartiles and ends."""
    values = sorted(values)
    q1, q3 = (statistics.quantiles(values, n=4, method="inclusive")[i] for i in (0, 2)) if len(values) > 1 else values * 2
    return {"median": statistics.median(values), "min": values[0], "q1": q1, "q3": q3, "max": values[-1]}


class Results:
    """samples: {(program, job): [Sample, one a round]}; ready_ms and rss_mb: {program: [one a round]}."""

    def __init__(self, programs, found):
        self.programs = programs
        self.found = found
        self.samples = collections.defaultdict(list)
        self.ready_ms = collections.defaultdict(list)
        self.rss_mb = collections.defaultdict(list)

    def ratio(self, a, b, job, field="bytes_s"):
        """The spread of a's figure by b's; None if one of them has none."""
        pairs = list(zip(self.samples.get((a, job), ()), self.samples.get((b, job), ())))
        values = [getattr(x, field) / getattr(y, field) for x, y in pairs if getattr(y, field) > 0]
        return spread(values) if values else None

    def median_ratio(self, *what):
        found = self.ratio(*what)
        return found and found["median"]

    def row(self, program, job):
        samples = self.samples[program, job]
        return {
            "program": program, "job": job,
            "mb_s": spread([s.bytes_s / 1e6 for s in samples]),
            "iops": spread([s.iops for s in samples]),
            "ratio": self.ratio(program, "copy", job),
            "cpu_s_per_gib": spread([s.cpu_s_per_gib for s in samples]),
        }

    def rows(self):
        jobs = list(dict.fromkeys(job for _, job in self.samples))
        return [self.row(p, job) for job in jobs for p in self.programs if (p, job) in self.samples]

    def rss(self, program):
        return max(self.rss_mb[program]) if self.rss_mb.get(program) else None

    def ready(self, program):
        return statistics.median(self.ready_ms[program]) if self.ready_ms.get(program) else None

    def cpu_beside_parts(self):
        """cryptfuse's CPU time of a read by what copy and the bare cipher take together."""
        if not self.found:
            return None
        cipher = engines.chosen(self.found, XTS, 512, "decrypt")["cpu_s_per_gib"]
        pairs = zip(self.samples.get(("cryptfuse", "read-1m"), ()), self.samples.get(("copy", "read-1m"), ()))
        values = [a.cpu_s_per_gib / (b.cpu_s_per_gib + cipher) for a, b in pairs]
        return statistics.median(values) if values else None

    def times(self, *what):
        return engines.times_faster(self.found, *what) if self.found else None


def beside_copy(what, program, job, wanted, aim=None):
    return Target(what, ">=", wanted, aim, lambda r: r.median_ratio(program, "copy", job))


def beside_peer(peer, full, speeds):
    """Three speeds, and the CPU time of a read."""
    names = ("read 1 MiB", "write 1 MiB", "read 4 KiB, 4 jobs")
    jobs = ("read-1m", "write-1m", "read-4k-4jobs")
    targets = [Target(f"{n} / {full}", ">=", wanted, None, lambda r, j=j: r.median_ratio("cryptfuse", peer, j))
               for n, j, wanted in zip(names, jobs, speeds)]
    cpu = Target(f"CPU per GiB read / {full}", "<=", round(1 / 7, 3), None,
                 lambda r: r.median_ratio("cryptfuse", peer, "read-1m", "cpu_s_per_gib"))
    return targets + [cpu]


TARGETS = [
    beside_copy("read 1 MiB / copy", "cryptfuse", "read-1m", 0.80, 0.90),
    beside_copy("write 1 MiB / copy", "cryptfuse", "write-1m", 0.75, 1.0),
    beside_copy("read 4 KiB random, 4 jobs / copy", "cryptfuse", "read-4k-4jobs", 0.75, 0.85),
    beside_copy("read 4 KiB random, depth 16 / copy", "cryptfuse", "read-4k-depth16", 0.70, 0.90),
    beside_copy("null engine: read 1 MiB / copy", "null", "read-1m", 0.95),
    beside_copy("null engine: write 1 MiB / copy", "null", "write-1m", 0.95),
    beside_copy("DU 4096: read 1 MiB / copy", "du4096", "read-1m", 0.85),
    beside_copy("DU 4096: write 1 MiB / copy", "du4096", "write-1m", 0.80),
    beside_copy("DU 65536: read 1 MiB / copy", "du65536", "read-1m", 0.85),
    beside_copy("DU 65536: write 1 MiB / copy", "du65536", "write-1m", 0.80),
    beside_copy("cbc-essiv, DU 512: write 1 MiB / copy", "essiv512", "write-1m", 0.50),
    beside_copy("cbc-essiv, DU 4096: write 1 MiB / copy", "essiv4096", "write-1m", 0.50),
    beside_copy("without VAES: read 1 MiB / copy", "aesni", "read-1m", 0.60),
    *beside_peer("qemu", "qemu-storage-daemon", (8, 6, 3)),
    *beside_peer("nbdkit", "nbdkit + nbdfuse", (7, 6, 3.5)),
    Target("CPU per GiB read / (copy + bare cipher)", "<=", 1.15, None, Results.cpu_beside_parts),
    Target("peak memory, MB", "<=", 12, None, lambda r: r.rss("cryptfuse")),
    Target("start to readable, engine named, ms", "<=", 20, None, lambda r: r.ready("named")),
    Target("start to readable, auto, ms", "<=", 50, None, lambda r: r.ready("cryptfuse")),
    Target("xts, DU 512: VAES / libgcrypt", ">=", 1.7, None, lambda r: r.times(XTS, 512, BOTH, "cpu-vaes512", "gcrypt")),
    Target("xts, DU 512: VAES / libcrypto", ">=", 4, None, lambda r: r.times(XTS, 512, BOTH, "cpu-vaes512", "openssl")),
    Target("xts, DU 512: AES-NI / libcrypto", ">=", 2, None, lambda r: r.times(XTS, 512, BOTH, "cpu-aesni", "openssl")),
    Target("cbc-essiv encryption, DU 512: VAES / libcrypto", ">=", 5, None,
           lambda r: r.times(ESSIV, 512, ("encrypt",), "cpu-vaes512", "openssl")),
    Target("cbc-essiv encryption, DU 4096: VAES / libcrypto", ">=", 5, None,
           lambda r: r.times(ESSIV, 4096, ("encrypt",), "cpu-vaes512", "openssl")),
]


def rounded(x):
    """Figures to four digits: more are noise."""
    if isinstance(x, dict):
        return {k: rounded(v) for k, v in x.items()}
    if isinstance(x, list):
        return [rounded(v) for v in x]
    return float(f"{x:.4g}") if isinstance(x, float) else x


def judge(target, results):
    value = rounded(target.value(results))  # what is printed is what is judged
    met = None if value is None else (value >= target.wanted if target.sense == ">=" else value <= target.wanted)
    return {"what": target.what, "sense": target.sense, "wanted": target.wanted, "aim": target.aim, "reached": value, "met": met}


def judge_all(results):
    return [judge(t, results) for t in TARGETS]


# ---- the table ----

def show_rows(rows):
    job = None
    for r in rows:
        if r["job"] != job:
            job = r["job"]
            print(f"\n{job:18} {'MB/s':>7} {'quartiles':>14} {'kIOPS':>7} {'/ copy':>7} {'from..to':>11} {'CPU s/GiB':>10}")
        mb, ratio = r["mb_s"], r["ratio"]
        by_copy = f"{ratio['median']:7.2f} {ratio['min']:5.2f}..{ratio['max']:.2f}" if ratio else f"{'-':>7} {'':11}"
        print(f"  {r['program']:16} {mb['median']:7.0f} {mb['q1']:6.0f}..{mb['q3']:<6.0f} {r['iops']['median'] / 1000:7.1f} "
              f"{by_copy} {r['cpu_s_per_gib']['median']:10.2f}")


def show_programs(results):
    print(f"\n{'':18} {'ready, ms':>10} {'from..to':>14} {'peak MB':>8}")
    for p in results.programs:
        if results.ready_ms[p]:
            ms = spread(results.ready_ms[p])
            print(f"  {p:16} {ms['median']:10.1f} {ms['min']:6.1f}..{ms['max']:<6.1f} {results.rss(p):8.1f}")


def show_instructions(counted):
    print(f"\ninstructions of one request, in user space, by {counted['counted_by']}")
    for engine, requests in counted["instructions_per_request"].items():
        for request, number in requests.items():
            print(f"  {engine:10} {request:16} {number:12,}")


def show_targets(judged):
    reached = [t for t in judged if t["reached"] is not None]
    if not reached:
        return
    print(f"\n{'target':48} {'reached':>8} {'wanted':>9} {'aim':>5}")
    for t in reached:
        aim = "" if t["aim"] is None else f"{t['aim']:.2f}"
        print(f"  {t['what']:46} {t['reached']:8.3g} {t['sense']:>3} {t['wanted']:5.3g} {aim:>5}  {'yes' if t['met'] else 'no'}")
    print(f"  met: {sum(t['met'] for t in reached)} of {len(reached)}; "
          f"not measured: {len(judged) - len(reached)}")
