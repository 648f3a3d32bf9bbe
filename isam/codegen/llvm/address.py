"""Addresses: the part that depends on a loop variable is computed once per iteration of that loop, the constant rest is
an immediate displacement of the access."""

from __future__ import annotations

from dataclasses import field

from isam.classes import dataclass
from isam.codegen.llvm.irtext import Function, Lines
from isam.ir.affine import Affine

Terms = tuple[tuple[str, int], ...]


@dataclass
class Scope:
    """The region in which the variables ``defined`` have values; ``head`` takes lines that run once on entry to it."""

    head: Lines
    defined: set[str] = field(default_factory=set)
    pointers: dict[tuple[str, Terms], str] = field(default_factory=dict)
    products: dict[tuple[str, int], str] = field(default_factory=dict)


class Addresses:
    """Pointers and integers inside one function. Names in affine terms are values of the function (``%i3``)."""

    def __init__(self, fn: Function):
        self.fn = fn
        self.scopes: list[Scope] = [Scope(fn.buffer())]

    def push(self, head: Lines, *defined: str) -> None:
        self.scopes.append(Scope(head, set(defined)))

    def pop(self) -> None:
        self.scopes.pop()

    def _depth(self, name: str) -> int:
        for d in range(len(self.scopes) - 1, 0, -1):
            if name in self.scopes[d].defined:
                return d
        return 0

    def pointer(self, base: str, offset: Affine) -> str:
        """``base + offset`` bytes."""
        terms = tuple(sorted(offset.terms, key=lambda t: (self._depth(t[0]), t[0])))
        return self.fn.gep(self._variable(base, terms), offset.const)

    def _variable(self, base: str, terms: Terms) -> str:
        if not terms:
            return base
        scope = self.scopes[self._depth(terms[-1][0])]
        found = scope.pointers.get((base, terms))
        if found is None:
            outer = self._variable(base, terms[:-1])
            found = self.fn.gep(outer, self._product(scope, *terms[-1]), scope.head)
            scope.pointers[base, terms] = found
        return found

    def _product(self, scope: Scope, name: str, factor: int) -> str:
        if factor == 1:
            return name
        found = scope.products.get((name, factor))
        if found is None:
            found = self.fn.op(f"mul i64 {name}, {factor}", scope.head)
            scope.products[name, factor] = found
        return found

    def value(self, e: Affine) -> str:
        """An integer expression as a value at the present place."""
        if not e.terms:
            return str(e.const)
        total = ""
        for name, c in e.terms:
            part = name if c == 1 else self.fn.op(f"mul i64 {name}, {c}")
            total = self.fn.op(f"add i64 {total}, {part}") if total else part
        return self.fn.op(f"add i64 {total}, {e.const}") if e.const else total
