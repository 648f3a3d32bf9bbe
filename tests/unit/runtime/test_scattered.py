"""Code is linked wherever there is room: in a process whose memory is full but for single pages, the sections of an
object must not end up farther apart than an instruction reaches. LLVM would end the process."""

from __future__ import annotations

import subprocess
import sys

import pytest

FILL = """
import ctypes
from isam.runtime import linking

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
PAGE, FAR, NOTHING = 4096, 3 << 30, 0x4022  # private, anonymous, without swap

def reserved(size):  # an address that nobody else is given
    return libc.mmap(None, size, 0, NOTHING, -1, 0)

code = linking.to_object("define double @f(double %x) { %y = fmul double %x, 3.25  ret double %y }")
linking.link("first", code, {}, ["f"])
pages = [reserved(3 * PAGE) for _ in range(30)]
for _ in range(4):
    reserved(1 << 30)

def hole():  # one page near the others, all else far below
    for n in (20, 16, 14, 13, 12):
        while reserved(1 << n) > pages[0] - FAR:
            pass
    libc.munmap(pages.pop() + PAGE, PAGE)
"""
LINKED = """
kept = []
for _ in range(20):
    hole()
    kept.append(linking.link("f", code, {}, ["f"]))
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(kept[-1]["f"])(2.0) == 6.5
print("right")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux") or sys.maxsize < 1 << 32, reason="numbers of Linux, 64 bits")
def test_sections_lie_side_by_side():
    done = subprocess.run([sys.executable, "-c", FILL + LINKED], capture_output=True, text=True, timeout=120)
    assert done.stdout == "right\n", done.stderr
