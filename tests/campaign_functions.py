"""Approximated functions: ``python -m tests.campaign_functions [NAME...] [--on SYSTEM] [--bits FIRST:END] [--f64 N]``

``y[i] = f(x[i])`` is compiled for the system and called with every bit pattern of f32 (of those asked for), some at a
time; with ``--f64`` with that many f64, random ones of every exponent and where functions bend. Results are held
against the function in f64, those of f64 in long double: no more ulp off than the system declares; NaN where that has
NaN, infinities where that has them, zeros of its sign. Prints per function the largest error and its argument; exits
with 1 where one is more than declared.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
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
    """The function in the dtype of ``x``, f64 or long double: exact enough to judge shorter arguments by."""
    if name == "sigmoid":
        e = np.exp(-np.abs(x))
        return np.where(x >= 0, 1, e) / (1 + e)
    table = {"exp": np.exp, "log": np.log, "tanh": np.tanh, "sin": np.sin, "cos": np.cos, "erf": _erf,
             "rsqrt": lambda v: 1 / np.sqrt(v)}  # fmt: skip
    return table[name](x)


def _erf(x: np.ndarray) -> np.ndarray:
    from scipy.special import erf

    if x.dtype == np.float64:
        return erf(x)
    # 2 / sqrt(pi) exp(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 + ...): nothing is subtracted. It is 1 long before 6
    a = np.clip(x, -6, 6)
    term, total = a, a
    for n in range(1, 140):
        term = term * (2 * a * a / (2 * n + 1))
        total = total + term
    return total * np.exp(-a * a) * (2 / np.sqrt(4 * np.arctan(x.dtype.type(1))))


def missed(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Where a zero has the other sign, or an infinity, or a NaN, is on one side only."""
    with np.errstate(all="ignore"):
        rounded = want.astype(got.dtype)
    zero = (got == 0) & (rounded == 0) & (np.signbit(got) != np.signbit(rounded))
    return zero | (np.isinf(want) & (got != want)) | (np.isnan(got) ^ np.isnan(want))


def away(name: str, x: np.ndarray, got: np.ndarray) -> np.ndarray:
    """How many ulp each result is off, 0 where it is the exact one rounded; infinite where a special one is not met."""
    dtype, bits, wide = ("f32", np.uint32, np.float64) if x.dtype == np.float32 else ("f64", np.uint64, np.longdouble)
    with np.errstate(all="ignore"):
        want = exact(name, x.astype(wide))
        rounded = want.astype(x.dtype)
    same = (got.view(bits) == rounded.view(bits)) | (np.isnan(got) & np.isnan(rounded))
    other = np.flatnonzero(~same)
    out, g, w = np.zeros(x.shape), got[other], want[other]
    out[other] = np.where(missed(g, w), np.inf, ulps(g, w, dtype))
    return out


def compiled(name: str, on: str, dtype: str = "f32") -> Function:
    text = f"kernel elements(N)\n  in x: {dtype}[N]\n  out y: {dtype}[N]\n  forall i < N\n    y[i] = {name}(x[i])\n"
    return isam.compile(isam.parse(text), on=on, sizes={"N": PART}, cache=False)


def parts(bits: range) -> Iterator[np.ndarray]:
    """All arguments, ``PART`` at a time; the last ones are filled up with the last of all."""
    for first in range(bits.start, bits.stop, PART):
        at = np.minimum(np.arange(first, first + PART), bits.stop - 1)
        yield at.astype(np.uint32).view(np.float32)


def doubles(count: int, part: int = PART) -> Iterator[np.ndarray]:
    """At least so many f64, ``part`` at a time: of every exponent; dense near 0, near 1, where exp overflows; next to
    multiples of ln 2 / 2 and of pi / 2, where the parts of an argument meet."""
    rng = np.random.default_rng(5)
    while count > 0:
        for a in (1e-3, 0.4, 1, 4, 30, 800, 1e6):
            yield rng.uniform(-a, a, part)
        yield rng.integers(0, 2**64, part, np.uint64).view(np.float64)
        yield rng.standard_normal(part) * np.exp2(rng.integers(-60, 12, part))
        yield rng.uniform(0.6, 1.5, part)
        yield 1 + rng.standard_normal(part) * np.exp2(rng.integers(-50, -2, part))
        for unit, most in ((np.log(2) / 2, 2000), (np.pi / 2, 10**6)):
            yield rng.integers(-most, most, part) * unit * (1 + rng.integers(-4, 5, part) * 2.0**-53)
        count -= 13 * part


@dataclass(frozen=True)
class Worst:
    """The largest error in ulp and an argument that has it."""

    off: float
    x: np.floating
    got: np.floating

    def __str__(self) -> str:
        bits = self.x.tobytes()[::-1].hex()
        return f"{self.off:.3f} ulp at {self.x!s} (0x{bits}), which gives {self.got!s}"


def worst(name: str, f: Function, arguments: Iterable[np.ndarray]) -> Worst:
    best = None
    for x in arguments:
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
    p.add_argument("--f64", type=int, default=0, metavar="N", help="so many f64 instead")
    o = p.parse_args(arguments)
    if unknown := sorted({*o.names} - {*FUNCTIONS}):
        p.error(f"no function: {', '.join(unknown)}")
    system, wrong, dtype = load_system(o.on), 0, "f64" if o.f64 else "f32"
    for name in o.names or FUNCTIONS:
        start, declared = time.perf_counter(), system.instructions[f"{name}_v_{dtype}"].ulp
        found = worst(name, compiled(name, o.on, dtype), doubles(o.f64) if o.f64 else parts(o.bits))
        wrong += found.off > declared
        over, count = ", exceeded" * (found.off > declared), o.f64 or len(o.bits)
        print(f"{name} of {dtype} on {system.name}: {found}; declared {declared:g}{over}; {count} arguments, "
              f"{time.perf_counter() - start:.0f} s", flush=True)  # fmt: skip
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
