"""What the parser fills in for temporaries that nobody declared (IR-5): the box of written indices and the dtype."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from isam.classes import dataclass
from isam.diagnostics import Loc
from isam.ir.affine import Affine
from isam.ir.dtype import ANY, DTYPES, cast_to
from isam.ir.kernel import COMPARISONS, Access, Axis, Buffer, Item, Literal, Recurrence, Source, Statement, Sym
from isam.ir.ranges import nonnegative, upper

FLOAT_ONLY = frozenset({"exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "sqrt", "rsqrt", "pow", "floor", "ceil",
                        "round"})
LOGICAL = frozenset({"and", "or", "not"})
KNOWN = frozenset({*DTYPES, ANY})  # another one was reported where it is declared, and contradicts nothing
LIKES = {bool: "bool", float: "f32", int: "i32"}  # the dtype that a literal would have by itself
Say = Callable[[str, str, Loc, str], None]


@dataclass(frozen=True, slots=True)
class Group:
    """Operands of one statement that share a dtype, and that dtype when the operation fixes it."""

    members: tuple[Source, ...]
    dtype: str | None = None


def groups(s: Statement) -> tuple[Group, ...]:
    """How the operation of a statement ties the dtypes of its operands."""
    if s.op in COMPARISONS:
        return Group(s.sources), Group((s.dest,), "bool")
    if s.op in ("cast", "cast_sat"):
        return Group((s.dest,)), Group(s.sources)
    if s.op == "select":
        return Group(s.sources[:1], "bool"), Group((s.dest, *s.sources[1:]))
    return (Group((s.dest, *s.sources), "bool" if s.op in LOGICAL else None),)


def located(body: Sequence[Item], outer: tuple[Axis, ...] = ()) -> Iterable[tuple[Statement, tuple[Axis, ...]]]:
    """Every statement in text order with the axes of the recurrent loops around it, outermost first."""
    for item in body:
        if isinstance(item, Recurrence):
            yield from located(item.body, (*outer, item.axis))
        else:
            yield item, outer


def temporaries(
    body: Sequence[Item], declared: Mapping[str, Buffer], syms: Sequence[Sym], pins: Mapping[str, str], say: Say,
    unnamed: Container[str] = (),
) -> tuple[Buffer, ...]:  # fmt: skip
    """The undeclared temporaries in the order in which they are first written; faults go to ``say``. ``unnamed``: those
    that the text has no name for, parts of expressions."""
    written: dict[str, list[tuple[Statement, tuple[Axis, ...]]]] = {}
    for s, outer in located(body):
        if s.dest.buffer not in declared:
            written.setdefault(s.dest.buffer, []).append((s, outer))
    types = _dtypes(body, declared, list(written), pins, say, unnamed)
    return tuple(
        Buffer(name, _box(name, writes, syms, say), types[name], "temp", False, writes[0][0].dest.loc)
        for name, writes in written.items()
    )


def _box(
    name: str, writes: Sequence[tuple[Statement, tuple[Axis, ...]]], syms: Sequence[Sym], say: Say
) -> tuple[Affine, ...]:
    rank = len(writes[0][0].dest.index)
    shape: list[Affine] = []
    for s, _ in writes:
        if len(s.dest.index) != rank:
            say("L210", f"'{name}' has {len(s.dest.index)} indices here and {rank} where it is first written",
                s.dest.loc, f"expected {rank} indices, or two buffers with different names")
            return (Affine(),) * rank
    for d in range(rank):
        hull: Affine | None = None
        for s, outer in writes:
            need = _need(s, outer, d, syms)
            if hull is None or _covers(need, hull, syms):
                hull = need
            elif not _covers(hull, need, syms):
                say("L211", f"dimension {d} of the undeclared '{name}' is written up to {hull} and up to {need}",
                    s.dest.loc, f"declare it: temp {name}: f32[...]")
        assert hull is not None
        shape.append(hull)
    return tuple(shape)


def _need(s: Statement, outer: tuple[Axis, ...], d: int, syms: Sequence[Sym]) -> Affine:
    """One more than the largest index written in dimension ``d``; a condition that bounds the index itself counts."""
    axes = (*outer, *s.domain.axes)
    names = {a.name for a in axes}
    best = upper(s.dest.index[d], axes) + 1
    for w in s.domain.where:
        bound = s.dest.index[d] + w + 1
        if not any(n in names for n in bound.names) and _covers(best, bound, syms):
            best = bound
    return Affine() if best.is_constant and best.const < 0 else best


def _covers(big: Affine, small: Affine, syms: Sequence[Sym]) -> bool:
    return nonnegative(big - small, syms)


class _Types:
    """Union-find over the undeclared names; each class has a dtype once something fixes it."""

    def __init__(self, declared: Mapping[str, Buffer], names: Iterable[str], pins: Mapping[str, str], say: Say,
                 unnamed: Container[str]):  # fmt: skip
        self.declared, self.say, self.unnamed = declared, say, unnamed
        self.parent = {n: n for n in names}
        self.known = dict(pins)
        self.tainted: set[str] = set()  # classes with a conflict, reported once
        self.marks: dict[str, set[str]] = {n: set() for n in self.parent}  # dtypes its literals would like

    def root(self, n: str) -> str:
        while self.parent[n] != n:
            self.parent[n] = self.parent[self.parent[n]]
            n = self.parent[n]
        return n

    def claim(self, r: str, dtype: str, m: Access) -> None:
        have = self.known.setdefault(r, dtype)
        if have != dtype and r not in self.tainted:
            self.tainted.add(r)
            what = f"'{m.buffer}' is {have} elsewhere and {dtype} here"
            if m.buffer in self.unnamed:
                what = f"this value would be {have} and {dtype} at once"
            self.say("L310", what, m.loc, f"cast one of them: {dtype}(...) or {have}(...)")

    def unify(self, group: Group, op: str) -> None:
        accesses = [m for m in group.members if isinstance(m, Access)]
        free = [m for m in accesses if m.buffer in self.parent]
        if not free:
            return
        first = self.root(free[0].buffer)
        for m in free[1:]:
            r = self.root(m.buffer)
            if r != first:
                self.parent[r] = first
                self.marks[first] |= self.marks[r]
                if (have := self.known.pop(r, None)) is not None:
                    self.claim(first, have, m)
        fixed = [m for m in accesses if m.buffer in self.declared and self.declared[m.buffer].dtype in KNOWN]
        for dtype in [group.dtype] if group.dtype else [self.declared[m.buffer].dtype for m in fixed[:1]]:
            self.claim(first, dtype, free[0])
            for m in fixed:
                if (have := self.declared[m.buffer].dtype) != dtype and first not in self.tainted:
                    self.tainted.add(first)
                    self.say("V411", f"'{m.buffer}' is {have}, another operand is {dtype}", m.loc,
                             cast_to(dtype, have, m.buffer, m.index))
        values = [m.value for m in group.members if isinstance(m, Literal)]
        self.marks[first] |= {LIKES[type(v)] for v in values}
        self.marks[first] |= {"f32"} if op in FLOAT_ONLY else set()

    def dtype(self, n: str) -> str:
        r = self.root(n)
        return self.known.get(r) or next((d for d in ("f32", "bool") if d in self.marks[r]), "i32")


def _dtypes(
    body: Sequence[Item], declared: Mapping[str, Buffer], names: list[str], pins: Mapping[str, str], say: Say,
    unnamed: Container[str],
) -> dict[str, str]:  # fmt: skip
    """A dtype for each name, unified over all statements; literals adapt, and decide when nothing else does."""
    types = _Types(declared, names, pins, say, unnamed)
    for s, _ in located(body):
        for group in groups(s):
            types.unify(group, s.op)
    return {n: types.dtype(n) for n in names}
