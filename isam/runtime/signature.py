"""What a compiled kernel takes and returns: roles, element types, shapes, run-time sizes, in the caller's order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isam.artifact import Argument, Artifact, Row, Size
from isam.classes import dataclass
from isam.diagnostics import NOWHERE, Diagnostic, IsamError, Loc, did_you_mean
from isam.ir.affine import Affine
from isam.ir.dtype import numpy_dtype
from isam.runtime.layout import Array as Array

if TYPE_CHECKING:
    import inspect


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument made ready for checking; ``shape`` in numbers when no run-time size is in it."""

    name: str
    role: str
    dtype: np.dtype[Any]
    rows: tuple[Row, ...]
    shape: tuple[int, ...] | None

    @property
    def written(self) -> bool:
        return self.role in ("out", "inout")

    @property
    def read(self) -> bool:
        return self.role != "out"


Shown = tuple[Row, int, str, int]  # a dimension as declared, its length, the argument and which of its dimensions


class Signature:
    """``parameters`` as declared (the order of the code's pointers); ``positional``: ``in``, ``const`` and ``inout`` in
    that order of declaration, which is how a caller passes them; ``outputs``: what is returned."""

    def __init__(self, name: str, arguments: Iterable[Argument], sizes: Iterable[Size] = (),
                 follow: Iterable[tuple[str, tuple[str, int]]] = (), loc: Loc = NOWHERE):  # fmt: skip
        self.name, self.loc = name, loc
        self.follow = dict(follow)  # sizes worked out from others: how many whole times a number goes into which
        self.arguments = tuple(arguments)
        self.parameters = tuple(
            Parameter(a.name, a.role, numpy_dtype(a.dtype), a.shape, _numbers(a.shape)) for a in self.arguments
        )
        self.by_name = {p.name: p for p in self.parameters}
        self.positional = tuple(p for p in self.parameters if p.role != "out")
        self.outputs = tuple(p for p in self.parameters if p.role == "out")
        self.sizes = tuple(sizes)
        self.static = all(p.shape is not None for p in self.parameters) and not self.sizes

    @staticmethod
    def of(artifact: Artifact) -> Signature:
        return Signature(artifact.name, artifact.arguments, artifact.sizes)

    def only(self, names: Iterable[str]) -> Signature:
        """The signature of some of the arguments."""
        chosen = set(names)
        kept = [a for a in self.arguments if a.name in chosen]
        used = {s for a in kept for _, terms in a.shape for s, _ in terms}
        used |= {of for n, (of, _) in self.follow.items() if n in used}
        return Signature(self.name, kept, [s for s in self.sizes if s.name in used], self.follow.items(), self.loc)

    def shown(self, bound: Iterable[str] = ()) -> inspect.Signature:
        """The call as Python writes it: ``(A, B, *, C=None)``. A word of Python cannot be given by name: an argument
        called so goes by its place, an output only by ``**``."""
        from inspect import Parameter as P
        from inspect import Signature as Shown
        from keyword import iskeyword

        taken = set(bound)
        names = [p.name for p in self.positional if p.name not in taken]
        placed = max((n for n, name in enumerate(names, 1) if iskeyword(name)), default=0)
        parameters = [P(name, P.POSITIONAL_ONLY if n < placed else P.POSITIONAL_OR_KEYWORD)
                      for n, name in enumerate(names)]  # fmt: skip
        outputs = [p.name for p in self.outputs]
        parameters += [P(name, P.KEYWORD_ONLY, default=None) for name in outputs if not iskeyword(name)]
        if any(map(iskeyword, outputs)):
            parameters.append(P("outputs", P.VAR_KEYWORD))
        return Shown(parameters)

    def assign(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], bound: Iterable[str] = ()) -> dict[str, Any]:
        """Arguments by name, from positions and keywords. Raises ``IsamError`` naming everything missing or surplus."""
        taken = set(bound)
        order = [p.name for p in self.positional if p.name not in taken]
        faults: list[str] = []
        if len(args) > len(order):
            faults.append(f"takes {len(order)} positional arguments ({', '.join(order)}), {len(args)} given")
        given = dict(zip(order, args, strict=False))
        meant: set[str] = set()  # arguments that are missing because their names are misspelt
        for name, value in kwargs.items():
            if name in given:
                faults.append(f"argument '{name}' is given twice")
            elif name in taken:
                faults.append(f"argument '{name}' is bound already")
            elif name not in self.by_name:
                hint = did_you_mean(name, self.by_name)
                meant.update(n for n in order if hint == f"did you mean '{n}'?")
                faults.append(f"has no argument '{name}'" + (f" ({hint})" if hint else ""))
            else:
                given[name] = value
        faults += [f"argument '{n}' is missing" for n in order if n not in given and n not in meant]
        if faults:
            hint = f"arguments: {', '.join(self.by_name) or 'none'}"
            raise IsamError([Diagnostic("call-arguments", f"{self.name} {f}", hint=hint) for f in faults])
        return given

    def check_bound(self, constants: Iterable[str], bound: Iterable[str] = ()) -> None:
        """Only ``const`` arguments may be bound, and once. Raises ``IsamError`` with every fault."""
        faults: list[Diagnostic] = []
        known = ", ".join(p.name for p in self.parameters if p.role == "const")
        taken = set(bound)
        for name in constants:
            p = self.by_name.get(name)
            if p is None or p.role != "const":
                what = "is not const" if p is not None else "does not exist"
                text = f"{self.name}: '{name}' {what}"
                faults.append(Diagnostic("bind-role", text, hint=f"const: {known or 'none'}"))
            elif name in taken:
                faults.append(Diagnostic("bind-role", f"{self.name}: '{name}' is bound already"))
        if faults:
            raise IsamError(faults)

    def infer(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
        """Run-time sizes from the shapes given; the caller checks that they fit. Raises ``IsamError``."""
        known: dict[str, int] = {}
        rows = [(r, n, name, d) for name, shape in shapes.items() if len(shape) == len(self.by_name[name].rows)
                for d, (r, n) in enumerate(zip(self.by_name[name].rows, shape, strict=True))]  # fmt: skip
        progress = True
        while progress:
            progress = False
            for row, n, *_ in rows:
                name, c, rest = self._left(row, n, known)
                if c and rest % c == 0:
                    known[name], progress = rest // c, True
            for name, (of, k) in self.follow.items():
                if of in known and name not in known:
                    known[name], progress = known[of] // k, True
        self.check_sizes(known, rows)
        return known

    def _left(self, row: Row, n: int, known: Mapping[str, int]) -> tuple[str, int, int]:
        """The only size of a dimension of ``n`` elements that is not known, its coefficient, and what that many of it
        make up; coefficient 0: there is no such size, or several."""
        const, terms = row
        open_ = [(s, c) for s, c in terms if s not in known]
        if len(open_) != 1 or open_[0][0] in self.follow:
            return "", 0, 0
        return *open_[0], n - const - sum(k * known[s] for s, k in terms if s in known)

    def _impossible(self, rows: Iterable[Shown], known: Mapping[str, int]) -> list[Diagnostic]:
        """Dimensions that no whole number of the size in question makes so long, one for each such size."""
        found: dict[str, Diagnostic] = {}
        for row, n, argument, d in rows:
            size, c, rest = self._left(row, n, known)
            if c and size not in found:
                low = n - rest % abs(c)
                what = f"{self.name}: dimension {d} of '{argument}' is {n}, but must be {_affine(row)}"
                near = f"the nearest are {low} and {low + abs(c)}" if low >= 0 else f"the nearest is {low + abs(c)}"
                found[size] = Diagnostic("call-size", f"{what} for a whole number {size}", self.loc, near)
        return list(found.values())

    def check_sizes(self, known: Mapping[str, int], rows: Sequence[Shown] = ()) -> None:
        """The guard: every run-time size has a value that the code was made for. ``rows``: what the call shows."""
        faults = self._impossible(rows, known)
        told = {n for (_, terms), *_ in rows for n, _ in terms} if faults else set()
        for s in self.sizes:
            v = known.get(s.name)
            if v is None and s.name in told:
                continue
            if v is None:
                what = f"{self.name}: the size {s.name} follows from no argument"
                faults.append(Diagnostic("call-size", what, self.loc, self._shows(s.name)))
            elif v < s.lo or (s.hi is not None and v > s.hi) or v % s.multiple_of:
                limits = f"{s.lo} <= {s.name}" + (f" <= {s.hi}" if s.hi is not None else "")
                limits += f", a multiple of {s.multiple_of}" if s.multiple_of > 1 else ""
                faults.append(
                    Diagnostic("call-size", f"{self.name}: the size {s.name} = {v} is not admitted: {limits}")
                )
        if faults:
            raise IsamError(faults)

    def _shows(self, size: str) -> str:
        """How a call, or who compiles, says what a size is."""
        shown = [p.name for p in self.outputs if any(terms and terms[0][0] == size and len(terms) == 1
                                                     for _, terms in p.rows)]  # fmt: skip
        given = f"isam.compile(kernel, sizes={{'{size}': ...}})"
        return f"pass the output that shows it, {shown[0]}=..., or {given}" if shown else given

    def shape(self, parameter: Parameter, sizes: Mapping[str, int]) -> tuple[int, ...]:
        """The parameter's shape in numbers; below zero counts as zero."""
        if parameter.shape is not None:
            return parameter.shape
        return tuple([max(0, c + sum(k * sizes[s] for s, k in terms)) for c, terms in parameter.rows])


def _affine(row: Row) -> str:
    const, terms = row
    return str(Affine.from_terms(terms) + const)


def _numbers(rows: tuple[Row, ...]) -> tuple[int, ...] | None:
    return None if any(terms for _, terms in rows) else tuple(max(0, c) for c, _ in rows)
