"""Walking a kernel's domains point by point, for whatever arithmetic: the common half of interpreter and oracle (IR-4).

Each statement runs over its whole domain before the next starts. It reads what was there before it, its accumulated
destination excepted. Points are visited in lexicographic order of the ``forall``'s axes: an accumulation takes its
terms in that order, one rounding per operation, which is what ``permits exact`` promises; of two assignments to one
element the later stays. A recurrent loop runs its body once per step.

Points are handled in chunks of lexicographic order (memory stays bounded); inside a chunk, index rows are arrays that
broadcast over the axes, so an access that lacks an axis is read once for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, Protocol

import numpy as np

from isam.classes import dataclass
from isam.diagnostics import fail
from isam.ir.affine import Affine
from isam.ir.kernel import COMPARISONS, Access, Buffer, Item, Kernel, Literal, Recurrence, Source, Statement

CHUNK = 1 << 18  # points at a time: index arrays of a few MB
LIMIT = 1 << 31  # elements of one buffer: beyond this the reference is the wrong tool
Array = np.ndarray[Any, Any]


class Arithmetic(Protocol):
    """What a walker needs to know of numbers. Arrays are NumPy arrays of the storage type of their dtype."""

    def literal(self, value: float | int | bool, dtype: str) -> Array:
        """The number as an array of rank 0."""
        ...

    def apply(self, op: str, args: tuple[Array, ...], source: str, target: str) -> Array:
        """``op`` on operands of dtype ``source`` (for ``select``: of its values), giving dtype ``target``."""
        ...

    def accumulate(self, op: str, flat: Array, at: Array, values: Array, dtype: str) -> None:
        """``flat[at[n]] = op(flat[at[n]], values[n])`` for n in order, duplicates included."""
        ...

    def replace(self, flat: Array, at: Array, condition: Array, values: Array, dtype: str) -> None:
        """``flat[at[n]] = values[n]`` where ``condition[n]`` holds, for n in order."""
        ...


@dataclass(frozen=True, slots=True)
class Memory:
    """The buffers of one run: NumPy arrays in C order, and the dtype names they stand for."""

    arrays: dict[str, Array]
    dtypes: dict[str, str]


def sizes_of(buffer: Buffer, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The buffer's shape in numbers; below zero counts as zero."""
    shape = tuple(max(0, d.evaluate(sizes)) for d in buffer.shape)
    if prod(shape) > LIMIT:
        raise fail("I508", f"buffer '{buffer.name}' has {prod(shape)} elements here: too many for the "
                   f"reference interpreter (at most {LIMIT})", buffer.loc, "use smaller sizes")  # fmt: skip
    return shape


def check_sizes(kernel: Kernel, sizes: Mapping[str, int]) -> None:
    """Raises ``IsamError`` unless every size has a value that its range admits."""
    for s in kernel.given:
        if s.name not in sizes:
            raise fail("I501", f"kernel '{kernel.name}' needs the size '{s.name}'", kernel.loc)
        v = sizes[s.name]
        if v < s.lo or (s.hi is not None and v > s.hi) or v % s.multiple_of:
            bound = f"{s.lo} <= {s.name}" + (f" <= {s.hi}" if s.hi is not None else "")
            rule = bound + (f", a multiple of {s.multiple_of}" if s.multiple_of != 1 else "")
            raise fail("I502", f"size {s.name} = {v} is not admitted: {rule}", kernel.loc)


def execute(kernel: Kernel, memory: Memory, sizes: Mapping[str, int], arithmetic: Arithmetic) -> None:
    """Runs the body on ``memory``, in place. Raises ``IsamError`` when an access leaves its buffer."""
    for item in kernel.body:
        _item(item, memory, kernel.sizes(sizes), arithmetic)


def _item(item: Item, memory: Memory, values: dict[str, int], arithmetic: Arithmetic) -> None:
    if isinstance(item, Statement):
        _statement(item, memory, values, arithmetic)
        return
    assert isinstance(item, Recurrence)
    for step in range(item.axis.extent.evaluate(values)):
        for inner in item.body:
            _item(inner, memory, {**values, item.axis.name: step}, arithmetic)


def _statement(st: Statement, memory: Memory, values: dict[str, int], arithmetic: Arithmetic) -> None:
    extents = tuple(max(0, a.extent.evaluate(values)) for a in st.domain.axes)
    if not all(extents):
        return
    name = st.dest.buffer
    own = any(isinstance(s, Access) and s.buffer == name for s in st.sources)
    before = memory  # what one chunk reads is read before it writes
    if own and prod(extents) > CHUNK:
        before = Memory({**memory.arrays, name: memory.arrays[name].copy()}, memory.dtypes)
    target = memory.dtypes[name]
    source = operand_dtype(st, memory.dtypes)
    for chunk in _chunks(st, extents, values):
        args = tuple(_read(s, k, st, chunk, before, source, arithmetic) for k, s in enumerate(st.sources))
        at = chunk.flatten(chunk.offsets(st.dest, memory.arrays[name].shape))
        flat = memory.arrays[name].reshape(-1)
        if not st.accumulate:
            flat[at] = chunk.flatten(arithmetic.apply(st.op, args, source, target))
        elif st.op == "select":
            arithmetic.replace(flat, at, chunk.flatten(args[0]), chunk.flatten(args[1]), target)
        else:
            arithmetic.accumulate(st.op, flat, at, chunk.flatten(args[0]), target)


