# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""Walks command x call x n: the n-th use of a call fails, and the command must take it.

Started by run. A scenario (scenarios.py) is first run without a fault, which counts the uses; then once for each fault:
all of them with --all, otherwise the first few uses of each call and a spread of the others. What must hold in every
run: no crash, no hang, exit code and one message as they should be, nothing half-open, and afterwards all is as before.
"""
import argparse
import collections
import concurrent.futures
import os
import random
import sys
import threading
import time

import failcall
import scenarios


class Fault(collections.namedtuple("Fault", "depth origin call n code all_after")):
    def text(self, library):
        more = " and all after" if self.all_after else ""
        where = f"{library.origins[self.origin]}, fork {self.depth}"
        return f"{self.call} #{self.n}{more} {failcall.code_name(self.code)} in {where}"


def spread(count, first, more):
    """The first uses, and so many of the others, each farther from the one before."""
    picked = set(range(1, min(first, count) + 1))
    picked.update(round((count / first) ** (i / more) * first) for i in range(1, more + 1) if count > first)
    return sorted(picked)


def faults_of(uses, library, scenario, args):
    for (depth, origin, call), count in sorted(uses.items()):
        codes = [c for c in library.codes[call] if not scenario.excluded(depth, library.origins[origin], call, c)]
        if not codes:
            continue
        numbers = range(1, count + 1) if args.all else spread(count, args.first, args.spread)
        for i, n in enumerate(numbers):
            for code in codes if args.all and n <= 3 else [codes[i % len(codes)]]:
                yield Fault(depth, origin, call, n, code, 0)
        if scenario.persistent(call):
            yield Fault(depth, origin, call, 1, codes[0], 1)


class Walk:
    def __init__(self, args):
        self.args = args
        self.library = failcall.Library(args.preload)
        self.local = threading.local()
        self.names = iter(range(1000))
        self.benches = []
        self.lock = threading.Lock()
        self.fired = collections.Counter()
        self.failures = []
        self.outcomes = collections.Counter()

    def bench(self):
        """A thread's own folder, with its images."""
        if not hasattr(self.local, "bench"):
            with self.lock:
                folder = os.path.join(self.args.scratch, f"w{next(self.names)}")
            self.local.bench = scenarios.Bench(folder, self.args.program, self.library)
            self.benches.append(self.local.bench)
        return self.local.bench

    def one(self, scenario, fault):
        bench = self.bench()
        try:
            result = scenario.run(bench, fault)
        except (scenarios.Wrong, OSError) as e:
            bench.clear()
            result = getattr(e, "result", scenarios.Result(None, 1, b"", ""))
            with self.lock:
                self.failures.append(f"{scenario.name}: {fault.text(self.library)}: {e}")
                print("FAIL:", self.failures[-1], flush=True)
        with self.lock:
            if result.fired:
                self.fired[scenario.name, fault.call] += 1
                self.outcomes[scenario.name, fault.call, failcall.code_name(fault.code), result.rc] += 1

    def scenario(self, pool, scenario):
        start = time.monotonic()
        uses = scenario.count(self.bench())
        faults = [f for f in faults_of(uses, self.library, scenario, self.args) if self.wanted(f)]
        random.Random(1).shuffle(faults)
        for done in [pool.submit(self.one, scenario, f) for f in faults]:
            done.result()
        for bench in self.benches:
            wrong = scenario.finish(bench)
            if wrong:
                self.failures.append(f"{scenario.name}: at its end: {wrong}")
                print("FAIL:", self.failures[-1], flush=True)
        n = sum(v for (name, _), v in self.fired.items() if name == scenario.name)
        print(f"# {scenario.name}: {len(faults)} faults, {n} reached, {time.monotonic() - start:.0f} s", flush=True)

    def wanted(self, fault):
        return not self.args.call or fault.call in self.args.call

    def run(self):
        wanted = [s for s in scenarios.ALL if not self.args.scenario or s.name in self.args.scenario]
        with concurrent.futures.ThreadPoolExecutor(self.args.jobs) as pool:
            for scenario in wanted:
                self.scenario(pool, scenario)
        self.report()
        return 1 if self.failures else 0

    def report(self):
        if self.args.verbose:
            for (name, call, code, rc), n in sorted(self.outcomes.items(), key=str):
                print(f"#   {name} {call} {code}: exit {rc}: {n}")
        injected, failed = sum(self.fired.values()), len(self.failures)
        by_call = collections.Counter()
        for (_, call), n in self.fired.items():
            by_call[call] += n
        print("# by call: " + ", ".join(f"{call} {n}" for call, n in sorted(by_call.items())))
        print(f"# faults injected: {injected}, handled: {injected - failed}")
        print(f"{'FAIL' if failed else 'PASS'}: tests/fault")


def arguments():
    p = argparse.ArgumentParser(prog="tests/fault/run")
    p.add_argument("--program", required=True)
    p.add_argument("--preload", required=True)
    p.add_argument("--scratch", required=True)
    p.add_argument("--all", action="store_true", help="every use of every call")
    p.add_argument("--first", type=int, default=2, help="so many first uses of each call (2)")
    p.add_argument("--spread", type=int, default=2, help="and so many of the others (2)")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    p.add_argument("--call", action="append", help="these calls only")
    p.add_argument("--verbose", action="store_true", help="which exit code came of what")
    p.add_argument("scenario", nargs="*")
    return p.parse_args()


if __name__ == "__main__":
    sys.exit(Walk(arguments()).run())
