"""Emission templates: the lines of LLVM IR that an instruction's description gives, with this call's values put in.

A template is a list of lines. ``%A`` is the value of operand ``A``; in addressed memory its pointer, in a memory of
cells that the schedule allocates the number of its cell. A line ``%D = ...`` gives ``D`` a new value; other names are
temporary. Further:

* ``$f32`` the vector type of a dtype, ``$L`` the lane count, ``$J`` the value of size symbol ``J``, ``$mask(J)`` the
  constant that selects the first ``J`` lanes, ``$ld(A)`` the leading dimension of matrix operand ``A`` in elements,
  ``$inc(A)`` the distance of the elements of a vector operand, ``$stride(A.0)`` that along its dimension 0;
* ``%r = use NAME(%a, %b)``: a snippet of the description (a template whose first line is ``a, b -> r``);
* ``%r = tree NAME(%x)``: the lanes of ``x`` combined pairwise by a snippet of two arguments, the result in all lanes;
* ``$f32(0.5)``: a constant in all lanes (decimal, hexadecimal, inf, nan; rounded to the dtype); ``$f32(1, 2, 3, 4)``:
  one for each lane;
* ``%r = each FUNCTION f64(%x)``: a function of the C library called lane by lane; ``each ... where %c else %y``: in the
  lanes where ``c`` ($i1) holds, the others have those of ``y``; where it holds in none, nothing is called;
* ``%D = tile.load %S``, ``tile.splat %S``, ``tile.store %S, %D``, ``tile.store0 %S, %D``: between values and memory;
* ``tile.prefetch %S``: of a call that asks a cache for what lies further on; of others nothing;
* ``%D = tile.groups %S``, ``tile.group %S``, ``tile.store_groups %S, %D``: of registers whose lanes hold groups, with
  operands whose last dimension is a group: one for each lane, one for all lanes;
* ``%p = tile.rows(16, 64) %S``, ``tile.room(16, 64) %D``: for registers of so many rows of so many bytes, where all
  rows of the operand lie, or may be stored, ``%p.step`` bytes apart; ``tile.top``: as ``rows``, but below the operand's
  rows may lie anything; ``tile.put(16, 64) %p, %D``: from there to ``D``;
* ``ref(i32 5)``: a pointer to a constant; ``@blas:sgemm``: a symbol that the loader resolves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from functools import lru_cache, partial

from isam.classes import dataclass
from isam.codegen.llvm import groups, rows, tiles
from isam.codegen.llvm.irtext import ELEMENT, Function, mask, vector
from isam.diagnostics import fail

_LINE = re.compile(r"(?:%(?P<to>[\w.]+)\s*=\s*)?(?P<text>.*)")
_USE = re.compile(r"(?P<how>use|tree)\s+(?P<name>[\w.]+)\((?P<args>[^)]*)\)")
_EACH = re.compile(r"each\s+(?P<name>\w+)\s+(?P<dtype>f32|f64)\((?P<args>[^)]*)\)"
                   r"(?:\s+where\s+(?P<where>%[\w.]+)\s+else\s+(?P<other>%[\w.]+))?")  # fmt: skip
_TILE = re.compile(r"tile\.(?P<how>load|splat|store|store0|prefetch|groups|group|store_groups)\s+(?P<args>.*)")
_ROWS = re.compile(r"tile\.(?P<how>rows|top|room|put)\((?P<count>\d+),\s*(?P<bytes>\d+)\)\s+(?P<args>.*)")
_NAME = re.compile(r"%([A-Za-z_][\w.]*)")
_MACRO = re.compile(
    r"\$(?:(?P<fn>mask|ld|inc|stride)\((?P<arg>[\w.]+)\)|(?P<dtype>[a-z]+\d+)\((?P<number>[^()]+)\)|(?P<word>[A-Za-z]\w*))"
)
_REF = re.compile(r"ref\(([^()]*)\)")
_SYMBOL = re.compile(r"@([a-z]+:[\w/]+)")


@dataclass(frozen=True)
class Setting:
    """What a template may refer to: lane count, snippets, this call's sizes and operands in addressed memory."""

    lanes: int
    snippets: Mapping[str, str]
    sizes: Mapping[str, int] = field(default_factory=dict)
    tiles: Mapping[str, tiles.Addressed] = field(default_factory=dict)
    lane: int = 0  # bytes of a lane that holds a group
    asked: Mapping[str, str] = field(default_factory=dict)  # address to prefetch, by operand
    cache: int = 0  # which, nearest first


