"""A slice of the random pairs (``python -m tests.pairs`` runs the rest), and that its judge can say no."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from isam.ir.text import parse_instruction, parse_kernel
from isam.mapper import match
from isam.mapper.match import Matches
from tests.pairs import judge
from tests.pairs.blocks import BLOCK, block
from tests.pairs.judge import Findings, Pair, carried_out, counted, judged

SUB = "kernel k(N)\n  in x: f32[6]\n  in w: f32[6]\n  out y: f32[6]\n  forall i < 6\n    y[i] = x[i] - w[i]\n"
VSUB = "instruction v(N)\n  in A: f32[N]\n  in B: f32[N]\n  out D: f32[N]\n  forall i < N\n    D[i] = A[i] - B[i]\n"


@pytest.mark.parametrize("part", range(4))
def test_no_pair_is_wrong(part: int):
    counts: Counter[str] = Counter()
    for seed in range(1_000_000 + 60 * part, 1_000_000 + 60 * part + 60):
        found = judged(seed)
        assert not found.wrong, f"# pair {seed}\n{found.wrong[0]}"
        counts.update(found.counts)
    assert counts["mapped"] >= 20
    assert counts["carried out"] >= 20
    assert counts["counted"] >= 8


def test_a_wrong_mapping_would_be_told():
    p = Pair(parse_kernel(SUB), parse_instruction(VSUB), "planted")
    found = match(p.kernel, p.instruction, normalise=False)
    assert isinstance(found, Matches)
    f = Findings()
    carried_out(p, p.kernel, found.first, f)
    assert (f.wrong, f.counts["carried out"]) == ([], 1)
    a, b, d = found.first.operands
    crossed = replace(found.first, operands=(replace(a, buffer=b.buffer), replace(b, buffer=a.buffer), d))
    carried_out(p, p.kernel, crossed, f)
    assert len(f.wrong) == 1
    assert "# wrong: v: A = w, B = x" in f.wrong[0]


def test_a_fit_that_is_denied_would_be_told(monkeypatch: pytest.MonkeyPatch):
    p = Pair(parse_kernel(SUB), parse_instruction(VSUB), "planted")
    no = match(p.kernel, parse_instruction(VSUB.replace("-", "*")))
    for told in (no, match(p.kernel, p.instruction)):
        f = Findings()
        counted(p, p.kernel, told, f)
        assert len(f.wrong) == (told is no)
    monkeypatch.setattr(judge, "brute_count", lambda k, i: 7)
    f = Findings()
    counted(p, p.kernel, match(p.kernel, p.instruction), f)
    assert "counted 1, by brute force 7" in f.wrong[0]


def test_what_breaks_is_a_finding(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tests.pairs.blocks.judged", lambda seed: 1 // 0)
    found = block(3, 5)
    assert [t.splitlines()[0] for t in found["wrong"]] == [
        f"# pair {n}: ZeroDivisionError: integer division or modulo by zero" for n in (3, 4)]  # fmt: skip
    assert BLOCK >= 1
