"""Mappings with every field wrong in turn: the kernel that they would carry out, or why there is none; and what the
semantics of instructions makes of them. What is said is on record; that it is right is shown where certificates are."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from isam.ir.affine import Affine
from isam.ir.dataflow import mask_of, order_of, ordered
from isam.ir.kernel import Kernel
from isam.ir.mapping import Mapping, OperandMap
from isam.ir.normal import normal_form
from isam.ir.text import parse_instruction, parse_kernel
from isam.mapper import match
from isam.proof.carried import Unfit, carried, in_order
from isam.proof.equivalence import equivalent
from isam.proof.semantics import compare
from isam.system.load import load_system
from tests.corpus import CASES
from tests.random_kernels import random_kernel
from tests.unit.proof.test_checker import ADDED, SHIFTED, SIZES, STENCIL, made
from tests.unit.proof.verdicts import on_record

OWN = {
    "neighbours": (STENCIL, ("in x: f32[9]", "out y: f32[8]", "forall i < 8", "  y[i] = x[i + 1] - x[i]")),
    "two pieces": (SHIFTED, ("in x: f32[8]", "out y: f32[8]", "temp s: f32[9]", "s[0] = 0", "forall i < 8",
                             "  s[i + 1] = x[i] * 2", "forall i < 8", "  y[i] = s[i] + x[i]")),
    "in a loop": (ADDED, ("in x: f32[5, 8]", "inout h: f32[8]", "out y: f32[5, 8]", "loop t < 5", "  forall i < 8",
                          "    h[i] += x[t, i]", "    y[t, i] = tanh(h[i])")),
    "a sum, call by call": (("in A: f32[N]", "inout D: f32[N]", "forall i < N", "  D[i] = D[i] + A[i]"),
                            ("in x: f32[3, 8]", "inout y: f32[8]", "forall k < 3, i < 8", "  y[i] += x[k, i]")),
    "a number": (("in A: f32[N]", "in s: f32", "out D: f32[N]", "forall i < N", "  D[i] = A[i] * s"),
                 ("in x: f32[8]", "out y: f32[8]", "forall i < 8", "  y[i] = 3 * x[i]")),
    "every second": (("in A: f32[N]", "out D: f32[N]", "forall i < N", "  D[i] = max(A[i], 0)"),
                     ("in x: f32[4, 8]", "out y: f32[4, 8]", "forall j < 4, i < 8 where j - i + 2 >= 0",
                      "  y[j, i] = max(x[j, i], 0)")),
    "axes of two statements, turned": (
        ("in A: f32[N, M]", "out D: f32[N, M]", "temp s: f32[N, M]", "forall i < N, j < M", "  s[i, j] = A[i, j] * 2",
         "forall i < N, j < M", "  D[i, j] = s[i, j] + A[i, j]"),
        ("in x: f32[2, 3]", "out y: f32[2, 3]", "temp t: f32[2, 3]", "forall i < 2, j < 3", "  t[i, j] = x[i, j] * 2",
         "forall j < 2, i < 3", "  y[j, i] = t[j, i] + x[j, i]")),
    "one more": (("in A: f32[N + 1]", "out D: f32[N]", "temp s: f32[N + 1]", "forall i < N + 1", "  s[i] = A[i] * 2",
                  "forall i < N", "  D[i] = s[N - i]"),
                 ("in x: f32[5]", "out y: f32[4]", "temp s: f32[5]", "forall i < 5", "  s[i] = x[i] * 2",
                  "forall i < 4", "  y[i] = s[4 - i]")),
    "twice as many": (("in A: f32[2 * N]", "out D: f32[N]", "temp s: f32[2 * N]", "forall i < 2 * N",
                       "  s[i] = A[i] * 2", "forall i < N", "  D[i] = s[i + N]"),
                      ("in x: f32[8]", "out y: f32[4]", "temp s: f32[8]", "forall i < 8", "  s[i] = x[i] * 2",
                       "forall i < 4", "  y[i] = s[i + 4]")),
    "four of any type": (("in c: any", "in A: any[4]", "out D: any[4]", "temp s: any[4]", "forall i < 4",
                          "  s[i] = A[i] * c", "forall i < 4", "  D[i] = s[i] + A[i]"),
                         ("in x: i8[8]", "out y: i8[8]", "temp s: i8[8]", "forall i < 8", "  s[i] = x[i] * 3",
                          "forall i < 8", "  y[i] = s[i] + x[i]")),
}  # fmt: skip


def mappings(name: str) -> tuple[Kernel, list[Mapping]]:
    if name in OWN:
        body, lines = OWN[name]
        k = parse_kernel(f"kernel k()\n{made(*lines)}")
        return k, list(match(k, parse_instruction(f"instruction own(N, M)\n{made(*body)}")) or ())[:3]
    k = normal_form(CASES[name].load().with_sizes(SIZES[name]))
    found = [m for i in load_system("toy").compute for m in match(k, i) or ()]
    return k, found[:: max(1, len(found) // 4)]


def of_operand(o: OperandMap, k: Kernel) -> Iterator[tuple[str, OperandMap]]:
    for d in range(len(o.index)):
        for by in (-1, 1):
            yield f"index {d} {by}", replace(o, index=(*o.index[:d], o.index[d] + by, *o.index[d + 1 :]))
        yield f"index {d} twice", replace(o, index=(*o.index[:d], o.index[d] * 2, *o.index[d + 1 :]))
        yield f"index {d} of zz", replace(o, index=(*o.index[:d], Affine.of("zz"), *o.index[d + 1 :]))
    yield "index less", replace(o, index=o.index[1:])
    for dims in (o.dims[::-1], o.dims[1:], tuple(d + 1 for d in o.dims), tuple(-1 for _ in o.dims), (*o.dims, 0)):
        yield f"dims {dims}", replace(o, dims=dims)
    for steps in (tuple(2 * s for s in o.steps), o.steps[1:], tuple(-s for s in o.steps)):
        yield f"steps {steps}", replace(o, steps=steps)
    for buffer in ("", "zz", *(b.name for b in k.buffers)):
        yield f"buffer {buffer}", replace(o, buffer=buffer)
    for literal in (None, 3, 3.0, 0, -0.0):
        yield f"literal {literal}", replace(o, buffer="", index=(), literal=literal)
    yield "name", replace(o, operand="zz")


def of_mapping(m: Mapping, k: Kernel) -> Iterator[tuple[str, Mapping]]:
    yield "as it is", m
    for i, o in enumerate(m.operands):
        for what, new in of_operand(o, k):
            yield f"{o.operand} {what}", replace(m, operands=(*m.operands[:i], new, *m.operands[i + 1 :]))
        yield f"without {o.operand}", replace(m, operands=(*m.operands[:i], *m.operands[i + 1 :]))
    for i in range(len(m.axes)):
        yield f"without axis {i}", replace(m, axes=(*m.axes[:i], *m.axes[i + 1 :]))
        for to in ("zz", *(a.name for s in k.statements for a in s.domain.axes)):
            yield f"axis {i} is {to}", replace(m, axes=(*m.axes[:i], (m.axes[i][0], to), *m.axes[i + 1 :]))
    yield "axes turned", replace(m, axes=m.axes[::-1])
    for outer in ((), (*m.outer, "zz"), m.outer[::-1], m.outer[1:], (*m.outer, *(to for _, to in m.axes[:1]))):
        yield f"outer {outer}", replace(m, outer=outer)
    for n in range(len(k.statements) + 1):
        yield f"statement {n}", replace(m, statements=(n,))
    yield "statements less", replace(m, statements=m.statements[1:])
    yield "statements twice", replace(m, statements=(*m.statements, *m.statements))
    yield "all statements", replace(m, statements=tuple(range(len(k.statements))))


def told(k: Kernel, some: tuple[Mapping, ...]) -> str:
    try:
        return str(carried(k, some))
    except (Unfit, KeyError, IndexError) as e:  # what else is wrong with it says the semantics, before this is asked
        return f"{type(e).__name__}: {e}"


def meant(m: Mapping, k: Kernel) -> list[Any]:
    try:
        s = compare(m, k)
    except (KeyError, IndexError) as e:
        return [type(e).__name__]
    pairs = [re.sub(r", loc=Loc\([^)]*\)", "", str(x)) for x in s.pairs]  # wherever the sources lie
    return [*s.faults, *pairs, s.effects, s.contracted]


@pytest.mark.parametrize("name", [*OWN, "conv_same", "matmul"])
def test_every_field_of_a_mapping(name: str) -> None:
    k, found = mappings(name)
    assert found
    said: list[Any] = []
    for m in found:
        assert equivalent(k, carried(k, (m,)))
        for what, new in of_mapping(m, k):
            said += [f"{m.instruction.name}: {what}", told(k, (new,)), *meant(new, k)]
    on_record(f"carried: {name}", said)


def test_statements_in_two_mappings() -> None:
    k, (m, *_) = mappings("neighbours")
    for some in ((m, m), (m, replace(m, statements=()))):
        assert told(k, some).startswith("Unfit: a statement is carried out twice") is (some[1] is m)
    none = "Unfit: a statement is carried out twice, or is none of the kernel's"
    assert told(k, (replace(m, statements=(7,)),)) == none


def test_a_sum_call_by_call_is_no_other_operation() -> None:
    """``d = d + x`` is ``d += x`` where several calls write one element; no difference is, and no sum of itself."""
    k, (m, *_) = mappings("a sum, call by call")
    head = "instruction own(N)\n  in A: f32[N]\n  inout D: f32[N]\n  forall i < N\n    "
    for line, right in (
        ("D[i] = D[i] + A[i]", True), ("D[i] = A[i] + D[i]", True), ("D[i] += A[i]", True),
        ("D[i] = D[i] - A[i]", False), ("D[i] += D[i]", False), ("D[i] = D[i] + D[i]", False),
    ):  # fmt: skip
        new = carried(k, (replace(m, instruction=parse_instruction(head + line)),))
        assert bool(equivalent(k, new)) is right
        (s,) = new.statements
        assert s.accumulate is ("+=" in line or right)
        assert s.op == ("sub" if "-" in line else "add" if not s.accumulate else s.op)
        assert len(s.sources) == (1 if s.accumulate else 2)


def test_a_loop_is_where_its_first_mapping_is() -> None:
    k = parse_kernel("kernel k()\n" + made(
        "in x: f32[3, 8]", "inout g: f32[8]", "inout h: f32[8]", "out y: f32[8]", "forall i < 8", "  g[i] = h[i] * 2",
        "loop t < 3", "  forall i < 8", "    h[i] += x[t, i]", "  forall i < 8", "    g[i] += x[t, i]",
        "forall i < 8", "  y[i] = g[i] * 2"))  # fmt: skip
    head = "instruction own(N)\n  in A: f32[N]\n  {} D: f32[N]\n  forall i < N\n    D[i] {}"
    found = [m for x in (("out", "= A[i] * 2"), ("inout", "+= A[i]"))
             for m in match(k, parse_instruction(head.format(*x))) or ()]  # fmt: skip
    by = {m.statements[0]: m for m in found}
    assert sorted(by) == [0, 1, 2, 3]
    for order, right in (((0, 1, 2, 3), True), ((0, 2, 1, 3), True), ((0, 1, 3, 2), True), ((1, 2, 0, 3), False),
                         ((3, 0, 1, 2), False), ((0, 3, 1, 2), False), ((1, 0, 2, 3), False)):  # fmt: skip
        assert bool(equivalent(k, carried(k, [by[n] for n in order]))) is right, order
    for some in ((3, 1), (2, 0), (3, 2, 1), (3, 0), ()):  # dependences say where the others are
        assert equivalent(k, carried(k, [by[n] for n in some]))


def test_an_operand_that_is_nothing() -> None:
    k, (m, *_) = mappings("a number")
    s = m.operand("s")
    none = replace(m, operands=tuple(replace(o, literal=None) if o is s else o for o in m.operands))
    assert (s.buffer, s.literal) == ("", 3)
    assert told(k, (none,)) == "Unfit: operand s is neither a buffer nor a number"


def test_statements_that_cannot_be_carried_out_together() -> None:
    """One in a loop and one before it; two with one between them that needs the first and is needed by the second."""
    _, (m, *_) = mappings("neighbours")
    head = made("in x: f32[9]", "inout y: f32[8]", "inout z: f32[8]")
    one, two = ("  forall i < 8\n    y[i] = x[i + 1] - x[i]\n", "  forall i < 8\n    z[i] = y[i] * 2\n")
    three = "  forall i < 8\n    y[i] = z[i] + x[i]\n"
    loop = "  loop t < 3\n" + "".join(f"  {x}\n" for x in one.splitlines())
    for body, why in ((one + loop, f"'{m.instruction.name}' is mapped across a recurrent loop"),
                      (one + two + three, "no order of the calls keeps the dependences")):  # fmt: skip
        some = parse_kernel(f"kernel k()\n{head}{body}")
        for first in range(len(some.statements) - 1):
            last = len(some.statements) - 1
            said = told(some, (replace(m, statements=(first, last)),))
            assert (said == f"Unfit: {why}") is (first == 0), said


def test_units_come_in_the_order_that_the_mapper_gives_them() -> None:
    """Two ways to say it: by what each buffer's writers wait for here, by closed sets of dependences there."""
    rng, circles = random.Random(3), 0
    for n in range(300):
        statements = random_kernel(n)[0].statements
        if len(statements) < 3:
            continue
        units: list[list[int]] = [[] for _ in range(rng.randint(1, len(statements)))]
        for i in range(len(statements)):
            rng.choice(units).append(i)
        units = [u for u in units if u]
        expected = ordered([mask_of(u) for u in units], order_of(statements))
        if expected is None:
            circles += 1
            with pytest.raises(Unfit, match="no order of the calls"):
                in_order(units, statements)
        else:
            assert in_order(units, statements) == expected
    assert 20 < circles < 200
