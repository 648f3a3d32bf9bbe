"""Every way to write one operation, in the kernel and in the instruction: as many mappings as brute force finds."""

from __future__ import annotations

from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.ir.instruction import Instruction
from isam.ir.kernel import REDUCTIONS, Access, Axis, Buffer, Domain, Kernel, Literal, Source, Statement, Sym
from isam.mapper import count
from tests.brute_force import brute_count

N = Affine.of("N")
SOURCES = ("a", "b", "d", "z", 2)  # d: the destination; z: of rank 0
PAIRS = [("sub", "sub"), ("lt", "lt"), ("lt", "gt"), ("ge", "le"), ("lt", "le"),
         ("eq", "eq"), ("add", "add"), ("max", "max"), ("select", "select")]  # fmt: skip


def source(x: str | int) -> Source:
    return Literal(x) if isinstance(x, int) else access(x)


def access(name: str) -> Access:
    return Access(name, () if name == "z" else (Affine.of("i"),))


def written(op: str, sources: tuple[str | int, ...], accumulate: bool) -> Kernel:
    s = Statement(Domain((Axis("i", N),)), access("d"), op, tuple(map(source, sources)), accumulate)
    roles = {a.buffer: "in" for a in s.reads} | {"d": "inout"}
    buffers = tuple(Buffer(b, () if b == "z" else (N,), "f32", role) for b, role in roles.items())
    return Kernel("k", (Sym("N"),), buffers, (s,))


def ways(op: str) -> list[Kernel]:
    if op == "select":  # an accumulation keeps what is there where the condition does not hold
        some = SOURCES[:3]
        return [written(op, p, n == 2) for n in (2, 3) for p in product(some, repeat=n)]
    sums = [((x,), True) for x in SOURCES] if op in REDUCTIONS else []
    return [written(op, sources, way) for sources, way in (*((p, False) for p in product(SOURCES, repeat=2)), *sums)]


@pytest.mark.parametrize(("op", "other"), PAIRS)
def test_one_operation(op: str, other: str) -> None:
    kernels, total = ways(op), 0
    for body in ways(other):
        i = Instruction("i", body)
        for k in kernels:
            for swap in (True, False):
                got = count(k, i, swap=swap)
                assert got == brute_count(k, i, swap=swap), (str(k), str(body), swap)
                total += got
    assert total > 100 or (op, other) == ("lt", "le")
