"""The symmetries of an instruction: the identity is one, whatever its statements call their axes."""

from __future__ import annotations

import pytest

from isam.ir.instruction import Instruction
from isam.ir.text import parse, parse_instruction
from isam.mapper import match
from isam.mapper.dataflow import pattern_of
from isam.mapper.match import symmetries_of

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
