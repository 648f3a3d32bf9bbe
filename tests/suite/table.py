"""The table of the suite: ``python -m tests.suite.table`` writes ``docs/suite.md`` from the results on disk,
``python -m tests.suite.table --run`` runs every cell first and keeps the results in ``benchmarks/results/suite.json``.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from benchmarks.machine import facts
from tests.suite import SUITE
from tests.suite.cells import GUESSES, LAWS, Cell, named, run_all
from tests.suite.columns import COLUMNS
from tests.suite.expected import expected, written

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "suite.json"
PAGE = ROOT / "docs" / "suite.md"
SCHEMA = "isam.suite/1"
GROUPS = {
    "Products": ("product", "product.b", "product.i8", "product.new", "product.sat", "batched", "tile.b"),
    "Products with a vector, sums": ("gemv", "gemv.b", "rowdot.b", "dot", "dot.new", "outer", "outer.minus", "fma",
                                     "axpy"),
    "Fused instructions and units": ("gemm+bias+relu", "gemm.requant", "conv2d.s1", "conv2d.s2", "conv2d+bias+relu",
                                     "conv1d", "conv3d", "depthwise2d", "transposed2d"),
    "Pools and rows": ("pool.max", "pool.sum", "softmax", "gelu", "sum.rows", "max.rows", "sum.new", "max.new"),
    "Element by element": ("add.vv", "add.vs", "add.row", "sub.vv", "sub.vs", "mul.vv", "mul.vs", "div.vv", "div.vs",
                           "max.vv", "max.vs"),
    "Functions": ("exp", "log", "tanh", "sigmoid", "erf", "rsqrt", "relu", "merge", "narrow"),
    "Moves": ("copy1", "copy2", "copy.all", "zero"),
}  # fmt: skip
SHORT = {"operation": "op", "axis-missing": "axis", "extra-dependence": "dep", "coefficient": "coef", "dtype": "type",
         "extent": "ext", "escapes": "esc", "aliasing": "alias", "literal": "lit", "domain": "dom",
         "budget": "budget"}  # fmt: skip
INTRO = """\
<!-- generated: python -m tests.suite.table -->
# The suite: kernels against instructions

{kernels} kernels ({texts} texts in `tests/suite` and `tests/corpus`) against {columns} instructions, one of each
structure in the zoo (`hwdesc/zoo`, {zoo} instructions in all; `tests/suite/columns.py` says which share a structure).
What every cell should be was worked out on paper and committed before the first run: `tests/suite/roles.txt`,
`operations.txt`, `exceptions.txt`, with the rules in `expected.py`.

A kernel is instantiated in the element types of the instruction, every extent 4, filter taps 2: cells are about
structure. A step is taken because a mismatch asks for it; {laws} laws may answer: all that are shipped but those that
the matcher sees through anyway. Where such steps lead nowhere, up to {guesses} blind ones were tried afterwards, on
kernels that the paper does not speak of: they change no verdict, and say what the reports fail to ask for.

| | |
|---|---|
| cells | {cells} |
| as expected | {good} |
| mapped as written, mappings | {mapped}, {mappings} |
| mapped after steps | {needs} |
| impossible, with the reason | {impossible} |
| of these ended by the budget, flagged | {ended} |
| blind expansions on the {kernels_named} kernels the paper names | {blind_named} |
| on the others, in cells where directed steps lead nowhere | {blind_others}, in {blind_cells} cells |
| mapped by blind steps only | {guessed} |
| median, worst cell, worst not ended by its budget | {median:.1f} ms, {worst:.0f} ms, {complete:.0f} ms |
| expectations corrected after the first run | {corrected} |

Times are CPU milliseconds on {cpu}, Python {python}, one run each. Counts are (roles, axes) pairs and agree with the
brute-force enumerator wherever it can run (`pytest tests/suite/test_counts.py`). Verdicts are run again by
`pytest tests/suite/test_cells.py`; `python -m tests.suite.table --run` makes everything anew.

In the tables: **14** · 0.9 ms is mapped, 14 ways; `factor` · 2 x · 8 ms is mapped after these laws, two expansions;
dep · 3 x · 2 ms is impossible: the deepest mismatch is an extra dependence, three expansions, an asterisk when a budget
ended it, `7 blind` for blind expansions afterwards and, after an arrow, what they led to. {kinds}.

## What the first run found wrong in ISAM

The first run came out as expected in 5,561 of 7,353 cells. Where paper was right, ISAM was changed:

* In narrow types, a kernel under a `where` did not map: the parts of an expression kept conditions that they do not
  need. They keep those on their own axes now (`isam/ir/breakup.py`).
* Packed products were out of reach. An axis that has the right arrays but another step is reported as a coefficient
  now, one axis that the instruction needs twice as that, and splitting answers both.
* Overwriting products began with their zero, so that nothing asked for factoring. A plan begins with the statement
  that has most axes and arrays now.
