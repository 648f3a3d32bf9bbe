"""The ways in which a call in one body may come before a call in another: which iterations of the loops around them
they stand in, and on which instances of a replica."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.proof.context import Context, Var
from isam.proof.standing import PARTS, Body, Counts, Event, Mine, alike
from isam.schedule.tree import Bound, Loop

SAME, MET, OTHER = "same", "met", "other"  # instance, by the same numbers of dealt loops; by others, perhaps; another
EARLY = "^a"  # what is behind the name of a variable of the earlier call, where the later one has another value of it


@dataclass(eq=False, slots=True)
class Way:
    """``early`` before ``late``: in one iteration of everything around both, or where ``turned``, in an earlier one of
    the loop of ``tops``. ``tops``: the innermost body that both are in so, twice, or two parts of one loop.

    ``ctx`` knows the variables of both, ``names`` says what those of the earlier one are called there. ``on``: per
    replicated group, on which instance the earlier one is as the later one sees it."""

    early: Body
    late: Body
    tops: tuple[Body, Body]
    turned: bool
    ctx: Context
    names: dict[str, Affine]
    on: Mapping[str, str]

    def mine(self, group: str, inside: bool = False) -> Mine:
        """The loops that deal to the instance that both are on (nothing is asked of it where they are on two);
        ``inside``: as seen in loops that are dealt around the earlier one alone."""
        return self.early.dealt(group) if inside else self.late.dealt(group)

    def distance(self, counts: Counts, e: Event) -> Affine:
        """Events behind the call and the rest of what the earlier one's body has, up to what the later one's body
        begins with: without what a body holds itself behind the one or before the other."""
        mine = self.mine(e.group)
        one, two = self.tops
        far = counts.after(self.early, one, e, mine, self.mine(e.group, inside=True)).substitute(self.names)
        far = far + counts.before(self.late, two, e, mine)
        if self.turned or one is not two:
            far = far + counts.between(one, two, self.names, e, mine)
        return far


def ways(early: Body, late: Body, sizes: Context, groups: tuple[str, ...]) -> Iterator[Way]:
    """All ways in which a call of ``early`` may come before one of ``late``."""
    pairs = zip(early.chain, late.chain, strict=False)
    common = [a for a, b in pairs if a is b]
    for depth, top in enumerate(common):
        if top.repeats and top.loop is not None and top.loop.deal is None:
            yield from _ways(early, late, common[:depth], (top, top), True, sizes, groups)
    one, two = (b.chain[len(common)] if len(b.chain) > len(common) else None for b in (early, late))
    if one is not None and two is not None and (one.parent, one.at) == (two.parent, two.at):  # two parts of a loop
        if PARTS.index(one.part) < PARTS.index(two.part):
            yield from _ways(early, late, common, (one, two), False, sizes, groups)
        return
    if one is None or two is None or one.at < two.at:
        yield from _ways(early, late, common, (common[-1], common[-1]), False, sizes, groups)


def _ways(early: Body, late: Body, common: list[Body], tops: tuple[Body, Body], turned: bool, sizes: Context,
          groups: tuple[str, ...]) -> Iterator[Way]:  # fmt: skip
    """One way, per relation of the instances that both are on. ``common``: the bodies that both are in once."""
    shared = len(common) + turned
    ctx = sizes.with_vars(v for b in common if (v := b.var()) is not None)
    ctx, names = _again(tops[0], ctx) if turned else (ctx, {})
    ctx = ctx.with_vars(v for b in late.chain[shared:] if (v := b.var()) is not None)
    for on, related in _instances(early, late, shared, groups):
        inside, named = ctx, dict(names)
        for b in early.chain[shared:]:
            v = b.var()
            if v is not None and b.loop is not None:
                inside, named[v.name] = _early(v, b.loop, related.get(id(b.loop)), inside, named)
        yield Way(early, late, tops, turned, inside, named, on)


def _again(top: Body, ctx: Context) -> tuple[Context, dict[str, Affine]]:
    """What is known of two iterations of a body, and what the earlier one's variable is called."""
    v, n = top.var(), top.loop
    assert v is not None
    assert n is not None
    limit = () if n.serpentine is not None else (Bound(Affine.of(v.name, 1, -v.step)),)
    earlier = replace(v, name=v.name + EARLY, hi=(*v.hi, *limit))
    return ctx.with_var(v).with_var(earlier), {v.name: Affine.of(earlier.name)}


def _early(v: Var, n: Loop, related: tuple[Loop, str] | None, ctx: Context,
           names: dict[str, Affine]) -> tuple[Context, Affine]:  # fmt: skip
    """What is known with a variable of the earlier call as well, and what it is called. ``related``: a loop around the
    later one that deals its iterations alike, and how the one's number is to the other's."""
    lo, hi = (tuple(Bound(b.expr.substitute(names), b.div) for b in side) for side in (v.lo, v.hi))
    origin = None if v.origin is None else v.origin.substitute(names)
    if related is not None:
        other, how = related
        equal = n.lo[0].expr.substitute(names) + Affine.of(other.var) - other.lo[0].expr
        if how == "=":
            return ctx, equal
        lo, hi = (lo, (*hi, Bound(equal - n.step))) if how == "<" else ((*lo, Bound(equal + n.step)), hi)
    return ctx.with_var(Var(v.name + EARLY, lo, hi, v.step, origin)), Affine.of(v.name + EARLY)


def _instances(early: Body, late: Body, common: int, groups: tuple[str, ...]
               ) -> Iterator[tuple[dict[str, str], dict[int, tuple[Loop, str]]]]:  # fmt: skip
    """On which instances the earlier call may be as the later one sees it, and what that says of the loops dealt there
    that both do not share (those behind ``common`` bodies). Of loops that deal in different ways nothing is said."""
    each: list[list[tuple[str, str, dict[int, tuple[Loop, str]]]]] = []
    for g in groups:
        one, two = early.dealt(g), late.dealt(g)
        shared = len(early.chain[common - 1].dealt(g))
        a, b = one[shared:], two[shared:]
        if not a and not b:
            each.append([(g, SAME, {})])
        elif len(a) != len(b) or not all(map(alike, a, b)):
            meet = not _numbers(a).isdisjoint(_numbers(b))
            each.append([*([(g, MET, {})] if meet else []), (g, OTHER, {})])
        else:
            some = [(g, SAME, {id(x): (y, "=") for x, y in zip(a, b, strict=True)})]
            for k, (x, y) in enumerate(zip(a, b, strict=True)):
                equal = {id(p): (q, "=") for p, q in zip(a[:k], b[:k], strict=True)}
                some += [(g, OTHER, {**equal, id(x): (y, how)}) for how in "<>"]
            each.append(some)
    for chosen in product(*each):
        related: dict[int, tuple[Loop, str]] = {}
        for _, _, more in chosen:
            related |= more
        yield {g: on for g, on, _ in chosen}, related


def _numbers(loops: Mine) -> set[int]:
    """The instances to which loops deal their iterations."""
    out = {0}
    for n in loops:
        assert n.deal is not None
        out = {i + n.deal.first + n.deal.stride * t for i in out for t in range(n.trip or 0)}
    return out
