"""Convolutions onto a BLAS (issue: no hidden copy): NHWC at strides 1 and 2 and 1x1 NCHW use the arguments where they
lie; NCHW 3x3 has its weights repacked, shown as a move when constants are bound."""

from __future__ import annotations

import pytest

from isam.approach.choice import Approach, Trace
from isam.ir import oracle
from isam.ir.normal import normal_form
from isam.ir.text import parse
from isam.mapper.cover import cover
from isam.mapper.demand import Demand
from isam.mapper.pricing import Pricing
from isam.system.load import load_system

NHWC = """kernel conv()
  in    x: f32[1, {IH}, {IW}, {C}]
  const w: f32[{R}, {S}, {C}, {K}]
  out   y: f32[1, {H}, {W}, {K}]
  forall n < 1, h < {H}, v < {W}, k < {K}
    y[n, h, v, k] = 0
  forall n < 1, h < {H}, v < {W}, k < {K}, r < {R}, s < {S}, c < {C}
    y[n, h, v, k] += x[n, {st} * h + r, {st} * v + s, c] * w[r, s, c, k]
"""
NCHW = """kernel conv()
  in    x: f32[1, {C}, {IH}, {IW}]
  const w: f32[{K}, {C}, {R}, {S}]
  out   y: f32[1, {K}, {H}, {W}]
  forall n < 1, h < {H}, v < {W}, k < {K}
    y[n, k, h, v] = 0
  forall n < 1, h < {H}, v < {W}, k < {K}, r < {R}, s < {S}, c < {C}
    y[n, k, h, v] += x[n, c, {st} * h + r, {st} * v + s] * w[k, c, r, s]
"""


def kernel(text: str, st: int, r: int, c: int = 24, k: int = 40, h: int = 9, w: int = 11):
    sizes = {"C": c, "K": k, "H": h, "W": w, "R": r, "S": r, "st": st}
    return parse(text.format(IH=st * (h - 1) + r, IW=st * (w - 1) + r, **sizes))


def product(text: str, st: int, r: int):
    k = normal_form(kernel(text, st, r))
    c = cover(k, Demand(load_system("blas").compute), Trace(Approach()))
    assert c, c
    assert c.steps == ()
    (m,) = [m for m in c.mappings if "gemm" in m.instruction.name]
    pricing = Pricing(k)
    packed = {o.buffer for o in m.operands if pricing.breach(m.instruction, o, pricing.tile(m)) is not None}
    return m, packed


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("window", [1, 3])
def test_nhwc_uses_every_argument_where_it_lies(stride, window):
    m, packed = product(NHWC, stride, window)
    assert dict(m.axes) == {"i": "v", "j": "k", "k": "c"}
    assert m.operand("A").steps == (stride, 1)
    assert not packed


def test_pointwise_nchw_uses_every_argument_where_it_lies():
    m, packed = product(NCHW, 1, 1)
    assert dict(m.axes) == {"i": "k", "j": "v", "k": "c"}
    assert not packed


def test_nchw_packs_its_weights_and_nothing_else():
    m, packed = product(NCHW, 1, 3)
    assert dict(m.axes)["k"] == "c"
    assert packed == {"w"}


def test_a_transposed_product_takes_the_routine_that_reads_it_so():
    text = """kernel t()
  in  a: f32[24, 40]
  in  b: f32[56, 40]
  out c: f32[24, 56]
  forall i < 24, j < 56
    c[i, j] = 0
  forall i < 24, j < 56, k < 40
    c[i, j] += a[i, k] * b[j, k]
"""
    k = parse(text)
    c = cover(k, Demand(load_system("blas").compute), Trace(Approach()))
    (m,) = [m for m in c.mappings if "gemm" in m.instruction.name]
    assert m.instruction.name == "sgemm_nt_new"
    assert oracle.equal(k, c.kernel, {}, 1)


def test_a_matrix_product_is_one_call():
    text = """kernel t()
  in  a: f64[24, 40]
  in  b: f64[40, 56]
  out c: f64[24, 56]
  forall i < 24, j < 56
    c[i, j] = 0
  forall i < 24, j < 56, k < 40
    c[i, j] += a[i, k] * b[k, j]
"""
    c = cover(parse(text), Demand(load_system("blas").compute), Trace(Approach()))
    assert [m.instruction.name for m in c.mappings] == ["dgemm_nn_new"]
    assert not c.mappings[0].outer
