"""The files that a description is made of: itself, what it extends, what it includes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from isam.diagnostics import IsamError
from isam.system.find import find_system
from isam.system.source import Node, Scalar, Sequence, parse_source, read_text

MAX_FILES = 32


def sibling(path: Path, name: str) -> Path:
    """The system ``name`` as seen from the file ``path``: beside it first, then wherever systems are."""
    beside = path.parent / f"{name}.yaml"
    return beside if "\0" not in name and len(name) < 200 and beside.is_file() else find_system(name)


def included(path: Path, name: str) -> Path | None:
    """The file ``name`` as ``path`` includes it; None when it does not lie below that one's folder."""
    relative = Path(name)
    return None if relative.is_absolute() or ".." in relative.parts or "\0" in name else path.parent / relative


def texts_of(path: Path) -> dict[str, str]:
    """The texts of all files that the description ``path`` is made of, by path, ``path`` first. Files that cannot be
    read or understood lead no further: reading the description reports them. Raises ``IsamError`` when ``path`` itself
    cannot be read."""
    texts = {str(path): read_text(path)}
    todo = [path]
    while todo and len(texts) <= MAX_FILES:
        here = todo.pop()
        for found in _parts(here, texts[str(here)]):
            if str(found) not in texts:
                try:
                    texts[str(found)] = read_text(found)
                except IsamError:
                    continue
                todo.append(found)
    return texts


def _parts(path: Path, text: str) -> Iterator[Path]:
    try:
        top = parse_source(text, str(path))
        base = top.get("extends")
        if isinstance(base, Scalar):
            yield sibling(path, base.text)
    except IsamError:
        return
    for name in _names(top.get("include")):
        found = included(path, name.text)
        if found is not None:
            yield found


def _names(node: Node | None) -> Iterator[Scalar]:
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, Sequence):
        yield from (i for i in node.items if isinstance(i, Scalar))