@lru_cache(maxsize=4096)
def _parse(text: str) -> tuple[tuple[str, str], ...]:
    lines = (_LINE.fullmatch(s.split(" ;")[0].strip()) for s in text.splitlines())
    return tuple((m["to"] or "", m["text"]) for m in lines if m and m["text"])


@lru_cache(maxsize=4096)
def _snippet(text: str) -> tuple[tuple[str, ...], str, tuple[tuple[str, str], ...]]:
    head, _, body = text.strip().partition("\n")
    args, _, result = head.partition("->")
    return tuple(a.strip() for a in args.split(",")), result.strip(), _parse(body)


def expand(fn: Function, text: str, values: Mapping[str, str], setting: Setting) -> dict[str, str]:
    """Emits the template into ``fn``. Returns the values of all names after its last line."""
    names = dict(values)
    _lines(fn, _parse(text), names, setting)
    return names


@lru_cache(maxsize=4096)
def move(text: str) -> str:
    """How a template moves a value between a register and memory, where that is all it does but asking a cache; else
    the empty string."""
    tiled = [m["how"] if (m := _TILE.fullmatch(line)) else "" for _, line in _parse(text)]
    rest = [how for how in tiled if how != "prefetch"]
    return rest[0] if len(rest) == 1 else ""


def _lines(fn: Function, lines: tuple[tuple[str, str], ...], names: dict[str, str], setting: Setting) -> None:
    for to, text in lines:
        if m := _ROWS.fullmatch(text):
            _rows(fn, m, to, names, setting)
            continue
        value = _one(fn, text, names, setting, bool(to))
        if to:
            names[to] = value


def _one(fn: Function, text: str, names: dict[str, str], setting: Setting, has_value: bool) -> str:
    if m := _USE.fullmatch(text):
        args = [_value(a.strip(), names) for a in m["args"].split(",")]
        if m["how"] == "use":
            return _use(fn, m["name"], args, setting)
        return _tree(fn, m["name"], args[0], setting)
    if m := _EACH.fullmatch(text):
        args = [_value(a.strip(), names) for a in m["args"].split(",")]
        callee = _symbol(fn, f"libm:{m['name']}")
        each = partial(tiles.each, fn, callee, m["dtype"], args, setting.lanes, setting.sizes.get("J"))
        if not m["where"]:
            return each()
        where, other = _value(m["where"], names), _value(m["other"], names)
        return tiles.where(fn, where, vector(m["dtype"], setting.lanes), each, other, setting.lanes)
    if m := _TILE.fullmatch(text):
        return _tile(fn, m["how"], [a.strip().lstrip("%") for a in m["args"].split(",")], names, setting)
    if text.startswith("%"):  # a plain renaming
        return _value(text, names)
    text = _MACRO.sub(lambda m: _macro(m, setting), text)
    text = _REF.sub(lambda m: fn.module.constant(m[1]), text)
    text = _NAME.sub(lambda m: _value(m[0], names), text)
    text = _SYMBOL.sub(lambda m: _symbol(fn, m[1]), text)
    if has_value:
        return fn.op(text)
    fn.do(text)
    return ""


def _value(name: str, names: Mapping[str, str]) -> str:
    key = name.lstrip("%")
    if key not in names:
        raise fail("emission-name", f"the emission template uses '%{key}', which is no operand and has no value yet")
    return names[key]


