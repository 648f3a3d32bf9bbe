"""Every step of a chain of rewritings judged, and what the certificate says of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isam.ir.mapping import Cover
from isam.proof.checker import hash_of
from isam.proof.equivalence import Equivalence, Verdict
from isam.proof.violation import Violation


def judged(cover: Cover) -> Iterator[Verdict]:
    """The verdict on every step of a chain, in order, each when it is asked for."""
    equivalence, before = Equivalence(), cover.original
    for step in cover.chain:
        yield equivalence.judge(before, step.kernel, step.needs)
        before = step.kernel


def check_steps(cover: Cover) -> tuple[list[dict[str, Any]], list[Violation]]:
    """What the certificate says of each step, and every step that was not shown to keep the meaning."""
    verdicts = list(judged(cover))
    data = [
        {
            "law": step.law,
            "site": step.site,
            "claims": sorted(step.needs),
            "numerics": list(verdict.numerics),
            "kernel": str(step.kernel),
            "hash": hash_of(step.kernel),
            "verdict": "equal" if verdict else "undecided",
        }
        for step, verdict in zip(cover.chain, verdicts, strict=True)
    ]
    bad = [
        Violation(3, "rewriting", f"step {n} of the rewriting, {step.law} ({step.site}): {verdict}")
        for n, (step, verdict) in enumerate(zip(cover.chain, verdicts, strict=True), 1)
        if not verdict
    ]
    return data, bad
