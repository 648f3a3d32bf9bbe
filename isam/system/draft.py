"""A description before it is a machine: its files read, expanded and merged, every value still with its place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from pathlib import Path
from typing import Any

from isam.classes import dataclass
from isam.diagnostics import IsamError, Loc
from isam.system.families import Entry, expand
from isam.system.faults import MAX_FAULTS, Faults
from isam.system.fields import NAMED, Values, is_word, misspelling, read_fields
from isam.system.files import MAX_FILES, included, sibling
from isam.system.schema import SECTIONS, TOP, VARIANT
from isam.system.source import Mapping, Node, Scalar, Sequence, describe, parse_source, read_text

MAX_ENTRIES = 16_384


@dataclass
class Draft:
    """Entries by section and name, in order; ``top`` the other top-level values; ``variants`` of a ``select:``."""


    file: str
    top: Values = field(default_factory=dict)
    entries: dict[str, dict[str, Entry]] = field(default_factory=lambda: {s: {} for s in SECTIONS})
    moves: list[Entry] = field(default_factory=list)
    lists: dict[str, Node] = field(default_factory=dict)
    variants: list[Values] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)  # sections of which entries could not be read: names may be missing


class Reader:
    """Reads a description and all files it is made of. Faults of every file go to one collection."""

    def __init__(self, faults: Faults, texts: dict[str, str] | None = None, *, judged: bool = False):
        """``texts``: those of files that are known already, by path; ``judged``: they are known to be right."""
        self.faults, self.texts, self.judged = faults, texts or {}, judged
        self.open: list[Path] = []
        self.files = 0
        self.count = 0

    def read(self, path: Path, part: bool = False, given: dict[str, Node] | None = None) -> Draft | None:
        """The draft in ``path``; None when it is not YAML. ``part``: an included file, which names no system.
        ``given``: the lists of the file that includes it; they hide its own."""
        shown = str(path)
        if self.files >= MAX_FILES:
            self.faults.add("system-files", f"more than {MAX_FILES} files in one description", Loc(shown, 1, 1),
                            "join some")  # fmt: skip
            return None
        try:
            text = self.texts[shown] if shown in self.texts else read_text(path)
            self.faults.text(shown, "")  # its turn; the text follows when it is known to be small
            self.files += 1
            top = parse_source(text, shown)
            self.faults.text(shown, text)
        except IsamError as e:
            for d in e.diagnostics:
                self.faults.take(d)
            return None
        self.open.append(path.resolve())
        try:
            return self._draft(top, path, part, given or {})
        finally:
            self.open.pop()

    def _draft(self, top: Mapping, path: Path, part: bool, given: dict[str, Node]) -> Draft:
        draft = Draft(str(path))
        draft.lost |= {misspelling(k.text, TOP) for k, _ in top.items[:MAX_FAULTS] if k.text not in TOP}
        values = read_fields(top, TOP, "a system description", self.faults, Loc(str(path), 1, 1))
        self._header(top, values, path, part)
        self._base(values.pop("extends", None), draft, path)
        self._lists(values.pop("lists", None), draft)
        draft.lists |= given
        own = dict(draft.lists)
        for name in values.pop("include", ()):
            self._include(name, draft, path, own)
        for section in SECTIONS:
            self._section(section, values.pop(section, None), draft)
        self._moves(values.pop("moves", None), draft)
        draft.variants = self._variants(values.pop("select", None))
        _merge_top(draft.top, values)
        return draft

    def _header(self, top: Mapping, values: Values, path: Path, part: bool) -> None:
        version = top.get("isam")
        if isinstance(version, Scalar) and values.get("isam", 1) != 1:
            self.faults.add("system-version", f"version {version.text[:20]} of the format is not known", version.loc,
                            "this ISAM reads version 1: 'isam: 1'")  # fmt: skip
        name = values.get("system")
        if part:
            for key in ("system", "extends", "select"):
                if stray := top.key(key):
                    self.faults.add("system-part", f"an included file cannot say '{key}'", stray.loc,
                                    "extend a whole system with 'extends:'; include only parts")  # fmt: skip
        elif name is None:
            if top.get("system") is None:
                self.faults.add("system-missing", "the description does not say which system it is",
                                Loc(str(path), 1, 1),
                                "add 'system: NAME'")  # fmt: skip
        elif not is_word(name.text):
            self.faults.add("system-name", f"'{name.text[:40]}' cannot name a system", name.loc,
                            NAMED)  # fmt: skip
        if "select" in values:
            for key in (*SECTIONS, "moves", "extends"):
                if stray := top.key(key):
                    self.faults.add("system-select", f"a system that selects another has no '{key}' of its own",
                                    stray.loc,
                                    "put it into the systems selected")  # fmt: skip

    def _nested(self, name: Scalar, path: Path, part: bool, given: dict[str, Node] | None = None) -> Draft | None:
        if path.resolve() in self.open:
            self.faults.add("system-cycle", f"'{name.text}' leads back to this file", name.loc, "break the circle")
            return None
        return self.read(path, part, given=given)

    def _base(self, name: Scalar | None, draft: Draft, path: Path) -> None:
        if name is None:
            return
        try:
            found = sibling(path, name)
        except IsamError as e:
            for d in e.diagnostics:
                self.faults.take(d)
            draft.lost |= {*SECTIONS, "moves"}
            return
        base = self._nested(name, found, False)
        if base is None:
            draft.lost |= {*SECTIONS, "moves"}
            return
        draft.lost |= base.lost
        if base.variants:
            self.faults.add("system-extends", f"'{name.text}' selects another system and cannot be extended", name.loc,
                            "extend one of: " + ", ".join(v["system"].text for v in base.variants if "system" in v)
                            )  # fmt: skip
        draft.top, draft.entries, draft.moves, draft.lists = base.top, base.entries, base.moves, base.lists
        draft.top.pop("system", None)
        draft.top.pop("description", None)

    def _include(self, name: Scalar, draft: Draft, path: Path, own: dict[str, Node]) -> None:
        target = included(path, name.text)
        if target is None:
            self.faults.add("system-include", f"'{name.text[:60]}' is not below this file's folder", name.loc,
                            "included files lie beside or below the file that includes them")  # fmt: skip
            return
        if not target.is_file():
            draft.lost |= {*SECTIONS, "moves"}
            self.faults.add("system-include", f"there is no file '{name.text[:60]}' here", name.loc,
                            f"looked in {path.parent}")  # fmt: skip
            return
        part = self._nested(name, target, True, own)
        if part is None:
            draft.lost |= {*SECTIONS, "moves"}
            return
        draft.lost |= part.lost
        for section, entries in part.entries.items():
            self._add(section, entries.values(), draft, override=False)
        draft.moves += part.moves
        draft.lists = part.lists | draft.lists
        _merge_top(draft.top, part.top)

    def _lists(self, node: Node | None, draft: Draft) -> None:
        if node is None:
            return
        if not isinstance(node, Mapping):
            self.faults.add("system-kind", f"expected 'NAME: VALUES', found {describe(node)}", node.loc,
                            "write 'floats: [f32, f64]'")  # fmt: skip
            return
        for key, value in node.items:
            draft.lists[key.text] = value

    def _section(self, section: str, node: Node | None, draft: Draft) -> None:
        if node is None:
            return
        if not isinstance(node, Mapping):
            self.faults.add("system-kind", f"expected '{section}' by name, found {describe(node)}", node.loc,
                            "write 'NAME: {...}' for each")  # fmt: skip
            draft.lost.add(section)
            return
        before = len(self.faults.found)
        self._add(section, expand(node, draft.lists, self.faults, judged=self.judged), draft, override=True)
        if len(self.faults.found) > before:
            draft.lost.add(section)

    def _add(self, section: str, entries: Iterable[Entry], draft: Draft, override: bool) -> None:
        have = draft.entries[section]
        for e in entries:
            old = have.get(e.name)
            if self._count(e) and old is not None and not override:
                self.faults.add("system-duplicate", f"'{e.name}' is described twice", e.key.loc,
                                f"the other one is at {old.key.loc}")  # fmt: skip
            elif not is_word(e.name):
                self.faults.add("system-name", f"'{e.name[:40]}' cannot name an entry of '{section}'", e.key.loc,
                                f"{NAMED}; the parameters of a family stand in 'for:'")  # fmt: skip
            else:
                have[e.name] = e if old is None else _override(old, e)

    def _count(self, e: Entry) -> bool:
        self.count += 1
        if self.count == MAX_ENTRIES + 1:
            self.faults.add("system-entries", f"more than {MAX_ENTRIES} entries", e.key.loc,
                            "shorten the lists of families")  # fmt: skip
        return True

    def _moves(self, node: Node | None, draft: Draft) -> None:
        if node is None:
            return
        if not isinstance(node, Sequence):
            self.faults.add("system-kind", f"expected a list of moves, found {describe(node)}", node.loc,
                            "write '- {from: ..., to: ..., by: ..., issuer: ...}' for each")  # fmt: skip
            draft.lost.add("moves")
            return
        for n, item in enumerate(node.items):
            one = Mapping(((Scalar(f"move {n}", item.loc), item),), item.loc)
            if isinstance(item, Mapping) and item.get("for") is not None:
                one = Mapping(((_family_key(item, f"move {n}"), item),), item.loc)
            draft.moves += expand(one, draft.lists, self.faults, judged=self.judged)

    def _variants(self, node: Node | None) -> list[Values]:
        if node is None:
            return []
        if not isinstance(node, Sequence) or not node.items:
            self.faults.add("system-kind", f"expected a list of systems, found {describe(node)}", node.loc,
                            "write '- {system: NAME, needs: [FEATURE]}' for each")  # fmt: skip
            return []
        return [read_fields(i, VARIANT, "a variant", self.faults) for i in node.items]


def _family_key(item: Mapping, name: str) -> Scalar:
    given = item.get("for")
    holes = "".join(f" {{{k.text}}}" for k, _ in given.items) if isinstance(given, Mapping) else ""
    return Scalar(name + holes, item.loc)


def _override(old: Entry, new: Entry) -> Entry:
    """The base system's entry with the fields that the extending one gives instead."""
    if not isinstance(old.node, Mapping) or not isinstance(new.node, Mapping):
        return new
    own = {k.text for k, _ in new.node.items}
    kept = tuple((k, v) for k, v in old.node.items if k.text not in own)
    return Entry(new.name, new.key, Mapping(kept + new.node.items, new.node.loc), new.family or old.family, new.member,
                 new.values or old.values)


def _merge_top(into: Values, values: dict[str, Any]) -> None:
    for key, value in values.items():
        old = into.get(key)
        if key == "facts" and isinstance(old, dict) and isinstance(value, dict):
            into[key] = {**old, **value}
        elif key == "needs" and old:
            into[key] = (*old, *(v for v in value if v not in old))
        else:
            into[key] = value
