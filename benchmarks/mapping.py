"""How long mapping takes (MAP-11): the cells of the suite, large programs, growth, and where the time goes.

    python -m benchmarks.mapping [--quick] [--keep]
    python -m benchmarks.mapping --page

CPU time of this process. A *cell* is one kernel of the suite and one instruction of the zoo: all its mappings or the
deepest mismatch, the kernel prepared anew. A *program* is one of 500 independent statements or a chain of 200
dependent ones, on instructions of one statement and of several; growth goes on to four times as many; and the 500 are
*covered*: every statement gets the best of all instructions of a machine. Each time the least of three.
``--keep`` writes the results and the page with its picture, ``--page`` the page from the results on disk.
Exit code: 0, or 1 when a limit is passed.
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from isam.approach.choice import Approach, Trace
from isam.ir.instruction import Instruction
from isam.ir.kernel import Kernel
from isam.ir.text import parse
from isam.mapper import Matches, match
from isam.mapper.cover import cover
from isam.mapper.demand import Demand
from isam.system.load import load_system
from tests.suite import SUITE
from tests.suite.columns import COLUMNS, typed, types_of

from .machine import facts
from .plot import Line, chart

SCHEMA = "isam.mapping/1"
RESULTS = Path(__file__).parent / "results" / "mapping.json"
DOCS = Path(__file__).parents[1] / "docs"
LIMITS = {"median cell": 0.005, "worst cell": 0.25, "500 independent": 1.0, "chain of 200": 2.0,
          "500 covered on host": 1.0, "500 covered on blas": 1.0}  # seconds of CPU
MACHINES = ("host", "blas")
PROGRAMS = ("product", "fma", "add.vv", "softmax", "sum.new")
GROWTH = {"independent": (125, 250, 500, 1000, 2000), "chain": (50, 100, 200, 400, 800)}


def independent(statements: int) -> Kernel:
    """Products, sums and element-wise statements that share only their inputs."""
    lines = ["kernel independent(M, N, K)", "  in d: f32[M, N]"]
    lines += [f"  in a{n}: f32[M, K]\n  in b{n}: f32[K, N]" for n in range(8)]
    lines += [f"  inout c{n}: f32[M, N]" for n in range(statements // 2)]
    for n in range(statements // 2):  # a product is two statements
        if n % 2:
            lines.append(f"  forall i < M, j < N, k < K\n    c{n}[i, j] += a{n % 8}[i, k] * b{n // 8 % 8}[k, j]")
        else:
            lines.append(f"  forall i < M, j < N\n    c{n}[i, j] = max(c{n}[i, j], 0)")
            lines.append(f"  forall i < M, j < N\n    c{n}[i, j] = c{n}[i, j] + d[i, j]")
    return parse("\n".join(lines) + "\n")


def chain(statements: int) -> Kernel:
    """Every statement reads what the one before wrote."""
    lines = ["kernel chained(M)", "  in a: f32[M, M]", "  in x: f32[M, M]", "  out y: f32[M, M]"]
    for n in range(statements):
        before, after = ("x" if n == 0 else f"t{n - 1}"), ("y" if n == statements - 1 else f"t{n}")
        operation = ("{b}[i, j] + a[i, j]", "{b}[i, j] * a[j, i]", "max({b}[i, j], a[i, j])")[n % 3]
        lines.append(f"  forall i < M, j < M\n    {after}[i, j] = {operation.format(b=before)}")
    return parse("\n".join(lines) + "\n")


def fresh(kernel: Kernel) -> Kernel:
    """The kernel without what the mapper has noted on it."""
    return Kernel(**{f: getattr(kernel, f) for f in kernel.__dataclass_fields__})


def timed(kernel: Kernel, instruction: Instruction, repeats: int = 3) -> tuple[float, int, bool]:
    """CPU seconds, how many mappings, and whether the search went through everything."""
    best, found, complete = float("inf"), 0, True
    for _ in range(repeats):
        k = fresh(kernel)
        start = time.process_time()
        answer = match(k, instruction)
        if isinstance(answer, Matches):
            found = len(answer)
        best = min(best, time.process_time() - start)
        complete = answer.complete if isinstance(answer, Matches) else answer.kind != "budget"
    return best, found, complete


def cells(names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for name in names:
        for key, column in COLUMNS.items():
            instruction = column.load()
            kernel = typed(name, *types_of(instruction)) or typed(name, "f32", "f32")
            assert kernel is not None
            seconds, found, complete = timed(kernel, instruction)
            yield {"kernel": name, "column": key, "seconds": seconds, "mappings": found, "complete": complete}


def programs(make: Callable[[int], Kernel], statements: int) -> dict[str, float]:
    """Seconds on every instruction of :data:`PROGRAMS`: the kernel is prepared anew for each."""
    kernel = make(statements)
    return {key: timed(kernel, COLUMNS[key].load())[0] for key in PROGRAMS}


def covered(machine: str, statements: int = 500, repeats: int = 3) -> float:
    """Seconds to carry out a whole program with the instructions of a machine."""
    instructions = list(load_system(machine).instructions.values())
    kernel, best = independent(statements).with_sizes({"M": 64, "N": 64, "K": 64}), float("inf")
    for _ in range(repeats):
        k = fresh(kernel)
        start = time.process_time()
        found = cover(k, Demand(instructions), Trace(Approach()))
        best = min(best, time.process_time() - start)
        assert found, found
    return best


def phases(names: Sequence[str]) -> dict[str, float]:
    """Share of the time in each part of the mapper, by the file that the time is spent in."""
    profile = cProfile.Profile()
    profile.enable()
    for _ in cells(names):
        pass
    profile.disable()
    total: dict[str, float] = {}
    for (file, _, name), (_, _, own, _, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        path = Path(file)
        inside = path.parent.name in ("mapper", "ir", "transforms", "approach")
        part = f"{path.parent.name}/{path.stem}" if inside else "interpreter" if file == "~" else "elsewhere"
        if "parse" not in name and path.stem not in ("lexer", "parser", "lower", "verify", "infer"):
            total[part] = total.get(part, 0.0) + own
    whole = sum(total.values())
    return {k: v / whole for k, v in sorted(total.items(), key=lambda e: -e[1]) if v > 0.01 * whole}


def measured(quick: bool) -> dict[str, Any]:
    names = list(SUITE)[:: 8 if quick else 1]
    table = list(cells(names))
    worst = sorted(table, key=lambda c: -c["seconds"])[:10]
    grown = {"independent": independent, "chain": chain}
    sizes = {k: v[:3] if quick else v for k, v in GROWTH.items()}
    growth = {k: [{"statements": n, **programs(grown[k], n)} for n in sizes[k]] for k in grown}
    seconds = [c["seconds"] for c in table]
    summary = {
        "median cell": statistics.median(seconds),
        "worst cell": max(c["seconds"] for c in table if c["complete"]),
        "500 independent": max(v for n in growth["independent"] if n["statements"] == 500 for k, v in n.items()
                               if k != "statements"),
        "chain of 200": max(v for n in growth["chain"] if n["statements"] == 200 for k, v in n.items()
                            if k != "statements"),
        **{f"500 covered on {m}": covered(m) for m in MACHINES},
    }  # fmt: skip
    return {"schema": SCHEMA, "machine": facts(), "cells": len(table), "kernels": len(names), "summary": summary,
            "ended by the budget": [c for c in table if not c["complete"]], "worst": worst, "growth": growth,
            "phases": phases(names[:: 1 if quick else 8])}  # fmt: skip


def passed(summary: dict[str, float]) -> list[str]:
    """The limits that are passed, in words."""
    return [f"{k}: {1e3 * summary[k]:.1f} ms, limit {1e3 * v:.0f} ms" for k, v in LIMITS.items() if summary[k] > v]


def shown(result: dict[str, Any]) -> str:
    lines = [f"{result['cells']} cells of {result['kernels']} kernels"]
    lines += [f"  {k:20} {1e3 * v:8.2f} ms (limit {1e3 * LIMITS[k]:.0f})" for k, v in result["summary"].items()]
    lines += ["worst cells"]
    lines += [f"  {c['kernel']:32} {c['column']:16} {1e3 * c['seconds']:8.2f} ms, {c['mappings']} mappings"
              for c in result["worst"]]  # fmt: skip
    for kind, rows in result["growth"].items():
        lines += [f"{kind}: milliseconds by statements", "  statements" + "".join(f"{p:>12}" for p in PROGRAMS)]
        lines += [f"  {r['statements']:10}" + "".join(f"{1e3 * r[p]:12.1f}" for p in PROGRAMS) for r in rows]
    lines += ["where the time goes"] + [f"  {k:24} {100 * v:5.1f} %" for k, v in result["phases"].items()]
    return "\n".join(lines)


def picture(result: dict[str, Any]) -> str:
    """Growth with the number of statements, on logarithmic axes."""
    lines = [
        Line(f"{kind}, {key}", [(r["statements"], 1e3 * r[key]) for r in rows])
        for kind, rows in result["growth"].items()
        for key in ("product", "add.vv", "softmax")
    ]
    return chart("Mapping: time by statements", "statements", "milliseconds of CPU", lines)


PAGE = """\
<!-- generated: python -m benchmarks.mapping --page -->
# How long mapping takes

