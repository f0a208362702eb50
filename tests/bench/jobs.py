# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The jobs: what fio does with a program's file, and one measurement of it."""
import collections
import json
import os
import subprocess

import programs

# pin: client and server on one CPU. Single small requests have two speeds, by whether both happen to be on one.
Job = collections.namedtuple("Job", "name rw bs jobs depth pin")
JOBS = {job.name: job for job in (
    Job("read-1m", "read", "1m", 1, 1, False),
    Job("read-1m-2jobs", "read", "1m", 2, 1, False),
    Job("write-1m", "write", "1m", 1, 1, False),
    Job("write-1m-2jobs", "write", "1m", 2, 1, False),
    Job("read-4k", "randread", "4k", 1, 1, True),
    Job("read-4k-4jobs", "randread", "4k", 4, 1, False),
    Job("read-4k-depth16", "randread", "4k", 1, 16, False),
    Job("write-4k", "randwrite", "4k", 1, 1, True),
    Job("write-4k-4jobs", "randwrite", "4k", 4, 1, False),
    Job("write-4k-depth16", "randwrite", "4k", 1, 16, False),
    Job("buffered-read", "read", "1m", 1, 0, False),
    Job("buffered-write", "write", "1m", 1, 0, False),
)}
Sample = collections.namedtuple("Sample", "bytes_s iops cpu_s_per_gib")
GIB = 1 << 30


def command(job, file, mib, runtime_ms):
    common = ["fio", "--name=bench", f"--filename={file}", f"--rw={job.rw}", f"--bs={job.bs}", f"--numjobs={job.jobs}",
              f"--size={mib // job.jobs}m", f"--offset_increment={mib // job.jobs}m", "--allow_file_create=0", "--thread",
              "--group_reporting", "--norandommap", "--gtod_reduce=1", "--output-format=json"]
    if job.depth == 0:  # through the page cache: the file once from end to end, all of it stored before the clock stops
        return common + ["--ioengine=psync", "--direct=0", "--invalidate=1"] + (["--end_fsync=1"] if job.rw == "write" else [])
    engine = ["--ioengine=psync"] if job.depth == 1 else ["--ioengine=io_uring", f"--iodepth={job.depth}"]
    pin = ["--cpus_allowed=" + str(min(os.sched_getaffinity(0)))] if job.pin else []
    return common + engine + pin + ["--direct=1", "--time_based", f"--runtime={runtime_ms}ms"]


def measure(program, job, mib, runtime_ms, nice):
    everywhere = os.sched_getaffinity(0)
    if job.pin:
        program.pin({min(everywhere)})
    cpu = program.cpu_seconds()
    done = subprocess.run(command(job, program.file, mib, runtime_ms), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, start_new_session=True,
                          preexec_fn=nice and (lambda: programs.raise_session("self", nice)))
    cpu = program.cpu_seconds() - cpu
    if job.pin:
        program.pin(everywhere)
    if done.returncode:
        raise SystemExit(f"fio, {program.name}/{job.name}: exit {done.returncode}\n"
                         f"{(done.stdout + done.stderr).decode(errors='replace')}")
    result = json.loads(done.stdout[done.stdout.index(b"{"):])["jobs"][0]["write" if "write" in job.rw else "read"]
    seconds = max(result["runtime"], 1) / 1000
    return Sample(result["io_bytes"] / seconds, result["total_ios"] / seconds, cpu / (result["io_bytes"] / GIB))
