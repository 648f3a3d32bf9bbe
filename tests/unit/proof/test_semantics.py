"""Obligation 3 by itself: an instruction laid beside the statements it is said to carry out."""

# ruff: noqa: E501  (tables: a kernel is one line)

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.ir.text import parse_instruction
from isam.mapper import Matches, match
from isam.proof.semantics import Semantics, compare, instruction_effects
from tests.unit.mapper.catalogue import instruction, kernel

EXTRA = {
    "smaller": "  in A: f32[N]\n  in B: f32[N]\n  in C: f32[N]\n  out D: f32[N]\n  forall i < N\n"
               "    D[i] = select(A[i] < B[i], C[i], 0)\n",
    "two": "  in A: f32[N]\n  out B: f32[N]\n  out D: f32[N]\n  forall i < N\n    B[i] = A[i] + 1\n    D[i] = B[i] * 2\n",
    "thrice": "  in A: f32[N]\n  out D: f32[N]\n  forall i < N\n    D[i] = (A[i] + A[i]) + A[i]\n",
    "wider": "  in A: f16[N]\n  out D: f32[N]\n  forall i < N\n    D[i] = f32(A[i])\n",
    "any": "  in A: any[N]\n  out D: any[N]\n  forall i < N\n    D[i] = A[i]\n",
    "adds": "  in A: f32[N]\n  inout D: f32[N]\n  forall i < N\n    D[i] += A[i]\n",
    "copied": "  in A: f32[N]\n  out D: f32[N]\n  forall i < N\n    t[i] = A[i] * 2\n    D[i] = t[i]\n",
}  # fmt: skip
ONE = "k()\n in x: f32[8]\n in z: f32[8]\n {}: f32[8]\n forall i < 8\n  {}"
SQUARE = ("k()\n in A: f32[8, 8]\n in B: f32[8, 8]\n in b: f32[8]\n out C: f32[8, 8]\n forall i < 8, j < 8\n  C[i, j] = {}\n"
          " forall i < 8, j < 8, k < 8\n  C[i, j] += {}\n{}")  # fmt: skip
RELU = " forall i < 8, j < 8\n  C[i, j] = max(C[i, j], 0)"
SAME = {
    "a sum": ("vadd", ONE.format("out y", "y[i] = x[i] + z[i]")),
    "a sum, turned": ("vadd", ONE.format("out y", "y[i] = z[i] + x[i]")),
    "a difference": ("vsub", ONE.format("out y", "y[i] = x[i] - z[i]")),
    "a number": ("relu", ONE.format("out y", "y[i] = max(x[i], 0)")),
    "a number in front": ("relu", ONE.format("out y", "y[i] = max(0, x[i])")),
    "in place": ("relu_in_place", ONE.format("inout y", "y[i] = max(y[i], 0)")),
    "a number for an operand": ("scale", ONE.format("out y", "y[i] = x[i] * 3")),
    "an accumulation": ("axpy", ONE.format("inout y", "y[i] += 3 * x[i]")),
    "an accumulation in full": ("axpy", ONE.format("inout y", "y[i] = y[i] + 3 * x[i]")),
    "an accumulation in full, turned": ("axpy", ONE.format("inout y", "y[i] = 3 * x[i] + y[i]")),
    "an accumulation one by one": ("vadd", ONE.format("inout y", "y[i] += x[i]")),
    "one element twice": ("square", ONE.format("out y", "y[i] = x[i] * x[i]")),
    "a sum that is begun": ("gemm0", SQUARE.format("0", "A[i, k] * B[k, j]", "")),
    "begun, summed, ended": ("gemm_bias_relu", SQUARE.format("b[j]", "A[i, k] * B[k, j]", RELU)),
    "a condition": ("smaller", ONE.format("out y", "y[i] = select(x[i] < z[i], x[i], 0)")),
    "a condition, mirrored": ("smaller", ONE.format("out y", "y[i] = select(z[i] > x[i], x[i], 0)")),
    "a sum of two": ("adds", ONE.format("inout y", "y[i] = y[i] + x[i]")),
    "two results, one needed no more": ("two", ONE.format("out v", "t[i] = x[i] + 1\n  v[i] = t[i] * 2")),
    "a copy of any type": ("any", ONE.format("out y", "y[i] = x[i]")),
    "two results": ("two", ONE.format("out y: f32[8]\n out v", "y[i] = x[i] + 1\n  v[i] = y[i] * 2")),
}
FORGED = {
    "a sum": ["x[i] + x[i]", "x[i] - z[i]", "x[i] * z[i]", "x[i]", "x[i] + z[7 - i]", "x[i] + z[i] + z[i]", "x[i] + 1"],
    "a difference": ["z[i] - x[i]", "x[i] + z[i]"],
    "a number": ["max(x[i], 1)", "min(x[i], 0)", "max(x[i], z[i])", "max(z[i], 0)", "max(x[i], -0.0)"],
    "in place": ["max(y[i], 1)", "max(x[i], 0)"],
    "a number for an operand": ["x[i] * 4", "z[i] * 3", "x[i] + 3", "3"],
    "an accumulation in full": ["y[i] - 3 * x[i]", "y[i] * 3 * x[i]", "x[i] + 3 * x[i]", "3 * x[i]"],
    "a sum of two": ["exp(x[i])", "y[i] - x[i]", "x[i]", "x[i] + z[i]", "y[i] + y[i]", "max(y[i], x[i])"],
    "one element twice": ["x[i] * z[i]", "x[i] * x[7 - i]"],
    "a condition": ["select(z[i] < x[i], x[i], 0)", "select(x[i] <= z[i], x[i], 0)", "select(x[i] < z[i], z[i], 0)"],
}


