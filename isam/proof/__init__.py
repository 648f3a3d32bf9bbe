"""Proof: obligations 1 to 11 of the requirements, by a stranger to mapper and scheduler."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isam.proof.flat import check_flat
    from isam.proof.violation import Violation

__all__ = ["Violation", "check_flat"]

_WHERE = {"check_flat": "flat", "Violation": "violation"}


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'isam.proof' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(f"isam.proof.{_WHERE[name]}"), name)
