"""The symmetries of an instruction: the identity is one, whatever its statements call their axes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from isam.ir.dataflow import order_of
from isam.ir.instruction import Instruction, OperandContract
from isam.ir.kernel import Kernel
from isam.ir.normal import normal_form
from isam.ir.table import spacing_of
from isam.ir.text import parse, parse_instruction
from isam.mapper import candidates, match
from isam.mapper.as_it_stands import Selection, selection
from isam.mapper.candidates import Gathered, gather
from isam.mapper.dataflow import pattern_of
from isam.mapper.demand import Demand
from isam.mapper.exchange import exchangeable
from isam.mapper.match import symmetries_of
from isam.mapper.pricing import Pricing
from isam.system.load import load_system
from tests.unit.scheduler.test_outputs import KERNEL as SORTER
from tests.unit.scheduler.test_outputs import MINMAX

PAIR = """instruction pair(N)
  in  a: f32[N]
  in  b: f32[N]
  in  c: f32[N]
  out y: f32[N]
  temp s: f32[N]
  temp t: f32[N]
  forall {one} < N
    s[{one}] = a[{one}] + b[{one}]
  forall {two} < N
    t[{two}] = s[{two}] * c[{two}]
  forall {three} < N
    y[{three}] = exp(t[{three}])
"""
KERNEL = parse("""kernel k(N)
  in  p: f32[N]
  in  q: f32[N]
  in  r: f32[N]
  out z: f32[N]
  temp s: f32[N]
  temp t: f32[N]
  forall u < N
    s[u] = p[u] + q[u]
  forall v < N
    t[v] = s[v] * r[v]
  forall w < N
    z[w] = exp(t[w])
""")
LETTERS = ["iii", "ijk", "kji", "jij"]

CROSSED = parse_instruction("""instruction crossed(M)
  out y: f32[M, M, M]
  in  x: f32[M]
  forall i < M, j < M, k < M
    y[k, j, i] = -x[i]
  forall i < M, j < M, k < M
    y[i, j, k] = max(y[i, j, k], 0)
""")
ELSEWHERE = parse_instruction("""instruction elsewhere(N, P)
  in    x: f32[N]
  out   s: f32[N]
  out   z: f32[N, P]
  in    u: f32[P]
  inout w: f32[P, P, P]
  forall i < N
    s[i] = exp(x[i])
  forall a < P, b < P, c < P
    w[a, b, c] += u[a]
  forall j < N, k < P
    z[j, k] = x[j] * s[j]
""")


@pytest.mark.parametrize("instruction", [CROSSED, ELSEWHERE])
def test_symmetries_permute_the_axes_and_the_identity_keeps_them(instruction: Instruction):
    pattern = pattern_of(instruction)
    found = [dict(m.axes) for m in symmetries_of(pattern)]
    assert {c: c for c in pattern.axis_names} in found
    assert all(sorted(axes.values()) == sorted(pattern.axis_names) for axes in found)


@pytest.mark.parametrize("instruction", [CROSSED, ELSEWHERE])
def test_an_instruction_that_is_its_own_kernel_has_an_orbit(instruction: Instruction):
    found = match(instruction.body, instruction)
    assert found
    assert {m.orbit for m in found}.isdisjoint({""})


@pytest.mark.parametrize("names", LETTERS)
def test_each_symmetry_maps_the_axes_to_axes_by_their_own_names(names: str):
    pattern = pattern_of(parse_instruction(PAIR.format(**dict(zip(("one", "two", "three"), names, strict=True)))))
    found = {tuple((o.operand, o.buffer) for o in m.operands): m.axes for m in symmetries_of(pattern)}
    known = {(c, c) for c in pattern.axis_names}
    assert {tuple(b for _, b in operands) for operands in found} == {("a", "b", "c", "y"), ("b", "a", "c", "y")}
    assert all(set(axes) == known for axes in found.values())


@pytest.mark.parametrize("names", LETTERS)
def test_mappings_that_exchange_the_terms_share_their_orbit_however_axes_are_named(names: str):
    found = match(KERNEL, parse_instruction(PAIR.format(**dict(zip(("one", "two", "three"), names, strict=True)))))
    assert len(found) == 2
    assert len({m.orbit for m in found}) == 1


# -- sources in one order where the other one makes no difference ------------------------------------------------------

TWO = """instruction two(N)
  in  a: f32[N]
  in  b: f32[{b}]
  out y: f32[N]
  forall i < N
    y[i] = {value}
"""
BOTH = """kernel both(N=32)
  in  p: f32[N]
  in  q: f32[N]
  out y: f32[N]
  out z: f32[N]
  temp t: f32[N]
  forall i < N
    t[i] = p[i] + q[i]
  forall i < N
    y[i] = t[i] * p[i]
  forall i < N
    z[i] = t[i] * 2 + q[i]
"""
TURNED = """kernel turned(N=32, M=48)
  in  p: f32[N, M]
  in  q: f32[M, N, 2]
  out y: f32[N, M]
  out z: f32[N, M]
  forall i < N, j < M
    y[i, j] = p[i, j] * q[j, i, 0]
  forall i < N, j < M
    z[i, j] = p[i, j] + p[i, j]
"""
DOT = """kernel dot(N=32, M=48, K=64)
  in  p: f32[N, K]
  in  q: f32[K, M]
  out y: f32[N, M]
  forall i < N, j < M
    y[i, j] = 0
  forall i < N, j < M, k < K
    y[i, j] += p[i, k] * q[k, j]
