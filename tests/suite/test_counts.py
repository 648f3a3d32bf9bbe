"""Counts of the table against the brute-force enumerator, wherever that can run (MAP-10)."""

from __future__ import annotations

from math import perm, prod

import pytest

from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.mapper import count
from tests.brute_force import _kind, _readings, brute_count
from tests.suite import SUITE
from tests.suite.columns import COLUMNS, typed, types_of
from tests.suite.expected import expected

LIMIT = 10_000  # combinations of statements, axes and rows that are tried
OWN = ("product.new", "dot.new", "sum.new", "max.new", "softmax", "pool.max", "pool.sum", "gemm+bias+relu", "gelu",
       "conv2d+bias+relu", "product.sat", "gemm.requant")  # fmt: skip
"""Instructions of several statements on a visible result: what one call must take whole is beyond the enumerator."""

FIXED = ("gemv.b", "rowdot.b")
"""Instructions that take exactly two elements along an axis: counts of MAP-10 ignore extents, the table does not."""


def work(kernel: Kernel, instruction: Instruction) -> int:
    """How many combinations the enumerator would try."""
    mine = instruction.body.statements
    slots = [sum(_kind(r) == _kind(m) for s in kernel.statements for r in _readings(s)) for m in mine]
    wide = max(len(s.domain.names) for s in kernel.statements)
    names = len({n for s in mine for n in s.domain.names})
    rank = max(len(b.shape) for b in kernel.buffers)
    rows = sum(perm(rank, len(b.shape)) for b in instruction.body.buffers)
    return prod(slots) * perm(wide, names) * rows * 2 ** sum(m.op == "mul" for m in mine)


@pytest.mark.parametrize("key", [k for k in COLUMNS if k not in OWN])
def test_the_mapper_and_brute_force_count_the_same(key: str):
    instruction = COLUMNS[key].load()
    tried = compared = 0
    for name in SUITE:
        kernel = typed(name, *types_of(instruction)) or typed(name, "f32", "f32")
        assert kernel is not None
        if work(kernel, instruction) > LIMIT:
            continue
        tried += 1
        got = count(kernel, instruction)
        assert got == brute_count(kernel, instruction), name
        want = expected(name, key)
        if want.count is not None and key not in FIXED and not kernel.statements[-1].domain.where:
            assert got == want.count, name
            compared += 1
    assert tried > 5, tried
    assert compared or key not in ("product", "gemv", "dot", "outer", "fma", "axpy")
