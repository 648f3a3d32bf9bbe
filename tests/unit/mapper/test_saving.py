"""Steps that nothing asks for: algorithms with fewer multiplications are taken where the user grants the numerics and
the calls become fewer, and nowhere else; the error that is told is one."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

import isam
from isam.approach.choice import Choice, Trace
from isam.approach.shipped.greedy import Greedy
from isam.compiler.stages import new_job, run_stages
from isam.compiler.variants import Variant, select
from isam.ir.interp import run
from isam.ir.mapping import Cover
from isam.ir.normal import normal_form
from isam.ir.text import parse
from isam.mapper import space
from isam.mapper.cover import cover
from isam.mapper.demand import Demand
from isam.mapper.space import Step
from isam.mapper.steps import errors
from isam.transforms.saving import ErrorBound, Saving
from isam.transforms.values.algorithms import ALGORITHMS, F23, F43, STRASSEN
from isam.transforms.values.bilinear import BILINEAR, Bilinear

CONV = """kernel conv(C, K, H, W, R=3)
  permits reassociate, contract, finite
  in    x: f32[H + R - 1, W + R - 1, C]
  const w: f32[R, R, C, K]
  out   y: f32[H, W, K]
  forall h < H, v < W, k < K
    y[h, v, k] = 0
  forall h < H, v < W, k < K, r < R, s < R, c < C
    y[h, v, k] += x[h + r, v + s, c] * w[r, s, c, k]
"""
GRANTED = "permits reassociate, contract, finite"
MANY = {"C": 128, "K": 128, "H": 16, "W": 16}
FEW = {"C": 3, "K": 64, "H": 32, "W": 32}


PRODUCT = """kernel product(M, N, K)
  permits reassociate, contract, finite
  in  a: f32[M, K]
  in  b: f32[K, N]
  out y: f32[M, N]
  forall i < M, j < N
    y[i, j] = 0
  forall i < M, j < N, k < K
    y[i, j] += a[i, k] * b[k, j]
