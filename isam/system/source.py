"""Reading YAML without trusting it (SYS-6): a guard on the event stream, then a tree in which every scalar is text.

Nothing is resolved here: ``no`` stays the text ``no``, ``1e3`` stays ``1e3``; what a scalar means is decided by the
field it stands in. Limits are checked event by event, so a hostile file is refused after its first few kilobytes,
before any tree exists. Anchors, aliases, tags and several documents in one file are not part of descriptions.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import Any

from isam.classes import dataclass
from isam.diagnostics import Diagnostic, IsamError, Loc, did_you_mean, fail

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
MAX_BYTES = 1 << 20  # of one file
MAX_DEPTH = 32
LIBRARY_DEPTH = "exceeded maximum nesting depth"  # what libyaml says of a limit of its own, which it may meet first
MAX_NODES = 20_000
MAX_SCALAR = 1 << 16
MAX_KEY = 200


@dataclass(frozen=True, slots=True)
class Scalar:
    """A leaf: its text as written. ``quoted``: it was in quotes (always a string). ``block``: column at which the lines
    of a literal block begin (0: not one), ``first``: the line of its first character."""

    text: str
    loc: Loc = field(compare=False)
    quoted: bool = False
    block: int = 0
    first: int = 0
    template: str | None = None  # the text before a family's parameters were filled in
    env: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Sequence:
    items: tuple[Node, ...]
    loc: Loc = field(compare=False)


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys in order of appearance, each once."""

    items: tuple[tuple[Scalar, Node], ...]
    loc: Loc = field(compare=False)

    def get(self, key: str) -> Node | None:
        for k, v in self.items:
            if k.text == key:
                return v
        return None

    def key(self, key: str) -> Scalar | None:
        return next((k for k, _ in self.items if k.text == key), None)


Node = Scalar | Sequence | Mapping


def describe(node: Node) -> str:
    """What a node is, for messages: ``a list``, ``a mapping``, ``'12'``."""
    if isinstance(node, Scalar):
        text = node.text if len(node.text) <= 40 else node.text[:37] + "..."
        return f"'{text.splitlines()[0] if text.strip() else text}'" if text else "nothing"
    return "a list" if isinstance(node, Sequence) else "a mapping"


def _beside(path: Path) -> list[str]:
    """The descriptions in the same folder."""
    try:
        return sorted(p.name for p in path.parent.iterdir() if p.suffix in (".yaml", ".yml"))
    except (OSError, ValueError):
        return []


def read_text(path: Path) -> str:
    """The text of a description file. Raises ``IsamError`` when it is no regular file, too large or not UTF-8."""
    shown = str(path)
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise fail("system-file", f"{shown} is not a file", Loc(shown),
                       "a system is a YAML file or the name of one")  # fmt: skip
        if status.st_size > MAX_BYTES:
            raise too_large(shown, status.st_size)
        with path.open("rb") as f:
            data = f.read(MAX_BYTES + 1)
    except (OSError, ValueError) as e:
        reason = getattr(e, "strerror", None) or str(e)
        hint = did_you_mean(path.name, _beside(path)) or "check the path"
        raise fail("system-file", f"cannot read {shown}: {reason}", Loc(shown), hint) from None
    if len(data) > MAX_BYTES:
        raise too_large(shown, len(data))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as e:
        before = data[: e.start]
        line = before.count(b"\n") + 1
        column = len(before) - (before.rfind(b"\n") + 1) + 1
        raise fail("system-encoding", f"byte 0x{data[e.start]:02x} is not UTF-8", Loc(shown, line, column),
                   "save the file as UTF-8") from None  # fmt: skip


def lines_of(text: str) -> list[str]:
    """The lines as YAML counts them."""
    return _BREAK.split(text)


def place(before: str, file: str) -> Loc:
    """The place after the text ``before``."""
    lines = lines_of(before)
    return Loc(file, len(lines), len(lines[-1]) + 1)


def too_large(file: str, size: int) -> IsamError:
    return fail("system-too-large", f"the file has {size} bytes; at most {MAX_BYTES} are read", Loc(file, 1, 1),
                "describe variants with 'for:' and split the file with 'include:'")  # fmt: skip


