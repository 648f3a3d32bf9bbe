"""What was typed: the syntax tree between the parser and its lowering to three-operand kernels."""

from __future__ import annotations

from isam.classes import dataclass
from isam.diagnostics import Loc


@dataclass(frozen=True, slots=True)
class Number:
    value: float | int | bool
    loc: Loc
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    loc: Loc
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Ref:
    """``name[index...]``."""

    name: str
    index: tuple[Expr, ...]
    loc: Loc
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Call:
    """A function, a cast, an operator (``+`` is ``add``) or a comparison: an operation and its operands."""

    op: str
    args: tuple[Expr, ...]
    loc: Loc
    depth: int = 1
    infix: bool = False


Expr = Number | Name | Ref | Call


def spelled(index: tuple[Expr, ...]) -> tuple[object, ...]:
    """Index expressions without places, to be compared."""
    return tuple((type(e).__name__, getattr(e, "name", getattr(e, "op", getattr(e, "value", None))),
                  spelled(getattr(e, "args", getattr(e, "index", ())))) for e in index)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Condition:
    """``left relation right`` of a ``where``; a chain is several of them."""

    left: Expr
    relation: str
    right: Expr
    loc: Loc


@dataclass(frozen=True, slots=True)
class AxisDecl:
    """``name < extent``."""

    name: str
    extent: Expr
    loc: Loc


@dataclass(frozen=True, slots=True)
class Assign:
    """``dest op expr`` where ``op`` is '' for ``=`` and add, mul, max or min for an accumulation."""

    dest: Ref
    op: str
    value: Expr
    loc: Loc


@dataclass(frozen=True, slots=True)
class Forall:
    axes: tuple[AxisDecl, ...]
    where: tuple[Condition, ...]
    body: tuple[Assign, ...]
    loc: Loc


@dataclass(frozen=True, slots=True)
class Loop:
    axis: AxisDecl
    body: tuple[Block, ...]
    loc: Loc


Block = Forall | Loop


@dataclass(frozen=True, slots=True)
class SymDecl:
    """A size with its range, or (``default`` given) a compile-time constant; ``whole``: how often a number goes into
    another size."""

    name: str
    loc: Loc
    lo: int = 0
    hi: int | None = None
    multiple_of: int = 1
    default: int | None = None
    whole: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class BufferDecl:
    """``role name: dtype[shape]``; the role ``auto`` is an undeclared temporary, written out."""

    role: str
    name: str
    dtype: str
    shape: tuple[Expr, ...]
    loc: Loc


@dataclass(frozen=True, slots=True)
class Definition:
    """One ``kernel`` or ``instruction``."""

    keyword: str
    name: str
    syms: tuple[SymDecl, ...]
    buffers: tuple[BufferDecl, ...]
    body: tuple[Block, ...]
    permits: frozenset[str] | None
    loc: Loc
    unread: frozenset[str] = frozenset()  # names in lines that could not be read: what they define is unknown
