"""What stands below what: lines, those that are indented below them, and how far a block is indented."""

from __future__ import annotations

from collections.abc import Iterator

from isam.ir.lexer import ROLE_WORDS, Line, assigns

MEMBERS = ("in", "const", "inout", "out", "temp", "permits", "forall", "loop")


def is_member(line: Line) -> bool:
    """Whether a line can only stand inside a definition."""
    word = line.tokens[0].text
    return word in MEMBERS or word in ROLE_WORDS or assigns(line.tokens)


def blocks(lines: list[Line]) -> Iterator[tuple[Line, list[Line]]]:
    """Each line with the lines that are indented below it."""
    at = 0
    while at < len(lines):
        end = at + 1
        while end < len(lines) and lines[end].indent > lines[at].indent:
            end += 1
        yield lines[at], lines[at + 1 : end]
        at = end


def adopting(found: list[tuple[Line, list[Line]]]) -> Iterator[tuple[Line, list[Line]]]:
    """Lines with those below them; a 'forall' without any has the statements after it, which were not indented."""
    at = 0
    while at < len(found):
        line, below = found[at]
        at += 1
        if line.tokens[0].text == "forall" and not below:
            while at < len(found) and not found[at][1] and assigns(found[at][0].tokens):
                below = [*below, found[at][0]]
                at += 1
        yield line, below


def usual(lines: list[Line]) -> int:
    """How far the lines of a block are indented: as most of those that are not further right than the first."""
    found = [x.indent for x in lines if x.indent <= lines[0].indent]
    return max(found, key=found.count) if found else 0


def too_far_left(below: list[Line]) -> Line | None:
    """The first block that is only below a 'forall' because that stands too far to the left: it begins before the
    statements of the 'forall' do."""
    return next((x for x in below if x.indent < below[0].indent and x.tokens[0].text in ("forall", "loop")), None)