def made(name: str):
    if name in EXTRA:
        return parse_instruction(f"instruction {name}(N)\n{EXTRA[name]}")
    return instruction(name)


def judged(what: str) -> list[tuple[Semantics, object]]:
    name, text = SAME[what]
    k, found = kernel(text), match(kernel(text), made(name))
    assert isinstance(found, Matches), str(found)
    return [(compare(m, k), m) for m in found]


@pytest.mark.parametrize("what", SAME)
def test_what_it_does_is_what_the_statements_say(what: str) -> None:
    found = judged(what)
    assert found
    for s, m in found:
        assert s.faults == ()
        assert s.pairs
        roles = {b.name: b.role for b in m.instruction.body.arguments}
        assert {p.operand for p in s.pairs if p.writes} == {n for n, role in roles.items() if role != "in"}
        assert {p.operand for p in s.pairs if not p.writes} >= {n for n, role in roles.items() if role == "in"}


@pytest.mark.parametrize(("what", "value"), [(w, v) for w, values in FORGED.items() for v in values])
def test_another_statement_is_refused(what: str, value: str) -> None:
    text = SAME[what][1]
    wrong = kernel(text[: text.rindex("= ") + 2] + value)
    for _, m in judged(what):
        if len(m.statements) == len(wrong.statements):
            assert [f[:2] for f in compare(m, wrong).faults] == [(3, "operation")], m


def test_a_temporary_that_is_needed_elsewhere_escapes() -> None:
    k = kernel("k()\n in x: f32[8]\n in z: f32[8]\n out y: f32[8]\n forall i < 8\n  t[i] = x[i] + 1\n  y[i] = t[i] * t[i]")
    ins = parse_instruction("instruction both(N)\n  in A: f32[N]\n  out D: f32[N]\n  forall i < N\n    t[i] = A[i] + 1\n"
                            "    D[i] = t[i] * t[i]\n")  # fmt: skip
    found = match(k, ins)
    assert isinstance(found, Matches)
    (m,) = found
    assert compare(m, k).faults == ()
    more = kernel("k()\n in x: f32[8]\n in z: f32[8]\n out y: f32[8]\n out v: f32[8]\n forall i < 8\n  t[i] = x[i] + 1\n"
                  "  y[i] = t[i] * t[i]\n  v[i] = t[i] * z[i]")  # fmt: skip
    assert {f[:2] for f in compare(m, more).faults} == {(6, "escapes")}
    stored = kernel("k()\n in x: f32[8]\n in z: f32[8]\n out y: f32[8]\n out t: f32[8]\n forall i < 8\n  t[i] = x[i] + 1\n"
                    "  y[i] = t[i] * t[i]")  # fmt: skip
    assert {f[:2] for f in compare(m, stored).faults} == {(3, "operation")}  # what is a result is never left inside
    without = replace(m, statements=m.statements[1:])  # the one that makes the temporary
    assert (3, "operation") in {f[:2] for f in compare(without, k).faults}


def test_a_temporary_with_an_index_that_is_a_number_is_not_followed() -> None:
    body = "  in A: f32[N]\n  out D: f32[N]\n  temp t: f32[N, 1]\n  forall i < N\n    t[i, 0] = A[i] * 2\n    D[i] = t[i, 0]\n"
    assert isinstance(instruction_effects(parse_instruction(f"instruction narrow(N)\n{body}")), str)
    plain = body.replace("[N, 1]", "[N]").replace("[i, 0]", "[i]")
    assert not isinstance(instruction_effects(parse_instruction(f"instruction narrow(N)\n{plain}")), str)


