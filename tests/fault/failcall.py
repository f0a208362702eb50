# SPDX-License-Identifier: GPL-2.0-or-later WITH cryptsetup-OpenSSL-exception
"""The driver's side of failcall.so: the file that both map, and what can fail, as the library itself tells it."""
import ctypes
import errno
import mmap

DEPTHS, ORIGINS, CALLS_MAX, FRAMES = 5, 10, 160, 12
SHORT = 0xFFFFFFFF


class _State(ctypes.Structure):  # struct failcall_state
    _fields_ = [(name, ctypes.c_uint32) for name in
                ("call", "depth", "origin", "n", "all_after", "code", "seen", "fired", "crashed")]
    _fields_ += [("frame", ctypes.c_uint32 * 2 * FRAMES), ("used", ctypes.c_uint32 * CALLS_MAX * ORIGINS * DEPTHS)]


class Library:
    """What failcall.so can make fail."""

    def __init__(self, path):
        self.path = path
        lib = ctypes.CDLL(path)
        lib.failcall_name.restype = lib.failcall_origin.restype = ctypes.c_char_p
        lib.failcall_code.restype = ctypes.c_uint32
        self.calls = list(iter(lambda n=iter(range(CALLS_MAX + 1)): lib.failcall_name(next(n)), None))
        self.calls = [name.decode() for name in self.calls]
        self.origins = [lib.failcall_origin(i).decode() for i in range(ORIGINS)]
        self.codes = {name: [c for c in (lib.failcall_code(i, k) for k in range(8)) if c]
                      for i, name in enumerate(self.calls)}


def code_name(code):
    return "short" if code == SHORT else errno.errorcode[code]


class Control:
    """One file of orders and counts; processes started with env() obey it."""

    def __init__(self, library, path):
        self.library = library
        self.path = path
        with open(path, "w+b") as f:
            f.truncate(ctypes.sizeof(_State))
            self._map = mmap.mmap(f.fileno(), ctypes.sizeof(_State))
        self.state = _State.from_buffer(self._map)

    def env(self):
        return {"LD_PRELOAD": self.library.path, "FAILCALL": self.path}

    def reset(self):
        ctypes.memset(ctypes.addressof(self.state), 0, ctypes.sizeof(_State))

    def arm(self, fault):
        s = self.state
        s.call = s.seen = s.fired = 0
        s.depth, s.origin, s.n, s.all_after, s.code = fault.depth, fault.origin, fault.n, fault.all_after, fault.code
        s.call = self.library.calls.index(fault.call) + 1

    def disarm(self):
        self.state.call = 0

    def uses(self):
        """{(depth, origin, call name): how often}"""
        return {(d, o, name): self.state.used[d][o][i]
                for d in range(DEPTHS) for o in range(ORIGINS) for i, name in enumerate(self.library.calls)
                if self.state.used[d][o][i]}

    def origins_of_crash(self):
        return [self.library.origins[o - 1] for o, _ in self.state.frame if o] if self.state.crashed else []

    def crash(self):
        """What killed a process, and where; or None."""
        if not self.state.crashed:
            return None
        frames = [f"{self.library.origins[o - 1]}+{off:#x}" for o, off in self.state.frame if o]
        return f"signal {self.state.crashed} at {' '.join(frames)}"