@lru_cache(maxsize=64)
def parse_source(text: str, file: str) -> Mapping:
    """The tree of a YAML text whose top is a mapping. Raises ``IsamError`` with every duplicate key, or the first limit
    passed, or the first syntax error."""
    if len(text) > MAX_BYTES:
        raise too_large(file, len(text))
    try:
        text.encode()
    except UnicodeEncodeError as e:
        raise fail("system-encoding", "a character that no text has (half of a surrogate pair)",
                   place(text[: e.start], file), "remove it") from None  # fmt: skip
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # its event stream only: no recursion, one event at a time
    reader = _Reader(file, text)
    try:
        return reader.document(yaml.parse(text, Loader=loader))
    except yaml.YAMLError as e:
        raise IsamError(reader.syntax(e)) from None


class _Reader:
    """Builds the tree from events with an explicit stack, counting as it goes."""

    def __init__(self, file: str, text: str):
        self.file, self.text = file, text
        self.lines = lines_of(text)
        self.nodes = 0
        self.faults: list[Diagnostic] = []

    def loc(self, mark: Any) -> Loc:
        return Loc(self.file, mark.line + 1, mark.column + 1)

    def line(self, loc: Loc) -> str:
        return self.lines[loc.line - 1][:200] if 0 < loc.line <= len(self.lines) else ""

    def fault(self, code: str, message: str, mark: Any, hint: str) -> Diagnostic:
        loc = self.loc(mark)
        return Diagnostic(code, message, loc, hint, self.line(loc))

    def refuse(self, code: str, message: str, mark: Any, hint: str) -> IsamError:
        return IsamError([*self.faults, self.fault(code, message, mark, hint)])

    def syntax(self, e: Any) -> Diagnostic:
        mark = getattr(e, "problem_mark", None) or getattr(e, "context_mark", None)
        problem = getattr(e, "problem", None) or getattr(e, "reason", None) or str(e).split("\n", 1)[0]
        at = self.lines[mark.line][mark.column :] if mark is not None and mark.line < len(self.lines) else ""
        context, begin = str(getattr(e, "context", None) or ""), getattr(e, "context_mark", None)
        if begin is not None and "simple key" in context:  # found missing in the next line only
            mark = begin
        hint = self._near(mark, begin if "flow" in context else None, at)
        if mark is not None and problem == LIBRARY_DEPTH:
            return self.too_deep(mark)
        if mark is None:
            loc = Loc(self.file, 1, 1)
            position = getattr(e, "position", None)
            if isinstance(position, int) and position >= 0:
                loc = place(self.text[:position], self.file)
                character = getattr(e, "character", None)
                hint = f"remove the character {character!r}" if character is not None else "remove that character"
            return Diagnostic("system-yaml", f"not YAML: {problem}", loc, hint, self.line(loc))
        return self.fault("system-yaml", f"not YAML: {problem}", mark, hint)

    def _near(self, mark: Any, bracket: Any, at: str) -> str:
        """What to look at where the text is no YAML; ``bracket``: one that is open there, ``at``: what stands there."""
        if at[:1] == "\t":
            return "indent with spaces, not tabs"
        if bracket is not None and bracket.line < mark.line:
            return f"the bracket of line {bracket.line + 1} is not closed before"
        above = self.lines[max(0, mark.line - 3) : mark.line] if mark is not None else []
        if any(line.split()[:1] in (["kernel"], ["instruction"]) for line in self.lines[:1]):
            return "a file of kernels ends in .isam: `isam check`"
        if any(line.strip() == "body:" for line in above):
            return "a text of several lines begins with 'body: |'"
        return "check indentation, colons, quotes and brackets near here"

    def too_deep(self, mark: Any) -> Diagnostic:
        return self.fault("system-depth", f"nested deeper than {MAX_DEPTH}", mark, "descriptions need about six levels")

    def document(self, events: Iterator[Any]) -> Mapping:
        top: Node | None = None
        stack: list[tuple[Any, list[Any]]] = []
        documents = 0
        for e in events:
            kind = type(e).__name__
            if kind == "DocumentStartEvent":
                documents += 1
                if documents > 1:
                    raise self.refuse("system-documents", "a second document in one file", e.start_mark,
                                      "one description per file; remove the '---'")  # fmt: skip
            if kind in ("ScalarEvent", "SequenceStartEvent", "MappingStartEvent", "AliasEvent"):
                self.count(e, kind, len(stack))
            if kind in ("SequenceStartEvent", "MappingStartEvent"):
                stack.append((e, []))
                continue
            if kind == "ScalarEvent":
                node: Node = self.scalar(e)
            elif kind in ("SequenceEndEvent", "MappingEndEvent"):
                begin, parts = stack.pop()
                node = self.close(begin, parts)
            else:
                continue
            if stack:
                stack[-1][1].append(node)
            else:
                top = node
        return self.finish(top)

    def finish(self, top: Node | None) -> Mapping:
        empty = top is None or (isinstance(top, Scalar) and not top.text)
        if not empty and not isinstance(top, Mapping):
            loc = top.loc  # type: ignore[union-attr]
            self.faults.append(Diagnostic("system-top", f"expected a mapping at the top, found {describe(top)}", loc,  # type: ignore[arg-type]
                                          "begin with 'isam: 1' and 'system: NAME'", self.line(loc)))  # fmt: skip
        if empty:
            self.faults.append(Diagnostic("system-empty", "the file describes nothing", Loc(self.file, 1, 1),
                                          "begin with 'isam: 1' and 'system: NAME'"))  # fmt: skip
        if self.faults:
            raise IsamError(self.faults)
        assert isinstance(top, Mapping)
        return top

    def count(self, e: Any, kind: str, depth: int) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self.refuse("system-nodes", f"more than {MAX_NODES} values", e.start_mark,
                              "describe variants with 'for:' and split the file with 'include:'")  # fmt: skip
        if depth >= MAX_DEPTH and kind != "ScalarEvent":
            raise IsamError([*self.faults, self.too_deep(e.start_mark)])
        if kind == "AliasEvent" or e.anchor is not None:
            raise self.refuse("system-alias",
                              f"anchors and aliases are not allowed ('{(e.anchor or '')[:40]}')", e.start_mark,
                              "describe variants with 'for:', share text with 'include:' or 'extends:'")  # fmt: skip
        if e.tag is not None:
            raise self.refuse("system-tag", f"YAML tags are not allowed ('{e.tag[:40]}')", e.start_mark,
                              "write the plain value")  # fmt: skip

    def scalar(self, e: Any) -> Scalar:
        if len(e.value) > MAX_SCALAR:
            raise self.refuse("system-scalar", f"a text of {len(e.value)} characters; at most {MAX_SCALAR}",
                              e.start_mark,
                              "split it")  # fmt: skip
        loc = self.loc(e.start_mark)
        if e.style not in ("|", ">"):
            return Scalar(e.value, loc, quoted=e.style in ("'", '"'))
        if e.style == ">":
            return Scalar(e.value, loc, quoted=True)
        return Scalar(e.value, loc, True, self.indent(e.value, loc.line), loc.line + 1)

    def indent(self, value: str, line: int) -> int:
        """Columns stripped from the lines of a literal block whose header stands in ``line``, plus one."""
        for n, content in enumerate(value.split("\n")):
            if content.strip() and line + n < len(self.lines):
                return max(1, len(self.lines[line + n].rstrip("\r")) - len(content) + 1)
        return 1

    def close(self, begin: Any, parts: list[Node]) -> Node:
        loc = self.loc(begin.start_mark)
        if type(begin).__name__ == "SequenceStartEvent":
            return Sequence(tuple(parts), loc)
        items: list[tuple[Scalar, Node]] = []
        seen: dict[str, Loc] = {}
        for k, v in zip(parts[::2], parts[1::2], strict=True):
            if not isinstance(k, Scalar) or len(k.text) > MAX_KEY:
                self.faults.append(Diagnostic("system-key", f"a key must be a short text, found {describe(k)}", k.loc,
                                              "write NAME: VALUE", self.line(k.loc)))  # fmt: skip
            elif k.text in seen:
                self.faults.append(Diagnostic("system-duplicate", f"the key '{k.text}' is given twice", k.loc,
                                              f"the first one is at line {seen[k.text].line}; keep one",
                                              self.line(k.loc)))  # fmt: skip
            else:
                seen[k.text] = k.loc
                items.append((k, v))
        return Mapping(tuple(items), loc)
