"""The chain of rewritings from the user's kernel to the one that is carried out: every step judged, and certified."""

from __future__ import annotations

from typing import Any

from isam.ir.mapping import Cover
from isam.proof.checker import hash_of
from isam.proof.equivalence import Equivalence, Verdict
from isam.proof.violation import Violation


def judged(cover: Cover) -> list[Verdict]:
    """The verdict on every step of a chain, in order."""
    equivalence, before, out = Equivalence(), cover.original, []
    for step in cover.chain:
        out.append(equivalence.judge(before, step.kernel, step.needs))
        before = step.kernel
    return out


def check_chain(cover: Cover) -> tuple[list[dict[str, Any]], list[Violation]]:
    """What the certificate says of each step, and every step that was not shown to keep the meaning."""
    verdicts = judged(cover)
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
    end = cover.chain[-1].kernel if cover.chain else cover.original
    if end != cover.kernel:
        bad.append(Violation(3, "rewriting", "the chain of rewritings does not end at the kernel that is carried out"))
    if tuple(f"{s.law} ({s.site})" for s in cover.chain) != cover.steps:
        bad.append(Violation(3, "rewriting", "the steps that are named are not those of the chain"))
    return data, bad
