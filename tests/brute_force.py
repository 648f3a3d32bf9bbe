"""Counts mappings by trying everything (MAP-10). Shares no code with the mapper: only the language's types.

Every assignment of kernel statements to the instruction's, every order of commutative sources, every injection of the
instruction's axes into the kernel's, every choice of rows. The sub-matrix rule is checked entry by entry as it is
written (MAP-2). Axes of different kernel statements are the same axis when they have the same name, so the kernels
given to it are written that way.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import permutations, product

from isam.ir.instruction import Instruction
from isam.ir.kernel import COMMUTATIVE, REDUCTIONS, Access, Kernel, Literal, Statement


def brute_count(kernel: Kernel, instruction: Instruction, *, strided: bool = False, swap: bool = True) -> int:
    """How many distinct (role assignment, axis map) pairs there are."""
    body = instruction.body
    mine = body.statements
    temps = [b.name for b in body.buffers if b.role == "temp"]
    found = set()
    slots = [
        [(k, r) for k, s in enumerate(kernel.statements) for r in _readings(s) if _kind(r) == _kind(m)] for m in mine
    ]
    for chosen in product(*slots):
        numbers = [k for k, _ in chosen]
        theirs = [r for _, r in chosen]
        if len(set(numbers)) < len(numbers) or not _in_order(mine, numbers):
            continue
        for flips in product(*[(False, True) if swap and _flips(s) else (False,) for s in mine]):
            roles = _roles(mine, theirs, flips)
            if roles is None or not _temps_inside(kernel, roles, temps, set(numbers)):
                continue
            names = sorted({n for s in theirs for n in s.domain.names})
            needed = sorted({n for s in mine for n in s.domain.names})
            for image in permutations(names, len(needed)):
                axes = dict(zip(needed, image, strict=True))
                if (
                    all(_domains_fit(s, k, axes) for s, k in zip(mine, theirs, strict=True))
                    and _rest_everywhere(mine, theirs, temps, axes)
                    and all(_rows_exist(pairs, axes, strided) for pairs in roles.values())
                ):
                    played = {o: " ".join(str(p[1]) for p in pairs) for o, pairs in roles.items() if o not in temps}
                    who = tuple(sorted(played.items()))
                    found.add((who, tuple(numbers), tuple(sorted(axes.items()))))
    return len(found)


def _readings(s: Statement) -> list[Statement]:
    """The statement, an accumulation as ``d = d op s``, ``d = d op s`` as an accumulation, ``a < b`` as ``b > a``."""
    out = [s]
    if s.op in ("lt", "gt", "le", "ge"):
        turned = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}[s.op]
        out.append(replace(s, op=turned, sources=s.sources[::-1]))
    elif s.op in REDUCTIONS and s.accumulate:
        out.append(replace(s, accumulate=False, sources=(s.dest, *s.sources)))
    elif s.op in REDUCTIONS and s.dest in s.sources:
        rest = list(s.sources)
        rest.remove(s.dest)
        out.append(replace(s, accumulate=True, sources=tuple(rest)))
    return out


def _in_order(mine: tuple[Statement, ...], numbers: list[int]) -> bool:
    """Statements of the instruction that share a buffer, one of them writing it, stand in the kernel in that order."""
    wrote = [{s.dest.buffer} for s in mine]
    touched = [{s.dest.buffer, *(a.buffer for a in s.reads)} for s in mine]
    return all(
        numbers[i] < numbers[j]
        for j in range(len(mine))
        for i in range(j)
        if wrote[i] & touched[j] or touched[i] & wrote[j]
    )


def _rest_everywhere(mine, theirs, temps: list[str], axes: dict[str, str]) -> bool:
    """An axis left over runs over every statement whose result is seen: else a call per value would repeat it."""
    left = {n for s in theirs for n in s.domain.names} - set(axes.values())
    return all(left <= set(k.domain.names) for m, k in zip(mine, theirs, strict=True) if m.dest.buffer not in temps)


def _kind(s: Statement) -> tuple[str, bool, int]:
    return s.op, s.accumulate, len(s.sources)


def _flips(s: Statement) -> bool:
    return s.op in COMMUTATIVE and not s.accumulate and len(s.sources) == 2


def _roles(mine: tuple[Statement, ...], theirs: list[Statement], flips: tuple[bool, ...]):
    """Operand name -> [(instruction access, kernel access or literal, their statements' axes)], or None."""
    roles: dict[str, list] = {}
    for s, k, flip in zip(mine, theirs, flips, strict=True):
        sources = k.sources[::-1] if flip else k.sources
        for a, b in zip((s.dest, *s.sources), (k.dest, *sources), strict=True):
            if isinstance(a, Literal):
                if not isinstance(b, Literal) or a.value != b.value:
                    return None
                continue
            roles.setdefault(a.buffer, []).append((a, b))
    for pairs in roles.values():
        if len({p[1].buffer if isinstance(p[1], Access) else repr(p[1].value) for p in pairs}) > 1:
            return None
    return roles


def _temps_inside(kernel: Kernel, roles: dict, temps: list[str], region: set[int]) -> bool:
    for t in temps:
        played = roles[t][0][1]
        if not isinstance(played, Access) or kernel.buffer(played.buffer).role != "temp":
            return False
        for n, s in enumerate(kernel.statements):
            touched = {s.dest.buffer} | {x.buffer for x in s.sources if isinstance(x, Access)}
            if played.buffer in touched and n not in region:
                return False
    return True


def _domains_fit(s: Statement, k: Statement, axes: dict[str, str]) -> bool:
    own = {axes[n] for n in s.domain.names}
    return own <= set(k.domain.names) and not (set(axes.values()) - own) & set(k.domain.names)


def _rows_exist(pairs: list, axes: dict[str, str], strided: bool) -> bool:
    """Some injective choice of rows for which every access of the operand obeys MAP-2."""
    want, have = pairs[0]
    if isinstance(have, Literal):
        return not want.index
    return any(
        all(_obeys(a, b, axes, rows, strided) for a, b in pairs)
        for rows in permutations(range(len(have.index)), len(want.index))
    )


def _obeys(a: Access, b: Access, axes: dict[str, str], rows: tuple[int, ...], strided: bool) -> bool:
    for d, r in enumerate(rows):  # strided: the row times one step, the same for all its axes
        pairs = [(a.index[d].coefficient(n), b.index[r].coefficient(h)) for n, h in axes.items()]
        if any(bool(n) != bool(h) if strided else n != h for n, h in pairs):
            return False
        if len({Fraction(h, n) for n, h in pairs if n}) > 1:
            return False
    for theirs in axes.values():
        for r, row in enumerate(b.index):
            if r not in rows and row.coefficient(theirs):
                return False
    return True
