"""How a kernel is written down changes no mapping (MAP-3): ``python -m tests.metamorphic [TRIALS] [SEED]``.

A trial takes a kernel of the suite and an instruction, rewrites the kernel at random (statements in another order,
operands exchanged, dimensions and axes permuted, an axis split and joined again, everything renamed), translates the
mappings of the rewritten kernel back and compares the two sets. Prints the seed of every failing trial.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

from isam.diagnostics import Loc
from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Domain, Kernel, Recurrence, Source, Statement
from isam.ir.mapping import Mapping
from isam.ir.normal import normal_form
from isam.mapper import Matches, match
from isam.transforms.structure.axes import SplitAxis
from tests.mutators import MUTATORS, Variant, access, each
from tests.random_kernels import Seeded
from tests.suite import SUITE
from tests.suite.columns import COLUMNS, typed, types_of

Names = dict[str, str]
Found = frozenset[object]


@dataclass(frozen=True)
class Rewritten:
    """``statements``: new number -> old; ``axes``: per new statement new name -> old; ``buffers``: new -> (old, for
    every old dimension the new one)."""

    kernel: Kernel
    statements: dict[int, int]
    axes: dict[int, Names]
    buffers: dict[str, tuple[str, tuple[int, ...]]]


def marked(kernel: Kernel) -> Kernel:
    """The kernel with every statement's number as its place, so that reordering can be followed."""
    numbers = iter(range(len(kernel.statements)))
    return replace(kernel, body=each(kernel.body, lambda s: replace(s, loc=Loc("", next(numbers), 0))),
                   template=None)  # fmt: skip


def split_and_joined(kernel: Kernel, rng: random.Random) -> Kernel:
    """An axis split by the law and joined again by hand: ``f * o + i`` becomes one axis wherever it stands."""
    law = SplitAxis((2,))
    sites = law.sites(kernel)
    if not sites:
        return kernel
    site = rng.choice(sites)
    cut = law.apply(kernel, site).kernel
    old = {n for s in kernel.statements for n in s.domain.names}
    (outer, inner) = list(dict.fromkeys(n for s in cut.statements for n in s.domain.names if n not in old))
    whole = site["axis"]

    def row(e: Affine) -> Affine:
        c = e.coefficient(inner)
        assert e.coefficient(outer) == 2 * c
        rest = Affine(tuple(t for t in e.terms if t[0] not in (outer, inner)), e.const)
        return rest + Affine.of(whole, c) if c else rest

    def joined(a: Access) -> Access:
        return replace(a, index=tuple(map(row, a.index)))

    def statement(s: Statement) -> Statement:
        if outer not in s.domain.names:
            return s
        axes = tuple(Axis(whole, Affine((), 2 * a.extent.const)) if a.name == outer else a for a in s.domain.axes
                     if a.name != inner)  # fmt: skip
        sources: tuple[Source, ...] = tuple(access(x, joined) for x in s.sources)
        return replace(s, domain=Domain(axes, tuple(map(row, s.domain.where))), dest=joined(s.dest), sources=sources)

    return replace(cut, body=each(cut.body, statement), template=None)


def rewritten(kernel: Kernel, seed: int) -> Rewritten:
    """A kernel in normal form, rewritten by some of the mutators in a random order, renaming last."""
    rng = random.Random(seed)
    now = marked(kernel)
    if rng.random() < 0.5:
        now = split_and_joined(now, rng)
    before = {s.loc.line: s for s in now.statements}
    dims: dict[str, tuple[int, ...]] = {b.name: tuple(range(len(b.shape))) for b in now.buffers}
    chosen = [m for n, m in MUTATORS.items() if n != "rename" and rng.random() < 0.7]
    rng.shuffle(chosen)
    for mutator in chosen:
        turned = mutator(now, Seeded(rng.randrange(10**9)))
        if mutator is MUTATORS["transpose buffers"]:
            dims = {n: _turn(turned, n, dims[n], now) for n in dims}
        now = turned.kernel
    last: Variant = MUTATORS["rename"](now, Seeded(rng.randrange(10**9)))
    named = {new.name: old.name for old, new in zip(now.buffers, last.kernel.buffers, strict=True)}
    axes = {i: dict(zip(new.domain.names, old.domain.names, strict=True))
            for i, (old, new) in enumerate(zip(now.statements, last.kernel.statements, strict=True))}  # fmt: skip
    loops = dict(zip(_loops(last.kernel), _loops(now), strict=True))
    numbers = {i: s.loc.line for i, s in enumerate(last.kernel.statements)}
    assert sorted(numbers.values()) == sorted(before)
    return Rewritten(last.kernel, numbers, {i: {**a, **loops} for i, a in axes.items()},
                     {new: (old, dims[old]) for new, old in named.items()})  # fmt: skip


