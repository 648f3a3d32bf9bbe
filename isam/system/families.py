"""One entry that stands for many: ``for:`` gives parameters their values, ``{name}`` stands for the value of one.

::

    lists:
      floats: [f32, f64]
      binary: {add: {e: "A[j] + B[j]"}, max: {e: "max(A[j], B[j])"}}
    instructions:
      v{op}_{T}:
        for: {T: floats, op: binary}
        when: "{op} != max"                # optional: ==, !=, in, not in; a list of conditions must all hold
        body: |
          instruction v{op}_{T}(J <= 16)
            ...
              D[j] = {e}

A parameter's values are a list, a mapping (each value brings further parameters along, here ``e``), or the name of an
entry of ``lists:``. The members are the product of all parameters, the last one fastest. Every text of the entry is
substituted, keys included; braces that name no parameter stay as they are (LLVM text is full of them). Values may
mention other parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import product

from isam.classes import dataclass
from isam.diagnostics import Loc
from isam.system.faults import Faults, nearest
from isam.system.source import MAX_SCALAR, Mapping, Node, Scalar, Sequence, describe

MAX_MEMBERS = 4096
HOLE = re.compile(r"\{([A-Za-z_]\w{0,60})\}")
_CONDITION = re.compile(r"\s*(\S+)\s+(==|!=|in|not in)\s+(.+?)\s*")
_PARAMETER = re.compile(r"[A-Za-z_]\w{0,60}")

Env = dict[str, str]


@dataclass(frozen=True)
class Entry:
    """A named part after expansion. ``family``: the key it was written under; ``member``: its number there;
    ``values``: of the parameters that tell members apart; ``given``: what is written there, and ``filling`` what puts
    this member's parameters into it."""

    name: str
    key: Scalar
    given: Node
    family: str = ""
    member: int = 0
    values: tuple[tuple[str, str], ...] = ()
    filling: Filling | None = None

    @cached_property
    def node(self) -> Node:
        """What is written there for this member. Filled in when it is first asked for."""
        return self.given if self.filling is None else self.filling.node(self.given)

    def head(self, key: str, begins: tuple[str, ...]) -> str:
        """The lines of a field's text that begin with one of these words, for this member."""
        return self._lines(key, begins, True)

    def rest(self, key: str, begins: tuple[str, ...]) -> str:
        """The lines of a field's text that begin with none of these words, for this member."""
        return self._lines(key, begins, False)

    def _lines(self, key: str, begins: tuple[str, ...], those: bool) -> str:
        text = self.given.get(key) if isinstance(self.given, Mapping) else None
        if not isinstance(text, Scalar):
            return ""
        lines = _beginning(text.text, begins, those)
        return lines if self.filling is None else fill(lines, self.filling.env)


class _TooLong(ValueError):
    pass


@lru_cache(maxsize=1024)
def _beginning(text: str, words: tuple[str, ...], those: bool) -> str:
    return "\n".join(line for line in text.split("\n") if line.lstrip().startswith(words) == those)


@lru_cache(maxsize=8192)
def _cut(text: str) -> tuple[str, ...]:
    """Text, name of a hole, text, name of a hole, ..., text."""
    return tuple(HOLE.split(text))


def fill(text: str, env: Env) -> str:
    """``text`` with every known ``{parameter}`` replaced."""
    if "{" not in text:
        return text
    out = list(_cut(text))
    total = len(text)
    for n in range(1, len(out), 2):
        value = env.get(out[n])
        if value is None:
            out[n] = f"{{{out[n]}}}"
        else:
            out[n] = value
            total += len(value)
    if total > 2 * MAX_SCALAR:
        raise _TooLong
    return "".join(out)


def column_before(template: str, env: Env, column: int) -> int:
    """The column of ``template`` (one line, from 1) that the ``column`` of the filled line comes from."""
    if "{" not in template:
        return max(1, column)
    parts = _cut(template)
    at = shift = place = 0  # end of the last hole passed; filled minus template up to there; where a hole begins
    for n in range(1, len(parts), 2):
        name = parts[n]
        place += len(parts[n - 1])
        value = env.get(name)
        if value is not None:
            if column - 1 < place + shift:
                break
            if column - 1 < place + shift + len(value):
                return place + 1
            shift += len(value) - len(name) - 2
            at = place + len(name) + 2
        place += len(name) + 2
    return max(at, column - 1 - shift) + 1


