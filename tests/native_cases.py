"""Random kernels as native code, between pages that nobody may touch: what ``python -m tests.campaign_native`` runs.

A case has one to three of the nine dtypes, conversions among them, products of narrow factors, whole numbers divided;
half of the cases permit nothing, so that every result is the interpreter's, bit for bit. Seeds from a million on are
sums of products of narrow numbers, whose neighbours instructions take together in lanes; from two million on loops are
longer. Sizes are given to the compiler, or left to the arrays of the call (recurrent trips then stay open in the code).
The numbers are moderate, or with infinities, NaN, zeros of both signs, denormals and extreme integers among them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

import isam
from isam.compiler.function import Function
from isam.diagnostics import IsamError
from isam.ir import interp
from isam.ir.bounds import enclose, outside
from isam.ir.dtype import DTYPES, numpy_dtype
from isam.ir.kernel import Access, Kernel
from isam.ir.sizes import run_time
from isam.runtime import native
from isam.runtime.layout import address
from isam.runtime.signature import Signature
from tests import values
from tests.native import Guarded
from tests.random_blocks import BLOCKS, NARROW, Seeded
from tests.random_kernels import Options, random_kernel

FLOATS, WHOLE = ("f32", "f64", "f16", "bf16"), ("i8", "u8", "i16", "i32", "i64")
FACTORS = (*NARROW, ("f16", "f32"), ("bf16", "f64"), ("i8", "f32"), ("u8", "i16"), ("i32", "f64"), ("i32", "i64"))
GROUPED = ((("u8", "i8"), "i32"), (("i8", "u8"), "i32"), ("i16", "i32"), ("bf16", "f32"))
LONG = (1, 2, 3, 4, 8, 15, 16, 17, 31, 32, 33, 47, 64, 65, 100, 129)
GROUPS, LARGE = 1_000_000, 2_000_000
FUNCTIONS = ("exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "sqrt", "rsqrt", "floor", "ceil", "round", "abs",
             "neg")  # fmt: skip
ROUNDED_ONCE = frozenset({
    "copy", "cast", "cast_sat", "neg", "abs", "sqrt", "floor", "ceil", "round", "not", "add", "sub", "mul", "div", "lt",
    "le", "gt", "ge", "eq", "ne", "and", "or", "select", "max", "min",
})  # fmt: skip
SIGNLESS = frozenset({"max", "min"})  # of zeros of both signs, either is the greater
KINDS = ("moderate", "normal", "special", "special")


@dataclass(frozen=True)
class Case:
    """A kernel and how it is tried: the numbers' ``kind``; ``open``: sizes come with the call; ``bound``: constants are
    bound before."""

    seed: int
    kernel: Kernel
    sizes: dict[str, int]
    kind: str
    open: bool
    bound: bool

    @property
    def given(self) -> dict[str, int]:
        """The sizes that the compiler is told."""
        left = run_time(self.kernel)
        return {} if self.open else {n: v for n, v in self.sizes.items() if n not in left or self.seed % 3}


def case(seed: int) -> Case:
    """The same for the same seed. From ``GROUPS`` on: sums of products of narrow numbers; from ``LARGE`` on: longer."""
    r = Seeded(seed * 1009 + 17)
    dtypes = tuple((FLOATS + WHOLE)[r.integer(0, 8)] for _ in range(r.integer(1, 3)))
    options = Options(dtypes=dtypes, blocks=(*BLOCKS, "converted"), functions=FUNCTIONS, narrow=FACTORS, whole=True)
    if seed >= LARGE:
        options = replace(options, most_blocks=2, points=100_000, sizes=LONG)
    elif seed >= GROUPS:
        options = Options(dtypes=("f32", "i32"), blocks=("narrow",), most_blocks=2, loops=False, narrow=GROUPED)
    kernel, sizes = random_kernel(seed, options)
    if GROUPS <= seed < LARGE:
        kernel = replace(kernel, permits=kernel.permits | {"flush"})
    elif r.integer(0, 1):
        kernel = replace(kernel, permits=frozenset())
    shapes = {b.name: tuple(d.evaluate(sizes) for d in b.shape) for b in kernel.arguments if b.role != "out"}
    kind, left, bound = KINDS[r.integer(0, 3)], r.integer(0, 3) == 0, r.integer(0, 2) == 0
    return Case(seed, kernel, sizes, kind, left and found(kernel, shapes), bound)


def found(kernel: Kernel, shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether a call with such arrays tells every size."""
    from isam.ir.signature import arguments_of, sizes_of

    try:
        Signature(kernel.name, arguments_of(kernel), sizes_of(kernel)).infer(shapes)
    except IsamError:
        return False
    return True


def data(c: Case) -> dict[str, np.ndarray]:
    """The arguments that are read."""
    rng = np.random.default_rng(c.seed)
    arrays = {}
    for b in c.kernel.with_sizes(c.sizes).arguments:
        if b.role == "out":
            continue
        shape, to = [int(n) for n in b.shape], numpy_dtype(b.dtype)
        count = int(np.prod(shape))
        if c.kind == "special":
            flat = values.random(rng, b.dtype, count)
        elif DTYPES[b.dtype].kind == "f":
            flat = rng.standard_normal(count) if c.kind == "normal" else rng.integers(-3, 4, count) * 0.125
        elif c.kind == "normal":
            flat = rng.integers(np.iinfo(to).min, np.iinfo(to).max, count, to, endpoint=True)
        else:
            flat = rng.integers(0 if b.dtype == "u8" else -3, 4, count)
        arrays[b.name] = np.asarray(flat).astype(to).reshape(shape)
    return arrays


