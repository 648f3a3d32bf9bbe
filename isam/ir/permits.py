"""What a program grants a kernel: words, or a text with commas."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any

from isam.diagnostics import Loc, did_you_mean
from isam.ir.kernel import PERMITS
from isam.ir.lexer import Report

PERMITTED = (*sorted(PERMITS), "nothing")


def contradictory(granted: Set[str]) -> bool:
    """Whether one of the permissions forbids another."""
    return len(granted) > 1 and bool(granted & {"exact", "nothing"} and granted - {"exact", "finite", "flush"})


def permitted(given: Any, report: Report, at: Loc) -> frozenset[str] | None:
    """What a kernel is granted: a text names one permission or, with commas, several. Faults go to ``report``."""
    if given is None:
        return None
    words = [w.strip() for w in given.split(",")] if isinstance(given, str) else given
    granted = list(words) if isinstance(words, Iterable) else [words]
    for word in granted:
        if word not in PERMITTED:
            hint = did_you_mean(str(word), PERMITTED) or f"known: {', '.join(PERMITTED)}"
            report.add("L129", f"nobody can permit {word!r}", at, hint)
    known = frozenset(w for w in PERMITTED if w in granted)
    if contradictory(known):
        report.add("L129", "'exact' forbids what the others grant", at, "expected permits=\"exact\" alone")
    return known - {"nothing"}
