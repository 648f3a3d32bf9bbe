"""What kind of place a memory is: asked of it, not spelled out where it matters."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.system.graph import CACHED, COUNTED, MANAGED, Memory
from isam.system.load import load_system

HOME = Memory("dram", MANAGED, 1 << 20, home=True)


@pytest.mark.parametrize(("memory", "local", "scratchpad", "fetched"), [
    (HOME, False, False, False),
    (Memory("sp", MANAGED, 4096), True, True, True),
    (Memory("rows", MANAGED, 4096, row=64), True, True, True),
    (Memory("cells", MANAGED, 4096, cells=64, cell=64), True, False, True),
    (Memory("v", COUNTED, 512, cells=8, cell=64), False, False, True),
    (Memory("L1", CACHED, 4096, of="dram"), False, False, False),
], ids=lambda x: getattr(x, "name", ""))  # fmt: skip
def test_places(memory: Memory, local: bool, scratchpad: bool, fetched: bool) -> None:
    assert (memory.local, memory.scratchpad, memory.fetched) == (local, scratchpad, fetched)


def test_where_data_lies_as_it_likes() -> None:
    """Not in rows, and not where a move fills what is beside what it brings."""
    toy = load_system("toy")
    assert list(toy.scratchpads) == ["sp"]
    assert not replace(toy, memories={**toy.memories, "sp": replace(toy.memories["sp"], row=64)}).scratchpads
    for name in ("toy", "casestudy", "gemmini"):
        system = load_system(name)
        for m in system.memories.values():
            free = m.kind == MANAGED and m.cells is None and not m.row and not m.home and m.name not in system.filled
            assert (m.name in system.scratchpads) is free
