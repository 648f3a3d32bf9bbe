"""Families of instructions that differ in element types or sizes are not matched one by one."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest

from isam.approach.choice import Approach, Trace
from isam.ir.dtype import DTYPES
from isam.ir.kernel import Kernel
from isam.ir.text import parse_instruction
from isam.mapper.cover import cover
from isam.mapper.demand import Demand
from isam.mapper.filters import needs_of, one_per_structure, present, structure_of
from isam.mapper.match import match
from tests.as_it_stands import cover_as_it_stands
from tests.corpus import CASES
from tests.unit.mapper.catalogue import instruction, instruction_names, kernel, named

BINARY = ("(N <= {size})\n  in A: {dtype}[N]\n  in B: {dtype}[N]\n  out D: {dtype}[N]\n"
          "  forall i < N\n    D[i] = A[i] {op} B[i]\n")  # fmt: skip
SIZES = range(4, 28)
FAMILY = [
    parse_instruction(f"instruction v_{word}_{dtype}_{size}" + BINARY.format(size=size, dtype=dtype, op=op))
    for dtype in sorted(DTYPES) if dtype != "bool"
    for size in SIZES
    for word, op in (("add", "+"), ("sub", "-"), ("mul", "*"))
]  # fmt: skip


def vadd(dtype: str) -> Kernel:
    arrays = "".join(f" {role} {n}: {dtype}[N]\n" for role, n in (("in", "a"), ("in", "b"), ("out", "y")))
    return kernel(f"k(N)\n{arrays} forall i < N\n  y[i] = a[i] + b[i]")


@pytest.fixture
def counted(monkeypatch):
    made: list[str] = []
    matching = import_module("isam.mapper.match")

    class Counting(matching.Enumeration):
        def __init__(self, flow, plan, *args, **options):
            made.append(plan.instruction.name)
            super().__init__(flow, plan, *args, **options)

    monkeypatch.setattr(matching, "Enumeration", Counting)
    return made


def test_only_the_members_of_the_right_type_are_matched(counted):
    assert len(FAMILY) >= 600
    c = cover(vadd("f32"), Demand(FAMILY), Trace(Approach()))
    assert c
    assert {n for n in counted if "_f32_" not in n} == set()
    assert len(counted) <= 2 * len(SIZES)  # the sizes that one call may take, and their symmetries


def test_a_report_about_a_type_that_no_member_has_asks_one_per_structure(counted):
    """Every size of one operation is a structure, whatever the number of element types."""
    few = [i for i in FAMILY if "_f32_" not in i.name]
    no = cover_as_it_stands(vadd("f32"), Demand(few))
    assert not no
    assert no.gaps[0].mismatches[1].kind == "dtype"
    assert len([n for n in counted if n.startswith("v_")]) == len(SIZES)


def test_structures_leave_out_names_and_types_and_nothing_else():
    f32, f64, small = (
        parse_instruction(f"instruction {n}" + BINARY.format(size=s, dtype=d, op="+"))
        for n, s, d in (("a", 8, "f32"), ("b", 8, "f64"), ("c", 4, "f32"))
    )
    assert structure_of(f32) == structure_of(f64) != structure_of(small)
    apart = {structure_of(instruction(n)) for n in instruction_names()}
    assert len(apart) == len(instruction_names())
    assert structure_of(instruction("gemm")) != structure_of(instruction("gemm8"))
    assert [i.name for i in one_per_structure([f64, f32, small], vadd("f32"))] == ["a", "c"]
    assert [i.name for i in one_per_structure([f64, f32, small], vadd("i8"))] == ["b", "c"]


@pytest.mark.parametrize("name", sorted(CASES))
def test_the_filter_lets_everything_pass_that_matches(name):
    """No false negatives: whatever the matcher accepts, the filter lets through."""
    from isam.ir.normal import normal_form

    kernel = normal_form(CASES[name].load())
    every = [instruction(n) for n in instruction_names()]
    passed = present(every, kernel)
    for i in every:
        if match(kernel, i, strided=True, normalise=False):
            assert i in passed, i.name


def test_a_number_may_play_a_scalar_of_a_type_that_no_array_has():
    double = kernel("k(N)\n in x: f32[N]\n out y: f32[N]\n forall i < N\n  y[i] = x[i] * 2")
    assert needs_of(instruction("scale")).dtypes == {"f32"}
    wide = replace(instruction("scale"), body=replace(instruction("scale").body, buffers=tuple(
        replace(b, dtype="f64") if b.name == "a" else b for b in instruction("scale").body.buffers)))  # fmt: skip
    assert needs_of(wide).dtypes == {"f32"}
    for i in (instruction("scale"), wide):
        assert match(double, i)
        assert i in present([i], double)


def test_comparisons_written_either_way_are_the_same():
    text = "(N)\n  in A: f32[N]\n  in B: f32[N]\n  out D: bool[N]\n  forall i < N\n    D[i] = A[i] {} B[i]\n"
    greater, less = (parse_instruction(f"instruction c{text.format(op)}") for op in (">", "<"))
    k = kernel("k(N)\n in a: f32[N]\n in b: f32[N]\n out y: bool[N]\n forall i < N\n  y[i] = a[i] < b[i]")
    for i in (greater, less):
        assert match(k, i)
        assert present([i], k) == [i]
        assert cover(k, Demand([i]), Trace(Approach()))


def test_liberties_that_the_kernel_does_not_grant_rule_out():
    gemm = instruction("gemm")
    fused = replace(gemm, body=replace(gemm.body, permits=frozenset({"contract"})))
    assert present([gemm, fused], named("conv")) == [gemm, fused]
    assert present([gemm, fused], replace(named("conv"), permits=frozenset({"exact"}))) == [gemm]
