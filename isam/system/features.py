"""What this CPU can do, by LLVM's names (``avx2``, ``avx512f``, ``amx-tile``, ``neon``)."""

from __future__ import annotations

from collections.abc import Iterable

from isam.diagnostics import fail
from isam.runtime.linking import features as host_features  # empty: every variant that needs one is passed over
from isam.system.graph import System


def demand(system: System) -> None:
    """Raises ``IsamError`` where code for a machine cannot run on this CPU."""
    made_for = system.target.features if system.target else ()
    if missing := lacking(dict.fromkeys((*system.needs, *sorted(made_for)))):
        raise fail("system-features", f"'{system.name}' needs {', '.join(missing)}, which this CPU lacks",
                   hint="take 'host', which is chosen for this CPU")  # fmt: skip


def lacking(needs: Iterable[str], features: Iterable[str] | None = None) -> tuple[str, ...]:
    """The features of ``needs`` that are not there."""
    have = host_features() if features is None else frozenset(features)
    return tuple(n for n in needs if n not in have)
