"""Schedules as JSON: exact, deterministic, shared."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from isam.diagnostics import IsamError
from isam.ir.affine import Affine
from isam.schedule.serial import from_json, to_json
from isam.schedule.tree import Bound, Loop, Seq, Slot
from isam.system.load import load_system
from tests.clock import quickest
from tests.schedules import I_, box, loop, matmul_on_tiny, move, place


def all_of(schedule):
    names = ("kernel", "system", "cover", "nests", "bind", "call", "workspace", "homes")
    return {n: getattr(schedule, n) for n in names}


SIZES = [((8, 8, 8), False), ((8, 4, 12), True), ((7, 9, 5), False), ((3, 2, 1), False)]


@pytest.mark.parametrize(("size", "pipelined"), SIZES)
def test_round_trip_is_exact(size, pipelined):
    s = matmul_on_tiny(*size, pipelined=pipelined)
    text = to_json(s)
    back = from_json(text)
    assert all_of(back) == all_of(s)
    assert to_json(back) == text
    assert back.system.instructions["mm4"].body.statements == s.system.instructions["mm4"].body.statements


def test_rare_values_survive():
    s = matmul_on_tiny(4, 4, 4)
    slots = (
        Slot("#f32:-inf", "dram", 4, 4, dtype="f32", literal=float("-inf")), Slot("w", "dram", 64, bound=True),
        Slot("#b", "dram", 1, 1, dtype="bool", literal=True), Slot("#z", "dram", 4, 4, dtype="f32", literal=-0.0),
    )  # fmt: skip
    body = s.call
    lower = (Bound(Affine.of("T", 2, -1), 3), Bound(Affine()))
    run_time = Loop("t", lower, (Bound(Affine.of("T")),), 1, body, first=body, exit=Seq((body,)), axis="t")
    notes = {"a": (1, 2.5, None, frozenset({"x", "y"})), "l": [1, (2,)]}
    odd = replace(s, workspace=slots, bind=run_time, cover=replace(s.cover, notes=notes, gap=0.5, steps=("factor",)))
    back = from_json(to_json(odd))
    assert all_of(back) == all_of(odd)
    assert str(back.workspace[3].literal) == "-0.0"
    assert back.bind.body is back.bind.first is back.call


@pytest.mark.parametrize("name", ["neoverse-v1", "sapphire-rapids", "gemmini", "casestudy"])
def test_machines_survive(name):
    """The CPU that code is made for, rows, links, clusters and registers among what they say."""
    s = replace(matmul_on_tiny(8, 8, 8), system=load_system(name))
    text = to_json(s)
    again = from_json(text)
    assert to_json(again) == text
    assert (again.system.target, again.system.state) == (s.system.target, s.system.state)


def test_bytes_do_not_depend_on_object_identity():
    s, t = matmul_on_tiny(8, 8, 8), matmul_on_tiny(8, 8, 8)
    inner = t.call.children[0].body
    assert to_json(s) == to_json(t)
    one = replace(s, call=Seq((loop("i", 0, 4, 4, inner), loop("i", 4, 8, 4, inner))))
    two = replace(s, call=Seq((loop("i", 0, 4, 4, inner), loop("i", 4, 8, 4, s.call.children[0].body))))
    assert to_json(one) == to_json(two)
    back = from_json(to_json(two)).call
    assert back.children[0].body is back.children[1].body


def test_a_value_of_an_unknown_type_becomes_its_text():
    class Way:
        def __str__(self):
            return "axis i -> i, k"

    s = matmul_on_tiny(4, 4, 4)
    back = from_json(to_json(replace(s, cover=replace(s.cover, back=(Way(),)))))
    assert [str(b) for b in back.cover.back] == ["axis i -> i, k"]


def damaged() -> Iterator[str]:
    good = json.loads(to_json(matmul_on_tiny(4, 4, 4)))
    yield "{"
    yield "[]"
    yield "null"
    yield "[" * 100_000
    for key in good:
        yield json.dumps({k: v for k, v in good.items() if k != key})
        yield json.dumps({**good, key: 7}) if key not in ("bind", "call") else json.dumps({**good, key: 70_000})
        yield json.dumps({**good, key: [[1, 2, "x"]]})
    yield json.dumps({**good, "kernel": {"os.system": ["true"]}})
    yield json.dumps({**good, "nodes": [["issue"]]})
    yield json.dumps({**good, "nodes": [["seq", 5]]})


@pytest.mark.parametrize("text", list(damaged()))
def test_damage_is_a_diagnostic(text):
    with pytest.raises(IsamError, match="schedule-damaged"):
        from_json(text)


def test_a_large_tree_is_fast():
    calls = [
        move(box("A", (I_ + 4 * (t % 64), t // 64), (4, 4)), place("sp", 64 * (t % 64)), place("ra", t % 8))
        for t in range(20_000)
    ]
    s = replace(matmul_on_tiny(4, 4, 4), call=Seq(tuple(calls)))
    assert from_json(to_json(s)).call == s.call
    assert quickest(lambda: to_json(s), 1.0) < 1.0  # about 0.25 s on two slow cores
