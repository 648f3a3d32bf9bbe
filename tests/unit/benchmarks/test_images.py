"""Convolutions without padding, beside padded ones: what the command prints was judged."""

from __future__ import annotations

import pytest

from benchmarks import inside
from benchmarks.data import Judge
from benchmarks.measure import Wrong


def test_each_padded_layer_is_measured_in_both_ways(capsys):
    assert inside.main(["--shape", "7x7x512 to 512", "--rounds", "1", "--seconds", "0.001"]) == 0
    head, line = capsys.readouterr().out.splitlines()
    assert head.split() == ["GFLOP/s", "padded", "inside", "ratio", "(median)", "compiled", "in", "ms"]
    numbers = [float(n) for n in line.removeprefix("7x7x512 to 512, 3x3/1").replace("and", "").replace("(", "")
               .replace(")", "").split()]  # fmt: skip
    assert len(numbers) == 6
    assert min(numbers) > 0


def test_a_wrong_result_is_named(monkeypatch):
    monkeypatch.setattr(Judge, "wrong", lambda *_: "0.5 off")
    with pytest.raises(Wrong, match=r"7x7x512 to 512, 3x3/1, padded: 0\.5 off"):
        inside.main(["--shape", "7x7x512 to 512"])
