"""Three kinds of bad news, never mixed.

* The user's file or call is wrong: :class:`IsamError`, carrying *all* diagnostics found, each with a place
  (``file:line:column``), a stable code, what was expected and, where the tool has checked it, what to try.
* A legitimate *no* (``Mismatch``, ``Infeasible``): returned values, defined where they arise.
* We are wrong: :class:`InternalError`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from isam.classes import dataclass


class Loc(NamedTuple):
    """A place in a source text. Lines and columns count from 1; 0 means unknown."""

    file: str = "<string>"
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


NOWHERE = Loc("<unknown>")


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One fault: a stable ``code`` (``isam code CODE`` explains it), a place, a message and an optional hint."""

    code: str
    message: str
    loc: Loc = NOWHERE
    hint: str = ""
    source_line: str = field(default="", compare=False)

    def __str__(self) -> str:
        place = "" if self.loc == NOWHERE else f"{printable(str(self.loc))}: "
        text = f"{place}error[{self.code}]: {printable(self.message)}"
        if self.source_line and self.loc.line:
            shown, column = _window(self.source_line.rstrip("\n").expandtabs(1), max(0, self.loc.column - 1))
            text += f"\n    {printable(shown)}\n    {' ' * column}^"
        return text + (f"\n  hint: {printable(self.hint)}" if self.hint else "")

    @property
    def remark(self) -> str:
        """As a remark: what is legal and looks wrong."""
        return printable(f"{self.loc}: remark[{self.code}]: {self.message}\n  hint: {self.hint}")


WIDEST = 160  # characters of a source line that are shown


def printable(text: str) -> str:
    """Control characters become ``\\ufffd``, one for one: no file may send the terminal a command."""
    return "".join(c if c == "\n" or c.isprintable() else "\ufffd" for c in text)


def _window(line: str, column: int) -> tuple[str, int]:
    """The part of a long line around ``column``, and where the column is in it."""
    if len(line) <= WIDEST:
        return line, column
    start = max(0, min(column - WIDEST // 2, len(line) - WIDEST))
    head, tail = "..." if start else "", "..." if start + WIDEST < len(line) else ""
    return head + line[start : start + WIDEST] + tail, column - start + len(head)


class IsamError(Exception):
    """The input is wrong. ``diagnostics`` holds every fault found, in source order."""

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic):
        found = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        self.diagnostics: tuple[Diagnostic, ...] = found
        super().__init__("\n".join(map(str, found)))


class InternalError(Exception):
    """ISAM is wrong, not its user: please report it with the kernel that this message prints.

    ``shown``: the smallest kernel found that shows the fault, as text."""

    shown: str = ""

    def __str__(self) -> str:
        return super().__str__() + (f"\n{self.shown}" if self.shown else "")


def fail(code: str, message: str, loc: Loc = NOWHERE, hint: str = "", source_line: str = "") -> IsamError:
    """The error for a single fault, to be raised by the caller."""
    return IsamError(Diagnostic(code, message, loc, hint, source_line))


def as_path(given: object, what: str) -> Path:
    """The path that ``what`` is given as. Raises ``IsamError`` for what is none."""
    if not isinstance(given, str | PathLike):
        raise fail("path-type", f"{what} is a text or a path, not {type(given).__name__}")
    if "\0" in str(given):
        raise fail("path-type", f"{what} is no name of a file: it has a character that none has (NUL)")
    return Path(given)


CODE_TABLES = (  # modules whose CODES explain their diagnostics
    "isam.ir.codes", "isam.frontend.codes", "isam.system.codes", "isam.runtime.codes", "isam.approach.codes",
    "isam.codegen.codes", "isam.compiler.codes", "isam.cli.codes",
)


def explain_code(code: str) -> str | None:
    """What a diagnostic's code means, or ``None`` for a code that nobody gives."""
    return all_codes().get(code)


def all_codes() -> dict[str, str]:
    """Every code with its explanation, from the tables of all parts."""
    from importlib import import_module

    return {code: text for module in CODE_TABLES for code, text in import_module(module).CODES.items()}


def with_source(found: Iterable[Diagnostic], text: str) -> list[Diagnostic]:
    """The same diagnostics, showing the lines of ``text`` that they point at."""
    lines = text.split("\n")
    return [replace(d, source_line=lines[d.loc.line - 1]) if 0 < d.loc.line <= len(lines) else d for d in found]


MOST_MEANT = 3  # known words that a hint names


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint naming the closest known word, or all where two or three are equally close; otherwise the empty string."""
    close = closest(word, known)
    if not 1 <= len(close) <= MOST_MEANT:
        return ""
    *others, last = (f"'{k}'" for k in close)
    return f"did you mean {', '.join(others)}{' or ' if others else ''}{last}?"


def closest(word: str, known: Iterable[str]) -> list[str]:
    """The known words that are most like another one: several where they are equally close, none where none is like it.

    How far apart two words are is how many letters of either the other does not have in that order; of words equally
    far apart those are closer that differ less in case. They are alike if they share a letter and one is wrong, missing
    or too many, or they share three letters and two of five are wrong."""
    found: dict[tuple[int, int], list[str]] = {}
    for k in dict.fromkeys(known):
        if k != word and (apart := _apart(word.lower(), k.lower())) is not None:
            found.setdefault((apart, -_shared(word, k)), []).append(k)
    return found[min(found)] if found else []


SURELY = 3  # letters shared, from which on more than one may be wrong


def _apart(a: str, b: str) -> int | None:
    """How many letters of two words are not shared in one order; None where they are not alike."""
    shared, both = _shared(a, b), len(a) + len(b)
    apart = both - 2 * shared
    alike = max(len(a), len(b)) - shared <= 1 or (shared >= SURELY and apart * 5 <= both * 2)
    return apart if alike and shared else None


def _shared(a: str, b: str) -> int:
    """The length of the longest sequence of letters that both words have, other letters between them or not."""
    places: dict[str, int] = {}
    for n, letter in enumerate(a):
        places[letter] = places.get(letter, 0) | 1 << n
    every = (1 << len(a)) - 1
    rest = every  # bit n is 0 where the sequence so far grows by letter n of ``a``
    for letter in b:
        met = rest & places.get(letter, 0)
        rest = (rest + met | rest - met) & every
    return len(a) - rest.bit_count()