def _macro(m: re.Match[str], setting: Setting) -> str:
    if m["fn"] == "mask":
        return mask(setting.sizes[m["arg"]], setting.lanes)
    if m["fn"] == "ld":
        return str(setting.tiles[m["arg"]].leading)
    if m["fn"] == "inc":
        return str(setting.tiles[m["arg"]].increment)
    if m["fn"] == "stride":
        operand, _, d = m["arg"].partition(".")
        return str(setting.tiles[operand].stride(int(d)))
    if m["dtype"]:
        return _constant(m["dtype"], m["number"].split(","), setting.lanes)
    word = m["word"]
    if word.startswith("L"):  # also glued to a suffix: v$Lf32
        return str(setting.lanes) + word[1:]
    if word in ELEMENT:
        return vector(word, setting.lanes)
    if word in setting.sizes:
        return str(setting.sizes[word])
    raise fail("emission-name", f"the emission template uses '${word}', which is no type and no size")


def _constant(dtype: str, numbers: list[str], lanes: int) -> str:
    values = [f"{ELEMENT[dtype]} {tiles.constant(dtype, _number(n.strip()))}" for n in numbers]
    if len(values) == 1:
        return f"splat ({values[0]})"
    if len(values) != lanes:
        raise fail("emission-lanes", f"the emission template gives {len(values)} constants for {lanes} lanes")
    return "<" + ", ".join(values) + ">"


def _number(text: str) -> float | int:
    try:
        return int(text)
    except ValueError:
        return float.fromhex(text) if "0x" in text else float(text)


def _symbol(fn: Function, symbol: str) -> str:
    name = "@" + symbol.replace(":", ".").replace("/", ".")
    fn.module.externals[name[1:]] = symbol
    return name


def _use(fn: Function, name: str, args: list[str], setting: Setting) -> str:
    if name not in setting.snippets:
        raise fail("emission-name", f"the emission template uses a snippet '{name}' that the description lacks")
    formal, result, lines = _snippet(setting.snippets[name])
    names = dict(zip(formal, args, strict=True))
    _lines(fn, lines, names, setting)
    return names[result]


def _tree(fn: Function, name: str, x: str, setting: Setting) -> str:
    """All lanes combined: log2(lanes) rounds of a lane with the one ``h`` away."""
    type_ = _snippet_type(name, setting)
    n, h = setting.lanes, setting.lanes // 2
    while h:
        order = "<" + ", ".join(f"i32 {i ^ h}" for i in range(n)) + ">"
        y = fn.op(f"shufflevector {type_} {x}, {type_} poison, <{n} x i32> {order}")
        x = _use(fn, name, [x, y], setting)
        h //= 2
    return x


def _snippet_type(name: str, setting: Setting) -> str:
    return vector(name.rpartition(".")[2], setting.lanes)


WAYS = {"rows": rows.source, "top": rows.top, "room": rows.target}


def _rows(fn: Function, m: re.Match[str], to: str, names: dict[str, str], setting: Setting) -> None:
    register = rows.Rows(int(m["count"]), int(m["bytes"]))
    args = [a.strip().lstrip("%") for a in m["args"].split(",")]
    at = setting.tiles[args[-1]]
    if m["how"] == "put":
        rows.put(fn, _value(args[0], names), at, register)
    else:
        names[to], names[f"{to}.step"] = WAYS[m["how"]](fn, at, register)


def _tile(fn: Function, how: str, args: list[str], names: dict[str, str], setting: Setting) -> str:
    if how in ("load", "splat"):
        at = setting.tiles[args[0]]
        return tiles.load(fn, at, setting.lanes) if how == "load" else tiles.splat(fn, at, setting.lanes)
    if how == "prefetch":
        if args[0] in setting.asked:
            tiles.prefetch(fn, setting.asked[args[0]], setting.cache)
        return ""
    if how in ("groups", "group"):
        return groups.load(fn, setting.tiles[args[0]], setting.lanes, setting.lane, how == "group")
    value, at = _value(args[0], names), setting.tiles[args[1]]
    if how == "store_groups":
        groups.store(fn, value, at, setting.lanes, setting.lane)
        return ""
    store = tiles.store if how == "store" else tiles.store_lane0
    store(fn, value, at, setting.lanes)
    return ""
