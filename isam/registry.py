"""Names of things that can be plugged in (approaches, backends, runners, systems, instructions): lazy, no name twice.

What ships with ISAM is listed here, so that a checkout works without being installed; packages add theirs through entry
points of the same group names. Nothing is imported before it is asked for.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from isam.diagnostics import did_you_mean, fail

SHIPPED: dict[str, dict[str, str]] = {
    "isam.approaches": {
        "first-fit": "isam.approach.choice:Approach",
        "greedy": "isam.approach.shipped.greedy:Greedy",
        "locality": "isam.approach.shipped.greedy:Locality",
        "casestudy": "isam.approach.shipped.casestudy:CaseStudy",
        "best-first": "isam.approach.shipped.strategies:BestFirst",
        "beam": "isam.approach.shipped.strategies:Beam",
        "mcts": "isam.approach.shipped.strategies:MonteCarlo",
        "exhaustive": "isam.approach.shipped.strategies:Exhaustive",
        "random": "isam.approach.shipped.strategies:Random",
        "replay": "isam.approach.shipped.replay:Replay",
        "measured": "isam.approach.shipped.measured:Measured",
    },
    "isam.backends": {  # Schedule -> Artifact
        "simulator": "isam.codegen.simulator:emit",
        "llvm": "isam.codegen.llvm:emit",
        "stream": "isam.codegen.stream:emit",
    },
    "isam.templates": {  # what is wrong with the templates of a System
        "llvm": "isam.codegen.llvm.judge:judge",
        "stream": "isam.codegen.stream.judge:judge",
    },
    "isam.runners": {  # Artifact -> something that executes it
        "simulator": "isam.codegen.simulator.execute:Runner",
        "stream": "isam.codegen.simulator.execute:Runner",
        "llvm": "isam.runtime.native:Runner",
    },
    "isam.systems": {},  # name -> path of a description (a function without arguments)
    "isam.instructions": {},
}


def names(group: str) -> tuple[str, ...]:
    """Every name known in a group, sorted."""
    return tuple(sorted(_targets(group)))


def load(group: str, name: str) -> Any:
    """The object registered as ``name``. Raises ``IsamError``: unknown, registered twice, or not importable."""
    target = SHIPPED.get(group, {}).get(name) or _targets(group).get(name)
    what = {"isam.approaches": "approach"}.get(group, group.partition(".")[2].removesuffix("s"))
    if target is None:
        known = names(group)
        hint = did_you_mean(name, known) or f"known: {', '.join(known)}"
        raise fail("registry-unknown", f"there is no {what} '{name}'", hint=hint)
    module, _, attribute = target.partition(":")
    try:
        found: Any = import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as e:
        raise fail("registry-broken", f"the {what} '{name}' ({target}) cannot be loaded: {e}") from None
    return found


@cache
def _targets(group: str) -> dict[str, str]:
    from importlib.metadata import entry_points

    out = dict(SHIPPED.get(group, {}))
    for point in entry_points(group=group):
        if out.get(point.name, point.value) != point.value:
            raise fail("registry-duplicate", f"'{point.name}' is registered twice in {group}: {out[point.name]} and "
                       f"{point.value}", hint="uninstall one of the two packages")  # fmt: skip
        out[point.name] = point.value
    return out
