"""What bounds a machine: orders that hold on any, and what is left out rather than told wrongly."""

from __future__ import annotations

from pathlib import Path

import pytest

from isam.system.load import load_system
from isam.tune.calibrate import Calibration, Measured
from isam.tune.memory import AWAY, LINE, MOST, beyond, random_room
from isam.tune.roofs import multiplied, multiplying, rates, roofs


def test_roofs_of_this_machine() -> None:
    system = load_system("host")
    found = roofs(system)
    offered = {"bf16": ("dot2_bf16", "tile_dot2_bf16"), "u8": ("dot4_u8_i8", "tile_dot4_us")}  # where the CPU has them
    known = {t for t, (vectors, tiles) in offered.items() if {vectors, tiles} & set(system.instructions) == {vectors}}
    assert {"f32", "f64", *known} <= set(found.rates)
    assert multiplied(system) >= {"f32", "f64", *known}
    assert 1e9 < found.rates["f64"] < found.rates["f32"] < 1e13
    assert list(found.reads)[-1] == "ram"
    assert 1e8 < found.reads["ram"] < max(found.reads.values()) < 1e13


@pytest.fixture
def told() -> Calibration:
    """One that has measured nothing: a call a cycle, and a billion cycles a second."""
    c = object.__new__(Calibration)
    c.system, c.__dict__["clock"] = load_system("host-avx512"), 1e9
    return c


def measured(c: Calibration, issue: float = 1.0) -> list[Measured]:
    return [Measured(i.name, issue, None, None, None) for i in multiplying(c)]


def test_a_product_and_its_sum_are_two_operations(told: Calibration) -> None:
    found = rates(told, measured(told))
    assert found["f32"] == 2 * 16 * 1e9
    assert found["u8"] == 2 * 16 * 4 * 1e9, "of all instructions for bytes, the one that takes four of each at once"
    assert rates(told, measured(told, 0.5))["f32"] == 2 * found["f32"]
    assert rates(told, [Measured("add_vv_f32", 1.0, None, None, None)]) == {}


def test_types_with_tiles_have_no_roof(told: Calibration) -> None:
    told.system = load_system("host-amx")
    found = rates(told, measured(told))
    assert "f32" in found
    assert not {"bf16", "u8", "i8"} & set(found)


SIZES = [("32768K", AWAY), ("96M", 192 << 20), ("4G", MOST), ("", AWAY), ("x", AWAY)]


@pytest.mark.parametrize(("size", "want"), SIZES)
def test_memory_is_more_than_any_cache(tmp_path: Path, size: str, want: int) -> None:
    assert beyond(tmp_path) == AWAY
    for n, text in enumerate(("32K", size)):
        (tmp_path / f"index{n}").mkdir()
        (tmp_path / f"index{n}" / "size").write_text(text + "\n", encoding="ascii")
    assert beyond(tmp_path) == want


def test_room_begins_with_a_line_and_is_random() -> None:
    room = random_room(1 << 20)
    assert room.ctypes.data % LINE == 0
    assert room.nbytes >= 1 << 20
    assert 0.5 <= room.min() < 0.6 < 1.4 < room.max() <= 1.5
