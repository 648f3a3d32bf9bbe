"""Registers that do not say how many elements they take cannot be emitted: a located diagnostic, no KeyError."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.codegen.llvm.lanes import lanes_of
from isam.diagnostics import IsamError
from isam.system.load import load_system


def test_registers_without_lanes():
    host = load_system("host-generic")
    bare = replace(host, memories={**host.memories, "v": replace(host.memories["v"], lanes=None)})
    with pytest.raises(IsamError, match="do not say how many elements") as e:
        lanes_of(bare)
    assert e.value.diagnostics[0].loc.line > 0
    assert lanes_of(host) == 4


def test_two_kinds_of_registers():
    host = load_system("host-generic")
    two = replace(host, memories={**host.memories, "w": replace(host.memories["v"], name="w", lanes=8)})
    with pytest.raises(IsamError, match="different numbers"):
        lanes_of(two)
