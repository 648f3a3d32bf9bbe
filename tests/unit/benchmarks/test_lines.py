"""Arrays of all contenders begin with a cache line, which a command asks the worth of."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks import lines, measure, peers, run, threads
from benchmarks.data import LINE, arrays_of, placed, room
from benchmarks.peers.layers import WORKS, layers
from benchmarks.shapes import Gemm
from benchmarks.table import aligned, page
from tests.unit.benchmarks.test_benchmarks import CASES, SHAPES


def past(a):
    return a.ctypes.data % LINE


def owner(a):
    """The array whose memory that is."""
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a


@pytest.mark.parametrize("shape", [*SHAPES, *CASES], ids=lambda s: s.name)
def test_what_is_given_begins_with_a_line(shape):
    arrays = arrays_of(shape)
    assert {n: past(a) for n, a in arrays.items()} == dict.fromkeys(arrays, 0)
    given, constants, out = measure.passed(shape, arrays)
    assert out
    assert not any(map(past, (*given, *constants.values(), *out.values())))
    if shape.work in WORKS:
        image, chain = layers(shape, arrays)
        assert not any(map(past, (image, *(x.weight for x in chain))))


NO_PLACE = {("cholesky", "numpy"), ("histogram", "numpy"), ("band", "scipy diagonals"), ("band", "scipy sparse rows"),
            ("recursive_filter", "scipy lfilter")}  # fmt: skip


@pytest.mark.parametrize("shape", [*SHAPES, *CASES], ids=lambda s: s.name)
def test_results_of_peers_begin_with_a_line(shape):
    """But of functions that take no place for their result."""
    for name, form in peers.of(shape, arrays_of(shape)).items():
        if (shape.work, name) not in NO_PLACE:
            assert past(owner(form())) == 0, name


def test_placed_moves_only_what_does_not_begin_with_a_line():
    a = room((3, 40), "i4")
    a[:] = np.arange(120).reshape(3, 40)
    assert placed(a) is a
    for b in (a.T, a[1:], a[:, ::2], a[:, 4:]):
        assert placed(b) is not b
        assert (past(placed(b)), placed(b).flags.c_contiguous) == (0, True)
        np.testing.assert_array_equal(placed(b), b)


def test_results_say_where_arrays_lay_and_the_page_says_it_only_then(monkeypatch):
    monkeypatch.setitem(run.GROUPS, "square", (Gemm(4, 5, 6),))
    results = run._measured(measure.Settings(1, 0.0), ("square",), (), False)
    assert results["settings"]["line"] == LINE
    text = " Arrays of all contenders begin with a cache line of 64 bytes.\n"
    told = page(json.loads(json.dumps(results)))
    del results["settings"]["line"]
    assert told.replace(text, "\n") == page(results) != told
    assert aligned({"line": 32}).endswith("of 32 bytes.")


def test_the_page_of_several_cores_says_it_too():
    kept = json.loads(threads.RESULTS.read_text(encoding="utf-8"))
    kept.pop("line", None)
    before = threads.page(kept)
    assert threads.page({**kept, "line": LINE}).replace(aligned({"line": LINE}), "") == before
    assert "cache line" not in before


@pytest.mark.parametrize("n", [0, 16, 48, 64])
def test_the_command_calls_on_arrays_that_lie_elsewhere(n):
    calls, judge = lines.calls_of(Gemm(16, 32, 48), n)
    assert {w: ([past(a) for a in c.given], [past(a) for a in c.named.values()]) for w, c in calls.items()} == {
        "line": ([0], [0]), "result": ([0], [n % LINE]), "all": ([n % LINE], [n % LINE])}  # fmt: skip
    assert [judge.wrong(c()) for c in calls.values()] == [None] * 3


def test_the_command_prints_what_a_line_is_worth(monkeypatch, capsys):
    made = {w: lines.Times([t], [t]) for w, t in (("line", 2e-6), ("result", 3e-6), ("all", 4e-6))}
    monkeypatch.setattr(lines, "row", lambda *_: made)
    assert lines.main(["--shape", "512x512x512"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[1].split() == ["512x512x512", "2.00", "1.50", "(1.50)", "2.00", "(2.00)"]
    assert out[-1].split() == ["geometric", "mean", "1.50", "2.00"]


def test_a_wrong_result_is_never_timed(monkeypatch):
    wrong = type("Judge", (), {"wrong": lambda self, y: "off"})()
    monkeypatch.setattr(lines, "calls_of", lambda *_: ({"line": lambda: None}, wrong))
    with pytest.raises(measure.Wrong, match="4x5x6, line: off"):
        lines.row(Gemm(4, 5, 6), 16, measure.Settings(1, 0.0))
