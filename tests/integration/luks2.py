#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""luks2.py IMAGE PATH=VALUE... - change the metadata of a LUKS2 header as its maker could: keyslots.0.kdf.memory=9, and "-" as
VALUE removes it. VALUE is JSON. Both copies are written, with the right checksum. segments.1=@0 copies a neighbour."""

import hashlib
import json
import sys

SUM = slice(448, 512)


def change(root, path, value):
    *above, last = path.split(".")
    for name in above:
        root = root.setdefault(name, {})
    if value == "-":
        del root[last]
    elif value.startswith("@"):
        root[last] = json.loads(json.dumps(root[value[1:]]))
    else:
        root[last] = json.loads(value)


def sealed(header, magic, at):
    header = bytearray(header)
    header[:6] = magic
    header[256:264] = at.to_bytes(8, "big")
    header[SUM] = bytes(64)
    header[448:480] = hashlib.sha256(header).digest()
    return bytes(header)


def main():
    with open(sys.argv[1], "r+b") as f:
        header = f.read(4096)
        size = int.from_bytes(header[8:16], "big")
        text = f.read(size - 4096)
        root = json.loads(text[:text.index(0)])
        for word in sys.argv[2:]:
            change(root, *word.split("=", 1))
        text = json.dumps(root, separators=(",", ":")).encode()
        header += text + bytes(size - 4096 - len(text))
        f.seek(0)
        f.write(sealed(header, b"LUKS\xba\xbe", 0))
        f.seek(size)
        f.write(sealed(header, b"SKUL\xba\xbe", size))


main()
