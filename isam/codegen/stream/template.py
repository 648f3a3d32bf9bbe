"""Templates of commands: texts with fields in braces.

A field is a size, ``burst`` (calls in the command), an operand (its address) or, of an operand that a move has brought
without a command of its own, ``OPERAND.from`` (where that took it); times and divided by numbers or sizes, plus a
number: ``{N*burst}``, ``{S/16}``, ``{C+0x40000000}``. Other braces stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from isam.classes import dataclass
from isam.diagnostics import fail
from isam.ir.affine import Affine

FIELD = re.compile(r"\{([A-Za-z_#][\w.]*(?:\s*[*/+]\s*\w+)*)\}")
PART = re.compile(r"\s*([*/+]?)\s*([\w.#]+)")


@dataclass(frozen=True)
class Address:
    """``base`` (an argument or a slot, '' where there is none) plus an offset."""

    base: str
    offset: Affine

    def __str__(self) -> str:
        if not self.base:
            return hex(self.offset.const) if self.offset.is_constant else f"({self.offset})"
        return self.base if self.offset == Affine() else f"{self.base}+({self.offset})"


Value = Address | int


def fields(text: str) -> Iterator[str]:
    """The names that the fields of a template begin with, and the sizes in them."""
    for m in FIELD.finditer(text):
        for _, word in PART.findall(m[1]):
            if not word[0].isdigit():
                yield word


def filled(text: str, lookup: Callable[[str], Value]) -> str:
    """The text with its fields replaced."""
    return FIELD.sub(lambda m: str(_value(m[1], lookup)), text)


def _value(field: str, lookup: Callable[[str], Value]) -> Value:
    total: Value | None = None
    for sign, word in PART.findall(field):
        value = int(word, 0) if word[0].isdigit() else lookup(word)
        if total is None:
            total = value
        elif isinstance(value, int):
            total = _applied(total, sign, value, field)
        else:
            raise fail("emission-name", f"an address may only begin a field: {{{field}}}")
    assert total is not None
    return total


def _applied(total: Value, sign: str, value: int, field: str) -> Value:
    if isinstance(total, Address):
        if sign != "+":
            raise fail("emission-name", f"to an address numbers are only added: {{{field}}}")
        return Address(total.base, total.offset + value)
    if sign == "/" and (value == 0 or total % value):
        raise fail("emission-increment", f"{total} is no multiple of {value} in {{{field}}}")
    return total + value if sign == "+" else total * value if sign == "*" else total // value


def lines_of(template: object) -> Mapping[str, tuple[str, ...]]:
    """The lines per case: ``always``, or ``fresh`` and ``again``."""
    if isinstance(template, Mapping):
        return {k: _lines(template[k]) for k in ("fresh", "again")}
    return {"always": _lines(template)}


def _lines(text: object) -> tuple[str, ...]:
    return tuple(map(str, text)) if isinstance(text, list | tuple) else tuple(str(text).splitlines())
