"""Kernels from index strings: ``"mk,kn->mn"``, with affine indices ``"n(h+r)(2*w+s)c,rsck->nhwk"``.

Operands are separated by commas. An index is one letter, or an affine expression in parentheses whose names may have
several letters and whose terms may have coefficients: ``(2*h+r)``, ``(2h+r)``, ``(h+r-1)``. The size of axis ``h`` is
``H``; dimensions with an affine index are just large enough. What the output does not mention is summed. Without
``->`` the output has the letters that occur once, in alphabetical order, as in NumPy. Spaces mean nothing.

Of more than two operands the order of the factors is chosen: it says which sums can be taken first (``ij,jk,k->i`` is a
matrix times a vector twice, if the vector is multiplied first).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import prod
from operator import index
from typing import Any

from isam.classes import dataclass
from isam.diagnostics import Diagnostic, IsamError, Loc, did_you_mean, fail
from isam.ir.affine import Affine
from isam.ir.dtype import DTYPES, dtype_name
from isam.ir.kernel import Axis, Kernel
from isam.ir.lexer import Report
from isam.ir.permits import permitted
from isam.ir.ranges import upper
from isam.ir.text import parse_kernel
from isam.ir.verify import require

FILE = "<einsum>"
TERM = re.compile(r"(?:(\d+)\*?)?([A-Za-z_]\w*)|(\d+)")
MAX_SPEC = 10_000
MANY = 10  # operands whose order is as they are written: so many have more subsets than are worth looking at
NOMINAL = 64  # the extent of an axis that is not known yet


@dataclass(frozen=True, slots=True)
class _Operand:
    """The indices of one operand and the column where it begins."""

    rows: tuple[Affine, ...]
    column: int


def einsum(spec: str, dtype: Any = "f32", out: Any = None, name: str = "einsum",
           names: Sequence[str] = (), sizes: Mapping[str, int] | None = None,
           const: Iterable[int | str] | int | str = (), permits: Iterable[str] | str | None = None) -> Kernel:
    """The kernel that an index string describes.

    ``dtype``: of all operands, or one per operand (a list), by name or as NumPy has it (``np.float32``). ``out``: the
    dtype of the output (default: that of the first operand); operands of another dtype are cast to it. ``names``: of
    the operands, then of the output (default: ``x1, x2, ..., y``). ``sizes``: extents of axes that are fixed numbers,
    by the axis or by the name that its size has in the kernel: ``{"m": 3}`` or ``{"M": 3}``. ``const``: operands that
    are bound once, by name or by place from 0: ``"x2"``, ``1`` or several. ``permits``: one permission or several.
    Raises ``IsamError`` with the column in ``spec``.

    >>> print(einsum("mk,kn->mn"))
    kernel einsum(M, K, N)
      in  x1: f32[M, K]
      in  x2: f32[K, N]
      out y: f32[M, N]
      forall m < M, n < N
        y[m, n] = 0
      forall m < M, n < N, k < K
        t1[m, n, k] = x1[m, k] * x2[k, n]
        y[m, n] += t1[m, n, k]
    <BLANKLINE>
    """
    inputs, output = _read(spec)
    dtypes = [_dtype(d) for d in (dtype if isinstance(dtype, list | tuple) else [dtype] * len(inputs))]
    result = _dtype(out) if out is not None else dtypes[0] if dtypes else "f32"
    if len(dtypes) != len(inputs):
        raise fail("E503", f"{len(inputs)} operands and {len(dtypes)} dtypes", Loc(FILE, 1, 1), "give one per operand")
    labels = _labels(names) or [*(f"x{n}" for n in range(1, len(inputs) + 1)), "y"]
    if len(labels) != len(inputs) + 1:
        raise fail("E504", f"{len(inputs) + 1} names are needed, found {len(labels)}", Loc(FILE, 1, 1),
                   "name the operands, then the output")
    fixed = _fixed(sizes or {}, [n for o in inputs for row in o.rows for n in row.names])
    bound = _bound(const, labels[:-1], labels[-1])
    report = Report(FILE, [])
    granted = permitted(permits, report, Loc(FILE, 1, 1))
    report.check()
    try:
        made = require(parse_kernel(_text(name, inputs, output, dtypes, result, labels, fixed, bound), FILE))
        return made if granted is None else made.with_permits(granted)
    except IsamError as e:
        raise IsamError(_moved(e.diagnostics, spec, [*inputs, output], labels)) from None


def _labels(names: Any) -> list[str]:
    labels = list(names) if isinstance(names, Iterable) else [names]
    wrong = next((x for x in labels if not isinstance(x, str)), None)
    if wrong is not None:
        raise fail("E504", f"names are texts, not {type(wrong).__name__}", Loc(FILE, 1, 1),
                   "name the operands, then the output")
    return labels


def _bound(given: Any, labels: Sequence[str], out: str) -> set[int]:
    """The operands that are constant, by place."""
    words = [w.strip() for w in given.split(",")] if isinstance(given, str) else given
    found: set[int] = set()
    for word in words if isinstance(words, Iterable) else [words]:
        at: Any = labels.index(word) if isinstance(word, str) and word in labels else word
        if hasattr(at, "__index__") and not isinstance(at, bool) and 0 <= index(at) < len(labels):
            found.add(index(at))
        else:
            known = f"operands: {', '.join(labels)}, or by place 0 to {len(labels) - 1}"
            what = f"the output '{out}' is not constant" if word == out else f"there is no operand {word!r:.60}"
            hint = did_you_mean(word, labels) if isinstance(word, str) else ""
            raise fail("E504", what, Loc(FILE, 1, 1), hint or known)
    return found


def _size_of(axis: str) -> str:
    """What the kernel calls the size of an axis."""
    return axis.upper() if axis.upper() != axis else f"{axis}_size"


def _fixed(sizes: Any, axes: Sequence[str]) -> dict[str, int]:
    """The extents that are given, by axis."""
    at = Loc(FILE, 1, 1)
    if not isinstance(sizes, Mapping):
        raise fail("E504", f"sizes are a mapping of axes to numbers, not {type(sizes).__name__}", at, 'sizes={"m": 3}')
    meant = {_size_of(n): n for n in axes} | {n: n for n in axes}
    fixed: dict[str, int] = {}
    for name, extent in sizes.items():
        axis = meant.get(name)
        if axis is None:
            known = ", ".join(dict.fromkeys(axes)) or "none"
            raise fail("E504", f"there is no axis '{name}' to have a size", at,
                       did_you_mean(str(name), meant) or f"axes: {known}")
        if axis in fixed:
            raise fail("E504", f"the size of '{axis}' is given twice", at, f"as '{axis}' or as '{_size_of(axis)}'")
        if isinstance(extent, bool) or not hasattr(extent, "__index__") or extent < 0:
            raise fail("E504", f"the size of '{name}' is {extent!r}", at, "expected an integer of at least 0")
        fixed[axis] = index(extent)
    return fixed


def _dtype(given: object) -> str:
    """The name of an element type. Raises ``IsamError``."""
    name = dtype_name(given)
    if name is None:
        import numpy as np

        if isinstance(given, np.ndarray):
            raise fail("E503", "a dtype is needed, not an array", Loc(FILE, 1, 1),
                       "isam.einsum makes a kernel: isam.compile(isam.einsum(...))(A, B) computes with arrays")
        hint = "dtypes: " + ", ".join(DTYPES)
        try:
            meant = dtype_name(np.dtype(given)) if given is not None else None  # type: ignore[call-overload]
        except (TypeError, ValueError):
            meant = None
        what = f"unknown dtype '{given}'" if isinstance(given, str) else f"{given!r:.60} is no dtype"
        raise fail("E503", what, Loc(FILE, 1, 1), f"did you mean '{meant}'? {hint}" if meant else hint)
    return name


def _moved(found: Sequence[Diagnostic], spec: str, operands: list[_Operand], labels: list[str]) -> list[Diagnostic]:
    """Faults of the kernel, placed at the operand of the index string that they name."""
    columns = {f"'{label}'": o.column for o, label in zip(operands, labels, strict=True)}
    out: list[Diagnostic] = []
    for d in found:
        column = next((c for label, c in columns.items() if label in d.message), 1)
        out.append(replace(d, loc=Loc(FILE, 1, column), source_line=spec))
    return out


def _read(spec: str) -> tuple[list[_Operand], _Operand]:
    if not isinstance(spec, str):
        raise fail("E501", f"the index string is a text, not {type(spec).__name__}", Loc(FILE, 1, 1),
                   'isam.einsum("mk,kn->mn") makes a kernel')
    if len(spec) > MAX_SPEC:
        raise fail("E501", f"the index string has {len(spec)} characters", Loc(FILE, 1, 1),
                   f"expected at most {MAX_SPEC}")
    if spec.count("->") > 1:
        raise _wrong(spec, spec.rindex("->"), "a second '->'", "expected one output")
    left, arrow, right = spec.partition("->")
    inputs: list[_Operand] = []
    at = 0
    for part in left.split(","):
        inputs.append(_Operand(tuple(_rows(spec, part, at)), at + 1))
        at += len(part) + 1
    if arrow:
        output = _Operand(tuple(_rows(spec, right, len(left) + 2)), len(left) + 3)
    else:
        output = _implicit(spec, inputs)
    known = {n for o in inputs for row in o.rows for n in row.names}
    for row in output.rows:
        for n in row.names:
            if n not in known:
                raise fail("E502", f"the output's index '{n}' is in no operand", Loc(FILE, 1, output.column),
                           "every index of the output comes from an operand", spec)
    return inputs, output


def _implicit(spec: str, inputs: list[_Operand]) -> _Operand:
    """NumPy's rule for a string without ``->``: the letters that occur once, in alphabetical order."""
    rows = [row for o in inputs for row in o.rows]
    if any(len(r.terms) != 1 or r.const for r in rows):
        raise _wrong(spec, len(spec), "no '->' after affine indices", "say what the output is: ->nhwk")
    letters = [r.names[0] for r in rows]
    return _Operand(tuple(Affine.of(n) for n in sorted(letters) if letters.count(n) == 1), 1)