def _loops(kernel: Kernel) -> list[str]:
    def walk(body: tuple[object, ...]) -> Iterator[str]:
        for it in body:
            if isinstance(it, Recurrence):
                yield it.axis.name
                yield from walk(it.body)

    return list(walk(kernel.body))


def _turn(turned: Variant, name: str, known: tuple[int, ...], was: Kernel) -> tuple[int, ...]:
    """Where each dimension went."""
    if name in turned.dims:
        perm = turned.dims[name]
    else:
        perm = _permutation(was, turned.kernel, name)
    return tuple(perm.index(d) for d in known)


def _permutation(was: Kernel, now: Kernel, name: str) -> tuple[int, ...]:
    """The permutation of a temporary's dimensions: from all its accesses together, which tells equal rows apart as far
    as anything can."""
    pairs = [(a, b) for s, t in zip(was.statements, now.statements, strict=True)
             for a, b in zip(_accesses(s), _accesses(t), strict=True) if a.buffer == name]  # fmt: skip
    rank = len(was.buffer(name).shape)
    rows = [tuple(a.index[d] for a, _ in pairs) for d in range(rank)]
    left = list(range(rank))
    out = []
    for d in range(rank):
        new = tuple(b.index[d] for _, b in pairs)
        at = next(r for r in left if rows[r] == new)
        left.remove(at)
        out.append(at)
    return tuple(out)


def _accesses(s: Statement) -> list[Access]:
    return [s.dest, *(x for x in s.sources if isinstance(x, Access))]


def canonical(kernel: Kernel, m: Mapping, back: Rewritten | None) -> object:
    """A mapping in the old names: numbers of statements, per operand buffer, rows and steps, who plays which axis."""
    sizes = {i: len(kernel.statements[i].domain.names) for i in m.statements}
    main = max(m.statements, key=lambda i: (sizes[i], -i))
    axis = back.axes[main] if back else {}
    number = back.statements if back else {i: i for i in m.statements}

    def row(e: Affine) -> object:
        return tuple(sorted((axis.get(n, n), c) for n, c in e.terms)), e.const

    operands = []
    for o in m.operands:
        if o.literal is not None:
            operands.append((o.operand, o.literal))
            continue
        name, dims = back.buffers[o.buffer] if back else (o.buffer, tuple(range(len(o.index))))
        rows = tuple(row(o.index[d]) for d in dims)
        operands.append((o.operand, name, rows, tuple(dims.index(d) for d in o.dims), o.steps))
    axes = tuple(sorted((c, axis.get(n, n)) for c, n in m.axes))
    outer = tuple(sorted(axis.get(n, n) for n in m.outer))
    played = tuple(sorted((c, number[i]) for c, i in m.statement_map))
    return tuple(sorted(operands, key=str)), axes, outer, tuple(sorted(m.whole)), played


def mappings(kernel: Kernel, column: str, back: Rewritten | None = None) -> Found:
    found = match(kernel, COLUMNS[column].load(), normalise=False)
    if not isinstance(found, Matches):
        return frozenset()
    told = frozenset(canonical(kernel, m, back) for m in found)
    assert len(told) == len(found)  # what is compared tells all mappings apart
    return told


@cache
def _kernel(name: str, narrow: str, wide: str) -> Kernel | None:
    kernel = typed(name, narrow, wide)
    return None if kernel is None else normal_form(kernel)


@cache
def _as_it_is(name: str, column: str) -> tuple[Kernel, Found] | None:
    kernel = _kernel(name, *types_of(COLUMNS[column].load()))
    return None if kernel is None else (kernel, mappings(kernel, column))


def trial(seed: int) -> str | None:
    """None when the sets agree; else what differs. ``COMPARED`` counts the mappings."""
    rng = random.Random(seed)
    for _ in range(8):  # most pairs have no mapping at all: one in eight trials may be such a pair
        name, column = rng.choice(list(SUITE)), rng.choice(list(COLUMNS))
        known = _as_it_is(name, column)
        if known is not None and (known[1] or not seed % 8):
            break
    if known is None:
        return None
    kernel, want = known
    other = rewritten(kernel, rng.randrange(10**9))
    got = mappings(other.kernel, column, other)
    COMPARED[0] += len(want)
    if got == want:
        return None
    lost, new = (sorted(map(str, s))[:2] for s in (want - got, got - want))
    what = f"seed {seed}: {name} on {column}: {len(want)} mappings, then {len(got)}"
    return f"{what}; lost {lost}, new {new}\n{other.kernel}"


COMPARED = [0]


def main(trials: int, first: int) -> int:
    failures = 0
    for seed in range(first, first + trials):
        fault = trial(seed)
        if fault is not None:
            failures += 1
            print(fault)
    seeds = f"seeds {first} to {first + trials - 1}"
    print(f"{trials} rewritings, {seeds}: {COMPARED[0]} mappings compared, {failures} differ")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000, int(sys.argv[2]) if len(sys.argv) > 2 else 0))
