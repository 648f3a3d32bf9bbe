"""Line breaks where none may be: lines that cannot end where they do, or begin as they do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isam.ir.lexer import Token

HINT = "join the two lines: one goes on only inside brackets and after a comma"
INFIX = frozenset({"+", "-", "*", "/", "<", "<=", ">", ">=", "==", "!=", "=", "+=", "-=", "*=", "/="})
BEFORE = INFIX | {"(", "[", ":", ","}  # nothing begins with these
WORDS = frozenset({"where", "and", "or"})
ROLES = frozenset({"in", "const", "inout", "out", "temp"})
ALONE = ROLES | {"kernel", "instruction", "forall", "loop", "permits"}  # that say nothing by themselves


def unfinished(tokens: Sequence[Token]) -> bool:
    """Whether a line with these tokens cannot end with the last one."""
    last = tokens[-1].text
    if len(tokens) == 1:
        return last in ALONE
    return last in INFIX or last in WORDS or last == "not" or (last == ":" and tokens[0].text in ROLES)


def continues(tokens: Sequence[Token]) -> bool:
    """Whether a line with these tokens can only be the rest of the one before. What begins with two signs is something
    else, such as a comment of another language."""
    first, *rest = (t.text for t in tokens[:2])
    if first in WORDS:
        return True
    signed = bool(rest) and tokens[1].kind == "op" and rest[0] not in (("(", "[") if first == "-" else ("(", "[", "-"))
    return first in BEFORE and not (signed and first in INFIX)