def test_the_order_of_results_counts() -> None:
    k = kernel(ONE.format("inout y: f32[8]\n out v", "v[i] = y[i] * 2\n  y[i] = x[i] + 1"))
    for _, m in judged("two results"):
        assert compare(m, k).faults


def test_numerics_that_an_instruction_takes_are_permitted() -> None:
    text = "k()\n permits {}\n in x: f32[8]\n in z: f32[8]\n out y: f32[8]\n forall i < 8\n  y[i] = x[i] + z[i]"
    granting = kernel(text.format("reassociate, finite"))
    ins = parse_instruction("instruction plus(N)\n  permits finite\n  in A: f32[N]\n  in B: f32[N]\n  out D: f32[N]\n"
                            "  forall i < N\n    D[i] = A[i] + B[i]\n")  # fmt: skip
    found = match(granting, ins)
    assert isinstance(found, Matches)
    for m in found:
        assert compare(m, granting).faults == ()
        assert [f[:2] for f in compare(m, kernel(text.format("exact"))).faults] == [(3, "numerics")]


def test_what_cannot_be_followed_is_refused() -> None:
    """Of the kernel or of the instruction: a temporary that is spread or summed."""
    k = kernel(ONE.format("out y", "y[i] = x[i] + z[i]"))
    found = match(k, made("vadd"))
    assert isinstance(found, Matches)
    spread = kernel("k()\n in x: f32[8]\n in z: f32[8]\n out y: f32[8]\n forall i < 8\n  t[i, 0] = x[i] + z[i]\n"
                    "  y[i] = t[i, 0]".replace(" out y: f32[8]\n", " out y: f32[8]\n temp t: f32[8, 1]\n"))  # fmt: skip
    for m in found:
        (fault,) = compare(replace(m, statements=(0, 1)), spread).faults
        assert fault[:2] == (3, "operation")
        assert "cannot be inlined" in fault[2]


def test_a_type_of_another_kind_is_another_operand() -> None:
    text = "k()\n in x: {}[8]\n out y: f32[8]\n forall i < 8\n  y[i] = f32(x[i])"
    half, whole = kernel(text.format("f16")), kernel(text.format("i8"))
    found = match(half, made("wider"))
    assert isinstance(found, Matches)
    for m in found:
        assert compare(m, half).faults == ()
        assert [f[:2] for f in compare(m, whole).faults] == [(3, "operation")]


def test_a_number_is_no_row_of_numbers() -> None:
    k = kernel(ONE.format("out y", "y[i] = x[i] + z[i]"))
    found = match(k, made("vadd"))
    assert isinstance(found, Matches)
    for m in found:
        (other,) = (o for o in m.operands if o.buffer == "z")
        forged = replace(m, operands=tuple(replace(o, buffer="", index=(), literal=3) if o is other else o
                                           for o in m.operands))  # fmt: skip
        assert compare(forged, kernel(ONE.format("out y", "y[i] = x[i] + 3"))).faults
        assert compare(m, kernel(ONE.format("out y", "y[i] = x[i] + 3"))).faults


@pytest.mark.parametrize("value", ["x[i, j] + x[i + 1, j]", "x[i + 1, j] + x[i, j]", "x[2 * i, j] + x[2 * i + 2, j]"])
@pytest.mark.parametrize("name", ["vadd", "neighbours"])
def test_an_operand_is_the_access_that_is_said_and_no_other_of_its_buffer(name: str, value: str) -> None:
    """Of two accesses to one buffer, some constants apart; with what the instruction adds to its own axes."""
    k = kernel(f"k()\n in x: f32[17, 8]\n out y: f32[8, 8]\n forall j < 8, i < 8\n  y[i, j] = {value}")
    ins = made("vadd") if name == "vadd" else parse_instruction(
        "instruction neighbours(N)\n  in A: f32[N + 1]\n  out D: f32[N]\n  forall i < N\n    D[i] = A[i] + A[i + 1]\n")
    found = match(k, ins, strided=True)
    assert isinstance(found, Matches)
    for m in found:
        s = compare(m, k)
        assert s.faults == ()
        for p in s.pairs:
            o = m.operand(p.operand)
            assert p.kernel is not None
            more = [(b - a).const for a, b in zip(o.index, p.kernel.index, strict=True)]
            assert sum(more) == sum(r.const * n for r, n in zip(p.own.index, o.steps, strict=True))
        far = tuple(replace(o, index=tuple(r + 1 for r in o.index)) if o.buffer == "x" else o for o in m.operands)
        assert [f[:2] for f in compare(replace(m, operands=far), k).faults] == [(3, "operation")]
        nowhere = tuple(replace(o, dims=(7,) * len(o.dims)) for o in m.operands)  # dimensions that there are not
        assert bool(compare(replace(m, operands=nowhere), k).faults) is (name == "neighbours")
