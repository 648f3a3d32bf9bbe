"""Arrays of every kind: ``python -m tests.campaign_arguments FIRST LAST``: each call is right or refused.

The arguments of a call are views of one block of memory: transposed, stepping back or over elements or half of one,
standing still, misaligned, empty, in the other byte order, read-only, overlapping each other, of a wrong dtype or
shape. What the call has to do is worked out here, from the bytes alone: it is refused where something written is
read-only, foreign, on itself or on something else that is written; else results and everything around them are what
NumPy makes of copies. Both ways into a kernel are tried: the native one and Python's.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np

import isam
from isam.diagnostics import IsamError
from isam.ir.dtype import numpy_dtype
from isam.runtime.entry import Entry

ROOM = 1 << 15
DTYPES = ("f32", "f64", "i8", "i32", "i64", "bf16", "f16")
SHAPES = ((), (1,), (5,), (0,), (3, 4), (1, 7), (4, 1), (0, 3), (2, 0), (16, 16), (2, 3, 4))
ROLES = ("in", "inout", "out")


@lru_cache(maxsize=128)
def entry(dtype: str, shape: tuple[int, ...]) -> Entry:
    """``y = x + h``, ``x`` from its end, then ``h = h + 1``."""
    at = ", ".join("ijk"[: len(shape)])
    back = f"[{', '.join(f'{n - 1} - {a}' for a, n in zip('ijk', shape, strict=False))}]" if shape else ""
    sizes = f"[{', '.join(map(str, shape))}]" if shape else ""
    over = f"  forall {', '.join(f'{a} < {n}' for a, n in zip('ijk', shape, strict=False))}\n" if shape else ""
    pad, here = "    " if shape else "  ", f"[{at}]" if shape else ""
    text = (f"kernel k()\n  in x: {dtype}{sizes}\n  inout h: {dtype}{sizes}\n  out y: {dtype}{sizes}\n{over}"
            f"{pad}y{here} = x{back} + h{here}\n{pad}h{here} = h{here} + 1\n")  # fmt: skip
    f = isam.compile(isam.parse(text), check=False, cache=False)
    assert f._only is not None
    return f._only


@dataclass(frozen=True)
class View:
    """Where an argument lies in the block, and how it looks."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: np.dtype
    still: bool
    kind: str = "plain"

    def of(self, room: np.ndarray) -> np.ndarray:
        a = np.ndarray(self.shape, self.dtype, room, self.offset, self.strides)
        a.flags.writeable = not self.still
        return a.view(np.recarray if self.kind == "subclass" else np.ndarray)

    def bytes(self) -> list[int]:
        """The addresses of all its bytes, several times where elements share them."""
        firsts = [self.offset + sum(i * s for i, s in zip(at, self.strides, strict=True))
                  for at in product(*map(range, self.shape))]  # fmt: skip
        return [first + n for first in firsts for n in range(self.dtype.itemsize)]