"""


def multiplications(kernel) -> int:
    return sum(prod(a.extent.const for a in s.domain.axes) for s in kernel.statements if s.op == "mul")


def sized(text: str, **sizes: int):
    return normal_form(parse(text).with_sizes(sizes))


def answer(kernel, trace: Trace | None = None, saves: bool = True) -> tuple[Cover, Trace]:
    trace = trace or Trace(Greedy())
    found = cover(kernel, Demand(list(isam.load_system("host").instructions.values()), saves=saves), trace)
    assert isinstance(found, Cover)
    return found, trace


def looked_for(trace: Trace) -> list[str]:
    return [str(d) for d in trace.decisions if d.point in ("search", "kernel")]


def test_a_convolution_of_many_channels_is_taken_apart_where_that_is_granted():
    kernel = sized(CONV, **MANY)
    found, trace = answer(kernel)
    assert [s.split()[0] for s in found.steps] == ["winograd-4-3", "winograd-4-3"]
    assert all("it may pay" in why for why in found.notes["because"])
    (error,) = found.errors
    assert error.startswith("y: within ")
    plain, _ = answer(kernel, saves=False)
    assert plain.steps == ()
    assert found.notes["calls"] < plain.notes["calls"]
    again, replayed = answer(kernel, Trace.replaying(trace.to_json()))
    assert str(again) == str(found)
    assert [d.chosen for d in replayed.decisions] == [d.chosen for d in trace.decisions]


@pytest.mark.parametrize("permits", ["reassociate, contract", "exact", "finite, exact"])
def test_nothing_is_looked_for_that_is_not_granted(permits):
    found, trace = answer(sized(CONV.replace(GRANTED, f"permits {permits}"), **MANY))
    assert found.steps == ()
    assert looked_for(trace) == []


def test_integers_too_are_left_alone_unless_it_is_granted():
    whole = CONV.replace("f32", "i32")
    assert looked_for(answer(sized(whole.replace(GRANTED, "permits reassociate"), **MANY))[1]) == []


def test_where_it_does_not_pay_it_is_not_taken():
    found, _ = answer(sized(CONV, **FEW))
    assert found.steps == ()
    assert found.errors == ()


def test_small_sums_and_other_filters_are_not_looked_at(monkeypatch):
    assert looked_for(answer(sized(CONV, C=8, K=8, H=8, W=8))[1]) == []
    assert looked_for(answer(sized(CONV.replace("R=3", "R=5"), C=63, K=63, H=15, W=15))[1]) == []
    monkeypatch.setattr(space, "LARGE", 0)
    assert looked_for(answer(sized(CONV, C=8, K=8, H=8, W=8))[1]) != []


@pytest.mark.parametrize("law", BILINEAR, ids=lambda t: t.law)
def test_what_is_promised_is_what_the_rewritten_kernel_multiplies(law):
    kernel = sized(PRODUCT, M=6, N=4, K=8) if law.algorithm is STRASSEN else sized(CONV, C=5, K=7, H=4, W=8)
    sites = law.sites(kernel)
    assert sites
    for site in sites:
        done = law.apply(kernel, site).kernel
        before, after = multiplications(kernel), multiplications(done)
        assert law.saves(kernel, site) == Saving(before, after)
        assert law.saves(kernel, site).pays == (after < before)


@pytest.mark.parametrize("al", ALGORITHMS, ids=lambda a: a.name)
def test_the_bound_is_what_the_matrices_say(al):
    """Factors of size one with the signs that add up reach the amplification, and no more."""
    a, b, c = (np.abs(np.array(m, dtype=float)) for m in (al.a, al.b, al.c))
    largest = (c @ (a.sum(1) * b.sum(1))).max()
    assert largest == al.amplification
    bound = ErrorBound(al.amplification, 40, 6, "f32")
    n = 40 * 2.0**-24
    assert bound.factor == pytest.approx(largest * 6 * n / (1 - n), rel=1e-12)
    assert ErrorBound(al.amplification, 40, 6, "i32").factor == 0.0
    inner = ErrorBound(al.amplification, 30, 2, "f32")
    assert bound.within(inner) == ErrorBound(al.amplification**2, 70, 2, "f32")
    assert [ErrorBound(al.amplification, n, 6, "f16").factor for n in (2048, 3000)] == [float("inf")] * 2


def test_what_a_saving_saves() -> None:
    assert Saving(8, 6).ratio == 0.75
    assert [Saving(4, n).pays for n in (3, 4, 5)] == [True, False, False]


@pytest.mark.parametrize("al", [F23, F43], ids=lambda a: a.name)
def test_results_are_within_what_is_told(al):
    kernel = sized(CONV, C=6, K=3, H=8, W=8)
    law, steps, k = Bilinear(al), [], kernel
    for _ in range(2):
        steps.append(Step(law, law.sites(k)[0], None))
        k = law.apply(k, steps[-1].site).kernel
    (told,) = errors(kernel, steps)
    assert told.startswith("y: within ")
    assert f"amplified {al.amplification**2} times, 6 terms" in told
    bound = float(told.split()[2])
    rng = np.random.default_rng(3)
    given = {"x": rng.uniform(-1, 1, (10, 10, 6)).astype("f4"), "w": rng.uniform(-1, 1, (3, 3, 6, 3)).astype("f4")}
    exact = run(parse(CONV.replace("f32", "f64")).with_sizes({"C": 6, "K": 3, "H": 8, "W": 8}),
                {n: v.astype("f8") for n, v in given.items()}, {})["y"]  # fmt: skip
    gone = np.abs(run(k, given, {})["y"] - exact).max()
    assert 0 < gone <= bound < 1e4 * gone


def test_sums_of_their_own_have_bounds_of_their_own():
    text = CONV.replace("out   y", "out   z: f32[H, W, K]\n  out   y")
    again = text[text.index("  forall h < H, v < W, k < K\n"):].replace("y[", "z[")
    kernel = sized(text + again, C=4, K=4, H=4, W=4)
    law, steps, k = Bilinear(F23), [], kernel
    for name in ("y", "z"):
        site = next(s for s in law.sites(k) if k.statements[s["sum"]].dest.buffer == name)
        steps.append(Step(law, site, None))
        k = law.apply(k, site).kernel
    assert [e.split(":")[0] for e in errors(kernel, steps)] == ["z", "y"] or len(errors(kernel, steps)) == 2
    assert all("amplified 8 times" in e for e in errors(kernel, steps))


def test_a_variant_that_is_less_exact_has_to_take_half_the_time():
    plain, other = Variant(None, ()), Variant(None, ("winograd-4-3",), ("y: within 1",))  # type: ignore[arg-type]
    exact = Variant(None, ("hoist",))  # type: ignore[arg-type]
    take = Greedy().variant
    assert take(Choice("variant", [plain, other], {}, [1.0, 0.55])) is plain
    assert take(Choice("variant", [plain, other], {}, [1.0, 0.45])) is other
    assert take(Choice("variant", [plain, exact], {}, [1.0, 0.95])) is exact
    assert take(Choice("variant", [other, exact], {}, [0.5, 0.95])) is exact


def test_what_saves_is_compared_with_a_cover_of_the_same_stage():
    """The stage that covers makes both covers: its seconds and its decisions are all there are on them."""
    job = run_stages(new_job(parse(CONV), isam.load_system("host"), MANY, None, check=False), "cover")
    assert job.cover is not None
    assert job.cover.errors
    assert job.plain is not None
    assert not job.plain.errors
    made = len(job.trace.decisions)
    select(job)
    assert {d.point for d in job.trace.decisions[made:]}.isdisjoint({"search", "kernel", "cover", "mapping"})
    assert job.candidates[0].cover is job.plain


def test_without_sizes_there_is_nothing_to_compare():
    job = run_stages(new_job(parse(CONV), isam.load_system("host"), {}, None, check=False), "cover")
    assert job.plain is None
