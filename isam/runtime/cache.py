"""Compiled kernels kept on disk from one process to the next, by a key that says all that they depend on.

An entry is written under another name and renamed, so that a reader sees all of it or nothing; what is damaged, or not
what its name says, is removed and counts as absent. A folder that cannot be written is no error: nothing is kept.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from isam.artifact import Artifact, load_artifact
from isam.classes import dataclass
from isam.diagnostics import IsamError

SUFFIX = ".isa"
LIMIT = 256 << 20  # bytes
FORGOTTEN = 3600.0  # seconds after which a file that was never finished is removed
OFF = ("0", "off", "no")


@dataclass(frozen=True, slots=True)
class Cache:
    """Artifacts below ``folder``, at most about ``limit`` bytes: those used longest ago make room."""

    folder: Path
    limit: int = LIMIT

    def get(self, key: str) -> Artifact | None:
        """What was kept under the key, whole and unchanged."""
        path = self._path(key)
        try:
            found = load_artifact(path)
        except IsamError as e:
            if any(d.code != "artifact-read" for d in e.diagnostics):
                _remove(path)
            return None
        if found.provenance.get("key") != key:
            _remove(path)
            return None
        with suppress(OSError):
            os.utime(path)
        return replace(found, provenance={n: v for n, v in found.provenance.items() if n != "key"})

    def put(self, key: str, artifact: Artifact) -> bool:
        """Keeps it; False where that is not possible."""
        try:
            for folder in reversed([p for p in (self.folder, *self.folder.parents) if not p.exists()]):
                folder.mkdir(mode=0o700, exist_ok=True)  # each: of parents mkdir takes what the process permits
            replace(artifact, provenance={**artifact.provenance, "key": key}).save(self._path(key))
            self._trim()
        except (IsamError, OSError):
            return False
        return True

    def entries(self) -> list[Path]:
        """The files kept, least recently used first."""
        return [p for _, _, p in sorted(self._files())]

    def clear(self) -> int:
        """Removes every entry; how many there were."""
        gone = self.entries()
        for path in gone:
            _remove(path)
        return len(gone)

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}{SUFFIX}"

    def _files(self) -> Iterator[tuple[float, int, Path]]:
        with suppress(OSError), os.scandir(self.folder) as found:
            for f in found:
                if f.name.endswith(SUFFIX) and not f.name.startswith("."):
                    with suppress(OSError):
                        yield f.stat().st_mtime, f.stat().st_size, Path(f.path)

    def _trim(self) -> None:
        for path in self.folder.glob(f".*{SUFFIX}.*"):  # of processes that ended while writing
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > FORGOTTEN:
                    _remove(path)
        files = sorted(self._files())
        total = sum(size for _, size, _ in files)
        for _, size, path in files:
            if total <= self.limit:
                break
            _remove(path)
            total -= size


def default() -> Cache | None:
    """The cache of this user: in ``ISAM_CACHE``, else where the system keeps caches; None where that says ``off``."""
    chosen = os.environ.get("ISAM_CACHE", "").strip()
    if chosen.lower() in OFF:
        return None
    if chosen:
        return Cache(Path(chosen))
    from platformdirs import user_cache_path

    return Cache(user_cache_path("isam", appauthor=False))


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
