"""Facts, holes, targets and states: the values that obligation 8 is followed with.

A fact says: every element of ``box`` (without ``holes``) of a buffer lies at
``offset + strides . (element - box start)`` of a memory, at its current version. A state is a set of facts; what no
fact says is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.proof.boxes import Box
from isam.proof.context import Var

Spot = tuple[str, str]  # memory, base


@dataclass(frozen=True, slots=True, eq=False)
class Hole:
    """Elements of a fact's box that are out of date there, as a family. Interned: see :meth:`Facts.hole`."""

    box: Box
    over: tuple[Var, ...] = ()

    def moves(self, var: str) -> bool:
        return any(lo.coefficient(var) or hi.coefficient(var) for lo, hi in self.box)


@dataclass(frozen=True, slots=True, eq=False)
class Fact:
    """Interned: equal facts are one object (:meth:`Facts.make`). ``cells``: first and last cell, where there are.
    ``names``: the variables that it speaks of; ``keys``: under what a state finds it; ``rule``: see :func:`rule_of`."""

    buffer: str
    spot: Spot
    cells: tuple[int, int] | None
    offset: Affine
    strides: tuple[int, ...]
    size: int  # bytes of an element
    box: Box
    over: tuple[Var, ...] = ()
    holes: frozenset[Hole] = frozenset()
    bare: Fact | None = None  # the same without holes
    names: frozenset[str] = field(init=False)
    keys: tuple[object, ...] = field(init=False)
    rule: Affine = field(init=False)
    low: Affine = field(init=False)  # first and one past the last byte, for each value of its own variables
    high: Affine = field(init=False)

    def __post_init__(self) -> None:
        terms = {self.offset.terms, *(b.expr.terms for v in self.over for b in v.lo + v.hi)}
        low = high = self.offset
        for k, (lo, hi) in zip(self.strides, self.box, strict=True):
            terms.add(lo.terms)
            if lo.terms == hi.terms:
                far = (hi.const - lo.const - 1) * k
                low, high = (low, high + far) if k >= 0 else (low + far, high)
                continue
            terms.add(hi.terms)
            reach = (hi - lo - 1) * k
            low, high = (low, high + reach) if k >= 0 else (low + reach, high)
        keys: tuple[object, ...] = (self.spot,)
        if self.cells is not None:
            keys = tuple([(self.spot[0], c) for c in range(self.cells[0], self.cells[1] + 1)])
        put = object.__setattr__
        put(self, "names", frozenset([n for some in terms for n, _ in some]))
        put(self, "keys", keys)
        put(self, "rule", rule_of(self.offset, self.strides, self.box))
        put(self, "low", low)
        put(self, "high", high + self.size)

    @property
    def one_rule(self) -> bool:
        """Whether where its elements lie depends on none of its own variables."""
        return not any(self.rule.coefficient(v.name) for v in self.over)

    def address(self, at: Iterable[Affine]) -> Affine:
        """The byte at which an element lies by this layout."""
        return self.rule.plus(self.strides, at)

    def mentions(self, name: str) -> bool:
        return name in self.names


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """An operand as a (quantified) box at a layout. Interned."""

    buffer: str
    spot: Spot
    cells: tuple[int, int] | None
    offset: Affine
    strides: tuple[int, ...]
    box: Box
    over: tuple[Var, ...]
    hull: Box
    low: Affine  # first and one past the last byte
    high: Affine
    wide: tuple[bool, ...]  # dimensions in which the tile has more than one element
    hole: Hole  # what it leaves in other copies
    rule: Affine = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rule", rule_of(self.offset, self.strides, self.box))

    def rule_by(self, strides: tuple[int, ...]) -> Affine:
        """The rule of something with these strides that has its first element where the operand has it."""
        return self.rule if strides == self.strides else rule_of(self.offset, strides, self.box)


def rule_of(offset: Affine, strides: tuple[int, ...], box: Box) -> Affine:
    """Where element 0 would lie: boxes of one buffer with the same strides are laid by one rule where this is one."""
    return offset.plus([-k for k in strides], [lo for lo, _ in box])


class State:
    """A set of facts with two indexes. Copied before it is changed."""

    __slots__ = ("at", "of", "sole")

    def __init__(self, at: dict[object, tuple[Fact, ...]] | None = None, of: dict[str, dict[Fact, None]] | None = None):
        self.at = at or {}
        self.of = of or {}
        self.sole: dict[str, set[Target]] = {}  # tiles written since any copy of the buffer was made

    def copy(self) -> State:
        return State(dict(self.at), {b: dict(f) for b, f in self.of.items()})

    def __iter__(self):
        for facts in self.of.values():
            yield from facts

    def put(self, f: Fact) -> None:
        mine = self.of.setdefault(f.buffer, {})
        if f not in mine:
            mine[f] = None
            for k in f.keys:
                self.at[k] = (*self.at.get(k, ()), f)

    def drop(self, f: Fact) -> None:
        if self.of.get(f.buffer, {}).pop(f, 0) is None:
            for k in f.keys:
                self.at[k] = tuple(g for g in self.at[k] if g is not f)

    def near(self, spot: Spot, cells: tuple[int, int] | None) -> list[Fact]:
        """Facts about the same cells, or about the same base."""
        if cells is None:
            return list(self.at.get(spot, ()))
        out: dict[Fact, None] = {}
        for c in range(cells[0], cells[1] + 1):
            for f in self.at.get((spot[0], c), ()):
                out[f] = None
        return list(out)
