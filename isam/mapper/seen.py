"""Which kernels a search has met: two are the same when their dataflow is.

Names of temporaries and axes, the order of operands that commute and the order of statements that do not depend on each
other do not count; the number of temporaries does (``t * t`` is not ``t * u`` where ``u`` holds the same as ``t``).
Every statement is numbered by what it does and by the numbers of those that made what it reads, then again by the
numbers of those that use what it makes. Numbers stand for the things themselves, not for hashes of them.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import COMMUTATIVE, Access, Item, Kernel, Literal, Recurrence, Source, Statement

Key = tuple[int, ...]


class Histories:
    """What kernels are told apart by: equal keys, equal dataflow. Keys of one ``Histories`` only."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}

    def key(self, kernel: Kernel) -> Key:
        """The numbers of the kernel's statements, sorted."""
        return _Numbering(kernel, self._numbers).key()


@dataclass
class _Numbering:
    """One pass over a kernel. ``versions``: per buffer the number of what it holds; ``makers``: the statement that
    wrote it last; ``made``: per statement its number; ``uses``: per statement who reads what it wrote, and how."""

    kernel: Kernel
    numbers: dict[Hashable, int]
    versions: dict[str, int] = field(default_factory=dict)
    makers: dict[str, int] = field(default_factory=dict)
    made: list[int] = field(default_factory=list)
    uses: list[list[tuple[int, int]]] = field(default_factory=list)

    def key(self) -> Key:
        for b in self.kernel.buffers:
            self.versions[b.name] = self.number(("temp", b.dtype, b.shape))
        for n, b in enumerate(self.kernel.arguments):
            self.versions[b.name] = self.number(("argument", n, b.role, b.dtype, b.shape))
        self.walk(self.kernel.body, self.number((self.kernel.syms, self.kernel.permits)), {})
        used = list(self.made)
        for i in range(len(used) - 1, -1, -1):  # users stand behind what they use
            users = sorted((used[u], how) for u, how in self.uses[i])
            used[i] = self.number(("used", self.made[i], *users))
        return tuple(sorted(used))

    def number(self, what: Hashable) -> int:
        return self.numbers.setdefault(what, len(self.numbers))

    def walk(self, body: tuple[Item, ...], around: int, names: dict[str, str]) -> None:
        loops = 0
        for item in body:
            if isinstance(item, Statement):
                self.statement(item, around, names)
                continue
            loops += 1
            inside = self.number(("loop", around, loops, item.axis.extent))
            written = _written(item.body)
            for b in written:  # what the step before left there
                self.versions[b] = self.number(("carried", inside, self.versions[b]))
            self.walk(item.body, inside, {**names, item.axis.name: f"l{inside}"})
            for b in written:
                self.versions[b] = self.number(("after", inside, self.versions[b]))

    def statement(self, s: Statement, around: int, names: dict[str, str]) -> None:
        inner = {**names, **{n: f"i{k}" for k, n in enumerate(s.domain.names)}}
        sources = [(self.source(x, inner), x) for x in s.sources]
        if s.op in COMMUTATIVE:
            sources.sort(key=lambda x: x[0])
        box = tuple(a.extent for a in s.domain.axes)
        where = frozenset(_row(w, inner) for w in s.domain.where)
        dest = self.source(s.dest, inner)
        at = len(self.made)
        for number, x in [(-1, s.dest), *sources]:
            if isinstance(x, Access) and x.buffer in self.makers:
                self.uses[self.makers[x.buffer]].append((at, number))
        self.made.append(self.number((around, box, where, s.op, s.accumulate, dest, *(n for n, _ in sources))))
        self.uses.append([])
        self.versions[s.dest.buffer] = self.made[-1]
        self.makers[s.dest.buffer] = at

    def source(self, x: Source, names: dict[str, str]) -> int:
        if isinstance(x, Access):
            return self.number((self.versions[x.buffer], *(_row(row, names) for row in x.index)))
        return self.number(("literal", type(x.value).__name__, repr(x.value))) if isinstance(x, Literal) else -1


def _row(e: Affine, names: dict[str, str]) -> tuple[object, ...]:
    return (e.const, *sorted((names.get(n, n), c) for n, c in e.terms))


def _written(body: tuple[Item, ...]) -> list[str]:
    out: list[str] = []
    for item in body:
        out.extend(_written(item.body) if isinstance(item, Recurrence) else [item.dest.buffer])
    return sorted(set(out))
