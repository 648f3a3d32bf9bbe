"""One shape: compiled, judged, timed beside its peers."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple
from unittest.mock import patch

import isam

from . import peers
from .data import RESULTS, Array, Judge, arrays_of, room
from .kernels import kernel_of
from .peers import Form, Given
from .shapes import Convolution, Gemm, Shape
from .timing import Call, Times, alternate, at_rest, clock, ratio

BEST = "the best peer"  # of a row, where the name of a library may stand
THEIR_ULP = 16.0  # what functions of peers may be off by; ours keep to 4


@dataclass(frozen=True, slots=True)
class Settings:
    """``rounds`` turns of ``seconds`` each, per contender."""

    rounds: int = 5
    seconds: float = 0.08
    on: str = "host"


class Wrong(AssertionError):
    """Our result lies outside the bounds, or a contender's threads do not rest: nothing is published."""


def compiled(shape: Shape, on: str, bound: bool = False, threads: int = 1) -> tuple[Any, dict[str, float]]:
    """The compiled function and CPU seconds per stage of compiling, ``total`` among them, and ``wall``."""
    kernel, sizes = kernel_of(shape, bound)
    wall, start = time.monotonic(), clock()
    with patch.object(time, "perf_counter", clock):  # the stages tell their time by it
        fn = isam.compile(kernel, on=on, sizes=sizes, cache=False, threads=threads)
    return fn, {**fn.job.seconds, "total": clock() - start, "wall": time.monotonic() - wall}


def passed(shape: Shape, arrays: Given, bound: bool = False) -> tuple[tuple[Array, ...], Given, Given]:
    """What a call is given in order, what is bound beforehand, and room for the result by its name."""
    kernel, sizes = kernel_of(shape, bound)
    arguments = kernel.with_sizes(sizes).arguments
    constants = {b.name: arrays[b.name] for b in arguments if b.role == "const"}
    out = {b.name: room([int(n) for n in b.shape], RESULTS[b.dtype]) for b in arguments if b.role == "out"}
    return tuple(v for n, v in arrays.items() if n not in constants), constants, out


def ours(shape: Shape, arrays: Given, on: str) -> tuple[dict[str, Form], dict[str, float]]:
    """What ISAM made, by name, the form that is compared with peers last; seconds per stage of compiling."""
    made = {"isam": compiled(shape, on)}
    if isinstance(shape, Gemm):
        made["isam bound"] = compiled(shape, on, bound=True)
    forms = {}
    for name, (fn, _) in made.items():
        given, constants, out = passed(shape, arrays, name == "isam bound")
        fast = fn.bind(**constants) if constants else fn
        forms[name] = Form(Call(fast, given, {} if isinstance(shape, Convolution) else out))
    return forms, made["isam"][1]


class Contenders(NamedTuple):
    """Everyone's ``forms``, each judged once; seconds per stage of compiling; our judge; which form of ours is
    ``compared``; forms of peers whose results lie outside the bounds, and how far: they are not timed."""

    forms: dict[str, Form]
    stages: dict[str, float]
    judge: Judge
    compared: str
    wrong: dict[str, str]


def contenders(shape: Shape, on: str) -> Contenders:
    """Raises :class:`Wrong`."""
    arrays = arrays_of(shape)
    forms, stages = ours(shape, arrays, on)
    compared, wrong = list(forms)[-1], dict[str, str]()
    judge, theirs = Judge.both(shape, arrays, THEIR_ULP)
    found = {**forms, **peers.of(shape, arrays)}
    for name, form in found.items():
        fault = (judge if name in forms else theirs).wrong(form())
        if fault and name in forms:
            raise Wrong(f"{name}, {shape.name}: {fault}")
        if fault:
            wrong[name] = fault
        elif not at_rest():
            raise Wrong(f"{name}, {shape.name}: its threads go on after the call, in everybody's time")
    return Contenders({n: f for n, f in found.items() if n not in wrong}, stages, judge, compared, wrong)


def measure(shape: Shape, settings: Settings) -> dict[str, Any]:
    """The row of one shape, JSON-able; times in seconds, ratios above 1 where ISAM is faster. Raises :class:`Wrong`."""
    forms, stages, judge, compared, wrong = contenders(shape, settings.on)
    used = judge.used(forms["isam"]())
    taken = alternate({n: f.call for n, f in forms.items()}, settings.rounds, settings.seconds)
    after = judge.wrong(forms["isam"]())
    if after:
        raise Wrong(f"isam after {settings.rounds} rounds, {shape.name}: {after}")
    times = {n: t.per(forms[n].times) for n, t in taken.items()}
    row: dict[str, Any] = {"name": shape.name, "flops": shape.flops, "count": getattr(shape, "count", 1)}
    row["times"] = {n: {"best": t.least, "median": t.typical} for n, t in times.items()}
    row["compared"] = compared
    row |= compare(times, compared)
    row |= {"wrong": wrong} if wrong else {}
    row["bound used"] = used
    row["compile"] = stages
    return row


def compare(times: dict[str, Times], compared: str = "isam") -> dict[str, Any]:
    """Ratios to the fastest form of each library, and which form that was: ``against`` peers, of whom the fastest is
    the ``peer``, and against ``references``, which do not count among them."""
    out: dict[str, Any] = {"against": {}, "references": {}}
    for library in peers.LIBRARIES:
        forms = [n for n in times if peers.library_of(n) is library]
        if forms:
            best = min(forms, key=lambda n: times[n].least)
            by_best, by_median = ratio(times[compared], times[best])
            found = {"form": best, "best": by_best, "median": by_median}
            out["references" if library.reference else "against"][library.name] = found
    return out | {"peer": _fastest(out["against"])}


def ratio_to(row: dict[str, Any], library: str) -> dict[str, Any] | None:
    """What was found against a library or a reference, or ``BEST``: against the fastest peer of the row. Rows of older
    runs do not say which that was, and have no references."""
    if library != BEST:
        return {**row["against"], **row.get("references", {})}.get(library)
    found: dict[str, Any] | None = row["peer"] if "peer" in row else _fastest(row["against"])
    return found


def _fastest(against: dict[str, dict[str, Any]]) -> dict[str, Any] | None:
    return min(against.values(), key=lambda found: found["best"], default=None)


def weighted(rows: Iterable[dict[str, Any]], library: str) -> dict[str, float]:
    """Both readings of "weighted by FLOPs", layers counted as often as the network has them: the mean of the ratios
    weighted by work, and all work over all time. Of the rows that the library has something for."""
    have = [(r, found) for r in rows if (found := ratio_to(r, library))]
    work = sum(r["count"] * r["flops"] for r, _ in have)
    if not work:
        return {}
    ours = sum(r["count"] * r["times"][r["compared"]]["best"] for r, _ in have)
    theirs = sum(r["count"] * r["times"][found["form"]]["best"] for r, found in have)
    mean = {k: sum(r["count"] * r["flops"] * found[k] for r, found in have) / work for k in ("best", "median")}
    speeds = {"isam GFLOP/s": work / ours / 1e9, f"{library} GFLOP/s": work / theirs / 1e9}
    return {"mean of ratios": mean["best"], "mean of ratios (medians)": mean["median"],
            "total over total": theirs / ours, "layers": sum(r["count"] for r, _ in have), **speeds}  # fmt: skip