def _rows(spec: str, part: str, start: int) -> list[Affine]:
    out: list[Affine] = []
    at = 0
    while at < len(part):
        ch = part[at]
        if ch == "(":
            end = part.find(")", at)
            if end < 0:
                raise _wrong(spec, start + at, "'(' is never closed", "expected ')' after the affine index")
            out.append(_affine(spec, part[at + 1 : end], start + at + 1))
            at = end
        elif ch.isascii() and ch.isalpha():
            out.append(Affine.of(ch))
        elif not ch.isspace():
            hint = "a size is named by a letter" if ch.isdigit() else "an index is a letter, or (2*h+r)"
            raise _wrong(spec, start + at, f"'{ch}' is no index", hint)
        at += 1
    return out


def _affine(spec: str, text: str, start: int) -> Affine:
    """``2*h + r - 1``."""
    total = Affine()
    at, sign, expect = 0, 1, True
    while at < len(text):
        ch = text[at]
        if ch.isspace():
            at += 1
        elif ch in "+-" and not (expect and at and text[:at].strip()):
            sign, expect = (-1 if ch == "-" else 1), True
            at += 1
        elif expect and (m := TERM.match(text, at)) and len(m.group()) < 40:
            factor = int(m.group(1) or 1)
            total = total + (Affine.of(m.group(2), sign * factor) if m.group(2) else sign * int(m.group(3)))
            at, sign, expect = m.end(), 1, False
        else:
            raise _wrong(spec, start + at, f"'{ch}' in an affine index", "expected terms such as 2*h + r - 1")
    if expect:
        raise _wrong(spec, start + at, "an affine index ends too early", "expected a name or a number")
    return total


