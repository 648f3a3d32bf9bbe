"""What selection says about the shipped machines: the honest "no" of ``tiny`` (surface.md), large programs."""

from __future__ import annotations

import random
from pathlib import Path

from isam.approach.choice import Approach, Trace
from isam.ir.normal import normal_form
from isam.ir.text import parse, parse_file, parse_instruction, print_kernel
from isam.mapper.cover import cover
from isam.mapper.demand import Demand
from isam.system.load import load_system
from isam.system.numerics import contradictions
from tests.clock import quickest

SURFACE = Path(__file__).parents[1] / "text" / "surface.isam"


def surface(name: str, **sizes: int):
    kernel = next(k for k in parse_file(SURFACE.read_text(), "surface.isam").kernels if k.name == name)
    return normal_form(kernel.with_sizes(sizes))


def test_tiny_says_that_it_cannot_zero_c_and_what_would_do():
    offered = load_system("tiny").compute
    no = cover(surface("matmul", M=8, N=8, K=8), Demand(offered), Trace(Approach()))
    assert not no
    assert [g.statement for g in no.gaps] == [0]
    text = str(no)
    assert "no instruction offered can write a constant to f32 ('C[i, j] = 0')" in text
    assert "surface.isam:" in text
    assert "an instruction like this would do:" in text
    fill, from_scalar = no.gaps[0].remedies
    assert "D[i, j] = 0" in str(fill.body)
    assert "D[i, j] = A[]" in str(from_scalar.body)
    for remedy in (fill, from_scalar):  # what is suggested is true
        c = cover(surface("matmul", M=8, N=8, K=8), Demand([*offered, remedy]), Trace(Approach()))
        assert {m.instruction.name for m in c.mappings} == {"mm4", remedy.name}


def test_remedies_print_as_instructions_that_parse_back():
    offered = load_system("tiny").compute
    cases = {"softmax": {"M": 4, "N": 5}, "conv2d": dict.fromkeys("NCHWKRS", 3), "rnn": {"B": 2, "X": 3, "H": 4}}
    for name, sizes in cases.items():
        no = cover(surface(name, **sizes), Demand(offered), Trace(Approach()))
        assert not no
        for gap in no.gaps:
            assert gap.remedies
            for r in gap.remedies:
                pasted = parse_instruction(print_kernel(r.body, keyword="instruction"))
                assert pasted.name == r.name
                assert not list(contradictions(pasted))


def program(statements: int, seed: int):
    """A chain of element-wise statements and small products."""
    rng = random.Random(seed)
    names = [f"a{i}" for i in range(4)]
    lines = ["kernel big()", *(f"  in {n}: f32[16, 16]" for n in names), "  out y: f32[16, 16]"]
    count = 0
    box, cube = "  forall i < 16, j < 16", "  forall i < 16, j < 16, k < 16"
    while count < statements:
        x, y, z = rng.choice(names[-6:]), rng.choice(names[-6:]), f"b{len(names)}"
        if rng.random() < 0.3:
            lines += [box, f"    {z}[i, j] = 0", cube, f"    {z}[i, j] += {x}[i, k] * {y}[k, j]"]
            count += 3
        else:
            form = rng.choice(["{} + {}", "{} * {}", "max({}, {})", "{} - {}"])
            lines += [box, f"    {z}[i, j] = {form.format(f'{x}[i, j]', f'{y}[i, j]')}"]
            count += 1
        names.append(z)
    lines += [box, "    y[i, j] = " + " + ".join(f"{n}[i, j]" for n in names[-6:])]
    return parse("\n".join(lines) + "\n")


def test_a_program_of_hundreds_of_statements_is_covered_exactly_and_soon():
    kernel = program(400, 3)
    offered = load_system("toy").compute
    made = []
    assert quickest(lambda: made.append(cover(kernel, Demand(offered), Trace(Approach()))), 15.0, tries=2) < 15.0
    c = made[0]
    assert sorted(i for m in c.mappings for i in m.statements) == list(range(len(kernel.statements)))
    assert c.gap is None
    products = [m for m in c.mappings if m.instruction.name == "mm4_f32"]
    assert len(products) == sum(s.accumulate for s in kernel.statements)
    assert all(len(m.statements) == 2 for m in products)
