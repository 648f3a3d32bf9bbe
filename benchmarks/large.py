"""Large products on every description: how long schedule, proof and report take, and schedules without loops.

    python -m benchmarks.large [SYSTEM]... [--quick] [--keep]

4096 x 4096 x 4096 in every data type that a description has a product for: seconds of covering, scheduling, proving, of
the report (timeline and lower bound), and how many distinct steps the schedule has, there and at twice the extent: a
loop is one node however often it runs. Then schedules in which (nearly) every step is another one, because all loops
were written out: seconds of the flat checker for them; and of the scheduler for plans that have no loop at all:
choices, places and waits of every step. CPU time of this process, medians of several turns. ``--keep`` writes the
results. Exit code: 0, or 1 above a limit.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from isam.approach.choice import Trace
from isam.approach.shipped.greedy import Greedy
from isam.compiler.job import Job
from isam.compiler.stages import new_job, run_stages
from isam.cost.floor import floor
from isam.cost.timeline import timeline
from isam.diagnostics import IsamError
from isam.garbage import seldom
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.ir.text import parse_kernel
from isam.proof.flat import replayed
from isam.proof.flat_program import walk
from isam.schedule.tree import Issue, Loop, Node, Schedule, Seq, distinct
from isam.scheduler import build, passes
from isam.scheduler.plan import Plan
from isam.scheduler.plans.request import Request
from isam.system.load import load_system

from .checking import TEXT, WIDENED
from .machine import facts
from .timing import clock

SCHEMA = "isam.large/1"
RESULTS = Path(__file__).with_name("results") / "large.json"
EXTENT = 4096
SYSTEMS = ("toy", "host", "casestudy", "gemmini", "dual", "systolic", "tpu_v1_like", "tiny", "host-avx2", "host-avx512")
TYPES = (("i8", "i32"), ("f32", "f32"), ("bf16", "f32"))  # of the factors, of the result
UNROLLED = {"toy": (96, 96, 96), "host": (48, 112, 48), "gemmini": (400, 400, 400)}
PLANNED = {"toy": (72, 72, 72), "host": (32, 112, 32), "gemmini": (288, 288, 288), "casestudy": (512, 512, 512)}
LIMITS = {"large": 2.0, "20,000 steps": 3.0}  # seconds
COLUMNS = ("cover", "schedule", "prove", "report", "total")


@cache
def product(given: str, made: str) -> Kernel:
    words = {"a": "A[i, k]", "b": "B[k, j]"} if given == made else {k: v.format(made=made) for k, v in WIDENED.items()}
    return parse_kernel(TEXT.format(given=given, made=made, **words))


def made(on: str, types: tuple[str, str], sizes: Mapping[str, int], until: str) -> tuple[Job, dict[str, float]]:
    """The job, and the CPU seconds of its stages. Raises :class:`IsamError` where the machine has no such product."""
    job = new_job(product(*types), load_system(on), sizes, None)
    return timed(job, until)


def timed(job: Job, until: str) -> tuple[Job, dict[str, float]]:
    import time

    wall, time.perf_counter = time.perf_counter, clock  # stages are timed by it
    try:
        run_stages(job, until)
    finally:
        time.perf_counter = wall
    return job, job.seconds


def row(on: str, types: tuple[str, str], extent: int, rounds: int) -> dict[str, Any]:
    """One description and data type, medians."""
    turns: dict[str, list[float]] = {c: [] for c in COLUMNS}
    for _ in range(rounds):
        begin = clock()
        job, seconds = made(on, types, dict.fromkeys("MNK", extent), "prove")
        assert job.schedule is not None
        proved = clock()
        timeline(job.schedule)
        floor(job.schedule)
        end = clock()
        for c in ("cover", "schedule", "prove"):
            turns[c].append(seconds[c])
        turns["report"].append(end - proved)
        turns["total"].append(end - begin)
    twice = made(on, types, dict.fromkeys("MNK", 2 * extent), "schedule")[0].schedule
    assert job.schedule is not None
    assert twice is not None
    typical = {c: round(statistics.median(s), 3) for c, s in turns.items()}
    many = {"steps": steps(job.schedule), "twice": steps(twice)}
    return {"on": on, "type": types[0], "extent": extent, **typical, **many}


def steps(s: Schedule) -> int:
    return sum(isinstance(n, Issue) for t in (s.bind, s.call) for n in distinct(t))


# schedules without loops ----------------------------------------------------------------------------------------------
def unrolled(s: Schedule) -> Schedule:
    """The schedule with all its loops written out: equal steps are one, as everywhere, and most are not equal."""
    known: dict[Issue, Issue] = {}
    return replace(s, bind=Seq(tuple(_steps(s.bind, {}, known))), call=Seq(tuple(_steps(s.call, {}, known))))


def _steps(n: Node, scope: Mapping[str, int], known: dict[Issue, Issue]) -> Iterator[Issue]:
    if isinstance(n, Issue):
        made = _at(n, scope)
        yield known.setdefault(made, made)
    elif isinstance(n, Seq):
        for c in n.children:
            yield from _steps(c, scope, known)
    elif values := n.values(scope):
        if n.deal is not None:
            raise ValueError("where a loop is dealt to instances, a step is not told by its place alone")
        yield from _steps(n.enter, scope, known)
        for v in values:
            yield from _steps(_body(n, v, values), {**scope, n.var: v}, known)
        yield from _steps(n.exit, scope, known)


def _body(n: Loop, v: int, values: range) -> Node:
    if v == values[0] and n.first is not None:
        return n.first
    return n.last if v == values[-1] and n.last is not None else n.body


def _at(n: Issue, scope: Mapping[str, int]) -> Issue:
    def number(e: Affine) -> Affine:
        return Affine((), e.evaluate(scope))

    operands = tuple(
        replace(o, tile=o.tile._replace(start=tuple(map(number, o.tile.start))),
                place=replace(o.place, offset=number(o.place.offset)))
        for o in n.operands
    )  # fmt: skip
    return replace(n, operands=operands, point=tuple((a, number(e)) for a, e in n.point))


def first(on: str, sizes: tuple[int, int, int], until: str) -> Job:
    """The job of the first data type that the machine has a product for."""
    for types in TYPES:
        try:
            return made(on, types, dict(zip("MNK", sizes, strict=True)), until)[0]
        except IsamError:
            continue
    raise ValueError(f"'{on}' has no product")


def row_planned(on: str, sizes: tuple[int, int, int], rounds: int) -> dict[str, Any]:
    """The scheduler on a plan without a loop, medians; and the same for 20,000 of its steps."""
    offered = passes.plans_of

    def flat(cover: Cover, request: Request) -> tuple[list[Plan], list[float]]:
        plan = offered(cover, request)[0][0]
        return [Plan(request.group, (), plan.unroll, (), note="without loops")], [0.0]

    took, job = [], first(on, sizes, "cover")
    cover = job.cover
    assert cover is not None
    for _ in range(rounds):
        with patch.object(passes, "plans_of", flat), seldom():
            begin = clock()
            s = build.schedule(cover, job.system, Trace(Greedy()))
            took.append(clock() - begin)
        if not isinstance(s, Schedule):
            raise TypeError(f"no schedule for '{on}': {s}")
    seconds = statistics.median(took)
    return {"on": on, "sizes": sizes, "steps": (n := steps(s)), "seconds": round(seconds, 3),
            "20,000": round(seconds * 20_000 / n, 3)}  # fmt: skip


def row_unrolled(on: str, sizes: tuple[int, int, int], rounds: int) -> dict[str, Any]:
    """The flat checker on a product without loops, medians; and the same for 20,000 of its distinct steps."""
    job = first(on, sizes, "schedule")
    assert job.schedule is not None
    s = unrolled(job.schedule)
    took = []
    for _ in range(rounds):
        begin = clock()
        got = replayed(s, budget=1 << 40, compiled=True)
        took.append(clock() - begin)
        if got.found:
            raise RuntimeError(f"the schedule for '{on}' is refused: {got.found[0]}")
    seconds = statistics.median(took)
    return {"on": on, "sizes": sizes, "steps": got.steps, "distinct": (n := steps(s)), "seconds": round(seconds, 3),
            "20,000": round(seconds * 20_000 / n, 3)}  # fmt: skip


def measured(systems: Sequence[str], quick: bool) -> dict[str, Any]:
    walk()
    rounds, rows = 1 if quick else 3, []
    for on in systems:
        for types in TYPES:
            try:
                rows.append(row(on, types, EXTENT, rounds))
            except IsamError:  # no such product there
                continue
            print(line(rows[-1]), file=sys.stderr, flush=True)
    flat = [row_unrolled(on, sizes, rounds) for on, sizes in UNROLLED.items() if on in systems]
    planned = [row_planned(on, sizes, rounds) for on, sizes in PLANNED.items() if on in systems]
    return {"schema": SCHEMA, "machine": facts(), "limits": LIMITS, "rows": rows, "unrolled": flat, "planned": planned}


def passed(result: dict[str, Any]) -> list[str]:
    """The limits that are missed, each in words."""
    large, flat = result["limits"].values()
    return [f"{r['on']} {r['type']}: {r['total']} s, at most {large} asked for" for r in result["rows"]
            if r["total"] > large] + [f"{r['on']}: {r['20,000']} s for {what} 20,000 steps, at most {flat} asked for"
                                      for what, part in (("checking", "unrolled"), ("scheduling", "planned"))
                                      for r in result[part] if r["20,000"] > flat]  # fmt: skip


def line(r: dict[str, Any]) -> str:
    return f"{r['on']} {r['type']}".ljust(20) + "".join(f"{r[c]:>10.3f}" for c in COLUMNS) + "".join(
        f"{r[c]:>8,}" for c in ("steps", "twice"))  # fmt: skip


def table(result: dict[str, Any]) -> str:
    out = [f"{EXTENT} cubed, s".ljust(20) + "".join(f"{c:>10}" for c in COLUMNS) + f"{'steps':>8}{'twice':>8}"]
    out += [*map(line, result["rows"]), ""]
    out += ["no loops, checked".ljust(20) + f"{'steps':>10}{'distinct':>10}{'s':>10}{'20,000':>10}"]
    out += [r["on"].ljust(20) + f"{r['steps']:>10,}{r['distinct']:>10,}{r['seconds']:>10.3f}{r['20,000']:>10.3f}"
            for r in result["unrolled"]]  # fmt: skip
    out += ["", "no loops, scheduled".ljust(20) + f"{'steps':>10}{'':>10}{'s':>10}{'20,000':>10}"]
    out += [r["on"].ljust(20) + f"{r['steps']:>10,}{'':>10}{r['seconds']:>10.3f}{r['20,000']:>10.3f}"
            for r in result["planned"]]  # fmt: skip
    return "\n".join(out)


def main(arguments: Sequence[str] | None = None) -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("systems", nargs="*", metavar="SYSTEM", help=f"only these ({', '.join(SYSTEMS)})")
    p.add_argument("--quick", action="store_true", help="one turn")
    p.add_argument("--keep", action="store_true", help="write the results")
    a = p.parse_args(arguments)
    result = measured(a.systems or SYSTEMS, a.quick)
    print(table(result))
    if a.keep:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    over = passed(result)
    print("\n".join(over or ["every limit kept"]))
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
