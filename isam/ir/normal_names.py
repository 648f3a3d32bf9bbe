"""Names: the axes that make and use a buffer along one of its dimensions get one name, that of where it is made.

An instruction that carries out several statements has one loop where they have one each; calls, nests and proofs of
schedules say which by the name.
"""

from __future__ import annotations

from collections.abc import Iterator

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Axis, Statement, recurrences
from isam.ir.lines import Lines

Own = tuple[int, str]  # an axis of a statement


def one_name(lines: Lines) -> None:
    """Gives axes that are one the same name, wherever they are; axes of one statement stay apart."""
    one: dict[Own, list[Own]] = {(at, n): [(at, n)] for at, s in lines.live() for n in s.domain.names}
    for _, a, b in sorted(_uses(lines), key=lambda use: (use[0], use[1][1] != use[2][1])):  # one name stays one
        mine, other = one[a], one[b]
        if mine is not other and {at for at, _ in mine}.isdisjoint(at for at, _ in other):
            mine += other
            one.update(dict.fromkeys(other, mine))
    names = _names(lines, one)
    for at, s in lines.live():
        new = {n: names[at, n] for n in s.domain.names}
        if any(n != to for n, to in new.items()):
            axes = [Axis(new[x.name], x.extent) for x in s.domain.axes]
            lines.put(at, s.substitute({n: Affine.of(to) for n, to in new.items()}, axes))


def _uses(lines: Lines) -> Iterator[tuple[bool, Own, Own]]:
    """Axes of what first writes a buffer, each with the axis of what uses it that counts the same elements, and whether
    others come before these where not all can be one: those of what goes on writing it, and of what is made for one
    statement alone. An instruction carries out all of that, and these are never at odds with each other."""
    made: dict[str, int] = {}
    alone = {b for b, touching in lines.touching().items() if lines.is_temp(b) and len(touching) == 2}
    for at, s in lines.live():
        for a in (*(x for x in s.sources if isinstance(x, Access)), s.dest):
            if (first := made.get(a.buffer)) is not None and (maker := lines.statements[first]) is not None:
                later = a is not s.dest and a.buffer not in alone
                yield from ((later, (first, n), (at, m)) for n, m in _pairs(maker, s, a))
        made.setdefault(s.dest.buffer, at)


def _pairs(maker: Statement, s: Statement, use: Access) -> Iterator[tuple[str, str]]:
    """An axis of the maker and one of the statement that count the same elements, over as many: alone in a row, or with
    others, told apart by their weights."""
    for row, here in zip(maker.dest.index, use.index, strict=True):
        ours, theirs = ({c: n for n, c in r.terms} for r in (row, here))
        if ours.keys() != theirs.keys() or len(ours) < len(row.terms) or row.const != here.const:
            continue
        for c, n in ours.items():
            m = theirs[c]
            known = n in maker.domain.names and m in s.domain.names
            if known and maker.domain.extent(n) == s.domain.extent(m):
                yield n, m


def _names(lines: Lines, one: dict[Own, list[Own]]) -> dict[Own, str]:
    """A name for each axis: the first that those which are one have, where no other axis beside them has it."""
    k, names = lines.kernel_in, dict[Own, str]()
    others = {s.name for s in k.syms} | {r.axis.name for r in recurrences(k.body)}
    beside: dict[int, list[Own]] = {}
    for at, n in one:
        beside.setdefault(at, []).append((at, n))
    for own, together in one.items():
        if own in names:
            continue
        used = {names[x] for at, _ in together for x in beside[at] if x in names}
        used |= others if len(together) > 1 else set()
        known = dict.fromkeys(n for _, n in sorted(together))
        fresh = (f"{own[1]}_{i}" for i in range(2, len(one) + len(used) + 3))
        name = next(n for n in (*known, *fresh) if n not in used)
        names.update(dict.fromkeys(together, name))
    return names