* A unit axis was not given to what a sum starts from.
* A transposition on a reduction had no reason; an instruction with two axes of one name broke the report of tails.
"""


def load() -> tuple[list[Cell], dict[str, Any]]:
    raw = json.loads(RESULTS.read_text(encoding="utf-8"))
    names = [f.name for f in fields(Cell)]
    return [_cell(dict(zip(names, c, strict=True))) for c in raw["cells"]], raw["machine"]


def _cell(row: dict[str, Any]) -> Cell:
    return Cell(**{**row, "chains": tuple(map(tuple, row["chains"])), "guessed": tuple(row["guessed"])})


def save(cells: Sequence[Cell]) -> None:
    rows = [json.dumps([v if k != "seconds" else round(v, 6) for k, v in asdict(c).items()]) for c in cells]
    machine = json.dumps(facts())
    text = f'{{"schema": "{SCHEMA}",\n"machine": {machine},\n"cells": [\n' + ",\n".join(rows) + "\n]}\n"
    RESULTS.write_text(text, encoding="utf-8")


def text_of(c: Cell) -> str:
    ms = 1e3 * c.seconds
    led = f" → `{_steps(c.guessed)}`" if c.guessed else ""
    tail = [f"{c.expansions} x"] * bool(c.expansions) + [f"{c.blind} blind{led}"] * bool(c.blind)
    tail.append(f"{ms:.1f} ms" if ms < 10 else f"{ms:.0f} ms")
    if c.kind == "mapped":
        head = f"**{c.count}**"
    elif c.kind == "needs":
        head = " or ".join("`" + _steps(chain) + "`" for chain in c.chains[:2])
    else:
        head = SHORT[c.mismatch] + "*" * bool(c.ended)
    return " · ".join([head, *tail])


def _steps(chain: Sequence[str]) -> str:
    return " ".join(f"{law} x{n}" if n > 1 else law for law, n in Counter(chain).items())


def page(cells: Sequence[Cell], machine: dict[str, Any]) -> str:
    at = {(c.kernel, c.column): c for c in cells}
    assert {k for g in GROUPS.values() for k in g} == set(COLUMNS)
    parts = [INTRO.format(**_figures(cells, machine)), *_corrections()]
    for title, keys in GROUPS.items():
        parts += ["", f"## {title}", "", "| column | instruction | what it does |", "|---|---|---|"]
        parts += [f"| {k} | `{COLUMNS[k].system}.{COLUMNS[k].name}` | `{COLUMNS[k].says}` |" for k in keys]
        parts += ["", "| kernel | " + " | ".join(keys) + " |", "|---" * (len(keys) + 1) + "|"]
        parts += [f"| {name} | " + " | ".join(text_of(at[name, k]) for k in keys) + " |" for name in SUITE]
    return "\n".join(parts) + "\n"


def _figures(cells: Sequence[Cell], machine: dict[str, Any]) -> dict[str, Any]:
    from tests.suite.test_columns import zoo

    kinds = Counter(c.kind for c in cells)
    seconds = [c.seconds for c in cells]
    return {
        "kernels": len(SUITE), "texts": len({m.kernel for m in SUITE.values()}), "columns": len(COLUMNS),
        "zoo": len(zoo()), "laws": len(LAWS), "guesses": GUESSES, "cells": len(cells),
        "good": sum(c.as_expected(expected(c.kernel, c.column)) for c in cells), "mapped": kinds["mapped"],
        "mappings": sum(c.count for c in cells), "needs": kinds["needs"], "impossible": kinds["impossible"],
        "ended": sum(bool(c.ended) for c in cells),
        "kernels_named": sum(map(named, SUITE)), "blind_named": sum(c.blind for c in cells if named(c.kernel)),
        "blind_others": sum(c.blind for c in cells), "blind_cells": sum(bool(c.blind) for c in cells),
        "guessed": sum(bool(c.guessed) for c in cells),
        "median": 1e3 * statistics.median(seconds), "worst": 1e3 * max(seconds),
        "complete": 1e3 * max(c.seconds for c in cells if not c.ended),
        "corrected": f"{sum(corrected_cells().values())}, for {len(corrected_cells())} reasons",
        "cpu": machine["cpu"], "python": machine["python"],
        "kinds": ", ".join(f"{v}: {k}" for k, v in SHORT.items() if any(c.mismatch == k for c in cells)),
    }  # fmt: skip


def corrected_cells() -> dict[str, int]:
    """How many cells each correction speaks of (and that it is the last to speak of)."""
    from tests.suite.expected import _named

    counts: dict[str, int] = {}
    lines = written("corrections.txt")
    for k in SUITE:
        for c in COLUMNS:
            reasons = [r for kernels, columns, _, r in lines if _named(k, kernels) and _named(c, columns)]
            if reasons:
                counts[reasons[-1]] = counts.get(reasons[-1], 0) + 1
    return counts


def _corrections() -> Iterator[str]:
    yield "## Expectations that the first run corrected"
    yield ""
    lines = written("corrections.txt")
    if not lines:
        yield "None."
        return
    yield "| kernels | columns | is | because |"
    yield "|---|---|---|---|"
    for kernels, columns, made, reason in lines:
        names = [n.replace("*", "&#42;") for n in (kernels, columns)]
        yield f"| {names[0]} | {names[1]} | {str(made).split(' because')[0]} | {reason} |"


def main(arguments: Sequence[str]) -> int:
    if "--run" in arguments:
        with ProcessPoolExecutor(2) as workers:
            rows = []
            for n, row in enumerate(workers.map(run_all, [[name] for name in SUITE])):
                rows += row
                print(f"{n + 1}/{len(SUITE)}", file=sys.stderr, flush=True)
        save(rows)
    cells, machine = load()
    PAGE.write_text(page(cells, machine), encoding="utf-8")
    wrong = [c for c in cells if not c.as_expected(expected(c.kernel, c.column))]
    for c in wrong[:40]:
        print(f"{c.kernel} on {c.column}: {c}; expected {expected(c.kernel, c.column)}")
    print(f"{len(cells)} cells, {len(wrong)} not as expected")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