def expand(items: Mapping, lists: dict[str, Node], faults: Faults, *, judged: bool = False) -> list[Entry]:
    """All entries of a section, families replaced by their members. Reports members that share a name. ``judged``: the
    texts are known to be right, and members are filled in when they are read."""
    out: list[Entry] = []
    seen: dict[str, Loc] = {}
    for key, node in items.items:
        for e in _members(key, node, lists, faults, judged):
            if e.name in seen:
                faults.add("system-duplicate", f"'{e.name}' is described twice", e.key.loc,
                           "put every parameter of the family into its name" if e.family
                           else f"the first one is at line {seen[e.name].line}")  # fmt: skip
                continue
            seen[e.name] = e.key.loc
            out.append(e)
    return out


def _members(key: Scalar, node: Node, lists: dict[str, Node], faults: Faults, judged: bool) -> Iterator[Entry]:
    given = node.get("for") if isinstance(node, Mapping) else None
    if given is None or not isinstance(node, Mapping):
        if isinstance(node, Mapping) and (stray := node.key("when")):
            faults.add("system-family", "'when' without 'for'", stray.loc, "it chooses among the members of a family")
        yield Entry(key.text, key, node)
        return
    conditions = _conditions(node.get("when"), faults)
    rest = Mapping(tuple((k, v) for k, v in node.items if k.text not in ("for", "when")), node.loc)
    closed = frozenset(id(v) for _, v in rest.items if not _open(v))
    values = _parameters(given, lists, faults)
    total = 1
    for v in values:
        total *= len(v)
    if total > MAX_MEMBERS:
        faults.add("system-family", f"this family has {total} members; at most {MAX_MEMBERS}", given.loc,
                   "shorten its lists")  # fmt: skip
        return
    telling = [k.text for (k, _), v in zip(given.items, values, strict=False) if len(v) > 1]  # type: ignore[union-attr]
    number = 0
    for combination in product(*values):
        env: Env = {}
        for part in combination:
            env.update(part)
        try:
            env = _closed(env)
            if all(_holds(c, env, faults) for c in conditions):
                name = fill(key.text, env)
                told = tuple((k, env[k]) for k in telling)
                made = Entry(name, _named(key, name), rest, key.text, number, told, Filling(env, closed))
                if not judged:
                    _ = made.node  # filled in at once: it may become too long
                yield made
                number += 1
        except _TooLong:
            faults.add("system-family", f"the members of this family are longer than {MAX_SCALAR} characters",
                       given.loc,
                       "shorten its values")  # fmt: skip
            return


def _named(key: Scalar, text: str) -> Scalar:
    return Scalar(text, key.loc, key.quoted, key.block, key.first, key.template, key.env)


def spoken(key: str) -> str:
    """A family's key without its holes, for readers: ``gemm`` for ``{P}gemm_{V}``.

    >>> spoken("{P}gemm_{V}"), spoken("v_{op}_{T}"), spoken("{n}")
    ('gemm', 'v', 'n')
    """
    words = [w for w in HOLE.sub("_", key).split("_") if w]
    return "_".join(words) or "_".join(HOLE.findall(key))


def _closed(env: Env) -> Env:
    """Values that mention other parameters, written out (three levels)."""
    for _ in range(3):
        if "{" not in "".join(env.values()):
            break
        env = {k: fill(v, env) if "{" in v else v for k, v in env.items()}
    return env


def _parameters(given: Node, lists: dict[str, Node], faults: Faults) -> list[list[Env]]:
    if not isinstance(given, Mapping):
        faults.add("system-family", f"expected 'PARAMETER: VALUES', found {describe(given)}", given.loc,
                   "for example 'for: {T: [f32, f64]}'")  # fmt: skip
        return [[]]
    return [_values(name, node, lists, faults) for name, node in given.items]


