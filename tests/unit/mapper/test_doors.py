"""The doors of the mapper: what each of them looks at, and what it does without."""

from __future__ import annotations

import pytest

from isam.diagnostics import IsamError
from isam.ir.text import parse_instruction
from isam.mapper import Matches, explain, match, near_misses
from isam.mapper.match import STATEMENTS, count, match_untyped, normal, probe
from tests.unit.mapper.catalogue import instruction, kernel, named

NOTHING = parse_instruction("instruction nothing(N)\n  in A: f32[N]\n")
STEPS = parse_instruction("instruction steps(N)\n  in A: f32[N]\n  inout D: f32[N]\n  loop t < N\n    forall i < N\n"
                          "      D[i] = D[i] + A[i]\n")  # fmt: skip


def chain(n: int):
    return parse_instruction("instruction chain(N)\n  inout D: f32[N]\n" + "  forall i < N\n    D[i] = exp(D[i])\n" * n)


@pytest.mark.parametrize(("i", "kind", "what"), [(NOTHING, "operation", "does nothing"), (STEPS, "operation", "over t"),
                                                 (chain(STATEMENTS + 1), "budget", "41 statements")])  # fmt: skip
def test_instructions_that_carry_out_nothing(i, kind: str, what: str):
    k = named("scaled")
    for found in (match(k, i), match(k, i, strided=True, normalise=False)):
        assert not isinstance(found, Matches)
        assert (found.kind, what in found.need) == (kind, True)
    assert near_misses(k, i) == [match(k, i)]
    assert (list(probe(k, i)), probe(k, i).near) == ([], (match(k, i),))


@pytest.mark.parametrize("door", [match, near_misses, count, explain])
def test_a_kernel_comes_first_and_then_an_instruction(door):
    k = named("scaled")
    for one, two, what in ((k, k, "an instruction, found the kernel 'scaled'"), (5, NOTHING, "a kernel, found int"),
                           (NOTHING, k, "a kernel, found the instruction 'nothing'"),
                           (k, "vadd", "an instruction, found str"), (k, None, "an instruction, found NoneType")):
        with pytest.raises(IsamError, match=f"L141.*expected {what}") as e:
            door(one, two)
        assert e.value.diagnostics[0].hint


def test_as_many_statements_as_there_may_be():
    report = match(named("scaled"), chain(STATEMENTS))
    assert not isinstance(report, Matches)
    assert report.kind == "operation"


def test_which_kernel_is_searched():
    k = kernel("k(N)\n in x: f32[N]\n out y: f32[N]\n forall i < N\n  t[i] = x[i]\n  y[i] = max(t[i], 0)")
    assert len(normal(k).statements) == 1
    i = instruction("relu")
    assert (match(k, i).kernel, match(k, i).first.statements) == (normal(k), (0,))
    for found in (match(k, i, region=[1]), match(k, i, normalise=False), probe(k, i)):
        assert (found.kernel, found.first.statements) == (k, (1,))
    assert not match(k, i, region=[0])
    none = match(k, i, region=())
    assert (none.kind, none.have) == ("operation", "no statement that could be tried")
    other = instruction("vadd")
    assert {m.kernel_loc.line for m in near_misses(k, other)} != {m.kernel_loc.line for m in near_misses(
        k, other, normalise=False)}  # fmt: skip
    assert len(near_misses(k, other, normalise=False)) > len(near_misses(k, other)) > 0


def test_the_deepest_report_and_all_of_them():
    k, i = named("scaled"), instruction("gemm")
    no = match(k, i)
    every = near_misses(k, i)
    assert [m.depth for m in every] == sorted((m.depth for m in every), reverse=True)
    assert every == list(probe(k, i).near)
    assert str(no) == str(every[0])
    k, every = named("conv"), probe(normal(named("conv")), i)
    assert (every.near, len(every) > 0, len(every.near)) == ((), True, 4)  # met after the first mapping
    assert near_misses(k, i) == list(every.near)
    k, i = named("softmax"), instruction("exp_sum")
    found, every = match(k, i), probe(normal(k), i)
    assert len(found) == len(every) == 1
    assert found.near == every.near[:1] != ()


def test_what_a_count_and_an_untyped_match_do_not_look_at():
    wide = kernel("k()\n in x: f64[8]\n in w: f64[8]\n out y: f64[8]\n forall i < 8\n  y[i] = x[i] + w[i]")
    four = parse_instruction("instruction four()\n  in A: f32[4]\n  in B: f32[4]\n  out D: f32[4]\n  forall i < 4\n"
                             "    D[i] = A[i] + B[i]\n")  # fmt: skip
    assert not match(wide, four)
    m = next(match_untyped(wide, four))
    assert (m.axis_map, m.orbit) == ({"i": "i"}, "")
    assert count(wide, four) == 2
    turned = kernel("k()\n in x: f64[10]\n in w: f64[5]\n out y: f64[5]\n forall i < 5\n  y[i] = x[2 * i] + w[i]")
    assert list(match_untyped(turned, four)) == []
    swapped = kernel("k(N)\n in a: f32[]\n in x: f32[N]\n out y: f32[N]\n forall i < N\n  y[i] = a[] * x[i]")
    assert any(match_untyped(swapped, instruction("scale")))
    assert not match(swapped, instruction("scale"), swap=False)
