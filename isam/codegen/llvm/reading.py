"""One line of a template at a time: which values it mentions and as what type, and the type of the value it makes.

Types are LLVM's, with ``$f32`` and ``$L`` written out for a lane count (0: it is not known, and neither are types that
depend on it).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from isam.codegen.llvm.irtext import ELEMENT, vector
from isam.codegen.llvm.verbs import Verb, said

_TYPE = (r"\$(?:" + "|".join(sorted(ELEMENT, key=len, reverse=True)) + r")(?![\w(])"
         r"|<\s*(?:\d+|\$L)\s+x\s+\w+\s*>|\b(?:ptr|float|double|half|bfloat|void|i\d+)\b")  # fmt: skip
_MENTION = re.compile(rf"(?:({_TYPE})\s+(?:align\s+\d+\s+)?)?%([A-Za-z_][\w.]*)")
_ANY_TYPE = re.compile(_TYPE)
_TO = re.compile(r"\s*(?:%([\w.]+)\s*=\s*)?")
_USE = re.compile(r"(use|tree)\s+([\w.]+)\((.*)\)\s*$")
_TILE = re.compile(r"tile\.\w*")
_EACH = re.compile(r"each\s+\w+\s+(f32|f64)\([^)]*\)(\s+where\s+)?")
_COPY = re.compile(r"%([A-Za-z_][\w.]*)\s*$")
_SIZE = re.compile(r"\$(?:mask\((\w+)\)|([A-Za-z]\w*)(?![\w(]))")
_LAYOUT = re.compile(r"\$(?:ld|inc)\((\w+)\)|\$stride\((\w+)\.(\d+)\)")
_OPCODE = re.compile(r"([a-z]+)\b")
SAME = frozenset({"add", "sub", "mul", "sdiv", "udiv", "srem", "urem", "shl", "lshr", "ashr", "and", "or", "xor",
                  "fadd", "fsub", "fmul", "fdiv", "frem"})  # fmt: skip
COMPARE = frozenset({"icmp", "fcmp"})
CONVERT = frozenset({"sext", "zext", "trunc", "fpext", "fptrunc", "sitofp", "uitofp", "fptosi", "fptoui", "bitcast",
                     "ptrtoint", "inttoptr"})  # fmt: skip


class Line(NamedTuple):
    """``values``: (name, the type it is taken as or '', column); ``sizes``: (``$`` word, column); ``layouts``:
    (operand, dimension, column) of strides; ``type`` of the value made, '' when it does not show; ``copied``: the value
    that is only renamed; ``snippet``: (name, column); ``how``: use, tree, each, tile.NAME or ''; ``verb``: that of
    tile.NAME, where it is written as it must be."""

    number: int
    column: int
    to: str
    values: tuple[tuple[str, str, int], ...]
    sizes: tuple[tuple[str, int], ...]
    layouts: tuple[tuple[str, int | None, int], ...]
    type: str = ""
    copied: str = ""
    snippet: tuple[str, int] = ("", 0)
    how: str = ""
    verb: Verb | None = None


def read(template: str, lanes: int) -> list[Line]:
    """The lines of a template that are not empty."""
    out: list[Line] = []
    for number, text in enumerate(template.split("\n"), 1):
        line = _line(text.split(" ;")[0].rstrip(), lanes)
        if line is not None:
            out.append(line._replace(number=number))
    return out


@lru_cache(maxsize=8192)
def _line(text: str, lanes: int) -> Line | None:
    if not text.strip():
        return None
    head = _TO.match(text)
    assert head is not None
    begin = head.end()
    column = len(text) - len(text.lstrip()) + 1
    rest = text[begin:]
    mentions = tuple((m[2], _type(m[1] or "", lanes), m.start(2) + begin) for m in _MENTION.finditer(rest))
    sizes = tuple((m[1] or m[2], m.start() + begin + 1) for m in _SIZE.finditer(rest) if m[1] or _is_size(m[2]))
    layouts = tuple((m[1] or m[2], int(m[3]) if m[3] else None, m.start() + begin + 1)
                    for m in _LAYOUT.finditer(rest))  # fmt: skip
    line = Line(0, column, head[1] or "", mentions, sizes, layouts)
    if m := _USE.match(rest):
        return line._replace(snippet=(m[2], m.start(2) + begin + 1), how=m[1])
    if m := _TILE.match(rest):
        verb = s.verb if (s := said(rest)) and s.verb.makes == bool(head[1]) else None
        return line._replace(how=m[0], verb=verb, values=tuple((n, "", at) for n, _, at in mentions),
                             type="ptr" if verb is not None and verb.points else "")
    if m := _EACH.match(rest):
        type_, truth = _type(f"${m[1]}", lanes), _type("$i1", lanes)
        condition = next((at for _, _, at in mentions if m[2] and at >= m.end() + begin), 0)  # the first name behind it
        return line._replace(how="each", type=type_, values=tuple(
            (n, truth if at == condition else type_, at) for n, _, at in mentions))  # fmt: skip
    if m := _COPY.match(rest):
        return line._replace(copied=m[1])
    return _plain(line, rest, lanes)


def _plain(line: Line, rest: str, lanes: int) -> Line:
    """A line of LLVM IR."""
    opcode = _OPCODE.match(rest.removeprefix("tail ").removeprefix("musttail "))
    op = opcode[1] if opcode else ""
    types = [_type(t[0], lanes) for t in _ANY_TYPE.finditer(rest)]
    first = types[0] if types else ""
    if op in SAME or op in COMPARE:
        values = tuple((n, t or first, at) for n, t, at in line.values)
        return line._replace(values=values, type=first if op in SAME else _truth(first))
    if op in CONVERT:
        return line._replace(type=types[-1] if len(types) > 1 else "")
    if op == "select":
        return line._replace(type=types[1] if len(types) > 1 else "")
    if op == "extractelement":
        return line._replace(type=first.rpartition(" ")[2].rstrip(">"))
    if op == "shufflevector":
        lengths, element = re.match(r"<(\d+)", types[-1]) if types else None, first.rpartition(" ")[2]
        return line._replace(type=f"<{lengths[1]} x {element}" if lengths and first else "")
    if op in ("call", "load", "insertelement", "fneg", "freeze"):
        return line._replace(type=first)
    return line


def _truth(of: str) -> str:
    return re.sub(r"x \w+", "x i1", of) if of.startswith("<") else "i1" if of else ""


def _type(token: str, lanes: int) -> str:
    """The type written out; '' when it depends on a lane count that is not known."""
    if token.startswith("$"):
        return vector(token[1:], lanes) if lanes else ""
    if "$L" in token:
        if not lanes:
            return ""
        token = token.replace("$L", str(lanes))
    return re.sub(r"\s+", " ", token).replace("< ", "<").replace(" >", ">")


def _is_size(word: str) -> bool:
    return not word.startswith("L") and word not in ELEMENT and word not in ("mask", "ld", "inc", "stride")
