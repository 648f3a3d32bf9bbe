"""The verbs of templates, ``tile.NAME``, a row for each: what it is for, and what it emits.

What expands, reads and judges templates, and the passes over calls in a row, ask this table. What a verb means to who
writes a template is in docs/llvm.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from isam.classes import dataclass
from isam.codegen.llvm import groups, rows, tiles
from isam.codegen.llvm.irtext import Function
from isam.codegen.llvm.rows import Rows

if TYPE_CHECKING:
    from isam.codegen.llvm.template import Setting

ELEMENTS, GROUPS = "one element", "groups"  # what a lane holds
ROWS = "rows"  # a register of two dimensions, whose size stands behind the verb
_TEXT = re.compile(r"tile\.(?P<name>\w+)(?:\((?P<rows>\d+),\s*(?P<bytes>\d+)\))?\s+(?P<args>.*)")


@dataclass(frozen=True)
class Verb:
    """Between an operand in addressed memory and a register that ``holds`` ELEMENTS, GROUPS or ROWS ('': no register).
    ``stores``: its value goes to the operand (``%S, %D``); else it has the operand alone. ``whole``: it moves lane for
    lane what lies side by side or apart, so that several calls may be carried out as one."""

    name: str
    emit: Callable[[Call], str | None]  # the value that it makes, if it makes one
    holds: str = ""
    stores: bool = False
    whole: bool = False

    @property
    def form(self) -> str:
        """How it is written."""
        size = "(16, 64)" if self.holds == ROWS else ""
        to = "%p = " if self.points else "%D = " if self.makes else ""
        return f"{to}tile.{self.name}{size} " + ("%S, %D" if self.stores else "%S")

    @property
    def makes(self) -> bool:
        """Whether it makes a value."""
        return bool(self.holds) and not self.stores

    @property
    def points(self) -> bool:
        """Whether it makes a pointer to rows, and a name beside it for the bytes from one to the next."""
        return self.holds == ROWS and not self.stores


class Call(NamedTuple):
    """A verb where it is emitted. ``value``: what it stores; ``to``: the name in ``names`` that gets what it makes."""

    fn: Function
    setting: Setting
    operand: str
    value: str
    register: Rows
    names: dict[str, str]
    to: str

    @property
    def at(self) -> tiles.Addressed:
        return self.setting.tiles[self.operand]

    @property
    def lanes(self) -> int:
        return self.setting.lanes

    @property
    def lane(self) -> int:
        return self.setting.lane


def _pointer(place: Callable[[Function, tiles.Addressed, Rows], tuple[str, str]]) -> Callable[[Call], str]:
    def emit(c: Call) -> str:
        pointer, c.names[f"{c.to}.step"] = place(c.fn, c.at, c.register)
        return pointer

    return emit


def _prefetch(c: Call) -> None:
    for pointer in c.setting.asked.get(c.operand, ()):
        tiles.prefetch(c.fn, pointer, c.setting.cache)


VERBS = {v.name: v for v in (
    Verb("load", lambda c: tiles.load(c.fn, c.at, c.setting.vector), ELEMENTS, whole=True),
    Verb("splat", lambda c: tiles.splat(c.fn, c.at, c.lanes), ELEMENTS),
    Verb("store", lambda c: tiles.store(c.fn, c.value, c.at, c.setting.vector), ELEMENTS, stores=True, whole=True),
    Verb("store0", lambda c: tiles.store_lane0(c.fn, c.value, c.at, c.lanes), ELEMENTS, stores=True),
    Verb("groups", lambda c: groups.load(c.fn, c.at, c.setting.vector, c.lane, False), GROUPS, whole=True),
    Verb("group", lambda c: groups.load(c.fn, c.at, c.setting.vector, c.lane, True), GROUPS),
    Verb("store_groups", lambda c: groups.store(c.fn, c.value, c.at, c.setting.vector, c.lane), GROUPS, stores=True,
         whole=True),
    Verb("rows", _pointer(rows.source), ROWS),
    Verb("top", _pointer(rows.top), ROWS),
    Verb("room", _pointer(rows.target), ROWS),
    Verb("put", lambda c: rows.put(c.fn, c.value, c.at, c.register), ROWS, stores=True),
    Verb("prefetch", _prefetch),
)}  # fmt: skip


class Said(NamedTuple):
    """A verb as a line has it, with the names of its arguments, the operand last."""

    verb: Verb
    args: tuple[str, ...]
    register: Rows


@lru_cache(maxsize=4096)
def said(text: str) -> Said | None:
    """What a line (of a value: what it is given) says, if that is one of the verbs."""
    m = _TEXT.fullmatch(text)
    verb = VERBS.get(m["name"]) if m else None
    if m is None or verb is None or (verb.holds == ROWS) != bool(m["rows"]):
        return None
    args = tuple(a.strip().lstrip("%") for a in m["args"].split(","))
    return Said(verb, args, Rows(int(m["rows"] or 0), int(m["bytes"] or 0))) if len(args) == 1 + verb.stores else None
