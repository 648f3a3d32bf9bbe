"""Statements that one call would carry out together although they may not be: their order, what lies between, what a
call would do again. Each has a twin that may."""

from __future__ import annotations

import pytest

from isam.ir.mismatch import Mismatch
from isam.ir.text import parse, parse_instruction
from isam.mapper import match
from isam.mapper.match import probe
from isam.mapper.search import reach
from isam.proof.checker import judged_mappings


def instruction(head: str, *lines: str):
    return parse_instruction("\n".join([f"instruction {head}", *(f"  {x}" for x in lines)]) + "\n")


def kernel(*lines: str, head: str = "k()"):
    return parse("\n".join([f"kernel {head}", *(f"  {x}" for x in lines)]) + "\n")


def answer(k, i):
    """``yes``, or what the report is about."""
    found = match(k, i, normalise=False)
    return found.about("relation") or found.kind if isinstance(found, Mismatch) else "yes"


TWICE = instruction("twice(N)", "in    A: f32[N]", "inout C: f32[N]", "forall i < N", "  C[i] += A[i]",
                    "forall i < N", "  C[i] += C[i]")  # fmt: skip
ADDED = ["in    a: f32[8]", "in    b: f32[8]", "inout y: f32[8]"]


def test_sums_into_one_buffer_commute_unless_one_reads_it():
    assert answer(kernel(*ADDED, "forall i < 8", "  y[i] += a[i]", "  y[i] += y[i]"), TWICE) == "yes"
    assert answer(kernel(*ADDED, "forall i < 8", "  y[i] += y[i]", "  y[i] += a[i]"), TWICE) != "yes"
    both = instruction("both(N)", "in    A: f32[N]", "in    B: f32[N]", "inout C: f32[N]", "forall i < N",
                       "  C[i] += A[i] * 2", "forall i < N", "  C[i] += B[i] + 1")  # fmt: skip
    first, second = "y[i] += a[i] * 2", "y[i] += b[i] + 1"
    for lines in ((first, second), (second, first)):
        assert answer(kernel(*ADDED, "forall i < 8", *(f"  {x}" for x in lines)), both) == "yes"


PAIR = instruction("pair(N)", "in  A: f32[N]", "in  B: f32[N]", "out C: f32[N]", "out D: f32[N]", "forall i < N",
                   "  C[i] = A[i] * 2", "forall i < N", "  D[i] = B[i] + 1")  # fmt: skip
HEAD = ["in    a: f32[8]", "inout b: f32[8]", "inout c: f32[8]", "out   y: f32[8]", "out   w: f32[8]"]


@pytest.mark.parametrize(
    ("between", "expected"),
    [
        ("b[i] = exp(y[i])", "between"),  # needs the first and feeds the second
        ("b[i] = exp(a[i])", "yes"),  # may come before
        ("c[i] = exp(y[i])", "yes"),  # may come after
        ("c[i] = exp(b[i])", "yes"),
    ],
)
def test_nothing_in_between_needs_one_statement_and_feeds_the_other(between, expected):
    k = kernel(*HEAD, "forall i < 8", "  y[i] = a[i] * 2", f"  {between}", "  w[i] = b[i] + 1")
    assert answer(k, PAIR) == expected


def test_two_statements_in_between_that_pass_it_on():
    lines = ["c[i] = exp(y[i])", "b[i] = tanh(c[i])"]
    k = kernel(*HEAD, "forall i < 8", "  y[i] = a[i] * 2", *(f"  {x}" for x in lines), "  w[i] = b[i] + 1")
    assert answer(k, PAIR) == "between"


def test_what_is_overwritten_in_between():
    again = instruction("again(N)", "in  A: f32[N]", "out C: f32[N]", "out D: f32[N]", "forall i < N",
                        "  C[i] = A[i] * 2", "forall i < N", "  D[i] = C[i] + 1")  # fmt: skip
    lines = ["y[i] = a[i] * 2", "y[i] = b[i] * 3", "w[i] = y[i] + 1"]
    assert answer(kernel(*HEAD, "forall i < 8", *(f"  {x}" for x in lines)), again) != "yes"
    assert answer(kernel(*HEAD, "forall i < 8", *(f"  {x}" for x in lines[::2])), again) == "yes"


def test_a_statement_that_reads_what_it_overwrites_is_not_done_once_per_block_of_others():
    scaled = instruction("scaled(M, N)", "in    X: f32[M, N]", "inout Y: f32[M]", "out   Z: f32[M, N]",
                         "forall i < M", "  Y[i] = Y[i] * 2", "forall i < M, j < N",
                         "  Z[i, j] = X[i, j] + 1")  # fmt: skip
    k = kernel("in    x: f32[4, 8]", "inout y: f32[4]", "out   z: f32[4, 8]", "forall i < 4", "  y[i] = y[i] * 2",
               "forall i < 4, j < 8", "  z[i, j] = x[i, j] + 1")  # fmt: skip
    found = match(k, scaled, normalise=False)
    assert not isinstance(found, Mismatch)
    assert [m.whole for m in found] == [("j",)] * len(found)


def test_an_instruction_that_can_never_be_used_says_so():
    looped = instruction("looped(T, N)", "inout y: f32[N]", "loop t < T", "  forall i < N", "    y[i] = y[i] * 2")
    k = kernel("inout y: f32[8]", "forall i < 8", "  y[i] = y[i] * 2")
    found = probe(k, looped)
    assert not found
    assert [m.need for m in found.near] == [
        "a recurrent loop over t, and an instruction is one step: it carries out no kernel"
    ]
    assert reach(k, looped).near


def test_sizes_that_are_open_are_not_taken_for_numbers():
    fixed = instruction("fixed()", "inout C: f32[4]", "forall i < 4", "  C[i] += 1")
    limited = instruction("limited(N <= 4)", "inout C: f32[N]", "forall i < N", "  C[i] += 1")
    for i, of_six in ((fixed, "extent"), (limited, "yes")):
        for text, expected in (("N + 6", "yes"), ("8", "yes"), ("6", of_six)):
            k = kernel(f"inout y: f32[{text}]", f"forall i < {text}", "  y[i] += 1", head="k(N)")
            assert answer(k, i) == expected, (i, text)


LINES = ("y[i] += a[i]", "y[i] max= a[i]", "y[i] *= b[i]", "y[i] = a[i] * 2", "y[i] += z[i]", "z[i] += y[i]",
         "z[i] += a[i]", "z[i] max= y[i]", "z[i] = y[i] + 1", "y[i] = z[i] + 1", "y[i] = y[i] * b[i]",
         "z[i] = z[i] + a[i]")  # fmt: skip
OPERANDS = ("in    a: f32[{n}]", "in    b: f32[{n}]", "inout y: f32[{n}]", "inout z: f32[{n}]")


@pytest.mark.parametrize("first", LINES)
def test_two_statements_in_the_other_order_only_where_they_commute(first):
    """What the matcher says is what the checker says, which puts the instruction's body in their place."""
    for second in LINES:
        body = [x.format(n="N") for x in OPERANDS]
        used = [x for x in body if f" {x.split(':')[0][-1]}[" in f" {first} {second}"]
        both = instruction("both(N)", *used, "forall i < N", f"  {first}", "forall i < N", f"  {second}")
        own = [x.format(n=8) for x in OPERANDS]
        for lines in ((first, second), (second, first)):
            k = kernel(*own, "forall i < 8", *(f"  {x}" for x in lines))
            found = match(k, both, normalise=False)
            assert found or lines[0] == second, (lines, str(found))
            for m in found or ():
                assert judged_mappings(k, [m])[1] == [], (lines, str(m))
