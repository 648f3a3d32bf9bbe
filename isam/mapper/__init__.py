"""Kernels laid beside instructions: mappings, or reports of why not (MAP-1 to MAP-10).

Explanations are imported when one is asked for: they try changes, which takes the search and its laws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isam.mapper.match import Matches, count, match, near_misses

if TYPE_CHECKING:
    from isam.mapper.explanation import Explanation, explain

__all__ = ["Explanation", "Matches", "count", "explain", "match", "near_misses"]


def __getattr__(name: str) -> Any:
    if name not in ("Explanation", "explain"):
        raise AttributeError(f"module 'isam.mapper' has no attribute '{name}'")
    from isam.mapper import explanation

    return getattr(explanation, name)
