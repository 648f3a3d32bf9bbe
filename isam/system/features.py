"""What this CPU can do, by LLVM's names (``avx2``, ``avx512f``, ``amx-tile``, ``neon``)."""

from __future__ import annotations

from collections.abc import Iterable

from isam.runtime.linking import features as host_features  # empty: every variant that needs one is passed over


def lacking(needs: Iterable[str], features: Iterable[str] | None = None) -> tuple[str, ...]:
    """The features of ``needs`` that are not there."""
    have = host_features() if features is None else frozenset(features)
    return tuple(n for n in needs if n not in have)
