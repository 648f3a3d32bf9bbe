"""What this CPU can do, by LLVM's names (``avx2``, ``avx512f``, ``amx-tile``, ``neon``)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


@lru_cache(maxsize=1)
def host_features() -> frozenset[str]:
    """Features of the CPU this process runs on. Empty when LLVM cannot tell: every variant that needs one is then
    passed over."""
    import llvmlite.binding as llvm

    try:
        return frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)
    except RuntimeError:
        return frozenset()


def lacking(needs: Iterable[str], features: Iterable[str] | None = None) -> tuple[str, ...]:
    """The features of ``needs`` that are not there."""
    have = host_features() if features is None else frozenset(features)
    return tuple(n for n in needs if n not in have)
