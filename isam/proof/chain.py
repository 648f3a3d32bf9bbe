"""The chain of rewritings from the user's kernel to the one that is carried out: every step judged, and certified.

Who judges steps (`rewritten.py`) is imported when there is one.
"""

from __future__ import annotations

from typing import Any

from isam.ir.mapping import Cover
from isam.proof.violation import Violation


def check_chain(cover: Cover) -> tuple[list[dict[str, Any]], list[Violation]]:
    """What the certificate says of each step, and every step that was not shown to keep the meaning."""
    data: list[dict[str, Any]] = []
    bad: list[Violation] = []
    if cover.chain:
        from isam.proof.rewritten import check_steps

        data, bad = check_steps(cover)
    end = cover.chain[-1].kernel if cover.chain else cover.original
    if end != cover.kernel:
        bad.append(Violation(3, "rewriting", "the chain of rewritings does not end at the kernel that is carried out"))
    if tuple(f"{s.law} ({s.site})" for s in cover.chain) != cover.steps:
        bad.append(Violation(3, "rewriting", "the steps that are named are not those of the chain"))
    return data, bad
