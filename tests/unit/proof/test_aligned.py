"""Addresses in a memory are multiples of its alignment, for every operand: those that are read too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.codegen.simulator import SimulationFault, simulate
from isam.ir import oracle
from isam.proof.flat import check_flat
from isam.proof.tree import check_tree
from isam.schedule.tree import Schedule
from tests.double_buffered import product
from tests.schedules import matmul_on_tiny


def coarser(s: Schedule, align: int) -> Schedule:
    own = {n: m for n, m in s.system.memories.items() if not m.home and m.cells is None}
    memories = {**s.system.memories, **{n: replace(m, align=align) for n, m in own.items()}}
    return replace(s, system=replace(s.system, memories=memories))


@pytest.mark.parametrize(("s", "most"), [(product(8, 2), 16), (product(16, 2), 16), (matmul_on_tiny(8, 8, 8), 64)])
def test_where_calls_read_too(s: Schedule, most: int) -> None:
    """Operands of a product lie every 16 bytes of a box of eight columns, though boxes lie every 64."""
    arrays = oracle.inputs(s.kernel, {}, 0)
    for align in (1, 16, 64, 128):
        one = coarser(s, align)
        fits = align <= most
        assert not fits or not check_tree(one)
        assert fits or {v.kind for v in check_tree(one)} == {v.kind for v in check_flat(one)} == {"align"}
        if fits:
            simulate(one, arrays)
        else:
            with pytest.raises(SimulationFault, match="not a multiple"):
                simulate(one, arrays)