class MadeCase(NamedTuple):
    """A case as native code, and its workspaces so far."""

    function: Function
    rooms: list[Guarded]


def made(c: Case, on: str, check: bool = False, threads: int = 1) -> MadeCase:
    """The case compiled for a machine. Raises ``Refused``: the machine cannot."""
    rooms: list[Guarded] = []
    with guarded(c, rooms):
        return MadeCase(isam.compile(c.kernel, on=on, sizes=c.given, check=check, cache=False, threads=threads), rooms)


def guarded(c: Case, rooms: list[Guarded]) -> AbstractContextManager[object]:
    """Workspaces lie between guard pages."""
    return mock.patch.object(native, "allocate", lambda size: guarded_room(size, c.seed % 2 == 0, rooms))


def fault(c: Case, on: str, check: bool = False, threads: int = 1, by: MadeCase | None = None) -> str | None:
    """What is wrong with the case as native code for a machine, or None. ``by``: that code, where it was made before,
    for the same kernel and sizes. Raises ``Refused``: the machine cannot."""
    arrays = data(c)
    fn, rooms = by or made(c, on, check, threads)
    with guarded(c, rooms):
        for at_end in (True, False):
            told = once(c, fn, arrays, at_end)
            if told is None and not all(r.intact for r in rooms):
                told = "something was written around the workspace"
            if told is not None:
                return f"{told} (arrays at the {'end' if at_end else 'begin'} of their pages)"
    return None


def guarded_room(size: int, at_end: bool, rooms: list[Guarded]) -> tuple[np.ndarray, int]:
    """A workspace, as :func:`isam.runtime.native.allocate` makes them."""
    rooms.append(Guarded(np.full(size, 0xFF, np.uint8), at_end, 64))
    return rooms[-1].room, address(rooms[-1].array)


def once(c: Case, fn: Any, arrays: Mapping[str, np.ndarray], at_end: bool) -> str | None:
    """One call on arrays between guard pages, and what is wrong with what it leaves."""
    held = {n: Guarded(a, at_end, still=c.kernel.buffer(n).role != "inout") for n, a in arrays.items()}
    for b in c.kernel.with_sizes(c.sizes).arguments:
        if b.role == "out":
            held[b.name] = Guarded(interp.unwritten(tuple(int(n) for n in b.shape), b.dtype), at_end)
    given = {n: g.array for n, g in held.items()}
    consts = {b.name: given.pop(b.name) for b in c.kernel.arguments if b.role == "const"} if c.bound else {}
    (fn.bind(**consts) if consts else fn)(**given)
    around = [n for n, g in held.items() if not g.intact]
    if around:
        return f"something was written around {', '.join(around)}"
    outs = {b.name: held[b.name].array for b in c.kernel.arguments if b.role in ("out", "inout")}
    return differs(c, arrays, outs)


def differs(c: Case, arrays: Mapping[str, np.ndarray], got: Mapping[str, np.ndarray]) -> str | None:
    """Results against the reference: the interpreter's where no rounding is in them or none is free, else bounds."""
    want = interp.run(c.kernel, arrays, c.sizes)
    exact, loose = split(c.kernel)
    for n in exact & want.keys():
        if (told := unequal(n, got[n], want[n], not any(s.op in SIGNLESS for s in c.kernel.statements))) is not None:
            return told
    if loose & want.keys():
        bounds = enclose(c.kernel, arrays, c.sizes)
        return outside(got, {n: b for n, b in bounds.items() if n in loose})
    return None


def split(kernel: Kernel) -> tuple[set[str], set[str]]:
    """Buffers whose values are the interpreter's bit for bit, and the others."""
    free = bool(kernel.permits)
    loose: set[str] = set()
    for _ in kernel.statements:
        for s in kernel.statements:
            sources = {x.buffer for x in s.sources if isinstance(x, Access)}
            rounds = s.op not in (("copy", "select") if free else ROUNDED_ONCE)
            if sources & loose or (rounds and DTYPES[kernel.buffer(s.dest.buffer).dtype].kind == "f"):
                loose.add(s.dest.buffer)
    return {b.name for b in kernel.buffers} - loose, loose


def unequal(name: str, got: np.ndarray, want: np.ndarray, signs: bool) -> str | None:
    """A sentence on the first element that is not the same number; one NaN is as good as another."""
    wide = (got, want) if got.dtype.kind in "iub" else (got.astype(np.float64), want.astype(np.float64))
    same = wide[0] == wide[1]
    if got.dtype.kind not in "iub":
        alike = np.signbit(wide[0]) == np.signbit(wide[1]) if signs else True
        same = same & alike | np.isnan(wide[0]) & np.isnan(wide[1])
    if same.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~same)[0]) if same.ndim else ()
    return f"{name}{list(at)} is {got[at]!r}, not {want[at]!r}; {int((~same).sum())} of {same.size} elements differ"
