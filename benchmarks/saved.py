"""Results as they are kept in a file: which ones the pages and pictures can be made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SCHEMA = "isam.bench/2"  # since 2: roofs of the machine, the best peer of each row, which peers are absent
OLDER = ("isam.bench/1",)  # read as well: what it lacks is left out


def read(path: Path) -> dict[str, Any]:
    """The results in a file. Raises ``ValueError`` where it holds none, or those of a later schema."""
    results = json.loads(path.read_text(encoding="utf-8"))
    found = results.get("schema") if isinstance(results, dict) else None
    if found not in (SCHEMA, *OLDER):
        raise ValueError(f"{path} holds no results of schema {', '.join((SCHEMA, *OLDER))}: {found!r}")
    return results
