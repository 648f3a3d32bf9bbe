"""Gated recurrent units on the case study's machine: ISAM's schedules against the library's kernels called one by one.

    python -m benchmarks.gru [--hidden H ...] [--batch B ...] [--no-apart] [--keep]
    python -m benchmarks.gru --any [--hidden H ...] [--batch B ...] [--keep]
    python -m benchmarks.gru --page

``--any``: only the schedules for a number of steps that is known at run time; kept beside the other results.
``--no-apart`` leaves out the schedules with every nest apart, which take long to make for large sizes.
``--keep`` writes the results and the page, ``--page`` the page from the results on disk. Exit code: 0, or 1 where the
library is ahead.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import facts
from isam.system.load import load_system

from .experiment import BATCH, HIDDEN, measured, unknown
from .library import Kernels
from .page import page

RESULTS = Path(__file__).parents[1] / "results" / "gru.json"
DOCS = Path(__file__).parents[2] / "docs"


def run(hidden: Sequence[int], batch: Sequence[int], apart: bool) -> dict[str, Any]:
    system = load_system("casestudy")
    kernels, rows = Kernels(system), []
    for h in hidden:
        for b in batch:
            print(f"hidden {h}, batch {b}".ljust(60), end="\r", file=sys.stderr, flush=True)
            rows.append(measured(h, b, system, kernels, apart=apart))
    return {"schema": "isam.gru/1", "machine": facts(), "asked": len(HIDDEN) * len(BATCH), "rows": rows}


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--hidden", type=int, nargs="+", default=HIDDEN)
    options.add_argument("--batch", type=int, nargs="+", default=BATCH)
    options.add_argument("--no-apart", action="store_true", help="without the schedules with every nest apart")
    options.add_argument("--any", action="store_true", help="only schedules for any number of steps")
    options.add_argument("--keep", action="store_true", help="write the results and the page")
    options.add_argument("--page", action="store_true", help="only write the page, from the results on disk")
    given = options.parse_args(arguments)
    kept = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    if given.any:
        system = load_system("casestudy")
        result = {**kept, "any": [unknown(h, b, system) for h in given.hidden for b in given.batch]}
    elif given.page:
        result = kept
    else:
        result = {"any": kept.get("any", []), **run(given.hidden, given.batch, not given.no_apart)}
    print(page(result))
    if given.keep:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if given.keep or given.page:
        DOCS.joinpath("gru.md").write_text(page(result), encoding="utf-8")
    return 0 if all(r["ratio"] > 1 for r in result["rows"]) else 1


if __name__ == "__main__":
    sys.exit(main())
