"""How large the parts of a tile are on their way, and by which names copies go that are there for a moment only."""

from __future__ import annotations

from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.schedule.tree import Place, Tile
from isam.scheduler import move
from isam.scheduler.dry import _Step
from isam.scheduler.hops import Hops
from isam.scheduler.state import PASSING, STAGED, Copy, Form, MachineState, reading
from isam.system.load import load_system

SYSTEM = load_system("toy")


def tile(n: int = 24) -> Tile:
    return Tile("x", (Affine(),), (n,), (1,))


def test_a_part_is_one_that_every_hop_carries(monkeypatch: pytest.MonkeyPatch) -> None:
    """However often a hop takes less of what another one leaves of it."""

    def carries(carrier: Any, dims: Any, part: Tile) -> tuple[int, ...]:
        return tuple(n if n % 8 == 0 and n < 10 else n - 1 for n in part.shape)

    hops = object.__new__(Hops)
    hops.tile, hops.path = tile(), ("dram", "sp")
    monkeypatch.setattr(Hops, "hop", lambda self, i, part, places: (None, (0,)))
    monkeypatch.setattr(Hops, "_passable", lambda self, shape: shape)
    monkeypatch.setattr(move, "chunk", carries)
    assert hops._limit((24,)) == (8,)
    assert hops._limit((8,)) == (8,)


@pytest.mark.parametrize("form", [None, (), (0,), STAGED])
def test_what_is_read_goes_by_a_name_of_its_own(form: Form) -> None:
    key = ("sp", tile(), form)
    assert reading(key) not in {key, *((*key[:2], f) for f in (None, (), (0,), PASSING, STAGED))}
    state = MachineState(SYSTEM)
    state.put(key, Copy(Place("sp", "", Affine(), (4,)), True, 96))
    step = _Step(state, {key})
    step.put(key, Copy(Place("sp", "", Affine((), 128), (4,)), True, 96))
    assert set(state.copies) == {key, reading(key)} == step.held
    step.close()
    assert set(state.copies) == {key}
