"""Collects every fault of a description, with the source line under each, and raises them together in source order."""

from __future__ import annotations

from collections.abc import Iterable

from isam.diagnostics import Diagnostic, IsamError, Loc, did_you_mean
from isam.system.source import lines_of

MAX_FAULTS = 200


class Faults:
    """Shared by all files of one description. While ``member`` is set (the members of a family after its first), a
    fault at a place that already has one of its kind is dropped: members fail alike."""

    def __init__(self) -> None:
        self.found: list[Diagnostic] = []
        self.texts: dict[str, list[str]] = {}
        self.member = False
        self._seen: set[tuple[str, Loc, str]] = set()

    @property
    def full(self) -> bool:
        """Whether further faults would not be shown: no hints need be found for them."""
        return len(self.found) > MAX_FAULTS

    def copy(self) -> Faults:
        """The same faults, open for more."""
        other = Faults()
        other.found, other.texts, other._seen = list(self.found), dict(self.texts), set(self._seen)
        return other

    def text(self, file: str, text: str) -> None:
        """Registers a file's text, so that diagnostics can show the line they are about."""
        self.texts[file] = lines_of(text)

    def add(self, code: str, message: str, loc: Loc, hint: str = "") -> None:
        self.take(Diagnostic(code, message, loc, hint))

    def take(self, d: Diagnostic) -> None:
        alike = {(d.code, d.loc, d.message), (d.code, d.loc, "")} if self.member else {(d.code, d.loc, d.message)}
        if alike & self._seen or self.full:
            return
        if len(self.found) == MAX_FAULTS:
            d = Diagnostic("system-faults", f"only the first {MAX_FAULTS} faults are shown", d.loc, "mend these first")
        self._seen |= {(d.code, d.loc, d.message), (d.code, d.loc, "")}
        lines = self.texts.get(d.loc.file, [])
        if not d.source_line and 0 < d.loc.line <= len(lines):
            d = Diagnostic(d.code, d.message, d.loc, d.hint, lines[d.loc.line - 1][:200])
        self.found.append(d)

    def stop(self) -> None:
        """Raises ``IsamError`` when anything was found."""
        if self.found:
            order = {f: i for i, f in enumerate(self.texts)}
            raise IsamError(sorted(self.found, key=lambda d: (order.get(d.loc.file, -1), d.loc.line, d.loc.column)))


def nearest(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """A did-you-mean hint, or the list of known words when nothing is close."""
    names = list(known)
    hint = did_you_mean(word, names) if len(word) <= 60 and len(names) <= 5000 else ""
    if hint or otherwise:
        return hint or otherwise
    shown = ", ".join(names[:12]) + (", ..." if len(names) > 12 else "")
    return f"known here: {shown}" if names else "none is declared here"
