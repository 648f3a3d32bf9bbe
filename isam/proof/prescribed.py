"""The order that the language prescribes (IR-4), as numbers: how often each element has been written when.

Versions count writes: an element's version is the number of statement instances that have written it. Before a
statement runs (at one step of its recurrent loops) every element has one prescribed version; a schedule is in order if
and only if every read and write meets the version prescribed for it.
"""

from __future__ import annotations

from dataclasses import field, replace
from math import prod

import numpy as np

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel, Recurrence, Statement


@dataclass(slots=True)
class Prescribed:
    """Versions of a kernel whose sizes are all numbers. ``skip``: statements whose result never reaches memory."""

    kernel: Kernel
    skip: frozenset[int] = frozenset()
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    before: dict[tuple[int, tuple[int, ...]], dict[str, np.ndarray]] = field(default_factory=dict)
    adds: dict[tuple[int, tuple[int, ...]], np.ndarray] = field(default_factory=dict)
    total: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for b in self.kernel.buffers:
            self.shapes[b.name] = tuple(int(d) for d in b.shape)
        held = {s.dest.buffer for i, s in enumerate(self.kernel.statements) if i not in self.skip}
        for b in held:
            self.total[b] = np.zeros(int(np.prod(self.shapes[b], dtype=np.int64)), np.int32)
        self._run(self.kernel.body, 0, {})

    def _run(self, body: tuple, at: int, env: dict[str, int]) -> None:
        for it in body:
            if isinstance(it, Recurrence):
                for t in range(int(it.axis.extent)):
                    self._run(it.body, at, {**env, it.axis.name: t})
                at += _count(it.body)
            else:
                self._statement(at, it, env)
                at += 1

    def _statement(self, at: int, s: Statement, env: dict[str, int]) -> None:
        key = (at, tuple(env.values()))
        touched = dict.fromkeys((s.dest.buffer, *(a.buffer for a in s.reads)))
        self.before[key] = {b: self.total[b].copy() for b in touched if b in self.total}
        if at in self.skip:
            return
        n = writes(s, env, self.shapes[s.dest.buffer])
        self.adds[key] = n
        self.total[s.dest.buffer] = counted(self.total[s.dest.buffer].astype(np.int64) + n)


MOST = 2**31 - 1  # writes of one element that are counted


def _count(body: tuple) -> int:
    return sum(_count(it.body) if isinstance(it, Recurrence) else 1 for it in body)


def mask(s: Statement, env: dict[str, int]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The domain as a boolean box, and open grids for its axes."""
    names = s.domain.names
    shape = tuple(max(0, int(a.extent.substitute(env))) for a in s.domain.axes)
    grids = dict(zip(names, np.ogrid[tuple(slice(0, n) for n in shape)], strict=True)) if names else {}
    inside = np.ones(shape, bool)
    for w in s.domain.where:
        inside &= np.broadcast_to(value(w, grids, env) >= 0, shape)
    return inside, grids


def value(e: Affine, grids: dict[str, np.ndarray], env: dict[str, int]) -> np.ndarray:
    total = np.asarray(e.const, np.int64)
    for n, c in e.terms:
        total = total + c * (grids[n] if n in grids else env[n])
    return total


def writes(s: Statement, env: dict[str, int], shape: tuple[int, ...]) -> np.ndarray:
    """How many points of the domain write each element. Axes that neither the index nor the conditions name are left
    out: so many points each of those left stands for."""
    named = _named(s)
    kept = tuple(a for a in s.domain.axes if a.name in named)
    each = prod(max(0, int(a.extent.substitute(env))) for a in s.domain.axes if a.name not in named)
    whole = tuple(Affine.of(a.name) for a in kept) == s.dest.index
    if whole and not s.domain.where and tuple(int(a.extent.substitute(env)) for a in kept) == shape:
        return counted(np.full(prod(shape), each, np.int64))
    inside, grids = mask(replace(s, domain=replace(s.domain, axes=kept)), env)
    flat = np.zeros((1,) * inside.ndim, np.int64)
    for row, n in zip(s.dest.index, shape, strict=True):
        flat = flat * n + value(row, grids, env)
    flat = np.broadcast_to(flat, inside.shape)[inside].ravel()
    return counted(each * np.bincount(flat, minlength=prod(shape)))


def counted(n: np.ndarray) -> np.ndarray:
    """Numbers of writes as they are kept. Raises ``MemoryError`` where one is too large for that."""
    if n.size and int(n.max()) > MOST:
        raise MemoryError(f"an element that {int(n.max())} points write, more than {MOST}")
    return n.astype(np.int32)


def told_apart(s: Statement) -> int:
    """How many points of a domain :func:`writes` lists."""
    named = _named(s)
    return prod(max(0, int(a.extent)) for a in s.domain.axes if a.name in named)


def _named(s: Statement) -> set[str]:
    return {n for e in (*s.dest.index, *s.domain.where) for n in e.names}
