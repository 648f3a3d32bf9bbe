"""Set-up commands: stale or missing ones are refused by both judges and by the simulator (SYS-5, obligation 10)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from benchmarks.gemmini import CONVOLUTION, PRODUCT, executed, scheduled
from isam.codegen.simulator import SimulationFault, simulate
from isam.ir import oracle
from isam.proof.flat import check_flat
from isam.proof.tree import check_tree
from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq, distinct
from tests.unit.proof.test_dealt import edited

SIZES = {"M": 64, "N": 64, "K": 128}


@cache
def good() -> Schedule:
    return scheduled(PRODUCT, SIZES)


def commands(schedule: Schedule) -> list[Issue]:
    return [n for n in distinct(schedule.call) if isinstance(n, Issue) and n.configures]


def instead(of: Issue, by: tuple[Issue, ...]) -> Schedule:
    def edit(n: Node) -> Node:
        if not isinstance(n, Seq):
            return n
        return Seq(tuple(d for c in n.children for d in (by if c is of else (c,))))

    return edited(good(), edit)


def refused(schedule: Schedule) -> set[str]:
    """Who refuses it."""
    out = {"tree"} if any(v.kind == "register" for v in check_tree(schedule)) else set()
    out |= {"flat"} if any(v.kind == "register" for v in check_flat(schedule)) else set()
    try:
        simulate(schedule, oracle.inputs(schedule.kernel, {}, 0))
    except SimulationFault as fault:
        out |= {"simulator"} if fault.kind == "register" else {f"simulator, for another reason: {fault}"}
    return out


EVERYBODY = {"tree", "flat", "simulator"}


def test_what_is_needed_is_set_once_where_it_stays() -> None:
    assert refused(good()) == set()
    names = [i.instruction for i, _ in executed(good().call, 1) if i.configures]
    assert names.count("config_ex_nn") == names.count("config_st_none") == 1
    times = dict.fromkeys(names, 0)
    for i, n in executed(good().call, 1):
        if i.configures:
            times[i.instruction] += n
    assert (times["config_ex_nn"], times["config_st_none"]) == (1, 1)


def test_a_missing_command_is_refused() -> None:
    assert len(commands(good())) >= 4
    for c in commands(good()):
        assert refused(instead(c, ())) == EVERYBODY, c


def more(c: Issue, names: str) -> Issue:
    return replace(c, sizes=tuple((n, v + 16 if n in names else v) for n, v in c.sizes))


CHANGES: dict[str, Callable[[Issue], tuple[Issue, ...]]] = {
    "another stride": lambda c: (more(c, "S"),),
    "another distance of blocks": lambda c: (more(c, "B"),),
    "overwritten": lambda c: (c, more(c, "SB")),
    "transposed": lambda c: (replace(c, instruction=c.instruction.replace("_nn", "_tn")),),
    "by a command for one row": lambda c: (
        replace(c, instruction="config_ld_repeat", sizes=(c.sizes[-1],)) if c.instruction == "config_ld" else c,),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_stale_value_is_refused(name: str) -> None:
    changed = 0
    for c in commands(good()):
        by = CHANGES[name](c)
        if by != (c,):
            changed += 1
            assert refused(instead(c, by)) == EVERYBODY, c
    assert changed


def test_commands_in_another_order_are_refused() -> None:
    """What two loads need in turn, the other way round."""
    one, two = [c for c in commands(good()) if c.instruction == "config_ld"][:2]

    def edit(n: Node) -> Node:
        if not isinstance(n, Seq):
            return n
        return Seq(tuple(two if c is one else one if c is two else c for c in n.children))

    assert refused(edited(good(), edit)) == EVERYBODY


def test_a_command_before_a_loop_does_not_outlive_what_the_loop_sets() -> None:
    """Out of a body into its ``enter``: right in the first iteration alone."""

    def edit(n: Node) -> Node:
        inside = [c for c in distinct(n) if isinstance(c, Issue) and c.configures]
        if not isinstance(n, Loop) or len(inside) < 2:
            return n
        return replace(n, enter=Seq((n.enter, inside[0])), body=without(n.body, inside[0]))

    whole = scheduled(PRODUCT, {"M": 512, "N": 512, "K": 512})
    forged = edited(whole, edit)
    assert forged != whole
    assert any(v.kind == "register" for v in check_tree(forged))
    assert check_tree(whole) == []


def without(n: Node, c: Issue) -> Node:
    return Seq(tuple(without(d, c) for d in n.children if d is not c)) if isinstance(n, Seq) else n


def test_a_command_of_another_unit_sets_nothing_here() -> None:
    c = next(c for c in commands(good()) if c.instruction == "config_st_none")
    units = {n: replace(u, runs=(*u.runs, "config_st_none")) for n, u in good().system.units.items()}
    forged = instead(c, (replace(c, unit="load"),))
    assert refused(replace(forged, system=replace(forged.system, units=units))) == EVERYBODY


def test_one_too_many_is_harmless() -> None:
    for c in commands(good()):
        assert refused(instead(c, (c, c))) == set()


def test_a_command_that_is_none_is_refused() -> None:
    c = commands(good())[0]
    for forged in (replace(c, instruction="mvin_zero"), replace(c, sizes=()), replace(c, unit="nobody")):
        assert check_tree(instead(c, (forged,)))


def test_a_convolution_reads_rows_where_they_lie() -> None:
    """3 x 3 without im2col: no workspace, nothing moved but x, w and y; the distance of rows is a register's."""
    schedule = scheduled(CONVOLUTION, {"H": 16, "V": 16, "C": 32, "K": 32})
    assert schedule.workspace == ()
    assert [b.name for b in schedule.cover.kernel.buffers if b.role != "temp"] == ["x", "w", "y"]
    moves = [n for n in distinct(schedule.call) if isinstance(n, Issue) and n.is_move]
    assert {(n.operands[0].tile.buffer, n.operands[0].place.memory, n.operands[1].place.memory) for n in moves} == {
        ("x", "dram", "spad"), ("w", "dram", "spad"), ("w", "spad", "pe"), ("y", "acc", "dram")}  # fmt: skip
    (c,) = (c for c in commands(schedule) if c.instruction == "config_ex_nn")
    a = next(o for n in distinct(schedule.call) if isinstance(n, Issue) for o in n.operands if o.name == "A")
    assert dict(c.sizes)["S"] == a.place.strides[a.dims[0] or 0]


def test_a_call_that_is_one_step_needs_its_registers_too() -> None:
    known = good().system.instructions
    one = next(n for n in distinct(good().call) if isinstance(n, Issue) and known[n.instruction].requires)
    found = check_flat(replace(good(), call=one))
    assert "register" in {v.kind for v in found}
