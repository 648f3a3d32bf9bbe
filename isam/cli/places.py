"""Files that a verb is to write: refused before anything is made where they cannot be meant."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import combinations
from pathlib import Path

from isam.diagnostics import Loc, fail

STANDARD = "-"


def apart(written: Iterable[str | Path | None], read: Iterable[str | Path | None], on: str = "",
          approach: str = "") -> None:  # fmt: skip
    """Raises ``IsamError`` where a file to be written is one that the same command reads, also by another name, is to
    be written twice, or is standard output. ``read``: files, or kernels ``FILE:NAME``; ``on``, ``approach``: as given.
    """
    from isam.system.find import looks_like_path

    outputs = [Path(w) for w in written if w]
    texts = [*(str(r) for r in read if r), approach.removeprefix("replay:"), on if looks_like_path(on) else ""]
    inputs = [f for t in texts for f in _files(t)]
    for out in outputs:
        if str(out) == STANDARD:
            raise fail("cli-file", "'-' is no file to write to: standard output is for the answer", hint="name a file")
        if same := next((i for i in inputs if _same(i, out)), None):
            also = "" if same == str(out) else f", which is {same}"
            raise fail("cli-file", f"cannot write {out}{also}: this command reads it", Loc(str(out)),
                       "name another file")  # fmt: skip
    for a, b in combinations(outputs, 2):
        if os.path.realpath(a) == os.path.realpath(b) and (a.is_file() or not a.exists()):
            raise fail("cli-file", f"cannot write {b}: it is to be written twice", Loc(str(b)), "name two files")


def _files(spec: str) -> Iterator[str]:
    """The file that ``FILE`` or ``FILE:NAME`` names, if there is one."""
    while spec and not os.path.isfile(spec):
        spec = spec.rpartition(":")[0]
    if spec:
        yield spec


def _same(one: str, other: Path) -> bool:
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):  # what is not there yet is no input
        return False
