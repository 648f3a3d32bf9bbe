"""toy: what it says of itself holds, and every statement of the language has an instruction on it."""

from __future__ import annotations

import numpy as np
import pytest

from isam.approach.choice import Approach, Trace
from isam.diagnostics import all_codes
from isam.ir.dtype import DTYPES
from isam.ir.interp import run
from isam.ir.normal import normal_form
from isam.ir.text import parse
from isam.mapper.cover import cover
from isam.mapper.demand import Demand
from isam.system.check import check
from isam.system.draw import mermaid
from isam.system.load import load_system
from isam.system.show import text
from tests.corpus import CASES

TOY = load_system("toy")
FLOATS = [n for n, d in DTYPES.items() if d.kind == "f"]
FUNCTIONS = ("exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "sqrt", "rsqrt", "abs", "floor", "ceil", "round")
NUMBERS = [n for n in DTYPES if n != "bool"]


def test_it_checks_itself() -> None:
    assert check(TOY) == []
    assert TOY.assumed == ()
    assert {u: len(v.runs) > 0 for u, v in TOY.units.items()} == {"mm": True, "vec": True, "dma": True}
    for name in ("ra", "rb"):
        assert (TOY.memories[name].cells, TOY.memories[name].cell) == (16, 64)
    assert TOY.memories["sp"].capacity == 16384
    assert TOY.instructions["copy"].contract("S").strides == (None, None)


@pytest.mark.parametrize("name", ["toy", "host-avx512"])
def test_bodies_are_sound(name: str) -> None:
    assert check(load_system(name), bodies=True) == []


def test_one_body_by_the_interpreter() -> None:
    r = np.random.default_rng(3)
    A, B = r.integers(-128, 128, (3, 4), dtype=np.int8), r.integers(-128, 128, (4, 2), dtype=np.int8)
    C = r.integers(-1000, 1000, (3, 2), dtype=np.int32)
    got = run(TOY.instructions["mm4_i8"].body, {"A": A, "B": B, "C": C})["C"]
    assert (got == C + A.astype(np.int32) @ B.astype(np.int32)).all()


@pytest.mark.parametrize("name", CASES)
def test_every_kernel_of_the_corpus_has_a_cover(name: str) -> None:
    case = CASES[name]
    k = case.load()
    k = normal_form(k.with_sizes({n: v for n, v in case.sizes[-1].items() if n not in k.trips}))
    found = cover(k, Demand(TOY.compute), Trace(Approach()))
    assert found, str(found)
    assert sorted(s for m in found.mappings for s in m.statements) == list(range(len(found.kernel.statements)))


def one(statement: str, a: str, b: str, d: str, shape: str) -> str:
    index = "[i]" if shape else "[]"
    block = "  forall i < 21\n    " if shape else "  "
    body = "".join(f"{c}{index}" if c in "ABDQ" else c for c in statement)
    rows = [f"kernel k()\n  in    A: {a}[{shape}]"]
    rows += [f"  in    B: {b}[{shape}]"] * ("B" in statement) + [f"  in    Q: bool[{shape}]"] * ("Q" in statement)
    role = "inout" if ("= D" not in statement and " = " not in statement) or ", D)" in statement else "out  "
    return "\n".join([*rows, f"  {role} D: {d}[{shape}]", block + body])


def statements() -> list[tuple[str, str, str, str]]:
    out: list[tuple[str, str, str, str]] = []
    for t in NUMBERS:
        out += [(f"D = A {op} B", t, t, t) for op in "+-*/"]
        out += [(f"D = {f}(A, B)", t, t, t) for f in ("max", "min", *(["pow"] if t in FLOATS else []))]
        out += [(f"D {op} A", t, t, t) for op in ("+=", "*=", "max=", "min=")] + [("D = -A", t, t, t),
                                                                                  ("D += A * B", t, t, t)]
    for t in DTYPES:
        out += [("D = A", t, t, t), ("D = select(Q, A, D)", t, t, t)]
        tests = ("==", "!=") if t == "bool" else ("<", "<=", ">", ">=", "==", "!=")
        out += [(f"D = A {op} B", t, t, "bool") for op in tests]
        out += [(f"D = {u}(A)", t, t, u) for u in DTYPES if u != t]
        out += [(f"D = sat_{u}(A)", t, t, u) for u in NUMBERS if u not in FLOATS and u != t != "bool"]
    for t in FLOATS:
        out += [(f"D = {f}(A)", t, t, t) for f in FUNCTIONS]
    return [*out, ("D = A and B", "bool", "bool", "bool"), ("D = A or B", "bool", "bool", "bool"),
            ("D = not A", "bool", "bool", "bool")]  # fmt: skip


@pytest.mark.parametrize("shape", ["", "21"])
def test_every_operation_on_every_type_has_an_instruction(shape: str) -> None:
    missing: list[str] = []
    for statement, a, b, d in statements():
        source = one(statement, a, b, d, shape)
        if not cover(normal_form(parse(source)), Demand(TOY.compute), Trace(Approach())):
            missing.append(source)
    assert missing == []


def test_a_machine_shows_itself() -> None:
    shown = text(load_system("tiny"))
    assert "  ra    managed  8 x 64 B  1 B\n" in shown
    row = next(line for line in shown.split("\n") if line.startswith("  mm4 "))
    assert "  A[M, K], B[K, N], C[M, N] (M <= 4, N <= 4, K <= 4)  " in row
    assert "ra|rb; apart A, B" in row
    assert row.endswith("issue 4 cycles, latency 12 cycles")
    assert "assumed" not in shown
    drawn = mermaid(load_system("tiny"))
    assert drawn.startswith("flowchart LR\n")
    assert '  m_dram <-->|"copy (dma)"| m_sp\n' in drawn
    assert "  u_mm --- m_ra\n" in drawn
    for name in ("toy", "host-avx512"):
        assert text(load_system(name))
        assert mermaid(load_system(name)).count("\n") < 40


def test_drawings_frame_replicas_and_join_clusters() -> None:
    machine = load_system("casestudy")
    drawn = mermaid(machine)
    assert '  subgraph r_cluster["24 x cluster"]\n' in drawn
    assert '  u_mx0 ===|"pair"| u_mx1\n' in drawn
    inside = drawn[drawn.index("subgraph") : drawn.index("  end")]
    assert "m_sp" in inside
    assert "m_hbm" not in inside


def test_every_code_is_explained() -> None:
    import re
    from pathlib import Path

    import isam.system

    sources = [p.read_text() for p in Path(isam.system.__file__).parent.glob("*.py")]
    used = {c for source in sources for c in re.findall(r'"((?:system|instruction|remark)-[a-z-]+)"', source)}
    from isam.system.codes import CODES
    from isam.system.trials import _HINTS

    used |= {f"instruction-{k}" for k in _HINTS} | {f"system-unknown-{k}" for k in ("memory", "unit", "instruction")}
    assert used == CODES.keys()
    assert all_codes()["system-unit"] == CODES["system-unit"]
