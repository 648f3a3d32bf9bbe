"""Decisions of a selector in a file, from one process to the next: JSON, a section per CPU, written whole or not at
all. A file that cannot be read counts as empty, one that cannot be written is no error: nothing is kept."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from isam.diagnostics import as_path, fail
from isam.runtime.environment import call_environment

SCHEMA = "isam.best-of/1"


class Decided:
    """The decisions in one file, among the alternatives of these names; those of others are not found, and stay."""

    def __init__(self, path: str | Path, names: Sequence[str]):
        self.path, self.names = as_path(path, "decisions").absolute(), list(names)
        if self.path.is_dir():
            raise fail("best-of", f"decisions are kept in a file, and {path} is a folder")
        self.known = self._read().get(call_environment(), {})

    def find(self, key: Hashable) -> str | None:
        """The alternative that was taken for a size, if it is one of these and the same were there to choose from."""
        row = self.known.get(repr(key))
        if not isinstance(row, dict) or row.get("among") != self.names or row.get("taken") not in self.names:
            return None
        return str(row["taken"])

    def keep(self, key: Hashable, taken: str, samples: Mapping[str, Sequence[float]]) -> None:
        """Writes a decision beside those that are there now, whoever wrote them. Of two who write at once one may lose
        a decision, and find it out again."""
        everything = self._read()
        row = {"taken": taken, "among": self.names, "seconds": {n: min(s) for n, s in samples.items() if s}}
        everything.setdefault(call_environment(), {})[repr(key)] = row
        temporary = self.path.with_name(f".{self.path.name}.{os.urandom(8).hex()}")
        with suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            try:
                temporary.write_text(json.dumps({"schema": SCHEMA, "decisions": everything}, indent=1), "utf-8")
                os.replace(temporary, self.path)
            finally:
                temporary.unlink(missing_ok=True)

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            data = json.loads(self.path.read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        found = data.get("decisions") if isinstance(data, dict) and data.get("schema") == SCHEMA else None
        if not isinstance(found, dict):
            return {}
        return {n: rows for n, rows in found.items() if isinstance(rows, dict)}