`python -m benchmarks.mapping --keep` measures this anew: CPU time on {cpu}, Python {python}, load {load} of {cpus} CPUs
when it began. A cell is one kernel of [the suite](suite.md) and one instruction, all mappings or the deepest mismatch.

| | measured | asked for |
|---|---:|---:|
{summary}

{ended} of {cells} cells were ended by a budget.

## Growth

Milliseconds for all mappings of one instruction on programs of many statements, nothing prepared.

![time by statements](drawings/mapping.svg)

{growth}

## Where the time goes

Share of the mapper's own time over cells of every eighth kernel, by the file it is spent in.

| part | share |
|---|---:|
{phases}

## The slowest cells

| kernel | column | ms | mappings |
|---|---|---:|---:|
{worst}
"""


def page(r: dict[str, Any]) -> str:
    growth = []
    for kind, rows in r["growth"].items():
        growth += [f"| {kind} | " + " | ".join(PROGRAMS) + " |", "|---:" * (len(PROGRAMS) + 1) + "|"]
        growth += [f"| {g['statements']} | " + " | ".join(f"{1e3 * g[p]:.1f}" for p in PROGRAMS) + " |" for g in rows]
        growth.append("")
    machine = {k: r["machine"][k] for k in ("cpu", "python", "load", "cpus")}
    return PAGE.format(
        **machine, cells=r["cells"], ended=len(r["ended by the budget"]), growth="\n".join(growth).rstrip(),
        summary="\n".join(f"| {k} | {1e3 * v:.2f} ms | {1e3 * LIMITS[k]:.0f} ms |" for k, v in r["summary"].items()),
        phases="\n".join(f"| `{k}` | {100 * v:.1f} % |" for k, v in r["phases"].items()),
        worst="\n".join(f"| {c['kernel']} | {c['column']} | {1e3 * c['seconds']:.1f} | {c['mappings']} |"
                        for c in r["worst"]),
    )  # fmt: skip


def write(result: dict[str, Any]) -> None:
    """The page and its picture."""
    DOCS.joinpath("mapping.md").write_text(page(result), encoding="utf-8")
    DOCS.joinpath("drawings", "mapping.svg").write_text(picture(result), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="every eighth kernel, smaller programs")
    options.add_argument("--keep", action="store_true", help="write the results and the page")
    options.add_argument("--page", action="store_true", help="only write the page, from the results on disk")
    given = options.parse_args(arguments)
    result = json.loads(RESULTS.read_text(encoding="utf-8")) if given.page else measured(given.quick)
    print(shown(result))
    if given.keep:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if given.keep or given.page:
        write(result)
    over = passed(result["summary"])
    print("\n".join(over), file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
