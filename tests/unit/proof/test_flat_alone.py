"""The step by step execution of the flat checker against plain lists: one step, and what is between steps."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from itertools import product
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from isam.ir.affine import Affine
from isam.proof.flat_layout import Pattern
from isam.proof.flat_step import Access, Effect, Shape, Step
from isam.proof.violation import Findings

ROOM, ELEMENTS = 160, 24  # addresses, elements of a buffer
BUFFERS = ("a", "b")


@dataclass
class World:
    """A step of two or three operands on two buffers, right as it stands, and everything it reads and writes."""

    choose: random.Random
    accesses: list[Access] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)
    values: list[int] = field(default_factory=list)
    out: Findings = field(default_factory=Findings)
    ranks: dict[int, np.ndarray] = field(default_factory=dict)
    multiple: dict[int, int] = field(default_factory=dict)  # of values: what they are multiples of

    def __post_init__(self) -> None:
        choose = self.choose
        self.cell = choose.choice((0, 0, 1, 4, 5))
        self.space = SimpleNamespace(
            token=np.full(ROOM, -1, np.int64), version=np.array([choose.randint(0, 5) for _ in range(ROOM)], np.int32),
            current=np.array([choose.randint(0, 2) for _ in range(2 * ELEMENTS)], np.int32),
            origin=dict(zip(BUFFERS, (0, ELEMENTS), strict=True)), unflat=lambda name, at: (name, at))  # fmt: skip
        how = choose.choice([((1, 0), (0, 1)), ((1, 0), (1, 0), (0, 1)), ((1, 1), (1, 0)), ((0, 1), (0, 1)),
                             ((1, 1), (1, 1)), ((1, 0), (0, 1), (0, 1))])  # fmt: skip
        same = choose.random() < 0.3  # the last is the first, elsewhere or not
        for k, (reads, writes) in enumerate(how):
            again = self.accesses[0] if same and k == len(how) - 1 else None
            self.operand(k, bool(reads), bool(writes), again)
        counter, axes = self.rows(2, 3), self.rows(2, 3)
        self.prescribed = SimpleNamespace(before={}, adds={})
        self.done: dict[int, np.ndarray] = {}
        written = [i for i, a in enumerate(self.accesses) if a.writes]
        for s, i in enumerate(written if choose.random() < 0.8 else []):
            self.effect(s, i, counter if not s else choose.choice((counter, counter[1:])), axes)
        for a in self.accesses:
            a.readers = tuple(choose.sample((0, 1, 7), choose.randint(0, 3))) if a.reads else ()
        for s in (0, 1, 7):
            now = {b: self.version_of(b) for b in BUFFERS if choose.random() < 0.9}
            key = s, self.time(s)
            self.prescribed.before[key] = now | self.prescribed.before.get(key, {})
        some = choose.random() < 0.5
        names = [a.operand.name for a in self.accesses]
        self.pointwise = frozenset((x, y) for x in names for y in names if some or choose.random() < 0.3)

    def version_of(self, b: str) -> np.ndarray:
        at = self.space.origin[b]
        return self.space.current[at : at + ELEMENTS].copy()

    def time(self, statement: int) -> tuple[int, ...]:
        """Counters of the loops around it: its own, or what is around the step's first statement."""
        own = [e for e in self.effects if e.statement == statement] or self.effects
        return tuple(self.values[r] for r in own[0].outer) if own else ()

    def rows(self, n: int, most: int) -> tuple[int, ...]:
        first = len(self.values)
        self.values += [self.choose.randint(0, most) for _ in range(n)]
        return tuple(range(first, first + n))

    def operand(self, k: int, reads: bool, writes: bool, again: Access | None) -> None:
        choose, row = self.choose, len(self.values)
        name = BUFFERS[k % 2] if again is None else again.operand.tile.buffer
        parts = choose.choice((1, 2))
        split, group, wide = choose.randint(1, parts), choose.choice((1, 2, 4)), choose.choice((1, 2))
        elems = np.array(choose.sample(range(8), choose.randint(1, 4)), np.int64)
        starts = choose.sample(range(-6, 12, 3), len(elems))
        q = np.arange(split)
        addr = (np.array(starts, np.int64)[:, None] + q).ravel()
        pattern = Pattern(np.repeat(elems, split), addr, (elems[:, None] * parts + q).ravel(),
                          (int(addr.min()), int(addr.max())), elems)  # fmt: skip
        origin = choose.choice((0, 35 * k, 35 * k, 35 * k + 3))
        at, base = choose.randint(6, 12), choose.randint(2, ELEMENTS - 12)
        if again is not None:
            parts, group, wide, pattern, origin = again.parts, again.group, again.wide, again.pattern, again.region[0]
            at, base = self.values[again.row + 1] // group, self.values[again.row] // wide - self.space.origin[name]
            at, base = at + choose.choice((0, 0, 1)), base + choose.choice((0, 0, 0, 1))
            pattern = choose.choice((pattern, pattern, pattern._replace(addr=pattern.addr[::-1].copy())))
        base += self.space.origin[name]
        limits = [choose.randint(0, 4) for _ in range(choose.randint(0, 2))]
        self.values += [base * wide, at * group, *(choose.randint(0, n) for n in limits)]
        groups = at + pattern.span[1] + 1 + choose.choice((0, 0, 3))
        operand: Any = SimpleNamespace(name="XYZ"[k], tile=SimpleNamespace(buffer=name))
        align = choose.choice((0, 1, 1, 1, 2, 3, at * group))
        self.accesses.append(Access(operand, row, 0, (), 0, wide, group, parts, pattern,
                                    (origin, groups, self.cell), limits, align, reads, (), writes))  # fmt: skip
        if again is None:
            for e, t, where in zip(pattern.elem, pattern.token, addr, strict=True):
                self.space.token[origin + at + where] = t + base * parts
                self.space.version[origin + at + where] = self.space.current[base + e]

    def effect(self, s: int, i: int, counter: tuple[int, ...], axes: tuple[int, ...]) -> None:
        choose, a = self.choose, self.accesses[i]
        lengths = [choose.randint(1, 3) for _ in axes]
        cells = [choose.choice((1, n)) if not self.effects else 1 for n in lengths]
        for row, c in zip(axes, cells, strict=True):
            self.values[row] -= self.values[row] % c
            self.multiple[row] = max(c, self.multiple.get(row, 1))
        extents = [-(-(self.values[r] + n + choose.choice((0, 0, 2))) // c) * c
                   for r, n, c in zip(axes, lengths, cells, strict=True)]  # fmt: skip
        one = [1] * len(counter)
        axes, lengths, extents, cells = (*counter, *axes), [*one, *lengths], [*[4] * len(one), *extents], [*one, *cells]
        ordered = tuple((r, n, e) for r, n, e in zip(axes, lengths, extents, strict=True))
        ordered = ordered[choose.choice((0, len(one))) :]
        accumulate, times = choose.random() < 0.6, choose.randint(1, 3)
        self.effects.append(Effect(s, i, accumulate, times, counter, tuple(zip(axes, lengths, strict=True)),
                                   tuple(extents), tuple(cells),
                                   ordered if choose.random() < 0.5 else None))  # fmt: skip
        b, now = a.operand.tile.buffer, tuple(self.values[r] for r in counter)
        for time in product(range(4), repeat=len(counter)):
            self.prescribed.before[s, time] = {b: self.version_of(b) + (0 if time == now else choose.randint(0, 1))}
            self.prescribed.adds[s, time] = np.full(ELEMENTS, times + choose.choice((0, 0, 2)), np.int32)
        self.done[s] = np.array([choose.choice((0, 0, 1, 254, 255)) for _ in range(
            prod(n // c for n, c in zip(extents, cells, strict=True)))], np.uint8).reshape(
                [n // c for n, c in zip(extents, cells, strict=True)])  # fmt: skip
        if choose.random() < 0.5:
            self.ranks[s] = np.full(2 * ELEMENTS, choose.choice((-1, 0, 1, 2, 5)), np.int64)

    def spoil(self) -> None:
        """One thing is otherwise."""
        choose = self.choose
        which = choose.randrange(7)
        if which == 0:
            row = choose.randrange(len(self.values))
            starts = {a.row for a in self.accesses}
            by = choose.choice((-1, 1, 2) if row in starts else (-1, 1, 2, -5, 40, -12 * self.accesses[0].group))
            self.values[row] += by * self.multiple.get(row, 1)
        elif which == 1:
            self.space.token[choose.randrange(40)] += 1
        elif which == 2:
            self.space.version[choose.randrange(40)] += 1
        elif which in (3, 4):
            self.space.current[choose.randrange(2 * ELEMENTS)] += choose.choice((-1, 1))
        elif which == 5:
            s = choose.choice((0, 1, 7))
            for v in self.prescribed.before.get((s, self.time(s)), {}).values():
                v[choose.choice((choose.randrange(ELEMENTS), slice(None)))] += choose.choice((-1, 1))
        elif self.prescribed.adds:
            choose.choice([*self.prescribed.adds.values()])[choose.randrange(ELEMENTS)] -= 1

    def state(self) -> list[Any]:
        arrays = [self.space.token, self.space.version, self.space.current, *self.done.values()]
        return [a.tolist() for a in arrays] + [sorted((k, a.tolist()) for k, a in self.ranks.items())]


def reference(x: World, want: Findings) -> None:
    """What a step does, element by element."""
    sp, v, found = x.space, x.values, []
    for a in x.accesses:
        name, start, byte = a.operand.name, v[a.row], v[a.row + 1]
        for d, last in enumerate(a.limits):
            at = v[a.row + 2 + d]
            if at < 0 or at > last:
                text = f"operand {name}: dimension {d} starts at {at} and leaves '{a.operand.tile.buffer}'"
                return want.add(7, "bounds", text, "step")
        places = [byte // a.group + int(k) for k in a.pattern.addr]
        if start % a.wide or byte % a.group or min(places) < 0 or max(places) >= a.region[1]:
            return want.add(7, "address", f"operand {name}: byte {byte} is outside its memory or slot", "step")
        if a.align and byte % a.align:
            want.add(9, "align", f"operand {name}: byte {byte} is no multiple of {a.align}", "step")
        elements = [start // a.wide + int(e) for e in a.pattern.elem]
        tokens = [start // a.wide * a.parts + int(t) for t in a.pattern.token]
        once = [start // a.wide + int(e) for e in a.pattern.unique]
        found.append((a, [*zip((a.region[0] + p for p in places), elements, tokens, strict=True)], once))
    for a, tokens, once in found:
        if a.reads and not readable(x, a, tokens, once, want):
            return None
    for (a, mine, _), (b, theirs, _) in product(found, found):
        if a is b or not a.writes:
            continue
        if b.writes and {e for _, e, _ in mine} & {e for _, e, _ in theirs}:
            text = f"operands {a.operand.name} and {b.operand.name} are written with the same elements"
            want.add(9, "alias", text, "step")
        one, two = ([(w, e) for w, e, _ in t] for t in (mine, theirs))
        here = (v[a.row] // a.wide, one[0][0]) == (v[b.row] // b.wide, two[0][0]) and [w for w, _ in one] == [
            w for w, _ in two]  # fmt: skip
        if {w for w, _ in one} & {w for w, _ in two} and not (
            here and (a.operand.name, b.operand.name) in x.pointwise):  # fmt: skip
            want.add(9, "alias", f"operands {a.operand.name} and {b.operand.name} overlap", "step")
    if carried_out(x, [once for *_, once in found], want):
        for a, tokens, _ in found:
            if a.writes:
                cells = {(w - a.region[0]) // x.cell for w, *_ in tokens} if x.cell else set()
                for k in range(min(cells), max(cells) + 1) if cells else ():
                    sp.token[a.region[0] + k * x.cell : a.region[0] + (k + 1) * x.cell] = -1
                for w, e, t in tokens:
                    sp.token[w], sp.version[w] = t, sp.current[e]
    return None


def readable(x: World, a: Access, tokens: list[tuple[int, int, int]], once: list[int], want: Findings) -> bool:
    sp, b = x.space, a.operand.tile.buffer
    for kind, text, bad in (
        ("absent", "does not lie there", lambda w, e, t: sp.token[w] != t),
        ("stale", "is out of date there", lambda w, e, t: sp.version[w] != sp.current[e]),
    ):
        wrong = [e for w, e, t in tokens if bad(w, e, t)]
        if wrong:
            at = (b, wrong[0] - sp.origin[b])
            want.add(8, kind, f"operand {a.operand.name}: element {at} of '{b}' {text}", "step")
            return False
    right = True
    for s in a.readers:
        says = x.prescribed.before.get((s, x.time(s)), {}).get(b)
        wrong = [e for e in once if says is not None and sp.current[e] != says[e - sp.origin[b]]]
        if wrong:
            e = wrong[0] - sp.origin[b]
            text = f"statement {s} reads '{b}'{(b, e)} after {sp.current[wrong[0]]} writes; the kernel says {says[e]}"
            want.add(5, "order", text, "step")
            right = False
    return right


def carried_out(x: World, elements: list[list[int]], want: Findings) -> bool:
    """Whether all statements were executed; what is written is written anyway."""
    sp, v = x.space, x.values
    for e in x.effects:
        boxes = [range(v[r], v[r] + n) for r, n in e.axes]
        if any(b.start < 0 or b.stop > full for b, full in zip(boxes, e.extents, strict=True)):
            want.add(1, "domain", f"statement {e.statement} is executed outside its domain", "step")
            return True
        a = x.accesses[e.accesses]
        b, once = a.operand.tile.buffer, elements[e.accesses]
        key = (e.statement, tuple(v[r] for r in e.outer))
        before, adds = x.prescribed.before[key][b], x.prescribed.adds[key]
        for el in once:
            at, now = el - sp.origin[b], sp.current[el]
            most = before[at] + adds[at] - e.times if e.accumulate else before[at]
            if not before[at] <= now <= most:
                text = f"statement {e.statement} writes '{b}'{(b, at)} after {now} writes; the kernel says {before[at]}"
                want.add(4 if e.accumulate else 5, "order", text, "step")
                break
        if e.ordered is not None:
            terms = sorted(rank(p, e) for p in product(*(range(v[r], v[r] + n) for r, n, _ in e.ordered)))
            seen = x.ranks.setdefault(e.statement, np.full(len(sp.current), -1, np.int64))
            if any(seen[el] >= terms[0] for el in once) or terms != [*range(terms[0], terms[-1] + 1)]:
                want.add(3, "reassociate", f"statement {e.statement} adds terms out of order", "step")
            seen[once] = terms[-1]
        for p in {tuple(i // c for i, c in zip(p, e.cells, strict=True)) for p in product(*boxes)}:
            x.done[e.statement][p] = min(255, int(x.done[e.statement][p]) + 1)
        sp.current[once] += e.times
    return True


def rank(point: tuple[int, ...], e: Effect) -> int:
    assert e.ordered is not None
    out = 0
    for i, (_, _, full) in zip(point, e.ordered, strict=True):
        out = out * full + i
    return out


@pytest.mark.parametrize("seed", range(6))
def test_steps(seed: int) -> None:
    """Right ones, and ones of which one or two things are otherwise."""
    said = Counter[str]()
    for n in range(250):
        one, two = (World(random.Random(f"{seed} {n}")) for _ in range(2))
        for x in (one, two):
            for _ in range(n % 3):
                x.spoil()
        assert one.state() == two.state()
        want = Findings()
        reference(two, want)
        issue: Any = "step"
        replay: Any = one
        forms = [Affine((), v) for v in one.values]
        Step(issue, forms, Shape(one.accesses, one.effects, one.pointwise)).run(replay, {})
        assert one.out.found == want.found
        assert one.state() == two.state()
        said.update({v.kind for v in want.found} or {""})
    kinds = {"bounds", "address", "align", "absent", "stale", "order", "alias", "domain", "reassociate"}
    assert said.keys() == kinds | {""}
