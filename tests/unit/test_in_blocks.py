"""Sums for all steps of a recurrent loop are made block by block where that takes less time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import isam
from isam.compiler.offers import OFFERS, Subject
from isam.compiler.offers.in_blocks import in_blocks
from isam.cost.swept import waiting
from isam.ir.kernel import recurrences
from isam.ir.text import parse_kernel
from isam.system.graph import System
from isam.system.load import load_system
from tests.pipeline import compiled, judge, simulated
from tests.subjects import uncovered

AHEAD = """kernel ahead(T, B, X, H)
  in    x: {t}[T, B, X]
  const w: {t}[X, H]
  const u: f32[H, H]
  inout h: f32[B, H]
  out   y: f32[T, B, H]
  forall t < T, i < B, j < H
    a[t, i, j] = 0
  forall t < T, i < B, j < H, k < X
    a[t, i, j] += {x} * {w}
  loop t < T
    forall i < B, j < H
      v[i, j] = a[t, i, j]
    forall i < B, j < H, k < H
      v[i, j] += h[i, k] * u[k, j]
    forall i < B, j < H
      h[i, j] = tanh(v[i, j])
      y[t, i, j] = h[i, j]
"""
TEXT = AHEAD.format(t="f32", x="x[t, i, k]", w="w[k, j]")
WIDENED = AHEAD.format(t="bf16", x="f32(x[t, i, k])", w="f32(w[k, j])").replace(
    "  forall t < T", "  permits reassociate, contract, flush\n  forall t < T", 1)  # fmt: skip
WITHIN = """kernel within(T, B, X, H)
  in    x: f32[T, B, X]
  const w: f32[X, H]
  inout h: f32[B, H]
  loop t < T
    forall i < B, j < H
      a[i, j] = 0
    forall i < B, j < H, k < X
      a[i, j] += x[t, i, k] * w[k, j]
    forall i < B, j < H
      h[i, j] = tanh(h[i, j] + a[i, j])
"""
HOST = {"T": 96, "B": 64, "X": 256, "H": 1024}
SMALL = {"T": 16, "B": 128, "X": 4, "H": 16}


def narrow(system: System) -> System:
    """With caches so small that little is much."""
    sizes = dict(zip((m.name for m in system.caches), (1 << 10, 1 << 12, 1 << 15), strict=True))
    memories = {n: replace(m, capacity=sizes.get(n, m.capacity)) for n, m in system.memories.items()}
    return replace(system, memories=memories)


def offered(text: str, sizes: dict[str, int]) -> list[str]:
    (steps,) = in_blocks(uncovered(parse_kernel(text).with_sizes(sizes)))
    return [f"{s.transform.law} {s.site.get('steps') or ''}".strip() for s in steps]


@pytest.mark.parametrize(("text", "steps"), [
    (TEXT, ["split-loop 4", "sink"]), (WIDENED, ["split-loop 4", "sink"]), (WITHIN, ["hoist", "split-loop 4", "sink"]),
])  # fmt: skip
def test_blocks_are_offered_with_what_else_leaves_the_loop(text: str, steps: list[str]) -> None:
    assert offered(text, HOST) == steps


@pytest.mark.parametrize("sizes", [
    {**HOST, "T": 16},  # a cache holds all steps
    {**HOST, "B": 2},  # as many rows as keep the weights rare are most of the steps
    {**HOST, "X": 8192},  # they are much
    {**HOST, "T": 97},  # no block divides the steps
])  # fmt: skip
def test_what_wins_nothing_is_not_offered(sizes: dict[str, int]) -> None:
    assert not offered(TEXT, sizes)


def test_an_open_number_of_steps_is_left_alone() -> None:
    assert not offered(TEXT, {n: v for n, v in HOST.items() if n != "T"})


@pytest.mark.parametrize(("on", "asked"), [("host-avx512", True), ("toy", False)])
def test_blocks_are_for_caches(on: str, asked: bool) -> None:
    system = simulated(on)
    job = compiled(parse_kernel(TEXT), {"T": 4, "B": 4, "X": 4, "H": 4}, system)
    offer = next(o for o in OFFERS if o.name == "in blocks")
    assert offer.asked(Subject(job.kernel, job.cover, system, system.compute)) == asked


@pytest.mark.parametrize("text", [TEXT, WIDENED], ids=["ahead", "widened"])
def test_what_is_made_block_by_block_waits_less_and_is_the_same(text: str) -> None:
    job = compiled(parse_kernel(text), SMALL, narrow(simulated("host-avx512")))
    assert [s.split(" ")[0] for s in job.taken.cover.steps] == ["split-loop", "sink"]
    assert [r.axis.extent.const for r in recurrences(job.schedule.kernel.body)] == [8, 2]
    plain = next(c.answer for c in job.candidates if not c.ahead)
    assert waiting(job.schedule) < waiting(plain)
    assert 4 * sum(s.bytes for s in job.schedule.workspace) < sum(s.bytes for s in plain.workspace)
    judge(parse_kernel(text), SMALL, job, 5)


def test_native_blocks() -> None:
    """With recurrent weights by which errors do not grow from step to step."""
    rng = np.random.default_rng(3)
    x, w, u, h = (rng.standard_normal(s).astype("f4") / 32 for s in ((16, 128, 4), (4, 16), (16, 16), (128, 16)))
    made = isam.compile(TEXT, on=narrow(load_system("host")), sizes=SMALL, cache=False)
    assert "t_block" in str(made.schedule)
    y = made(x, w, u, h.copy())
    for t in range(SMALL["T"]):
        h = np.tanh(x[t] @ w + h @ u)
        np.testing.assert_allclose(y[t], h, atol=1e-5)
