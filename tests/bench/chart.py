# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The picture in the README: bars as SVG, from the figures that --json writes. Readable on a light and on a dark page."""
import re
from html import escape

NAMES = {"copy": "copy (no cryptography)", "cryptfuse": "cryptfuse", "qemu": "qemu-storage-daemon", "nbdkit": "nbdkit + nbdfuse"}
WIDTH, LEFT, BARS = 760, 190, 470  # of all, of the names, of the longest bar; pixels
BAR, GAP, HEAD = 16, 12, 34
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f }
.head { font-weight: 600 } .note { font-size: 11px; fill: #57606a }
.read { fill: #1f6fb5 } .write { fill: #d97a1c } .cpu { fill: #5b8c3e } .axis { stroke: #8c959f }
@media (prefers-color-scheme: dark) {
 text { fill: #e6edf3 } .note { fill: #9da7b3 }
 .read { fill: #58a6ff } .write { fill: #f0a04b } .cpu { fill: #7fbf5a } .axis { stroke: #6e7681 }
}
"""


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def key(x, y, kind, words):
    return [f'<rect x="{x}" y="{y - 10}" width="11" height="11" class="{kind}"/>', text(x + 16, y, words)]


def bars(y, heading, legend, rows):
    """rows: [(name, [(kind, value, label)])]; returns the parts, and where the next panel begins."""
    parts = [text(8, y, heading, "head")]
    for i, (kind, words) in enumerate(legend):
        parts += key(LEFT + 260 + 80 * i, y, kind, words)
    longest = max(value for _, values in rows for _, value, _ in values) or 1
    top = y = y + GAP
    for name, values in rows:
        parts.append(text(LEFT - 8, y + len(values) * BAR / 2 + 4, name, anchor="end"))
        for kind, value, label in values:
            width = max(round(value / longest * BARS, 1), 1)
            parts.append(f'<rect x="{LEFT}" y="{y}" width="{width}" height="{BAR - 2}" class="{kind}"/>')
            parts.append(text(LEFT + width + 6, y + 11, label))
            y += BAR
        y += GAP
    parts.append(f'<line x1="{LEFT - 0.5}" y1="{top - 4}" x2="{LEFT - 0.5}" y2="{y - GAP + 2}" class="axis"/>')
    return parts, y + HEAD - GAP


def caption(found):
    m, s = found["machine"], found["settings"]
    kernel = re.match(r"[0-9.]*[0-9]", m["kernel"])[0]
    engine = found["programs"]["cryptfuse"]["engine"]
    return (f"{m['cpu']}, {m['cpus']} CPUs, Linux {kernel}, {m['date']}; engine {engine}; medians of {s['rounds']} rounds.",
            "aes-xts-plain64 in data units of 512 bytes, requests of 1 MiB past the page cache, one job, backing in memory.")


def draw(found):
    """The SVG of what everything() found; None if cryptfuse or a job is not in it."""
    figures = {(r["program"], r["job"]): r for r in found["results"]}
    shown = [p for p in NAMES if (p, "read-1m") in figures and (p, "write-1m") in figures]
    if "cryptfuse" not in shown:
        return None
    speed = [(NAMES[p], [(rw, figures[p, rw + "-1m"]["mb_s"]["median"],
                          f"{figures[p, rw + '-1m']['mb_s']['median']:,.0f}") for rw in ("read", "write")]) for p in shown]
    cpu = [(NAMES[p], [("cpu", figures[p, "read-1m"]["cpu_s_per_gib"]["median"],
                        f"{figures[p, 'read-1m']['cpu_s_per_gib']['median']:.2f}")]) for p in shown]
    parts, y = bars(24, "MB/s (more is better)", [("read", "read"), ("write", "write")], speed)
    more, y = bars(y, "CPU seconds of the daemon to read 1 GiB (less is better)", [], cpu)
    for line in caption(found):
        more.append(text(8, y - 6, line, "note"))
        y += 16
    body = "\n".join(parts + more)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" width="{WIDTH}" height="{y}" role="img">\n'
            f"<title>Speed of cryptfuse beside other programs</title>\n<style>{STYLE}</style>\n{body}\n</svg>\n")
