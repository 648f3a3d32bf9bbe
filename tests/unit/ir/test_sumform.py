"""What an instruction sums, as its body and its cost say it."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.instruction import Cost, Instruction
from isam.system.load import load_system

AMX = load_system("host-amx").instructions


def test_what_is_summed_side_by_side_and_in_groups() -> None:
    tile = AMX["tile_dot4_su"].sum
    assert tile is not None
    assert (len(tile.parallel), tile.width) == (2, 16)
    assert (tile.group, tile.depth) == (4, 64), "four bytes in a lane, sixteen lanes"
    assert tile.points == 16 * 16 * 64
    assert not tile.across


def test_products_added_lane_by_lane_sum_nothing_in_a_call() -> None:
    fma = AMX["fma_sv_f32"].sum
    assert fma is not None
    assert (fma.summed, fma.width, fma.group, fma.depth, fma.across) == ((), 16, 1, 1, 0)
    assert fma.into == "C"


def test_sums_across_lanes() -> None:
    dot = AMX["dot_f32"].sum
    assert dot is not None
    assert (dot.across, dot.parallel, dot.depth) == (16, (), 16)


def test_what_adds_nothing_up_has_no_sum() -> None:
    assert AMX["copy_v_f32"].sum is None


def test_points_in_a_cycle_and_for_the_price_of_a_call() -> None:
    def costing(issue: float | None) -> Instruction:
        return replace(AMX["fma_sv_f32"], cost=Cost(issue=issue))

    rates = [form.rate for c in (None, 0.5, 1.0, 4.0) if (form := costing(c).sum)]
    works = [form.work for c in (None, 0.5, 1.0, 4.0) if (form := costing(c).sum)]
    assert rates == [0.0, 32.0, 16.0, 4.0]
    assert works == [16.0, 16 / 1.5, 8.0, 3.2]
