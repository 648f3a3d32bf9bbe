"""How many steps of a schedule the flat checker judges in a second, and how many calls the timeline follows.

    python -m benchmarks.checking [--quick] [--keep]

Large products, one per machine. *flat*: every step executed on tokens and judged, from the schedule to the verdict
(what is compiled once per process is told apart). *one by one*: the same without the compiled walk, for the first
thousands of steps, without what comes before the first. *timeline*: every call looked at; and with steady iterations
added by multiplication, which is how schedules are timed. *tree*: seconds of the proof, on products of 2 and of 8 times
the extent, with the number of distinct steps of each, which is what it depends on. CPU time of this process, every
alternative in each of several turns, medians. ``--keep`` writes the results. Exit code: 0, or 1 below a limit.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from isam.compiler.stages import new_job, run_stages
from isam.cost.timeline import timeline
from isam.ir.text import parse_kernel
from isam.proof.certificate import examine
from isam.proof.flat import replayed
from isam.proof.flat_program import walk
from isam.schedule.tree import Issue, Schedule, distinct
from isam.system.load import load_system

from .machine import facts
from .timing import Times, clock

SCHEMA = "isam.checking/1"
RESULTS = Path(__file__).with_name("results") / "checking.json"
TEXT = """kernel product(M, N, K)
  in  A: {given}[M, K]
  in  B: {given}[K, N]
  out C: {made}[M, N]
  permits reassociate, contract
  forall i < M, j < N
    C[i, j] = 0
  forall i < M, j < N, k < K
    C[i, j] += {a} * {b}
"""
WIDENED = {"a": "{made}(A[i, k])", "b": "{made}(B[k, j])"}
PRODUCTS: dict[str, tuple[str, str, int]] = {  # dtypes of the factors and of the result, extent of all three axes
    "toy": ("f32", "f32", 384), "host": ("f32", "f32", 384), "casestudy": ("bf16", "f32", 4096),
    "gemmini": ("i8", "i32", 1024),
}  # fmt: skip
ONE_BY_ONE = 8000  # steps
DEEPER = (2, 8)  # times the extent, for the proof
LIMITS = {"flat": 500_000, "timeline": 500_000}  # per second
COLUMNS = ("steps", "distinct", "flat", "one by one", "times", "timeline", "with repetition")
TREES = tuple(f"tree x{n}" for n in DEEPER)


def schedule(on: str, extent: int) -> Schedule:
    given, made, _ = PRODUCTS[on]
    words = {"a": "A[i, k]", "b": "B[k, j]"} if given == made else {k: v.format(made=made) for k, v in WIDENED.items()}
    kernel = parse_kernel(TEXT.format(given=given, made=made, **words))
    job = run_stages(new_job(kernel, load_system(on), dict.fromkeys("MNK", extent), None, check=False))
    assert job.schedule is not None
    return job.schedule


def row(on: str, extent: int, rounds: int) -> dict[str, Any]:
    """One machine: what is judged and followed per second, medians."""
    large, *deep = (schedule(on, n * extent) for n in (1, *DEEPER))
    budget = 1 << 40
    got = replayed(large, budget=budget, compiled=True)
    first = replayed(large, budget=ONE_BY_ONE, compiled=False)
    if got.found or [v.kind for v in first.found] not in ([], ["budget"]):
        raise RuntimeError(f"the schedule for '{on}' is refused: {got.found or first.found}")
    whole = timeline(large, whole=True)
    calls: dict[str, Callable[[], Any]] = {
        "flat": partial(replayed, large, budget=budget, compiled=True),
        "one by one": partial(replayed, large, budget=ONE_BY_ONE, compiled=False),
        "before the first": partial(replayed, large, budget=1, compiled=False),
        "timeline": partial(timeline, large, whole=True),
        "with repetition": partial(timeline, large),
        **{f"tree {n}": partial(examine, s) for n, s in zip(DEEPER, deep, strict=True)},
    }
    took = turns(calls, rounds)
    one, none = took["one by one"].median, took["before the first"].median
    took["one by one"].median = [a - b for a, b in zip(one, none, strict=True)]
    steps = {"flat": got.steps, "one by one": first.steps, "timeline": whole.followed, "with repetition": whole.calls}
    each = {k: round(n / took[k].typical) for k, n in steps.items()}
    return {
        "on": on, "extent": extent, "steps": got.steps, "alone": got.alone, "distinct": _distinct(large), **each,
        "times": round(_ratio(took["flat"], took["one by one"], got.steps / first.steps), 1),
        **{f"tree x{n}": {"distinct": _distinct(s), "seconds": round(took[f"tree {n}"].typical, 4)}
           for n, s in zip(DEEPER, deep, strict=True)},
    }  # fmt: skip


def _distinct(s: Schedule) -> int:
    return sum(isinstance(n, Issue) for t in (s.bind, s.call) for n in distinct(t))


def turns(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, Times]:
    """Every call once in each turn (they take from a tenth of a second on), the order turned round each time."""
    out = {name: Times() for name in calls}
    for r in range(rounds):
        for name, f in list(calls.items())[:: -1 if r % 2 else 1]:
            start = clock()
            f()
            out[name].median.append(clock() - start)
    return out


def _ratio(ours: Times, theirs: Times, more: float) -> float:
    """Theirs over ours for the same work, the median of the turns' ratios."""
    ratios = sorted(t / o for o, t in zip(ours.median, theirs.median, strict=True))
    return more * ratios[len(ratios) // 2]


def measured(quick: bool) -> dict[str, Any]:
    start = clock()
    walk()
    compiling = clock() - start
    machine = facts()
    rows = []
    for on, (_, _, extent) in PRODUCTS.items():
        rows.append(row(on, extent // 2 if quick else extent, 1 if quick else 5))
        print(line(rows[-1]), file=sys.stderr, flush=True)
    return {"schema": SCHEMA, "machine": machine, "compiling the walk, s": round(compiling, 3), "limits": LIMITS,
            "rows": rows}  # fmt: skip


def passed(result: dict[str, Any]) -> list[str]:
    """The limits that are missed, each in words."""
    return [f"{r['on']}: {k} {r[k]:,} a second, at least {n:,} asked for" for r in result["rows"]
            for k, n in result["limits"].items() if r[k] < n]  # fmt: skip


def line(r: dict[str, Any]) -> str:
    trees = (f"{r[t]['seconds']:.3f} s for {r[t]['distinct']}" for t in TREES)
    return f"{r['on']} {r['extent']}".ljust(16) + "".join(f"{x:>17,}" for x in (r[c] for c in COLUMNS)) + "".join(
        f"{x:>17}" for x in trees)  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--quick", action="store_true", help="products of half the extent, one turn")
    p.add_argument("--keep", action="store_true", help="write the results")
    a = p.parse_args(arguments)
    result = measured(a.quick)
    print("product".ljust(16) + "".join(f"{c:>17}" for c in (*COLUMNS, *TREES)))
    print("\n".join(map(line, result["rows"])))
    print(f"compiling the walk, once per process: {result['compiling the walk, s']} s")
    if a.keep:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    over = passed(result)
    print("\n".join(over or ["every limit kept"]))
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