def _wrong(spec: str, at: int, message: str, hint: str) -> IsamError:
    return fail("E501", message, Loc(FILE, 1, at + 1), hint, spec)


def _text(name: str, inputs: list[_Operand], output: _Operand, dtypes: list[str], result: str, labels: list[str],
          fixed: Mapping[str, int], bound: set[int]) -> str:
    order = dict.fromkeys(n for o in inputs for row in o.rows for n in row.names)
    own = [n for row in output.rows for n in row.names]
    axes = list(dict.fromkeys([*own, *order]))
    sizes = {n: _size_of(n) for n in order if n not in fixed}
    box = [Axis(n, Affine.of(sizes[n]) if n in sizes else Affine.lift(fixed[n])) for n in axes]
    lines = [f"kernel {name}({', '.join(sizes.values())})"]
    roles = ["const" if n in bound else "in" for n in range(len(inputs))]
    for o, d, label, role in zip([*inputs, output], [*dtypes, result], labels, [*roles, "out"], strict=True):
        shape = ", ".join(str(upper(row, box) + 1) for row in o.rows)
        lines.append(f"  {role} {label}: {d}" + (f"[{shape}]" if shape else ""))
    reads = [f"{label}[{_list(o.rows)}]" for o, label in zip(inputs, labels, strict=False)]
    factors = [r if d == result else f"{result}({r})" for r, d in zip(reads, dtypes, strict=True)]
    value = " * ".join(factors[n] for n in _multiplied(inputs, output, fixed))
    dest = f"{labels[-1]}[{_list(output.rows)}]"
    forall = "  forall " + ", ".join(f"{a.name} < {a.extent}" for a in box)
    plain = len(own) == len(set(own)) == len(axes) and all(len(r.terms) == 1 and not r.const for r in output.rows)
    if not plain:
        fresh = [f"d{k}" for k in range(len(output.rows))]
        simple = all(len(r.terms) == 1 and not r.const and r.terms[0][1] == 1 for r in output.rows)
        fresh = [r.names[0] for r in output.rows] if simple and len(own) == len(set(own)) else fresh
        bounds = ", ".join(f"{n} < {upper(row, box) + 1}" for n, row in zip(fresh, output.rows, strict=True))
        zero = f"{labels[-1]}[{', '.join(fresh)}] = 0"
        lines += [f"  forall {bounds}", f"    {zero}"] if fresh else [f"  {zero}"]
    statement = f"{dest} {'=' if plain else '+='} {value}"
    lines += [forall, f"    {statement}"] if box else [f"  {statement}"]
    return "\n".join(lines)


