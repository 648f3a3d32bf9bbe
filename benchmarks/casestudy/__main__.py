"""ISAM's schedules for the case study's machine against a library written by hand (paper, 6.2.1).

    python -m benchmarks.casestudy [--set NAME ...] [--json] [--keep]
    python -m benchmarks.casestudy --page

Per size: seconds of both in time, the bound, the ratio with and without main memory's traffic, how busy the units are,
CPU seconds to schedule and prove. ``--keep`` writes the results and the page with its picture, ``--page`` the page from
the results on disk. Exit code: 0, or 1 when a limit is passed.
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

from .experiment import LIMITS, measured, summary
from .page import page, picture, shown
from .sizes import SETS, Size

SCHEMA = "isam.casestudy/1"
RESULTS = Path(__file__).parents[1] / "results" / "casestudy.json"
DOCS = Path(__file__).parents[2] / "docs"


def run(sizes: Sequence[tuple[str, Size]]) -> dict[str, Any]:
    """All rows and what they come to; how far it is, on standard error."""
    system, rows = load_system("casestudy"), []
    for n, (name, size) in enumerate(sizes):
        bar = ("#" * (30 * n // len(sizes))).ljust(30)
        print(f"[{bar}] {n}/{len(sizes)} {name} {size}".ljust(90), end="\r", file=sys.stderr, flush=True)
        rows.append(measured(name, size, system))
    print(" " * 90, end="\r", file=sys.stderr)
    return {"schema": SCHEMA, "machine": facts(), "summary": summary(rows), "rows": rows}


def passed(s: dict[str, Any]) -> list[str]:
    """The limits that are passed, in words."""
    reached = {"large": s["isam"]["large, median"], "all": s["isam"]["all, median"]}
    out = [f"{k}: {v:.2f} times the bound, limit {LIMITS[k]}" for k, v in reached.items() if v > LIMITS[k]]
    if 0 < s["own, least ratio"] < LIMITS["own"]:
        out.append(f"own: {s['own, least ratio']:.2f} of the library, limit {LIMITS['own']}")
    return out + ([f"{s['refused']} sizes without a proved schedule"] if s["refused"] else [])


def write(result: dict[str, Any]) -> None:
    """The page and its picture."""
    DOCS.joinpath("casestudy.md").write_text(page(result), encoding="utf-8")
    DOCS.joinpath("drawings", "casestudy.svg").write_text(picture(result), encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--set", action="append", choices=list(SETS), help="only these sizes")
    options.add_argument("--json", action="store_true", help="the results as JSON")
    options.add_argument("--keep", action="store_true", help="write the results and the page")
    options.add_argument("--page", action="store_true", help="only write the page, from the results on disk")
    given = options.parse_args(arguments)
    if given.page:
        result = json.loads(RESULTS.read_text(encoding="utf-8"))
    else:
        result = run([(name, size) for name in given.set or SETS for size in SETS[name]])
    print(json.dumps(result, indent=1) if given.json else shown(result))
    if given.keep:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if given.keep or given.page:
        write(result)
    over = passed(result["summary"])
    print("\n".join(over), file=sys.stderr)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
