"""How reads and writes meet and change what is known to lie where (obligation 8).

A computing write makes every other copy of what it writes stale; a move does not. Overlaps that cannot be excluded are
overlaps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.proof.boxes import (
    Box,
    Family,
    at_value,
    box_of,
    chosen,
    contains,
    covered,
    disjoint,
    empty,
    joined,
    minus,
)
from isam.proof.context import Context, Var
from isam.proof.cuts import outside
from isam.proof.geometry import resolve
from isam.proof.instances import Instance, Instances
from isam.proof.layout import Layout, alike, elsewhere, strides_as
from isam.proof.legal import Legality
from isam.proof.progressions import progressions, put_back
from isam.proof.sets import Isl
from isam.proof.state import Fact, Hole, Spot, State, Target
from isam.schedule.tree import Bound, Operand


@dataclass(slots=True)
class Facts:
    """Reads and writes of states, for one schedule."""

    legality: Legality
    isl: Isl
    cuts: bool = False  # what is partly overwritten, or partly true in both of two states, is kept in part
    table: dict[tuple, Fact] = field(default_factory=dict)
    holed: dict[tuple[Fact, frozenset[Hole]], Fact] = field(default_factory=dict)
    holes: dict[tuple[Box, tuple[Var, ...]], Hole] = field(default_factory=dict)
    targets: dict[int, tuple[Operand, Target]] = field(default_factory=dict)
    same: dict[tuple, Target] = field(default_factory=dict)
    wanted: dict[Fact, Target] = field(default_factory=dict)
    held: dict[tuple[Target, Context, tuple[Fact, ...]], bool] = field(default_factory=dict)  # see ``holds``
    families: dict[tuple[Fact, ...], list[Fact]] = field(default_factory=dict)
    layout: Layout = field(init=False)
    _instances: Instances | None = None

    def __post_init__(self) -> None:
        self.layout = Layout(self.legality, self.isl)

    @property
    def instances(self) -> Instances:
        """Whose slots are whose, worked out when first asked."""
        if self._instances is None:
            self._instances = Instances(self.legality.schedule)
        return self._instances

    def hole(self, box: Box, over: tuple[Var, ...] = ()) -> Hole:
        got = self.holes.get((box, over))
        if got is None:
            got = self.holes[box, over] = Hole(box, over)
        return got

    def make(
        self,
        buffer: str,
        spot: Spot,
        cells: tuple[int, int] | None,
        offset: Affine,
        strides: tuple[int, ...],
        box: Box,
        over: tuple[Var, ...] = (),
    ) -> Fact:
        key = (buffer, spot, cells, offset, strides, box, over)
        got = self.table.get(key)
        if got is None:
            size = self.legality.buffers[buffer].bytes
            got = self.table[key] = Fact(buffer, spot, cells, offset, strides, size, box, over)
        return got

    def changed(self, f: Fact, box: Box | None = None, holes: Iterable[Hole] | None = None) -> Fact:
        """The same layout, about another box or with other holes."""
        bare = f.bare or f
        if box is not None:
            bare = self.make(f.buffer, f.spot, f.cells, f.address(lo for lo, _ in box), f.strides, box, f.over)
        return self.with_holes(bare, f.holes if holes is None else frozenset(holes))

    def with_holes(self, bare: Fact, holes: frozenset[Hole]) -> Fact:
        if not holes:
            return bare
        got = self.holed.get((bare, holes))
        if got is None:
            f = bare
            got = Fact(f.buffer, f.spot, f.cells, f.offset, f.strides, f.size, f.box, f.over, holes, f)
            self.holed[bare, holes] = got
        return got

    def home(self, buffer: str) -> Fact | None:
        """The whole buffer at its home."""
        b = self.legality.buffers[buffer]
        if b.home is None:
            return None
        spot = (resolve(self.legality.schedule.system, b.home.memory), b.home.base)
        return self.make(buffer, spot, None, b.home.offset, b.home.strides, tuple((Affine(), n) for n in b.shape))

    def target(self, o: Operand) -> Target:
        got = self.targets.get(id(o))
        if got is None:
            got = self.targets[id(o)] = (o, self._target(o))  # which keeps the operand, and so its number
        return got[1]

    def _target(self, o: Operand) -> Target:
        p, t = o.place, o.tile
        system = self.legality.schedule.system
        spot = (resolve(system, p.memory), p.base)
        size = self.legality.buffers[t.buffer].bytes
        spans = [k * m * (n - 1) for k, m, n in zip(p.strides, t.steps, t.shape, strict=True)]
        low, high = sum([s for s in spans if s < 0]), sum([s for s in spans if s > 0]) + size
        cells = None
        begin = offset = self.instances.at(p)
        if p.cell is not None:
            c = system.memories[spot[0]].cell or 1
            far = (0, 0) if offset.terms else (offset.const + low, offset.const + high - 1)  # see ``bounds``
            cells = (p.cell + far[0] // c, p.cell + far[1] // c)
            offset = offset + p.cell * c
        over: list[Var] = []
        start = list(t.start)
        shape = list(t.shape)
        for d, (n, k) in enumerate(zip(t.shape, t.steps, strict=True)):
            if n > 1 and k > 1:
                v = Var(f"{t.buffer}.{d}~", (Bound(Affine()),), (Bound(Affine((), (n - 1) * k)),), k, Affine())
                over.append(v)
                start[d], shape[d] = start[d] + v.name, 1
                offset = offset + Affine.of(v.name, p.strides[d])
        at = begin + (offset.const - begin.const)
        box = box_of(start, shape)
        around = box_of(t.start, t.shape, t.steps) if over else box
        key = (t.buffer, spot, cells, offset, p.strides, box, tuple(over))
        got = self.same.get(key)
        if got is None:
            wide = tuple(n > 1 for n in t.shape)
            got = self.same[key] = Target(*key, around, at + low, at + high, wide, self.hole(box, tuple(over)))
        return got

    def sought(self, f: Fact) -> Target:
        """A fact, but for its holes, as something to be found in a state."""
        got = self.wanted.get(f)
        if got is None:
            wide = tuple((hi - lo) != Affine((), 1) for lo, hi in f.box)
            rest = (f.box, f.low, f.high, wide, self.hole(f.box, f.over))
            got = self.wanted[f] = Target(f.buffer, f.spot, f.cells, f.offset, f.strides, f.box, f.over, *rest)
        return got

    def moved(self, f: Fact, offset: Affine) -> Fact:
        """The same elements elsewhere in the memory."""
        bare = self.make(f.buffer, f.spot, f.cells, offset, f.strides, f.box, f.over)
        return self.with_holes(bare, f.holes)

    # reading --------------------------------------------------------------------------------------------------------
    def holds(self, state: State, t: Target, ctx: Context) -> bool:
        """Whether the whole operand is known to lie in its place, current. Judged once per facts that say something of
        its place: most of them are there again when a loop is gone through once more."""
        near = tuple([f for f in state.near(t.spot, t.cells) if f.buffer == t.buffer])
        for f in near:
            if f.offset == t.offset and f.box == t.box and not f.holes and f.over == t.over and alike(f, t):
                return True
        got = self.held.get((t, ctx, near))
        if got is None:
            got = self.held[t, ctx, near] = self._held(near, t, ctx)
        return got

    def _held(self, near: tuple[Fact, ...], t: Target, ctx: Context) -> bool:
        ctx = ctx.with_vars(t.over)
        if empty(t.box, ctx):
            return True
        usable = [g for f in near if (g := self._usable(f, t, ctx)) is not None]
        if covered(t.box, usable, ctx):
            return True
        grown = [g for f in self._progressions(near) if (g := self._usable(f, t, ctx)) is not None]
        if grown and covered(t.box, grown, ctx):
            return True
        names = tuple(str(i) for i in range(len(t.box)))
        if len(usable) > 1 and self.isl.covers(t.box, usable, ctx, (), names):
            return True
        spread = [g for f in near if f.over and (g := self._everywhere(f, t, ctx)) is not None]
        return bool(spread) and self.isl.covers(t.box, [*spread, *usable], ctx, (), names)

    def _everywhere(self, f: Fact, t: Target, ctx: Context) -> Family | None:
        """All elements that a quantified fact is about, where they lie by one rule, which is the operand's, and without
        the variables of either: they may have one name."""
        rule, mine = f.rule, t.rule_by(f.strides)
        bound = any(rule.coefficient(v.name) or mine.coefficient(v.name) for v in (*f.over, *t.over))
        usable = alike(f, t) and not bound and ctx.equal(rule, mine)
        return Family(f.box, f.over) if usable and all(self.parted(h, t.hole, ctx) for h in f.holes) else None

    def _progressions(self, key: tuple[Fact, ...]) -> list[Fact]:
        """Facts that say what several of these say together."""
        if key not in self.families:
            made = []
            for f, s in progressions(key):
                offset, box = put_back(s)
                made.append(self.make(f.buffer, f.spot, None, offset, f.strides, box, s.over))
            self.families[key] = made
        return self.families[key]

    def _usable(self, f: Fact, t: Target, ctx: Context, holes: bool = True) -> Family | None:
        """The part of a fact that lies just as the operand says, if it may help."""
        if not alike(f, t):
            bare = self.make(f.buffer, f.spot, f.cells, f.offset, strides_as(f, t), f.box, f.over)
            f = self.with_holes(bare, f.holes)
            if not alike(f, t):
                return None
        box, rule = f.box, f.rule
        if f.over:
            values = chosen(f.over, box, t.box, ctx)
            if f.spot in self.instances.slots and not self._there(f, t, values, ctx):
                values = self._alike_dealt(f, ctx)
                if not self._there(f, t, values, ctx):
                    values = chosen(f.over, box, t.box, ctx, self._where(f, t, ctx))
            if values is None:
                return None
            box = tuple((lo.substitute(values), hi.substitute(values)) for lo, hi in box)
            rule = rule.substitute(values)
        if not ctx.equal(rule, t.rule_by(f.strides)) or (
            holes and not all(self.parted(h, t.hole, ctx) for h in f.holes)
        ):
            return None
        return Family(box)

    def _where(self, f: Fact, t: Target, ctx: Context) -> tuple[tuple[Affine, Affine], ...]:
        """The instance of a slot: where the first element of the operand lies by the fact, and by the operand."""
        at = t.offset
        var = ctx.var(self.instances.name_of(f.spot[0]))
        if var is not None:
            at = self.instances.said(at, var.name, Instance(var.lo[0].expr, var.lo[0].div))
        return ((f.address(lo for lo, _ in t.box), at),)

    def _there(self, f: Fact, t: Target, values: dict[str, Affine] | None, ctx: Context) -> bool:
        """Whether a fact with these values is about where an operand lies."""
        if values is None:
            return False
        ((rule, _),) = self._where(f, t, ctx)
        return ctx.equal(rule.substitute(values), t.offset)

    @staticmethod
    def _alike_dealt(f: Fact, ctx: Context) -> dict[str, Affine] | None:
        """The present iterations of loops like those that a fact is of."""
        values: dict[str, Affine] = {}
        for v in map(ctx.reached, f.over):
            same = [w.name for w in ctx.vars if w.step == v.step and {*w.lo} >= {*v.lo} and {*w.hi} >= {*v.hi}]
            same = [n for n in same if Affine.of(n) not in values.values()]
            if not same:
                return None
            values[v.name] = Affine.of(same[0])
        return values

    # writing --------------------------------------------------------------------------------------------------------
    def write(self, state: State, t: Target, compute: bool, ctx: Context) -> None:
        """The operand now lies in its place, current. ``compute``: with new values."""
        alone = state.sole.setdefault(t.buffer, set())
        if not compute:
            alone.clear()
        elif t in alone and self.holds(state, t, ctx):
            return
        same: list[Fact] = []
        for f in state.near(t.spot, t.cells):
            if t.cells is not None:
                state.drop(f)  # an operand occupies whole cells
            elif elsewhere(f, t):
                continue
            elif self.layout.same_layout(f, t, ctx):
                same.append(f)
            elif not self.layout.apart(f, t.low, t.high, ctx) and not self._sifted(f, t, ctx):
                state.drop(f)
                for part in self.spared(f, t.low, t.high, ctx):
                    state.put(part)
        if compute:
            for f in list(state.of.get(t.buffer, ())):
                if f not in same:
                    self.stale(state, f, t, ctx)
            alone.add(t)
        self._add(state, same, t, ctx)

    def _sifted(self, f: Fact, t: Target, ctx: Context) -> bool:
        """Whether a (quantified) fact is proved by isl to be untouched by a write."""
        return bool(f.over) and self.layout.no_clash(
            f, self.make(t.buffer, t.spot, t.cells, t.offset, t.strides, t.box, t.over), ctx
        )

    def spared(self, f: Fact, low: Affine, high: Affine, ctx: Context) -> list[Fact]:
        """What still lies where a fact says after a write from ``low`` to ``high``; of a family of boxes in each."""
        if not self.cuts:
            return []
        size, inner = self.legality.buffers[f.buffer].bytes, ctx.with_vars(f.over)
        parts = [self.changed(f, box) for box in outside(f, size, low, high, inner)]
        return [p for p in parts if self.layout.apart(p, low, high, ctx)]

    def stale(self, state: State, f: Fact, t: Target, ctx: Context) -> None:
        hole = t.hole
        if hole in f.holes or self.parted(f, hole, ctx):
            return
        state.drop(f)
        if f.cells is None and (f.one_rule if f.over else t.over or not contains(t.box, f.box, ctx)):
            state.put(self.changed(f, holes=(*f.holes, hole)))

    def parted(self, f: Family | Hole | Fact, g: Family | Hole, ctx: Context) -> bool:
        """Whether two families have no element in common: proved by bounds, or by isl where one has steps."""
        if not f.over and not g.over:
            return disjoint(f.box, g.box, ctx)
        inner = ctx.with_vars(f.over)
        one, other = Family(f.box, f.over), Family(g.box, g.over)
        for v in g.over:
            other = at_value(other, v.name, Affine.of(v.name + "'"))
        inner = inner.with_vars(replace(v, name=v.name + "'") for v in other.over)
        return disjoint(f.box, other.box, inner) or self.isl.parted(one, Family(g.box, g.over), ctx)

    def _add(self, state: State, same: list[Fact], t: Target, ctx: Context) -> None:
        if t.over:
            hole = t.hole
            for f in state.near(t.spot, t.cells):
                if f.buffer == t.buffer and hole in f.holes and self._usable(f, t, ctx, holes=False) is not None:
                    state.drop(f)
                    state.put(self.changed(f, holes=self._filled(f.holes, hole, ctx)))
                    return
            state.put(self.make(t.buffer, t.spot, t.cells, t.offset, t.strides, t.box, t.over))
            return
        new = self.make(t.buffer, t.spot, t.cells, t.offset, t.strides, t.box)
        self._refill(state, t, ctx)
        around = [f for f in same if contains(f.box, t.box, ctx)]
        whole = self.fill(state, around, new, ctx)
        if not around or (self.cuts and new.names and not whole):
            # said by itself too, where a loop fills holes: so what all its iterations fill can be told
            self.merge_into(state, new, [f for f in same if f not in around], ctx)

    def _refill(self, state: State, t: Target, ctx: Context) -> None:
        """Families of elements that lie by the operand's rule have no hole any more that new values of it had left
        there. (It is said by itself, too: of another write less of that is lost.)"""
        for f in state.near(t.spot, t.cells):
            left = f.over and f.buffer == t.buffer and t.hole in f.holes and f.one_rule and alike(f, t)
            if left and ctx.equal(f.rule, t.rule_by(f.strides)):
                state.drop(f)
                state.put(self.changed(f, holes=f.holes - {t.hole}))

    def fill(self, state: State, around: Iterable[Fact], part: Fact, ctx: Context) -> bool:
        """Facts of the layout of a part, and around it, have no holes there. Whether one of them has none at all."""
        whole = False
        for f in around:
            holes = frozenset[Hole]()
            if f.holes:
                if not contains(part.box, f.box, ctx):
                    holes = frozenset(self._filled(f.holes, self.hole(part.box), ctx))
                state.drop(f)
                state.put(self.changed(f, holes=holes))
            whole = whole or not holes
        return whole

    def merge_into(self, state: State, new: Fact, same: list[Fact], ctx: Context) -> None:
        """Adds a fact, joined with facts of the same layout that it touches. What is not so of one is not thereby so of
        the other: holes end where their fact ends."""
        same = list(same)
        while True:
            for f in same:
                box = joined(f.box, new.box)
                if box is not None:
                    state.drop(f)
                    same.remove(f)
                    new = self.changed(f, box, self._within(f, ctx) | self._within(new, ctx))
                    break
            else:
                state.put(new)
                return

    def _within(self, f: Fact, ctx: Context) -> frozenset[Hole]:
        """The holes of a fact, cut off where they certainly reach beyond it."""
        out: list[Hole] = []
        for h in f.holes:
            sides = zip(h.box, f.box, strict=True)
            cut = tuple((c if ctx.le(a, c) else a, d if ctx.le(d, b) else b) for (a, b), (c, d) in sides)
            if h.over or not any(ctx.le(b, a) for a, b in cut):
                out.append(h if h.over else self.hole(cut))
        return frozenset(out)

    def _filled(self, holes: frozenset[Hole], filled: Hole, ctx: Context) -> Iterable[Hole]:
        """What is left of holes where a box is filled, be it one of them: every hole that it meets loses that part."""
        out: list[Hole] = []
        for h in holes - {filled}:
            if h.over or filled.over:
                out.append(h)
            elif not contains(filled.box, h.box, ctx):
                parts = None if disjoint(filled.box, h.box, ctx) else minus(h.box, filled.box, ctx)
                out += [h] if parts is None else [self.hole(p) for p in parts]
        return out