def _multiplied(inputs: list[_Operand], output: _Operand, fixed: Mapping[str, int]) -> tuple[int, ...]:
    """The order of the factors with which the fewest multiplications are left when each sum is taken as soon as no
    factor to come depends on its axis: as written where no other needs fewer (dynamic programming over sets of
    operands, as Held and Karp do it; 1962)."""
    written = tuple(range(len(inputs)))
    if not 2 < len(inputs) <= MANY:
        return written
    axes = [frozenset(n for row in o.rows for n in row.names) for o in inputs]
    kept = frozenset(n for row in output.rows for n in row.names)

    def there(before: frozenset[int]) -> frozenset[str]:
        """The axes that are left of some factors."""
        later = kept.union(*(axes[m] for m in written if m not in before))
        return later & frozenset[str]().union(*(axes[m] for m in before))

    best = {frozenset[int](): (0, ())}
    for _ in written:
        further: dict[frozenset[int], tuple[int, tuple[int, ...]]] = {}
        for before, (work, order) in best.items():
            left = there(before)
            for n in written:
                if n not in before:
                    more = prod(fixed.get(a, NOMINAL) for a in left | axes[n]) if before else 0
                    found = work + more, (*order, n)
                    further[before | {n}] = min(further.get(before | {n}, found), found)
        best = further
    return min(best.values())[1]


def _list(rows: Sequence[Affine]) -> str:
    return ", ".join(map(str, rows))
