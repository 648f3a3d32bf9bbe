"""The yardstick's formula gives the numbers that are published; what is counted is what is carried out."""

from __future__ import annotations

from benchmarks.gemmini import PRODUCT, Counted, by_hand, counted, scheduled
from isam.cost.floor import floor
from isam.cost.timeline import timeline
from tests.pipeline import compiled, judge, simulated


def test_the_hand_schedule_has_the_published_numbers() -> None:
    assert by_hand(512, 512, 512) == Counted(1_792, 1_024, 786_432)
    assert by_hand(12544, 256, 64) == Counted(13_344, 12_544, 819_200)


def test_counted_is_what_the_simulator_carries_out() -> None:
    sizes = {"M": 80, "N": 48, "K": 96}
    got = counted(scheduled(PRODUCT, sizes))
    figures = judge(PRODUCT, sizes, compiled(PRODUCT, sizes, simulated("gemmini")))
    assert got.fills == figures.calls["mvin_zero"] == 15
    assert got.bytes == figures.moved["dram", "spad"]


def test_blocks_in_turn_do_not_bring_an_operand_again() -> None:
    """Of plans as quick as each other the one that reads least is taken, though its loops hold two blocks each."""
    sizes = {"M": 1024, "N": 256, "K": 64}
    schedule = scheduled(PRODUCT, sizes)
    assert counted(schedule).bytes == by_hand(*sizes.values()).bytes
    assert timeline(schedule).seconds < 1.8 * floor(schedule).seconds  # 2.3 where every block waits for its places
