"""Approximated functions over f32: ``python -m tests.campaign_functions [NAME...] [--on SYSTEM] [--bits FIRST:END]``

``y[i] = f(x[i])`` is compiled for the system and called with every bit pattern (of those asked for), some at a time.
Results are held against the function in f64: no more ulp off than the system declares; NaN where that has NaN,
infinities where that has them, zeros of its sign. Prints per function the largest error and its argument; exits with 1
where one is more than declared.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import isam
from isam.system.load import load_system
from tests.values import ulps

FUNCTIONS = ("exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "rsqrt")
ALL = range(1 << 32)
PART = 1 << 15  # arguments of a call: what is made of them stays near

Function = Callable[[np.ndarray], np.ndarray]


def exact(name: str, x: np.ndarray) -> np.ndarray:
    """The function in f64: for f32 and shorter arguments exact enough to judge by."""
    from scipy.special import erf

    if name == "sigmoid":
        e = np.exp(-np.abs(x))
        return np.where(x >= 0, 1, e) / (1 + e)
    table = {"exp": np.exp, "log": np.log, "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "erf": erf,
             "rsqrt": lambda v: 1 / np.sqrt(v)}  # fmt: skip
    return table[name](x)


def missed(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where a zero has the other sign, or an infinity, or a NaN, is on one side only."""
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
    zero = (got == 0) & (rounded == 0) & (np.signbit(got) != np.signbit(rounded))
    return zero | (np.isinf(want) & (got != want)) | (np.isnan(got) ^ np.isnan(want))


def away(name: str, x: np.ndarray, got: np.ndarray) -> np.ndarray:
    """How many ulp each result is off, 0 where it is the exact one rounded; infinite where a special one is not met."""
    with np.errstate(all="ignore"):
        want = exact(name, x.astype(np.float64))
        rounded = want.astype(np.float32)
    same = (got.view(np.uint32) == rounded.view(np.uint32)) | (np.isnan(got) & np.isnan(rounded))
    other = np.flatnonzero(~same)
    out, g, w = np.zeros(x.shape), got[other], want[other]
    out[other] = np.where(missed(g, w), np.inf, ulps(g, w, "f32"))
    return out


def compiled(name: str, on: str) -> Function:
    text = f"kernel elements(N)\n  in x: f32[N]\n  out y: f32[N]\n  forall i < N\n    y[i] = {name}(x[i])\n"
    return isam.compile(isam.parse(text), on=on, sizes={"N": PART}, cache=False)


def parts(bits: range) -> Iterator[np.ndarray]:
    """All arguments, ``PART`` at a time; the last ones are filled up with the last of all."""
    for first in range(bits.start, bits.stop, PART):
        at = np.minimum(np.arange(first, first + PART), bits.stop - 1)
        yield at.astype(np.uint32).view(np.float32)


@dataclass(frozen=True)
class Worst:
    """The largest error in ulp and an argument that has it."""

    off: float
    x: np.float32
    got: np.float32

    def __str__(self) -> str:
        return f"{self.off:.3f} ulp at {self.x!s} (0x{self.x.view(np.uint32):08x}), which gives {self.got!s}"


def worst(name: str, f: Function, bits: range) -> Worst:
    best = None
    for x in parts(bits):
        got = f(x)
        off = away(name, x, got)
        at = int(np.argmax(off))
        if best is None or off[at] > best.off:
            best = Worst(float(off[at]), x[at], got[at])
    assert best is not None
    return best


def _bits(text: str) -> range:
    first, last = (int(end, 0) for end in text.split(":"))
    if not 0 <= first < last <= ALL.stop:
        raise argparse.ArgumentTypeError(f"{text} is no part of 0:{ALL.stop:#x}")
    return range(first, last)


def main(arguments: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="python -m tests.campaign_functions", description=__doc__)
    p.add_argument("names", nargs="*", metavar="NAME", help=", ".join(FUNCTIONS))
    p.add_argument("--on", default="host")
    p.add_argument("--bits", type=_bits, default=ALL, help="bit patterns, as 0x3f800000:0x40000000")
    o = p.parse_args(arguments)
    if unknown := sorted({*o.names} - {*FUNCTIONS}):
        p.error(f"no function: {', '.join(unknown)}")
    system, wrong = load_system(o.on), 0
    for name in o.names or FUNCTIONS:
        start, declared = time.perf_counter(), system.instructions[f"{name}_v_f32"].ulp
        found = worst(name, compiled(name, o.on), o.bits)
        wrong += found.off > declared
        print(f"{name} on {system.name}: {found}; declared {declared:g}{', exceeded' * (found.off > declared)}; "
              f"{len(o.bits)} arguments, {time.perf_counter() - start:.0f} s", flush=True)  # fmt: skip
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
