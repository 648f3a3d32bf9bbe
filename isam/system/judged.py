"""Descriptions on record as judged: the very texts that were once found right need not be found right by every process.

``hwdesc/judged.txt`` holds a digest of each shipped system and its name: of the texts of all files it is made of.
``python -m isam.system.judged`` judges them all and writes it; a test holds it against the files. A description with
any other text (a user's own, or a shipped one that was edited) is judged whole when it is loaded.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from isam.system.files import texts_of
from isam.system.find import list_systems, shipped
from isam.system.source import Sequence, parse_source

RECORD = "judged.txt"


def is_judged(texts: Iterable[str]) -> bool:
    """Whether these texts together are on record."""
    return digest(texts) in _on_record()


def digest(texts: Iterable[str]) -> str:
    made = sha256()
    for text in texts:
        data = text.encode()
        made.update(b"%d\n" % len(data))
        made.update(data)
    return made.hexdigest()


@lru_cache(maxsize=1)
def _on_record() -> frozenset[str]:
    files = (root / RECORD for root in shipped())
    return frozenset(line.split()[0] for f in files if f.is_file() for line in f.read_text().splitlines() if line)


def record() -> str:
    """What the record should hold. Raises ``IsamError`` when a shipped description has a fault."""
    from isam.system.check import demand
    from isam.system.load import load_system

    lines: list[str] = []
    for name, path in sorted(list_systems(shipped()).items()):
        texts = list(texts_of(path).values())
        if not isinstance(parse_source(texts[0], str(path)).get("select"), Sequence):  # that one is made of no text
            demand(load_system(path, whole=True))
            lines.append(f"{digest(texts)}  {name}\n")
    return "".join(lines)


def main() -> int:
    target: Path = shipped()[0] / RECORD
    target.write_text(record())
    return 0


if __name__ == "__main__":
    sys.exit(main())
