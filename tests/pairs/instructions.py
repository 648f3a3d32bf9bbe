"""Where the instructions of random pairs come from: shipped machines, the zoo, random bodies, pieces of kernels."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import cache
from math import prod
from pathlib import Path

from isam.ir.affine import Affine
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Axis, Buffer, Domain, Kernel, Recurrence, Source, Statement, Sym
from isam.ir.verify import verify
from isam.system.load import load_system
from tests.random_kernels import Options, random_kernel

ZOO = Path(__file__).parents[2] / "hwdesc" / "zoo"
SYSTEMS = ("tiny", "toy", "host-avx512", "blas-generic")
SMALL = Options(most_blocks=2, loops=False, points=90)
READ_FIRST = "V422"  # the code of a read before any statement has written
LIMITS = (None, None, None, 1, 2, 3, 4, 16)


def structure(k: Kernel) -> str:
    """The body without limits and names of operands' homes: what makes two instructions different here."""
    dtypes = {b.name: b.dtype for b in k.buffers}
    return str([(s.domain.names, s.dest, s.op, s.accumulate, s.sources, s.domain.where, dtypes) for s in k.statements])


@cache
def shipped() -> tuple[tuple[Instruction, ...], ...]:
    """Per machine its instructions, one of each structure."""
    out = []
    for system in (*SYSTEMS, *sorted(ZOO.glob("*.yaml"))):
        found: dict[str, Instruction] = {}
        for i in load_system(system).instructions.values():
            if smallest(i.body) <= 2048:
                found.setdefault(structure(i.body), i)
        out.append(tuple(found.values()))
    return tuple(out)


def smallest(body: Kernel) -> int:
    """Points of the largest statement when every size is as small as can be."""
    least = {s.name: max(1, s.lo) for s in body.syms}
    return max((prod(a.extent.evaluate(least) for a in s.domain.axes) for s in body.statements), default=0)


def drawn(rng: random.Random) -> Instruction:
    """An instruction of some machine, every machine as often as every other."""
    return rng.choice(rng.choice(shipped()))


def invented(rng: random.Random) -> Instruction:
    """A random body. Sizes that stand in an index or a condition are numbers, the others have random limits."""
    kernel, sizes = random_kernel(rng.randrange(1 << 30), SMALL)
    rows = [r for s in kernel.statements for a in (s.dest, *s.reads) for r in a.index]
    rows += [w for s in kernel.statements for w in s.domain.where]
    fixed = {n: max(1, v) for n, v in sizes.items() if any(n in r.names for r in rows)}
    kernel = kernel.with_sizes(fixed)
    syms = tuple(replace(s, hi=rng.choice(LIMITS)) for s in kernel.syms)
    return Instruction("invented", replace(kernel, name="invented", syms=syms))


def piece(kernel: Kernel, rng: random.Random) -> Instruction | None:
    """Some neighbouring statements of a kernel, without some of their axes: an instruction that should fit it."""
    if not kernel.statements or any(isinstance(it, Recurrence) for it in kernel.body):
        return None
    start = rng.randrange(len(kernel.statements))
    mine = kernel.statements[start : start + rng.choice((1, 1, 2, 2, 3, 5))]
    gone = {n for n in {n for s in mine for n in s.domain.names} if rng.random() < 0.25}
    if any(n in gone for s in mine for w in s.domain.where for n in w.names):
        gone = set()
    rows = _rows(mine, gone)
    body = tuple(_without(s, gone, rows) for s in mine)
    rest = kernel.statements[:start] + kernel.statements[start + len(mine) :]
    buffers = tuple(
        replace(b, shape=tuple(b.shape[d] for d in rows[b.name]), role=_role(b, mine, rest), declared=True)
        for b in kernel.buffers
        if b.name in rows
    )
    syms = tuple(Sym(s.name, s.lo) for s in kernel.syms)
    made = _told(Kernel("piece", syms, buffers, body, kernel.permits))
    return Instruction("piece", _loosened(made, rng) if rng.random() < 0.5 else made)


def _told(made: Kernel) -> Kernel:
    """A result that is read where nothing of the piece has written it is given, too."""
    if all(d.code != READ_FIRST for d in verify(made)):
        return made
    read = {a.buffer for s in made.statements for a in s.reads}
    roles = {b.name: "inout" if b.role == "out" and b.name in read else b.role for b in made.buffers}
    return replace(made, buffers=tuple(replace(b, role=roles[b.name]) for b in made.buffers))


def _rows(mine: tuple[Statement, ...], gone: set[str]) -> dict[str, list[int]]:
    """Per buffer the dimensions that are left: those that some access walks by an axis that stays."""
    kept: dict[str, set[int]] = {}
    for s in mine:
        for a in (s.dest, *s.reads):
            walked = {d for d, r in enumerate(a.index) if not r.names or not set(r.names) <= gone}
            kept.setdefault(a.buffer, set()).update(walked)
    return {name: sorted(dims) for name, dims in kept.items()}


def _without(s: Statement, gone: set[str], rows: dict[str, list[int]]) -> Statement:
    zero = {n: Affine() for n in gone}

    def cut(a: Source) -> Source:
        if not isinstance(a, Access):
            return a
        return Access(a.buffer, tuple(a.index[d].substitute(zero) for d in rows[a.buffer]))

    domain = Domain(tuple(x for x in s.domain.axes if x.name not in gone), s.domain.where)
    dest = cut(s.dest)
    assert isinstance(dest, Access)
    return replace(s, domain=domain, dest=dest, sources=tuple(map(cut, s.sources)))


def _role(b: Buffer, mine: tuple[Statement, ...], rest: tuple[Statement, ...]) -> str:
    written = [s for s in mine if s.dest.buffer == b.name]
    if not written:
        return "in"
    first = next(s for s in mine if b.name in {a.buffer for a in (s.dest, *s.reads)})
    if b.name in {a.buffer for a in first.reads}:
        return "inout"
    outside = {a.buffer for s in rest for a in (s.dest, *s.reads)}
    return "temp" if b.role == "temp" and b.name not in outside else "out"


def _loosened(k: Kernel, rng: random.Random) -> Kernel:
    """Axes of a number of points become sizes with limits, where nothing else mentions the number."""
    names = sorted({a.name for s in k.statements for a in s.domain.axes if a.extent.is_constant})
    extents = {n: {a.extent for s in k.statements for a in s.domain.axes if a.name == n} for n in names}
    free = [n for n in names if len(extents[n]) == 1]
    if any(len(r.names) != 1 or r.const or r.coefficient(r.names[0]) != 1
           for s in k.statements for a in (s.dest, *s.reads) for r in a.index):  # fmt: skip
        return k
    syms = {n: Sym(f"S{n}", 0, rng.choice(LIMITS)) for n in free}

    def axis(a: Axis) -> Axis:
        return Axis(a.name, Affine.of(f"S{a.name}")) if a.name in syms else a

    body = tuple(replace(s, domain=Domain(tuple(map(axis, s.domain.axes)), s.domain.where)) for s in k.statements)
    shapes: dict[str, tuple[Affine, ...]] = {}
    for s in body:
        for a in (s.dest, *s.reads):
            shapes.setdefault(a.buffer, tuple(s.domain.extent(r.names[0]) for r in a.index))
    buffers = tuple(replace(b, shape=shapes[b.name]) for b in k.buffers)
    return replace(k, syms=(*k.syms, *syms.values()), buffers=buffers, body=body)
