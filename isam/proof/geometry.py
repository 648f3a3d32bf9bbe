"""Facts about buffers, memories and operands that need no state: shared by everything in this package."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from isam.ir.affine import Affine
from isam.ir.dtype import DTYPES, size_of
from isam.ir.instruction import Instruction
from isam.ir.kernel import Axis, Kernel, Recurrence
from isam.schedule.tree import Issue, Operand, Place
from isam.system.graph import CACHED, System


class BufferFacts(NamedTuple):
    """A kernel buffer, or a literal in its slot (role ``literal``). ``strides``: bytes per dimension at its home."""

    name: str
    shape: tuple[Affine, ...]
    dtype: str
    role: str
    home: Place | None

    @property
    def bytes(self) -> int:
        return size_of(self.dtype)


def resolve(system: System, memory: str) -> str:
    """A cached memory is the memory it stands in front of."""
    seen = set()
    while memory in system.memories and system.memories[memory].kind == CACHED and memory not in seen:
        seen.add(memory)
        memory = system.memories[memory].of
    return memory


def recurrent_axes(kernel: Kernel) -> list[tuple[Axis, ...]]:
    """For every statement in text order, the axes of the recurrent loops around it."""
    return [tuple(axis for _, axis in around) for around in recurrent_loops(kernel)]


def recurrent_loops(kernel: Kernel) -> list[tuple[tuple[int, Axis], ...]]:
    """For every statement in text order, the recurrent loops around it: a number of its own and the axis of each, as
    loops beside each other may have axes of one name."""
    return [*_loops_around(kernel.body, (), count())]


def _loops_around(body: tuple, outer: tuple[tuple[int, Axis], ...],
                  numbers: Iterator[int]) -> Iterator[tuple[tuple[int, Axis], ...]]:  # fmt: skip
    for it in body:
        if isinstance(it, Recurrence):
            yield from _loops_around(it.body, (*outer, (next(numbers), it.axis)), numbers)
        else:
            yield outer


def axis_extents(ins: Instruction, sizes: dict[str, int], bad: list) -> dict[str, int]:
    """Extent of every instruction axis under the sizes of a call (axes of one name have one: see ``Instruction``)."""
    out: dict[str, int] = {}
    for s in ins.body.statements:
        for a in s.domain.axes:
            out[a.name] = int(a.extent.substitute(sizes))
        if s.domain.where:
            bad.append((3, "domain", f"'{ins.name}' has a condition on its domain"))
    return out


def linear(o: Operand, index: tuple[Affine, ...]) -> tuple[list[Affine], tuple[Affine, ...]]:
    """The buffer element that ``o[index]`` is: per buffer dimension, its part in instruction axes and the rest."""
    lin: list[Affine] = [Affine()] * len(o.tile.start)
    for d, row in zip(o.dims, index, strict=True):
        if d is not None:
            lin[d] = Affine(row.terms) * o.tile.steps[d]
    return lin, first(o, index)


def first(o: Operand, index: tuple[Affine, ...]) -> tuple[Affine, ...]:
    """The buffer element that ``o[index]`` is where all instruction axes are 0."""
    const = list(o.tile.start)
    for d, row in zip(o.dims, index, strict=True):
        if d is not None and row.const:
            const[d] = const[d] + row.const * o.tile.steps[d]
    return tuple(const)


def rows(o: Operand, index: tuple[Affine, ...], extents: dict[str, int]) -> list[Affine]:
    """The linear part of :func:`linear`, without axes that have one element."""
    return [Affine(tuple((n, c) for n, c in r.terms if extents[n] > 1)) for r in linear(o, index)[0]]


def covers_box(
    index: tuple[Affine, ...], shape: tuple[Affine, ...], extents: dict[str, int], issue: Issue | None
) -> bool:
    """Whether a written index runs over the whole operand once: distinct axes of the full extent."""
    used: list[str] = []
    for row, n in zip(index, shape, strict=True):
        live = [(a, c) for a, c in row.terms if extents[a] > 1]
        full = int(n.substitute(dict(issue.sizes))) if issue is not None else None
        if len(live) > 1 or any(c != 1 for _, c in live) or row.const:
            return False
        if full is not None and (extents[live[0][0]] if live else 1) != full:
            return False
        used += [a for a, _ in live]
    return len(set(used)) == len(used)


def is_float(dtype: str) -> bool:
    return DTYPES[dtype].kind == "f"
