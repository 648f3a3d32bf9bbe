"""One shape: compiled, judged, timed beside its peers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

import isam

from . import peers
from .data import RESULTS, Array, Judge, arrays_of, operands
from .kernels import kernel_of
from .shapes import Case, Convolution, Gemm, Shape
from .timing import Call, Times, alternate, clock, ratio

THEIR_ULP = 16.0  # what functions of peers may be off by; ours keep to 4
LIBRARIES = ("numpy", "onednn", "torch")  # peers; of each the best form counts


@dataclass(frozen=True, slots=True)
class Settings:
    """``rounds`` turns of ``seconds`` each, per contender."""

    rounds: int = 5
    seconds: float = 0.08
    on: str = "host"


class Wrong(AssertionError):
    """A contender's result lies outside the bounds: nothing is published."""


def compiled(shape: Shape, on: str, bound: bool = False, threads: int = 1) -> tuple[Any, dict[str, float]]:
    """The compiled function and CPU seconds per stage of compiling, ``total`` among them, and ``wall``."""
    kernel, sizes = kernel_of(shape, bound)
    wall, start = time.monotonic(), clock()
    with patch.object(time, "perf_counter", clock):  # the stages tell their time by it
        fn = isam.compile(kernel, on=on, sizes=sizes, cache=False, threads=threads)
    return fn, {**fn.job.seconds, "total": clock() - start, "wall": time.monotonic() - wall}


def contenders(shape: Shape, on: str) -> tuple[dict[str, Callable[[], Any]], dict[str, float], Judge]:
    """Everyone's call without arguments, each judged once; seconds per stage of compiling."""
    calls, stages, judge, theirs = _case(shape, on) if isinstance(shape, Case) else _product(shape, on)
    for name, call in calls.items():
        fault = (judge if name.startswith("isam") else theirs).wrong(peers.plain(call()))
        if fault:
            raise Wrong(f"{name}, {shape.name}: {fault}")
    return calls, stages, judge


Contest = tuple[dict[str, Callable[[], Any]], dict[str, float], Judge, Judge]  # the second judges peers


def passed(case: Case, arrays: dict[str, Array]) -> tuple[tuple[Array, ...], dict[str, Array], dict[str, Array]]:
    """What a call is given in order, what is bound beforehand, and room for the result by its name."""
    kernel, sizes = kernel_of(case)
    arguments = kernel.with_sizes(sizes).arguments
    constants = {b.name: arrays[b.name] for b in arguments if b.role == "const"}
    out = {b.name: np.empty([int(n) for n in b.shape], RESULTS[b.dtype]) for b in arguments if b.role == "out"}
    return tuple(v for n, v in arrays.items() if n not in constants), constants, out


def _case(case: Case, on: str) -> Contest:
    arrays = arrays_of(case)
    fn, stages = compiled(case, on)
    given, constants, out = passed(case, arrays)
    fast = fn.bind(**constants) if constants else fn
    judge, theirs = Judge.case(case, arrays), Judge.case(case, arrays, THEIR_ULP, often=True)
    calls: dict[str, Callable[[], Any]] = {"isam": Call(fast, given, out)}
    return {**calls, **peers.of_case(case, arrays)}, stages, judge, theirs


def _product(shape: Gemm | Convolution, on: str) -> Contest:
    a, b = operands(shape)
    fn, stages = compiled(shape, on)
    if isinstance(shape, Gemm):
        out = np.empty((shape.m, shape.n), RESULTS[shape.kind])
        fast = compiled(shape, on, bound=True)[0].bind(B=b)
        calls: dict[str, Callable[[], Any]] = {"isam": Call(fn, (a, b), {"C": out}),
                                               "isam bound": Call(fast, (a,), {"C": out})}  # fmt: skip
    else:
        fast = fn.bind(w=b)
        calls = {"isam": lambda: fast(a)}
    calls.update(peers.of(shape, a, b))
    judge = Judge.product(shape, a, b)
    return calls, stages, judge, judge


def measure(shape: Shape, settings: Settings) -> dict[str, Any]:
    """The row of one shape, JSON-able; times in seconds, ratios above 1 where ISAM is faster. Raises :class:`Wrong`."""
    calls, stages, judge = contenders(shape, settings.on)
    used = judge.used(peers.plain(calls["isam"]()))
    times = alternate(calls, settings.rounds, settings.seconds)
    after = judge.wrong(peers.plain(calls["isam"]()))
    if after:
        raise Wrong(f"isam after {settings.rounds} rounds, {shape.name}: {after}")
    row: dict[str, Any] = {"name": shape.name, "flops": shape.flops, "count": getattr(shape, "count", 1)}
    row["times"] = {n: {"best": t.least, "median": t.typical} for n, t in times.items()}
    row["against"] = against(times, "isam bound" if isinstance(shape, Gemm) and shape.kind != "f32" else "isam")
    row["bound used"] = used
    row["compile"] = stages
    return row


def against(times: dict[str, Times], ours: str = "isam") -> dict[str, dict[str, Any]]:
    """Per peer library the ratios to the fastest form of it, and which form that was."""
    out: dict[str, dict[str, Any]] = {}
    for library in LIBRARIES:
        forms = [n for n in times if n.split()[0] == library]
        if forms:
            best = min(forms, key=lambda n: times[n].least)
            by_best, by_median = ratio(times[ours], times[best])
            out[library] = {"form": best, "best": by_best, "median": by_median}
    return out


def weighted(rows: Iterable[dict[str, Any]], library: str) -> dict[str, float]:
    """Both readings of "weighted by FLOPs", layers counted as often as the network has them: the mean of the ratios
    weighted by work, and all work over all time."""
    have = [r for r in rows if library in r["against"]]
    work = sum(r["count"] * r["flops"] for r in have)
    if not work:
        return {}
    ours = sum(r["count"] * r["times"]["isam"]["best"] for r in have)
    theirs = sum(r["count"] * r["times"][r["against"][library]["form"]]["best"] for r in have)
    mean = {k: sum(r["count"] * r["flops"] * r["against"][library][k] for r in have) / work for k in ("best", "median")}
    speeds = {"isam GFLOP/s": work / ours / 1e9, f"{library} GFLOP/s": work / theirs / 1e9}
    return {"mean of ratios": mean["best"], "mean of ratios (medians)": mean["median"],
            "total over total": theirs / ours, **speeds}  # fmt: skip
