"""Proof: obligations 1 to 11 of the requirements, by a stranger to mapper and scheduler.

``check_points`` judges 1 to 7 and ``check_tree`` 8 to 11 on the schedule's tree, for all trips; ``check_flat`` executes
every step on tokens (the slow judge, for small trips). ``prove`` runs them and writes a certificate, ``verify`` checks
one again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isam.proof.certificate import Certificate, ProofError, prove, verify
    from isam.proof.flat import check_flat
    from isam.proof.points import check_points
    from isam.proof.tree import check_tree
    from isam.proof.violation import OBLIGATIONS, Violation

__all__ = [
    "OBLIGATIONS",
    "Certificate",
    "ProofError",
    "Violation",
    "check_flat",
    "check_points",
    "check_tree",
    "prove",
    "verify",
]

_WHERE = {
    "Certificate": "certificate",
    "OBLIGATIONS": "violation",
    "ProofError": "certificate",
    "Violation": "violation",
    "check_flat": "flat",
    "check_points": "points",
    "check_tree": "tree",
    "prove": "certificate",
    "verify": "certificate",
}


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'isam.proof' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(f"isam.proof.{_WHERE[name]}"), name)
