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
* ``%D = tile.NAME %S``, ``tile.NAME %S, %D``: between values and memory, see :mod:`isam.codegen.llvm.verbs`;
* ``ref(i32 5)``: a pointer to a constant; ``@blas:sgemm``: a symbol that the loader resolves.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache, partial

from isam.classes import dataclass
from isam.codegen.llvm import tiles
from isam.codegen.llvm.irtext import ELEMENT, Function, mask, vector
from isam.codegen.llvm.vectors import Lanes
from isam.codegen.llvm.verbs import Call, Verb, said
from isam.diagnostics import fail

_LINE = re.compile(r"(?:%(?P<to>[\w.]+)\s*=\s*)?(?P<text>.*)")
_USE = re.compile(r"(?P<how>use|tree)\s+(?P<name>[\w.]+)\((?P<args>[^)]*)\)")
_EACH = re.compile(r"each\s+(?P<name>\w+)\s+(?P<dtype>f32|f64)\((?P<args>[^)]*)\)"
                   r"(?:\s+where\s+(?P<where>%[\w.]+)\s+else\s+(?P<other>%[\w.]+))?")  # fmt: skip
_NAME = re.compile(r"%([A-Za-z_][\w.]*)")
_MACRO = re.compile(
    r"\$(?:(?P<fn>mask|ld|inc|stride)\((?P<arg>[\w.]+)\)|(?P<dtype>[a-z]+\d+)\((?P<number>[^()]+)\)|(?P<word>[A-Za-z]\w*))"
)
_REF = re.compile(r"ref\(([^()]*)\)")
_SYMBOL = re.compile(r"@([a-z]+:[\w/]+)")


@dataclass(frozen=True)
class Setting:
    """What a template may refer to: lanes of vectors, snippets, this call's sizes and operands in addressed memory."""

    vector: Lanes
    snippets: Mapping[str, str]
    sizes: Mapping[str, int] = field(default_factory=dict)
    tiles: Mapping[str, tiles.Addressed] = field(default_factory=dict)
    lane: int = 0  # bytes of a lane that holds a group
    asked: Mapping[str, Sequence[str]] = field(default_factory=dict)  # addresses to prefetch, by operand
    cache: int = 0  # which, nearest first

    @property
    def lanes(self) -> int:
        return self.vector.count


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
def move(text: str) -> Verb | None:
    """The verb by which a template moves a whole vector between a register and memory, where that is all it does but
    asking a cache."""
    verbs = [s.verb if (s := said(line)) else None for _, line in _parse(text)]
    rest = [v for v in verbs if v is None or v.holds]
    return rest[0] if len(rest) == 1 and rest[0] is not None and rest[0].whole else None


def _lines(fn: Function, lines: tuple[tuple[str, str], ...], names: dict[str, str], setting: Setting) -> None:
    for to, text in lines:
        value = _one(fn, text, names, setting, to)
        if to:
            names[to] = value


def _one(fn: Function, text: str, names: dict[str, str], setting: Setting, to: str) -> str:
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
    if s := said(text):
        value = _value(s.args[0], names) if s.verb.stores else ""
        return s.verb.emit(Call(fn, setting, s.args[-1], value, s.register, names, to)) or ""
    if text.startswith("%"):  # a plain renaming
        return _value(text, names)
    text = _MACRO.sub(lambda m: _macro(m, setting), text)
    text = _REF.sub(lambda m: fn.module.constant(m[1]), text)
    text = _NAME.sub(lambda m: _value(m[0], names), text)
    text = _SYMBOL.sub(lambda m: _symbol(fn, m[1]), text)
    if to:
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
