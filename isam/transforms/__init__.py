"""Kernel to equivalent kernel: one law per file (TR-0). README.md is the law for laws.

``ALL``: every law shipped. The laws are imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isam.transforms.law import Correspondence, Rewrite, Site, Transform, granted

if TYPE_CHECKING:
    from isam.transforms.shipped import ALL

__all__ = ["ALL", "Correspondence", "Rewrite", "Site", "Transform", "granted"]


def __getattr__(name: str) -> Any:
    if name != "ALL":
        raise AttributeError(f"module 'isam.transforms' has no attribute '{name}'")
    from isam.transforms import shipped

    return shipped.ALL
