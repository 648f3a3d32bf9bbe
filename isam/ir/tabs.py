"""Definitions of lines some of which are indented with tabs: what is meant to stand below what."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.lexer import Line, Report
from isam.ir.parser import definitions
from isam.ir.syntax import Definition

WIDTHS = (8, 4, 2, 3)  # that a tab may be meant to have
STRUCTURE = frozenset({"L120", "L121", "L124", "L126", "L127", "L130"})  # faults of what stands below what


def laid_out(lines: list[Line], report: Report) -> tuple[list[Definition], Report]:
    """Every kernel and instruction in the lines, and the report with the faults of what they are made of.

    Tabs were reported, and nobody knows how wide they are: as wide as makes a whole of the lines. Where nothing does,
    what stands below what is a guess of which nothing is said, and no definition is one."""
    if not any(line.before for line in lines):
        return definitions(lines, report), report
    tried: list[Report] = []
    for width in WIDTHS:
        again = report.again()
        wide = [replace(x, indent=len(x.before.expandtabs(width))) if x.before else x for x in lines]
        found = definitions(wide, again)
        if not any(d.code in STRUCTURE for d in again.found):
            return found, again
        tried.append(again)
    best = min(tried, key=lambda r: len(r.found))
    best.found = [d for d in best.found if d.code not in STRUCTURE]
    return [], best