"""
BACKWARDS = """kernel backwards(N=32)
  in  p: f32[N]
  in  q: f32[2 * N]
  out y: f32[N]
  forall i < N
    y[i] = p[N - 1 - i] * q[2 * N - 2 - 2 * i]
"""
MANY = "kernel many(" + ", ".join(f"N{n}=4" for n in range(40)) + """)
  in  p: f32[{0}]
  in  q: f32[{0}]
  out y: f32[{0}]
  forall {1}
    y[{2}] = p[{2}] + q[{2}]
""".format(", ".join(f"N{n}" for n in range(40)), ", ".join(f"i{n} < N{n}" for n in range(40)),
           ", ".join(f"i{n}" for n in range(40)))  # fmt: skip


@pytest.mark.parametrize(("value", "b", "may"), [
    ("a[i] * b[i]", "N", True), ("a[i] + b[i]", "N", True), ("exp(a[i] * b[i])", "N", True),
    ("(a[i] + b[i]) * 3", "N", False), ("a[i] - b[i]", "N", False), ("a[i] * b[0]", "1", False),
    ("a[i] * a[i] + b[i]", "N", False), ("a[i] * b[i] + a[i]", "N", False), ("exp(a[i]) * exp(b[i])", "N", False),
    ("exp(a[i] - b[i])", "N", False),
])  # fmt: skip
def test_sources_are_exchanged_where_a_symmetry_does_just_that(value, b, may):
    assert exchangeable(parse_instruction(TWO.format(value=value, b=b))) is may


def test_sources_that_are_wanted_in_different_ways_are_not_exchanged():
    two = parse_instruction(TWO.format(value="a[i] * b[i]", b="N"))
    assert exchangeable(two)
    assert not exchangeable(replace(two, operands={"a": OperandContract(homes=("here",))}))
    byte = TWO.format(value="a[i] * b[i]", b="N").replace("in  a: f32", "in  a: bf16")
    assert not exchangeable(parse_instruction(byte.replace("a[i] *", "f32(a[i]) *")))


OUTER = """instruction outer(M)
  in  a: f32[M]
  in  b: f32[M]
  out y: f32[M, M]
  forall i < M, j < M
    y[i, j] = a[i] * b[j]
"""
IN_TURN = """instruction in_turn(N)
  inout a: f32[N]
  inout b: f32[N]
  out   y: f32[N]
  forall i < N
    a[i] = exp(a[i])
  forall i < N
    b[i] = exp(b[i])
  forall i < N
    y[i] = a[i] * b[i]
"""
NEXT = """instruction next(N)
  in  a: f32[N + 1]
  out y: f32[N]
  forall i < N
    y[i] = a[i] * a[i + 1]
"""


@pytest.mark.parametrize("text", [OUTER, IN_TURN, NEXT, NEXT.replace("a[i + 1]", "a[i]")])
def test_nor_are_sources_for_which_axes_or_statements_change_or_that_are_one(text):
    one = parse_instruction(text)
    free = {b.name: OperandContract(strides=(None,) * len(b.shape)) for b in one.body.arguments}
    assert not exchangeable(one)
    assert not exchangeable(replace(one, operands=free))


def test_both_orders_are_tried_of_sources_that_are_one():
    one = parse_instruction(NEXT)
    text = NEXT.replace("a[i] * a[i + 1]", "a[i + 1] * a[i]")
    kernel = parse(text.replace("instruction next(N)", "kernel next(N=32)"))
    assert gather(kernel, [one], order_of(kernel.statements), Pricing(kernel)).candidates


def gathered(kernel: Kernel, system: str) -> Gathered:
    some = load_system(system)
    return gather(kernel, some.compute, order_of(kernel.statements), Pricing(kernel, spacing_of(some.compute)))


@pytest.mark.parametrize("system", ["host-avx512", "dual"])
@pytest.mark.parametrize("text", [BOTH, TURNED, DOT, DOT.replace("p[i, k] * q[k, j]", "q[k, j] * p[i, k]"), BACKWARDS,
                                  MANY])  # fmt: skip
def test_one_order_of_sources_finds_what_both_find(text, system, monkeypatch):
    found = gathered(parse(text), system)
    monkeypatch.setattr(candidates, "exchangeable", lambda _: False)
    both = gathered(parse(text), system)
    assert found == both
    assert found.candidates or found.refused


def test_refusals_name_both_operands_and_what_is_left_out_is_said():
    refused = {m.about("buffer") for m in gathered(parse(BACKWARDS), "host-avx512").refused}
    assert refused == {"p", "q"}
    assert gathered(parse(MANY), "host-avx512").cut


def test_the_widest_access_of_an_operand_is_the_first_of_those_with_the_most_axes():
    pattern = pattern_of(parse_instruction(OUTER.replace("  in  b: f32[M]\n", "").replace("b[j]", "a[j]")))
    assert pattern.widest["a"].rows == (((0, 1),),)
    both = pattern_of(parse_instruction("""instruction both(M)
  in  a: f32[M, M]
  out y: f32[M, M]
  forall i < M, j < M
    y[i, j] = a[0, j] * a[i, j]
"""))
    assert both.widest["a"].rows == (((0, 1),), ((1, 1),))


def test_sources_in_common_keep_both_orders():
    """Of two statements a kernel may write one in each order."""
    minmax = parse_instruction(f"instruction minmax(J){MINMAX}")
    assert not exchangeable(minmax)
    cover = selection(normal_form(parse(SORTER)), Demand([minmax]))
    assert isinstance(cover, Selection)
    assert {c.mapping.instruction.name for c in cover.candidates} == {"minmax"}
