"""The judge of rewritings: what keeps the meaning is accepted, every forged rewriting is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.ir.kernel import Literal
from isam.ir.text import parse_kernel
from isam.proof.equivalence import Equivalence, _Pair, equivalent
from isam.transforms import ALL
from tests.edits import put
from tests.unit.proof import axioms
from tests.unit.proof.rewritings import FORGED, SAME, VECTOR, WINOGRAD, WINOGRAD_HEAD, Pair
from tests.unit.proof.verdicts import on_record


def both(p: Pair):
    return parse_kernel(p.text(p.before)), parse_kernel(p.text(p.after))


@pytest.mark.parametrize("pair", [*SAME, *axioms.SAME], ids=lambda p: p.what)
def test_rewritings_that_keep_the_meaning(pair):
    a, b = both(pair)
    one, other = equivalent(a, b), equivalent(b, a)
    assert one, one
    assert other, other
    on_record(f"same: {pair.what}", (one, other))


@pytest.mark.parametrize("pair", [*FORGED, *axioms.FORGED], ids=lambda p: p.what)
def test_forged_rewritings(pair):
    a, b = both(pair)
    verdict = equivalent(a, b)
    assert not verdict
    assert verdict.why
    on_record(f"another: {pair.what}", (verdict,))


@pytest.mark.parametrize(("dtype", "before", "after", "licences"), [
    ("f32", "x[i] + z[i]", "x[i] - z[i]", 3), ("f32", "max(2 * x[i], 2 * z[i])", "2 * max(x[i], x[i])", 6),
    ("i32", "x[i] + z[i]", "x[i] - z[i]", 1), ("i32", "max(2 * x[i], 2 * z[i])", "2 * max(x[i], x[i])", 1),
])  # fmt: skip
def test_a_licence_that_differs_in_nothing_met_is_not_asked(dtype, before, after, licences, monkeypatch):
    """Whether factors go out of the greatest and the least is asked where there is one; of whole numbers, nothing."""
    asked, differences = [], _Pair.differences

    def watched(self, *seen):
        asked.append(self.execution.operations.licence)
        return differences(self, *seen)

    monkeypatch.setattr(_Pair, "differences", watched)
    lines = [f"forall i < 8\n  y[i] = {x}" for x in (before, after)]
    assert not equivalent(*both(Pair("", VECTOR.replace("f32", dtype), *lines)))
    assert len(set(asked)) == licences
    assert any(x.scaled for x in asked) == (licences == 6)


def test_there_are_at_least_sixty():
    assert len({p.what for p in FORGED}) == len(FORGED) >= 60


@pytest.mark.parametrize(
    ("what", "numerics"),
    [
        ("names and order of axes", ()),
        ("an operand is transposed first", ()),
        ("a border of zeros", ("reassociates", "rounding", "finite")),
        ("an axis is split", ()),
        ("integers wrap", ()),
        ("subtraction by addition", ()),
        ("a sum is peeled", ("reassociates", "rounding")),
    ],
)
def test_the_least_numerics_that_do_are_recorded(what, numerics):
    a, b = both(next(p for p in SAME if p.what == what))
    assert equivalent(a, b).numerics == numerics


def test_what_is_missing_is_named():
    a, b = both(next(p for p in FORGED if p.what == "padding without the permission"))
    assert equivalent(a, b).why == ("equal only with numerics that the kernel does not permit: finite",)
    a, b = both(next(p for p in FORGED if p.what == "exact: another order"))
    assert "reassociates, rounding" in equivalent(a, b).why[0]


def test_the_callers_side_must_stay():
    a = parse_kernel(SAME[0].text(SAME[0].before))
    wider = parse_kernel(SAME[0].text(SAME[0].before).replace("f32", "f64"))
    assert equivalent(a, wider).why == ("the arguments differ",)
    assert equivalent(a, replace(a, permits=a.permits | {"finite"})).why == ("the permissions differ",)
    assert equivalent(a, replace(a, syms=())).why == ("the sizes differ",)


def test_a_chain_is_judged_step_by_step_with_one_memory():
    e = Equivalence()
    pair = Pair("", WINOGRAD_HEAD, "forall i < 2\n  y[i] = 0\nforall i < 2, r < 3\n  y[i] += d[i + r] * g[r]", WINOGRAD)
    a, b = both(pair)
    assert e.judge(a, b, ("reassociates",))
    assert e.judge(b, a, ("reassociates",))
    c = parse_kernel(pair.text(pair.after.replace("0.5", "0.75")))
    assert not e.judge(b, c, ("reassociates",))
    assert e.judge(a, a)


@pytest.mark.parametrize("name", ["winograd-2-3", "winograd-4-3", "strassen"])
def test_every_constant_of_a_bilinear_algorithm_counts(name):
    """The algorithms as the laws write them, tables of numbers; then with one number changed, at two places."""
    law = next(t for t in ALL if t.law == name)
    k = parse_kernel(MATMUL if name == "strassen" else CONV1D)
    done = law.apply(k, law.sites(k)[0]).kernel
    e = Equivalence()
    assert e.judge(k, done, sorted(law.needs)).numerics == ("reassociates", "rounding", "finite")
    numbers = [i for i, s in enumerate(done.statements) if isinstance(s.sources[0], Literal) and s.sources[0].value]
    assert len(numbers) >= 20
    for i in numbers[:: -(-len(numbers) // 2)]:
        s = done.statements[i]
        wrong = put(done, i, [replace(s, sources=(Literal(-s.sources[0].value),))])
        assert not e.judge(k, wrong, sorted(law.needs))


MATMUL = """kernel k()
  permits reassociate, finite
  in  A: f32[4, 2]
  in  B: f32[2, 2]
  out C: f32[4, 2]
  forall i < 4, j < 2
    C[i, j] = 0
  forall i < 4, j < 2, k < 2
    C[i, j] += A[i, k] * B[k, j]
"""
CONV1D = """kernel k()
  permits reassociate, finite
  in  x: f32[2, 10]
  in  w: f32[2, 3]
  out y: f32[8]
  forall v < 8
    y[v] = 0
  forall v < 8, c < 2, s < 3
    y[v] += x[c, v + s] * w[c, s]
"""