def operand_dtype(st: Statement, dtypes: Mapping[str, str]) -> str:
    """The dtype the operation works on: of its sources, or of the destination where those are literals."""
    sources = st.sources[1:] if st.op == "select" else st.sources
    named = [dtypes[s.buffer] for s in sources if isinstance(s, Access)]
    if named:
        return named[0]
    if st.op in COMPARISONS or st.op in ("cast", "cast_sat"):
        values = [s.value for s in sources if isinstance(s, Literal)]
        return "f64" if any(isinstance(v, float) for v in values) else "i64"
    return dtypes[st.dest.buffer]


def _read(s: Source, k: int, st: Statement, chunk: Chunk, memory: Memory, dtype: str, arithmetic: Arithmetic) -> Array:
    if isinstance(s, Literal):
        return arithmetic.literal(s.value, "bool" if st.op == "select" and k == 0 else dtype)
    array = memory.arrays[s.buffer]
    return array.reshape(-1)[chunk.offsets(s, array.shape)]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of domain points in lexicographic order. ``mask``: the points that ``where`` admits (None: all).

    Without a mask, arrays broadcast over ``shape`` (the axes); with one they have a single dimension: the points left.
    """

    names: tuple[str, ...]
    starts: tuple[int, ...]
    shape: tuple[int, ...]
    values: dict[str, int]
    mask: Array | None = None

    def row(self, e: Affine) -> Array:
        """The values of an affine expression, an array that broadcasts over ``shape``; constants have rank 0."""
        total = np.asarray(e.const, dtype=np.int64)
        for n, c in e.terms:
            if n in self.names:
                k = self.names.index(n)
                line = c * np.arange(self.starts[k], self.starts[k] + self.shape[k], dtype=np.int64)
                total = total + line.reshape([-1 if j == k else 1 for j in range(len(self.shape))])
            else:
                total = total + c * self.values[n]
        return total

    def visible(self, e: Affine) -> tuple[Array, int, int]:
        """The values of an affine expression at the points left, the least and the greatest of them."""
        row = self.row(e)
        if self.mask is not None:
            row = np.broadcast_to(row, self.shape)[self.mask]
            return row, int(row.min()), int(row.max())
        low = high = e.const  # of a box: at two of its corners
        for n, c in e.terms:
            if n in self.names:
                k = self.names.index(n)
                ends = c * self.starts[k], c * (self.starts[k] + self.shape[k] - 1)
                low, high = low + min(ends), high + max(ends)
            else:
                low, high = low + c * self.values[n], high + c * self.values[n]
        return row, low, high

    def offsets(self, access: Access, shape: tuple[int, ...]) -> Array:
        """Positions in the flat buffer. Raises ``IsamError`` at the first index out of range."""
        total = np.zeros((), dtype=np.int64)
        for k, e in enumerate(access.index):
            row, low, high = self.visible(e)
            if low < 0 or high >= shape[k]:
                bad = low if low < 0 else high
                raise fail("I507", f"{access}: index {k} is {bad}, but '{access.buffer}' has shape {shape}",
                           access.loc)  # fmt: skip
            total = total + row * prod(shape[k + 1 :])
        return total

    def flatten(self, array: Array) -> Array:
        """One value per point, in order."""
        if self.mask is None:
            return (array if array.shape == self.shape else np.broadcast_to(array, self.shape)).reshape(-1)
        return np.broadcast_to(array, (int(self.mask.sum()),))


def _chunks(st: Statement, extents: tuple[int, ...], values: dict[str, int]) -> Iterator[Chunk]:
    names = st.domain.names
    for starts, shape in _boxes(extents):
        chunk = Chunk(names, starts, shape, values)
        if not st.domain.where:
            yield chunk
            continue
        mask = np.ones((), dtype=bool)
        for w in st.domain.where:
            mask = mask & (chunk.row(w) >= 0)
        mask = np.broadcast_to(mask, shape)
        if mask.any():
            yield Chunk(names, starts, shape, values, mask)


def _boxes(extents: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Consecutive boxes of at most about CHUNK points: one axis is cut, those before it are walked one by one."""
    inner, cut = 1, len(extents)
    while cut and inner * extents[cut - 1] <= CHUNK:
        cut -= 1
        inner *= extents[cut]
    if cut == 0:
        yield (0,) * len(extents), extents
        return
    step = max(1, CHUNK // inner)
    rest = extents[cut:]
    for outer in np.ndindex(*extents[: cut - 1]):
        for start in range(0, extents[cut - 1], step):
            width = min(step, extents[cut - 1] - start)
            yield (*outer, start, *(0,) * len(rest)), (*(1,) * (cut - 1), width, *rest)
