"""The files that a description is made of: itself, what it extends, what it includes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from isam.diagnostics import IsamError, fail
from isam.system.find import ENDINGS, find_system, looks_like_path, unnamed
from isam.system.source import Node, Scalar, Sequence, parse_source, read_text

MAX_FILES = 32


def sibling(path: Path, name: Scalar) -> Path:
    """The system ``name`` as seen from the file ``path``: beside it first; then, unless it is a path, wherever systems
    are. Raises ``IsamError`` at the name."""
    text, is_path = name.text, looks_like_path(name.text)
    beside = [text] if text.endswith(ENDINGS) else [f"{text}.yaml", *[text] * is_path]
    for found in (path.parent / b for b in beside):
        if os.path.isfile(found):  # False also of names that no file can have
            return found
    where = f"looked in {path.parent}, the folder of this file"
    if is_path:
        raise fail("system-file", f"there is no file '{text[:60]}' here", name.loc, where)
    try:
        return find_system(text)
    except IsamError as e:
        unknown = e.diagnostics[0].code == "system-unknown" and unnamed(text)
        hint = f"{unknown}; {where}, then among all systems" if unknown else e.diagnostics[0].hint
        raise fail(e.diagnostics[0].code, e.diagnostics[0].message, name.loc, hint) from None


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
            yield sibling(path, base)
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