def view(r: np.random.Generator, dtype: str, shape: tuple[int, ...], near: int) -> View:
    """A random one, somewhere near an address, so that arguments meet."""
    to = numpy_dtype(dtype)
    size, odd = to.itemsize, r.random()
    if odd < 0.03:
        to = np.dtype(r.choice(["c8", "?", "u2", "f8", "M8[s]", "S4", "i4,i4"]))
        size = to.itemsize
    elif odd < 0.06:
        shape = tuple(int(n) for n in r.integers(0, 5, int(r.integers(0, 4))))
    elif odd < 0.12:
        to = to.newbyteorder()
    order = list(range(len(shape)))[::-1]
    if r.random() < 0.3:
        r.shuffle(order)
    strides, step = [0] * len(shape), size
    for d in order:
        strides[d], how = step, r.random()
        if how < 0.08:
            strides[d] = 0
        elif how < 0.2:
            strides[d] = -step
        elif how < 0.3:
            strides[d] = step + int(r.integers(1, 2 * size))
        elif how < 0.34:
            strides[d] = step // 2
        step = max(step, abs(strides[d]) * max(1, shape[d]))
    low = sum(min(0, s * (n - 1)) for s, n in zip(strides, shape, strict=True) if n)
    align = 1 if r.random() < 0.1 else max(1, size)
    offset = (near + int(r.integers(0, 60))) * align - -(low // align) * align
    return View(shape, tuple(strides), max(offset, -low), to, r.random() < 0.06, "subclass" if odd > 0.97 else "plain")


def refuses(views: dict[str, View], dtype: str, shape: tuple[int, ...]) -> tuple[bool, bool]:
    """Whether the call has to be refused, and whether it may be."""
    to = numpy_dtype(dtype)
    must = may = False
    seen: set[int] = set()
    for name, v in views.items():
        foreign = v.dtype != to and v.dtype.newbyteorder("=") == to
        must |= v.shape != shape or (v.dtype != to and not foreign)
        if name == "x":
            continue
        at = v.bytes()
        must |= foreign or v.still or len(set(at)) < len(at) or not seen.isdisjoint(at)
        may |= crossing(v)  # elements between each other
        seen |= set(at)
    return must, must or may


def crossing(v: View) -> bool:
    """Whether a step is shorter than what the smaller steps reach."""
    reach = v.dtype.itemsize
    for s, n in sorted((abs(s), n) for s, n in zip(v.strides, v.shape, strict=True) if n > 1):
        if s < reach:
            return True
        reach += s * (n - 1)
    return False


def one(seed: int) -> tuple[str, str]:
    """What became of a call (``right``, ``refused``, ``wrong``), and how it is wrong."""
    r = np.random.default_rng(seed)
    dtype, shape = DTYPES[r.integers(len(DTYPES))], SHAPES[r.integers(len(SHAPES))]
    near = [int(n) for n in r.integers(0, 3, 3)]
    views = {n: view(r, dtype, shape, 40 * k) for n, k in zip(("x", "h", "y"), near, strict=True)}
    if r.random() < 0.2:
        del views["y"]
    block = r.integers(0, 256, ROOM, np.uint8)
    must, may = refuses(views, dtype, shape)
    f, seen = entry(dtype, shape), []
    for way in (f, type(f).__wrapped__.__call__.__get__(f)):
        room = block.copy()
        given = {n: v.of(room) for n, v in views.items()}
        try:
            got = way(given.pop("x"), given.pop("h"), **given)
        except IsamError as no:
            seen.append("refused")
            if any(not d.code.startswith("call-") for d in no.diagnostics) or not may:
                return "wrong", f"refused: {no}"
            if not np.array_equal(room, block):
                return "wrong", "refused, but something was written"
            continue
        seen.append("right")
        if must:
            return "wrong", f"{views} was not refused"
        if (told := unlike(views, block, room, got)) is not None:
            return "wrong", f"{told} ({dtype}{list(shape)}, {views})"
    return (seen[0], "") if seen[0] == seen[1] else ("wrong", f"{views}: natively {seen[0]}, through Python {seen[1]}")


def unlike(views: dict[str, View], block: np.ndarray, room: np.ndarray, got: np.ndarray) -> str | None:
    """How the block and the result differ from what NumPy makes of copies."""
    want = block.copy()
    plain = {n: v.of(block).astype(v.dtype.newbyteorder("="), copy=True) for n, v in views.items()}
    with np.errstate(all="ignore"):
        total, after = np.flip(plain["x"]) + plain["h"], plain["h"] + plain["h"].dtype.type(1)
    views["h"].of(want)[...] = after
    if "y" in views:
        views["y"].of(want)[...] = total
    touched = np.zeros(ROOM, bool)
    for n in ("h", "y"):
        if n in views:
            touched[views[n].bytes()] = True
            if not alike(views[n].of(room), views[n].of(want)):
                return f"{n} is wrong"
    if not np.array_equal(room[~touched], block[~touched]):
        return "something else was written"
    return None if alike(got, total) else "the result is wrong"


def alike(a: np.ndarray, b: np.ndarray) -> bool:
    """The same numbers; one NaN is as good as another."""
    x, y = np.asarray(a), np.asarray(b)
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    return bool(((x == y) | ((x != x) & (y != y))).all())


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("first", type=int)
    p.add_argument("last", type=int)
    o = p.parse_args()
    counts: Counter[str] = Counter()
    for seed in range(o.first, o.last):
        kind, told = one(seed)
        counts[kind] += 1
        if told:
            print(f"# seed {seed}: {told}", flush=True)
    print(f"arguments {o.first} to {o.last}: {dict(counts)}")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
