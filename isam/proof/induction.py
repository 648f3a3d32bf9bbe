"""States across iterations: what two states share, what outlives an iteration, what a whole loop has left."""

from __future__ import annotations

from isam.ir.affine import Affine
from isam.proof.boxes import Family, Span, contains, disjoint, hull
from isam.proof.context import Context, Var
from isam.proof.cuts import intersection
from isam.proof.facts import Facts
from isam.proof.quantified import substituted
from isam.proof.state import Fact, Hole, State
from isam.proof.writes import Write
from isam.schedule.tree import Bound


def implied(state: State, f: Fact, facts: Facts, ctx: Context) -> bool:
    """Whether a fact follows from a state."""
    return f in state.of.get(f.buffer, ()) or facts.holds(state, facts.sought(f), ctx)


def meet(one: State, two: State, facts: Facts, ctx: Context, both: bool = True) -> State:
    """Facts of ``one`` that ``two`` implies too (and, with ``both``, the other way round)."""
    out = State()
    pairs = ((one, two), (two, one)) if both else ((one, two),)
    for a, b in pairs:
        for f in a:
            if f in b.of.get(f.buffer, ()):
                out.put(f)
            else:
                for g in _weaker(f, b, facts, ctx):
                    add(out, g, facts, ctx)
    return out


def _weaker(f: Fact, other: State, facts: Facts, ctx: Context) -> list[Fact]:
    """What of ``f`` another state implies: the same box with more holes, or parts of it."""
    t = facts.sought(f)
    parts: list[Fact] = []
    for g in other.near(f.spot, f.cells):
        if not facts.layout.same_layout(g, t, ctx):
            continue
        whole = contains(g.box, f.box, ctx)
        box = f.box if whole else intersection(g.box, f.box, ctx) if facts.cuts else None
        if box is not None:
            parts.append(facts.changed(f, box, f.holes | {h for h in g.holes if not facts.parted(f, h, ctx)}))
        if whole:
            return parts[-1:]
    bare = facts.changed(f, holes=())
    return [f] if implied(other, bare, facts, ctx) else parts if f.cells is None else []


def forget(state: State, var: str, over: Span, facts: Facts) -> State:
    """The facts that do not mention ``var``; holes that do are widened to all its values."""
    out = State()
    for f in state:
        if f.mentions(var):
            continue
        holes = [h if not h.moves(var) else _widened(h, over, facts) for h in f.holes]
        known = [h for h in holes if h is not None]
        if len(known) == len(holes):
            out.put(facts.changed(f, holes=known))
    return out


def _widened(hole: Hole, over: Span, facts: Facts) -> Hole | None:
    """The hole over all values of the loop variable (and of its own)."""
    box = hull(hole.box, over)
    for v in hole.over:  # constant bounds: the steps of a tile
        if box is not None:
            box = hull(box, Span(v.name, v.step, v.lo[0].expr, v.hi[0].expr, v))
    return None if box is None else facts.hole(box)


def add(state: State, f: Fact, facts: Facts, ctx: Context) -> None:
    """Adds a fact to a state, joined with facts of its layout that it touches."""
    if f.cells is not None or f.over or f.holes:
        state.put(f)
        return
    t = facts.sought(f)
    same = [g for g in state.near(f.spot, f.cells) if facts.layout.same_layout(g, t, ctx)]
    if facts.fill(state, [g for g in same if contains(g.box, f.box, ctx)], f, ctx):
        return
    for g in same:
        if contains(f.box, g.box, ctx):
            state.drop(g)
    facts.merge_into(state, f, same, ctx)


def survives(
    f: Fact, var: str, over: Span, log: list[Write], facts: Facts, ctx: Context, fresh: str, back: bool = False
) -> bool:
    """Whether a fact about an earlier iteration is untouched by everything a later one writes. ``back``: they go
    backwards, so the earlier one has the larger value of the variable."""
    now = Affine.of(var)
    old = substituted(f, var, Affine.of(fresh), facts)
    d = over.desc
    lo, hi = ((*d.lo, Bound(now + over.step)), d.hi) if back else (d.lo, (*d.hi, Bound(now - over.step)))
    ctx = ctx.with_var(Var(fresh, lo, hi, d.step, d.origin))
    if old.holes:
        return False
    for w in log:
        if w.spot == old.spot and not _harmless(old, w, facts, ctx):
            return False
        elsewhere = w.spot != old.spot or not _one_layout(old, w, facts, ctx)
        if w.compute and w.buffer == old.buffer and elsewhere and not _spared(old, w, facts, ctx):
            return False
    return True


def _spared(f: Fact, w: Write, facts: Facts, ctx: Context) -> bool:
    """Whether a write elsewhere with new values concerns none of the fact's elements."""
    if w.box is not None and disjoint(w.box, f.box, ctx):
        return True
    return bool(f.over or w.whole.over) and facts.isl.parted(Family(f.box, f.over), w.whole, ctx)


def _harmless(f: Fact, w: Write, facts: Facts, ctx: Context) -> bool:
    """Whether a write in the same memory leaves the fact's bytes as they are."""
    if _one_layout(f, w, facts, ctx):
        return True
    if w.ends is not None and facts.layout.apart(f, *w.ends, ctx):
        return True
    return w.exact is not None and facts.layout.no_clash(f, w.exact, ctx)


def _one_layout(f: Fact, w: Write, facts: Facts, ctx: Context) -> bool:
    return w.target is not None and facts.layout.same_layout(f, w.target, ctx)
