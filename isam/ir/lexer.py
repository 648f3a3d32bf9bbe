"""Text to logical lines of tokens, with places. Faults are collected in a `Report`, never raised one by one."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import field
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from isam.classes import dataclass
from isam.diagnostics import Diagnostic, IsamError, Loc
from isam.ir.breaks import HINT, continues, unfinished
from isam.ir.elsewhere import BLOCKS, CHARACTERS

if TYPE_CHECKING:
    from isam.ir.remarks import Where

MAX_CHARS = 2_000_000
MAX_DIAGNOSTICS = 200
MAX_DIGITS = 18  # of a whole number
MAX_LENGTH = 60  # of any number, in characters
SHOWN = 24  # of them

TOKEN = re.compile(
    r"(?P<space>[ \t\r\f\v]+)|(?P<comment>\#.*)"
    r"|(?P<float>(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)"
    r"|(?P<int>\d+)|(?P<name>[A-Za-z_][A-Za-z_0-9]*)"
    r"|(?P<op>\*\*|//|<=|>=|==|!=|\+=|-=|\*=|/=|=\+|=\*|[-+*/%<>=()\[\],:.])"
)
OPEN = {"(": ")", "[": "]"}
BLOCK_WORDS = frozenset({"kernel", "instruction", "forall", "loop", "permits"})
Faulty = tuple[str, str, Loc, str]  # code, message, place, hint
ROLE_WORDS = frozenset({"in", "const", "inout", "out", "temp", "auto"})


class Token(NamedTuple):
    """``kind`` is int, float, name, op or end; ``value`` the number of a numeric token."""

    kind: str
    text: str
    loc: Loc
    value: float | int = 0

    @property
    def shown(self) -> str:
        return "the end of the line" if self.kind == "end" else f"'{self.text}'"


@dataclass(frozen=True, slots=True)
class Line:
    """A logical line: its indentation in columns and its tokens, the last one of kind ``end``. ``before``: what it is
    indented with, where there is a tab in it."""

    indent: int
    tokens: tuple[Token, ...]
    before: str = ""

    @property
    def loc(self) -> Loc:
        return self.tokens[0].loc


@dataclass
class Report:
    """The faults of one text, found so far."""

    file: str
    lines: list[str]
    found: list[Diagnostic] = field(default_factory=list)
    wheres: list[Where] = field(default_factory=list)  # to be remarked on
    _seen: set[tuple[Loc, str]] = field(default_factory=set)
    _mended: dict[int, list[tuple[tuple[int, int], tuple[int, int]]]] = field(default_factory=dict)  # by their lines

    def add(self, code: str, message: str, loc: Loc, hint: str = "") -> None:
        """A fault, unless it is known, or follows in a line from one that was put right by a guess."""
        at = (loc.line, loc.column)
        if any(begin <= at <= end for begin, end in self._mended.get(loc.line, ())):
            return
        if (loc, code) in self._seen or len(self.found) >= MAX_DIAGNOSTICS:
            return
        self._seen.add((loc, code))
        source = self.lines[loc.line - 1] if 0 < loc.line <= len(self.lines) else ""
        self.found.append(Diagnostic(code, message, loc, hint, source))

    def keep_first(self, first: int, last: int) -> None:
        """Of the faults in these lines only the first: they are no part of a definition, and have one cause."""
        here = [d for d in self.found if first <= d.loc.line <= last]
        least = min((d.loc.line, d.loc.column) for d in here) if here else None
        self.found = [d for d in self.found if d not in here or (d.loc.line, d.loc.column) == least]

    def mended(self, begin: Loc, end: Loc) -> None:
        """What is written from ``begin`` to ``end`` was put right, to read the rest: no more is said of it."""
        span = (begin.line, begin.column), (end.line, end.column)
        for line in range(begin.line, end.line + 1):
            self._mended.setdefault(line, []).append(span)

    def guessed(self, line: Line) -> bool:
        """Whether a part of it was put right."""
        return line.tokens[-1].loc.line in self._mended

    def again(self) -> Report:
        """One that knows the same faults, for another attempt."""
        return Report(self.file, self.lines, list(self.found), list(self.wheres), set(self._seen), dict(self._mended))

    def check(self) -> None:
        """Raises every fault found, in source order."""
        if self.found:
            raise IsamError(sorted(self.found, key=lambda d: (d.loc.line, d.loc.column)))


def tokenize(text: str, file: str) -> tuple[list[Line], Report]:
    """The logical lines of ``text``: blank lines and comments left out, open brackets and final commas continued.

    >>> lines, report = tokenize("C[i,\\n  j] = 0  # zero", "a")
    >>> [t.text for t in lines[0].tokens]
    ['C', '[', 'i', ',', 'j', ']', '=', '0', '']
    """
    report = Report(file, text[:MAX_CHARS].split("\n"))
    if len(text) > MAX_CHARS:
        report.add("L101", f"the text has {len(text)} characters, more than {MAX_CHARS}", Loc(file, 1, 1),
                   "split it into several files")
        return [], report
    out: list[Line] = []
    pending = _Pending(report)
    closing = ""  # what ends a comment of another language
    for number, raw in enumerate(report.lines, 1):
        if closing or raw.lstrip().startswith(tuple(BLOCKS)):
            closing, comment = _foreign_comment(raw, number, closing, report)
            if comment:
                continue
        if not pending.tokens and (whole := _whole(raw, number, file)) is not None:
            out.append(whole)
            continue
        begin = len(report.found)
        tokens = _scan(raw, number, report)
        if not tokens:
            continue
        wrong = report.found[begin:]
        if pending.tokens and pending.ends_before(tokens):
            out.append(pending.close())
        if not pending.tokens and out and continues(tokens):
            pending.reopen(out.pop())
        pending.take(raw, number, tokens, wrong)
        if pending.whole:
            out.append(pending.close())
    if pending.tokens:
        out.append(pending.close())
    return out, report


def _foreign_comment(raw: str, number: int, closing: str, report: Report) -> tuple[str, bool]:
    """What ends the comment of another language that goes on behind a physical line, and whether that is part of one:
    told where it begins. ``closing``: what ends the one that the line stands in."""
    text = raw.strip()
    if closing:
        return ("" if closing in text else closing), True
    opening = next(b for b in BLOCKS if text.startswith(b))
    closing, rest = BLOCKS[opening], text[len(opening) :]
    if closing in rest:
        if not rest.endswith(closing):  # something else stands behind it
            return "", False
        closing = ""
    elif not any(closing in later for later in report.lines[number:]):
        closing = ""
    report.add("L102", f"the characters {opening} mean nothing here", Loc(report.file, number, raw.index(text) + 1),
               "a comment begins with #, in each of its lines")
    return closing, True


class _Pending:
    """The logical line that is being read."""

    def __init__(self, report: Report):
        self.report = report
        self._begin()

    def _begin(self) -> None:
        self.indent, self.before = 0, ""
        self.tokens: list[Token] = []
        self.stack: list[Token] = []
        self.wrong: list[Diagnostic] = []
        self.doubtful: Loc | None = None  # from where on what is read may not be what was meant

    def reopen(self, line: Line) -> None:
        """Goes on with a line that seemed to be one."""
        self._begin()
        self.indent, self.before, self.tokens = line.indent, line.before, list(line.tokens[:-1])

    @property
    def whole(self) -> bool:
        """Whether it may end here."""
        if self.stack or not self.tokens:
            return False
        return self.tokens[-1].text != "," and not unfinished(self.tokens)

    def ends_before(self, tokens: Sequence[Token]) -> bool:
        """Whether a physical line is another logical one: a bracket was never closed, or a comma stands at the end."""
        first = tokens[0].text
        if self.tokens[0].text not in ("kernel", "instruction") and assigns(tokens):
            return True
        open_ = bool(self.stack) or self.tokens[-1].text != ","
        return _starts_afresh(tokens) and (open_ or first in BLOCK_WORDS)

    def take(self, raw: str, number: int, tokens: Sequence[Token], wrong: Sequence[Diagnostic]) -> None:
        """One more physical line; ``wrong``: its faults so far."""
        if not self.tokens:
            self._begin()
            self.indent, self.before = _indent(raw, number, self.report)
        elif not self.stack and self.tokens[-1].text != ",":
            self._tear(tokens[0])
        begin = len(self.report.found)
        kept = _balance(tokens, self.stack, self.report)
        self.tokens.extend(kept)
        if len(kept) < len(tokens):  # nobody knows where it was to be opened
            self.doubtful = (self.tokens or tokens)[0].loc
        self.wrong += [*wrong, *self.report.found[begin:]]

    def _tear(self, after: Token) -> None:
        """Reports that the line breaks before ``after``: the first time, for it is read as one."""
        if self.doubtful is None:
            last = self.tokens[-1]
            self.doubtful = _behind(last)
            self.report.add("L107", f"a line break between {last.shown} and {after.shown}", self.doubtful, HINT)

    def close(self) -> Line:
        """The line; what follows a fault in it is not told."""
        begin = len(self.report.found)
        torn = any(d.code == "L102" and d.message.startswith("the character '}'") for d in self.wrong)
        line = _close(self.indent, self.tokens, self.stack, self.report, self.before, told=torn)
        self.wrong += self.report.found[begin:]
        faults = [d.loc for d in self.wrong] + ([self.doubtful] if self.doubtful else [])
        if faults:
            self.report.mended(min(faults), line.tokens[-1].loc)
        self._begin()
        return line


@lru_cache(maxsize=4096)
def _whole(raw: str, number: int, file: str) -> Line | None:
    """The logical line that a physical one is by itself and without a fault; None otherwise."""
    tokens, faults = _tokens(raw, number, file)
    if not tokens or faults or tokens[-1].text == "," or unfinished(tokens) or continues(tokens):
        return None
    report = Report(file, [])
    stack: list[Token] = []
    indent, before = _indent(raw, number, report)
    kept = list(_balance(tokens, stack, report))
    return None if stack or report.found else _close(indent, kept, [], report, before)


def _scan(raw: str, number: int, report: Report) -> tuple[Token, ...]:
    """The tokens of one physical line. Raises nothing: what cannot be read is reported and skipped."""
    tokens, faults = _tokens(raw, number, report.file)
    for code, message, loc, hint in faults:
        report.add(code, message, loc, hint)
    return tokens


@lru_cache(maxsize=4096)
def _tokens(raw: str, number: int, file: str) -> tuple[tuple[Token, ...], tuple[Faulty, ...]]:
    """Tokens and faults of a line. Remembered: the texts of a family of instructions share most of their lines."""
    tokens: list[Token] = []
    faults: list[Faulty] = []
    unread: list[Faulty] = []  # of which one is told: they come in pairs
    at = 0
    for m in TOKEN.finditer(raw):
        begin, end = m.span()
        unread += [_meaningless(raw[at], Loc(file, number, at + 1))] if at < begin else []  # one of a row of them
        at, kind = end, m.lastgroup or ""
        if kind in ("space", "comment"):
            continue
        loc = Loc(file, number, begin + 1)
        numeric = kind in ("int", "float")
        tokens.append(_number(m.group(), kind, loc, faults) if numeric else Token(kind, m.group(), loc))
    unread += [_meaningless(raw[at], Loc(file, number, at + 1))] if at < len(raw) else []
    return tuple(tokens), (*unread[:1], *faults)


def _meaningless(character: str, loc: Loc) -> Faulty:
    hint = CHARACTERS.get(character, "expected a name, a number, an operator or a bracket")
    return "L102", f"the character {character!r} means nothing here", loc, hint


def _number(text: str, kind: str, loc: Loc, faults: list[Faulty]) -> Token:
    digits = len(text.lstrip("0")) if kind == "int" else 0
    if digits > MAX_DIGITS or len(text) > MAX_LENGTH:
        shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
        what, hint = "large", f"expected at most {MAX_DIGITS} digits"
        if digits <= MAX_DIGITS:
            what, hint = "long", f"expected at most {MAX_LENGTH} characters"
        faults.append(("L103", f"the number '{shown}' is too {what}", loc, hint))
        return Token(kind, text, loc, 0)
    value = int(text) if kind == "int" else float(text)
    if math.isinf(value):
        faults.append(("L103", f"the number '{text}' is too large", loc, "expected a finite number; infinity is 'inf'"))
    return Token(kind, text, loc, value)


def _indent(raw: str, number: int, report: Report) -> tuple[int, str]:
    """How far a line is indented, and with what where there is a tab in it."""
    width = len(raw) - len(raw.lstrip())
    if "\t" in raw[:width]:
        if not any(d.code == "L104" for d in report.found):  # who indents with tabs does so in every line
            report.add("L104", "a tab in the indentation", Loc(report.file, number, raw.index("\t") + 1),
                       "expected spaces only, in every line")
        return len(raw[:width].expandtabs(8)), raw[:width]
    return width, ""


def _starts_afresh(tokens: Sequence[Token]) -> bool:
    """Whether a physical line can only be the start of a logical one (an unclosed bracket ends before it)."""
    first = tokens[0].text
    if first in BLOCK_WORDS:
        return True
    return first in ROLE_WORDS and len(tokens) > 2 and tokens[1].kind == "name" and tokens[2].text == ":"


def assigns(tokens: Sequence[Token]) -> bool:
    """Whether a physical line begins with what only a statement does: an element, and '=' or an accumulation."""
    at, depth = 1, 0
    while at < len(tokens) and (depth or tokens[at].text == "["):
        depth += (tokens[at].text in OPEN) - (tokens[at].text in (")", "]"))
        at += 1
    found = [t.text for t in tokens[at : at + 2]]
    return tokens[0].kind == "name" and (found[:1] in (["="], ["+="], ["*="]) or found in (["max", "="], ["min", "="]))


def _balance(tokens: Sequence[Token], stack: list[Token], report: Report) -> Sequence[Token]:
    """The tokens with wrong closing brackets put right, so that each is reported once."""
    out: list[Token] = []
    for t in tokens:
        if t.kind != "op":
            pass
        elif t.text in OPEN:
            stack.append(t)
        elif t.text in (")", "]"):
            if stack and OPEN[stack[-1].text] == t.text:
                stack.pop()
            elif stack:
                opened = stack.pop()
                out.append(Token("op", OPEN[opened.text], t.loc))
                report.add("L105", f"'{t.text}' closes '{opened.text}'", t.loc,
                           f"expected '{OPEN[opened.text]}' for the '{opened.text}' at column {opened.loc.column}")
                continue
            else:
                report.add("L105", f"'{t.text}' closes nothing", t.loc, "expected an opening bracket before it")
                continue
        out.append(t)
    return out


def _behind(t: Token) -> Loc:
    return Loc(t.loc.file, t.loc.line, t.loc.column + len(t.text))


def _close(
    indent: int, tokens: list[Token], stack: list[Token], report: Report, before: str, *, told: bool = False
) -> Line:
    """``told``: that brackets are not closed is known from what stands there instead."""
    for t in () if told else stack:
        report.add("L106", f"'{t.text}' is never closed", t.loc,
                   f"expected '{OPEN[t.text]}' before the next line begins")
    after = _behind(tokens[-1])
    closing = [Token("op", OPEN[t.text], after) for t in reversed(stack)]
    return Line(indent, (*tokens, *closing, Token("end", "", after)), before)
