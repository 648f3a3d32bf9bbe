"""What the judges say, on record: ``python -m tests.unit.proof.verdicts`` writes ``verdicts.txt`` anew.

That a fault is refused and what is right accepted is tested where this is used; that it is refused for the same reasons
as before, with the same words, and that as much is proved with the same effort, nothing else sees.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from isam.proof.flat import check_flat
from isam.proof.points import check_points
from isam.proof.tree import check_tree
from isam.schedule.tree import Schedule

FILE = Path(__file__).with_name("verdicts.txt")
MODULES = (
    "carried",
    "certificate",
    "checker",
    "course",
    "dealt",
    "digits",
    "equivalence",
    "facts",
    "flat_compiled",
    "flat_shapes",
    "flat_tables",
    "followed",
    "forged",
    "held",
    "known",
    "left_by_loops",
    "mutants",
    "off_by_one",
    "operations",
    "peeled_by_hand",
    "signature",
    "small",
    "trees",
    "trees_by_hand",
)
_new: dict[str, str] | None = None  # where they are written anew


@cache
def recorded() -> dict[str, str]:
    return dict(x.rsplit(": ", 1) for x in FILE.read_text(encoding="utf-8").splitlines())


def on_record(name: str, said: Iterable[object]) -> None:
    """Fails where something else is said than is on record under this name."""
    lines = [str(x) for x in said]
    made = f"{len(lines)} {hashlib.sha256(chr(10).join(lines).encode()).hexdigest()[:8]}"
    if _new is not None:
        assert _new.setdefault(name, made) == made, f"two of one name: {name}"
    else:
        assert made == recorded().get(name), "\n".join([f"not what is on record in {FILE.name}:", *lines])


def verdicts(s: Schedule, sizes: dict[str, int]) -> list[Any]:
    """What every judge of schedules says."""
    return [*check_flat(s, sizes), "points", *check_points(s), "tree", *check_tree(s)]


def main() -> None:
    from tests.mutation.checks import of_module
    from tests.unit.proof import verdicts as here

    here._new = {}
    for name in MODULES:
        for check in of_module(importlib.import_module(f"tests.unit.proof.test_{name}")):
            check()
    FILE.write_text("".join(f"{name}: {made}\n" for name, made in here._new.items()), encoding="utf-8")


if __name__ == "__main__":
    main()
