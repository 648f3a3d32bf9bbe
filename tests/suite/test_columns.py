"""The columns of the table: every instruction of the zoo has its place, kernels take an instruction's types."""

from __future__ import annotations

import pytest

from isam.ir.interp import run
from isam.system.load import load_system
from tests.corpus import random_arrays
from tests.suite import SUITE
from tests.suite.columns import COLUMNS, ZOO, home, typed, types_of


def zoo() -> dict[str, object]:
    systems = {p.stem: load_system(str(p)) for p in sorted(ZOO.glob("*.yaml"))}
    return {f"{n}.{i.name}": i for n, s in systems.items() for i in s.instructions.values()}


def test_every_instruction_of_the_zoo_has_a_column():
    names = zoo()
    assert len(names) >= 40
    assert [n for n in names if home(n) is None] == []


def test_columns_have_the_structure_of_their_members_up_to_types():
    """As many results, factors and sums: a coarse check that a pattern did not catch a stranger."""
    loose = {"copy2", "copy.all", "add.row", "max.vv", "max.vs", "log", "sum.rows", "sum.new", "max.rows", "max.new",
             "narrow", "softmax", "gelu", "relu", "gemm+bias+relu", "gemm.requant", "product.sat", "pool.max",
             "merge"}  # fmt: skip
    for name, i in zoo().items():
        key = home(name)
        if key not in loose:
            mine = sorted((s.op, s.accumulate) for s in i.body.statements if s.op != "cast")
            want = sorted((s.op, s.accumulate) for s in COLUMNS[key].load().body.statements if s.op != "cast")
            assert mine == want, (name, key)


@pytest.mark.parametrize(("narrow", "wide"), [("bf16", "f32"), ("i8", "i32"), ("f32", "f32")])
def test_kernels_in_other_types_are_well_formed_and_run(narrow: str, wide: str):
    done = 0
    for name in SUITE:
        kernel = typed(name, narrow, wide)
        if kernel is None:
            assert narrow == "i8", name
            continue
        assert {b.dtype for b in kernel.arguments if b.role in ("in", "const")} <= {narrow}
        run(kernel, random_arrays(kernel, {}, 3), {})
        done += 1
    assert done > 90


def test_types_are_read_off_the_instruction():
    assert types_of(COLUMNS["product.i8"].load()) == ("i8", "i32")
    assert types_of(COLUMNS["tile.b"].load()) == ("bf16", "f32")
    assert types_of(COLUMNS["product"].load()) == types_of(COLUMNS["narrow"].load()) == ("f32", "f32")