def _values(name: Scalar, node: Node, lists: dict[str, Node], faults: Faults) -> list[Env]:
    if not _PARAMETER.fullmatch(name.text):
        faults.add("system-family", f"'{name.text}' cannot name a parameter", name.loc, "use letters, digits and _")
    if isinstance(node, Scalar):
        named = lists.get(node.text)
        if named is None:
            faults.add("system-family", f"{describe(node)} is no list", node.loc,
                       nearest(node.text, lists, "write [a, b] or name an entry of 'lists:'"))  # fmt: skip
            return []
        node = named
    if isinstance(node, Scalar):
        faults.add("system-family", f"expected a list of values, found {describe(node)}", node.loc, "write [a, b]")
        return []
    if isinstance(node, Sequence):
        return [{name.text: t.text} for t in node.items if _plain(t, faults) and isinstance(t, Scalar)]
    out: list[Env] = []
    for value, further in node.items:
        env = {name.text: value.text}
        if isinstance(further, Mapping):
            for k, v in further.items:
                if _plain(v, faults) and isinstance(v, Scalar):
                    env[k.text] = v.text
        elif not (isinstance(further, Scalar) and not further.text):
            faults.add("system-family", f"expected further parameters, found {describe(further)}", further.loc,
                       f"for example '{value.text}: {{bits: 32}}'")  # fmt: skip
        out.append(env)
    return out


def _plain(node: Node, faults: Faults) -> bool:
    if isinstance(node, Scalar) and "\n" not in node.text:
        return True
    faults.add("system-family", "a parameter's value is one line of text", node.loc,
               "quote it if it has special characters")  # fmt: skip
    return False


def _conditions(node: Node | None, faults: Faults) -> list[Scalar]:
    found = () if node is None else node.items if isinstance(node, Sequence) else (node,)
    out: list[Scalar] = []
    for c in found:
        if isinstance(c, Scalar) and len(c.text) < 500 and _CONDITION.fullmatch(c.text):
            out.append(c)
        else:
            faults.add("system-family", f"expected a condition, found {describe(c)}", c.loc,  # type: ignore[union-attr]
                       "for example '{S} != {D}' or '{T} in f32 f64'")  # fmt: skip
    return out


def _holds(condition: Scalar, env: Env, faults: Faults) -> bool:
    m = _CONDITION.fullmatch(condition.text)
    assert m is not None
    left, right = fill(m[1], env), fill(m[3], env)
    if HOLE.search(left + right):
        faults.add("system-family", "this condition names something that is no parameter", condition.loc,
                   nearest("", env, f"parameters: {', '.join(env)}"))  # fmt: skip
        return False
    words = right.replace(",", " ").split()
    return {"==": left == right, "!=": left != right, "in": left in words, "not in": left not in words}[m[2]]


def _open(node: Node) -> bool:
    """Whether any text of the node may have a hole."""
    if isinstance(node, Scalar):
        return "{" in node.text
    if isinstance(node, Sequence):
        return any(map(_open, node.items))
    return any("{" in k.text or _open(v) for k, v in node.items)


class Filling:
    """Puts one member's values into the nodes of a family. ``closed``: nodes, by identity, without holes."""

    __slots__ = ("closed", "env", "items")

    def __init__(self, env: Env, closed: frozenset[int]):
        self.env, self.closed, self.items = env, closed, tuple(env.items())

    def node(self, node: Node) -> Node:
        if id(node) in self.closed:
            return node
        if isinstance(node, Scalar):
            text = fill(node.text, self.env)
            if text == node.text:
                return node
            return Scalar(text, node.loc, node.quoted, node.block, node.first, node.text, self.items)
        if isinstance(node, Sequence):
            return Sequence(tuple([self.node(i) for i in node.items]), node.loc)
        out: list[tuple[Scalar, Node]] = []
        for k, v in node.items:
            name = fill(k.text, self.env)
            out.append((k if name == k.text else _named(k, name), self.node(v)))
        return Mapping(tuple(out), node.loc)
