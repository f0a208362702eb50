# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The cipher alone, by `cryptfuse bench`: the CPU time of one thread for 1 GiB, which other work on the machine hardly moves."""
import json
import subprocess

CIPHERS = {"aes-xts-plain64": "512,4096,65536", "aes-cbc-essiv:sha256": "512,4096"}


def measure(program, seconds):
    """{cipher: the results of cryptfuse bench}"""
    found = {}
    for cipher, sizes in CIPHERS.items():
        done = subprocess.run([program, "bench", "--json", "--cipher", cipher, "--sector-size", sizes, "--seconds", str(seconds)],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
        found[cipher] = json.loads(done.stdout)["results"]
    return found


def cpu(found, cipher, du, direction, engine, path="native"):
    """CPU seconds a GiB of an engine's own mode, which for the libraries is one call per data unit; None if it is not here."""
    for r in found[cipher]:
        if (r["sector_size"], r["direction"], r["engine"], r["path"]) == (du, direction, engine, path):
            return r["cpu_s_per_gib"]
    return None


def chosen(found, cipher, du, direction):
    """What `open` would take: its row."""
    return next(r for r in found[cipher] if r["sector_size"] == du and r["direction"] == direction and r["chosen"])


def times_faster(found, cipher, du, directions, engine, other):
    """How many times `engine` is faster than `other`, in the worse direction; None if either is not here."""
    pairs = [(cpu(found, cipher, du, d, engine), cpu(found, cipher, du, d, other)) for d in directions]
    if any(not a or not b for a, b in pairs):
        return None
    return min(b / a for a, b in pairs)
