"""What a complete region must satisfy before it is one instruction called block by block (MAP-3, IR-5).

The kernel runs each statement over its whole domain; the instruction runs all of them on one block. That is the same
when blocks do not meddle with each other: for every two accesses of one buffer, one of them a write, that touch the
same element, the axes along which blocks are cut must have the same value; and all accesses of one operand must move on
together from block to block, because a call gets one block of it. An axis for which this holds is *cut* freely; a
mapped axis for which it does not must be taken whole by one call; an outer one makes the mapping illegal.
"""

from __future__ import annotations

from functools import lru_cache

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.condition import Condition
from isam.ir.kernel import Domain
from isam.ir.mismatch import Mismatch
from isam.mapper.admissible import admissible
from isam.mapper.dataflow import Form, Node
from isam.mapper.extend import Extension, Pair

Before = tuple[set[str], set[str]]  # buffers written, buffers read
Term = tuple[tuple[tuple[int, int], ...], Affine]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A legal region: instruction axes one call takes whole, conditions on mapped axes (over region axes) and
    on open sizes."""

    whole: frozenset[int]
    guards: tuple[Term, ...]
    conditions: tuple[Condition, ...] = ()


@dataclass(frozen=True, slots=True)
class _Touch:
    pair: Pair
    operand: str
    form: Form
    writes: bool

    def column(self, k: int) -> tuple[tuple[int, int], ...]:
        """How far the access moves along which dimensions when the axis goes one further."""
        return next((self.form.cols[a] for a, other in enumerate(self.pair.classes) if other == k), ())

    def row(self, r: int) -> Term:
        terms = tuple(sorted((self.pair.classes[a], c) for a, c in self.form.rows[r]))
        return terms, self.form.rests[r]


def judge(state: Extension, *, sized: bool) -> Verdict | Mismatch:
    """The verdict on the complete assignment that ``state`` holds. ``sized``: extents may forbid a whole axis."""
    pairs = [state.pairs[i] for i in sorted(state.pairs)]
    for check in (_escaping, _order):  # a mismatch is falsy
        problem = check(state, pairs)
        if problem is not None:
            return problem
    stuck = _stuck(state, pairs)
    if isinstance(stuck, Mismatch):
        return stuck
    owner = {k: c for c, k in enumerate(state.axes)}
    for k in sorted(stuck):
        if k not in owner:
            return _outer(state, k, stuck[k])
    conditions = _conditions(state, pairs)
    if isinstance(conditions, Mismatch):
        return conditions
    asked, guards = conditions
    rigid = asked | {owner[k] for k in stuck}
    fixed = _fixed(state, pairs, rigid if sized else frozenset())
    if isinstance(fixed, Mismatch):
        return fixed
    whole = rigid | fixed
    ragged = _ragged(state, guards, whole, asked | fixed, pairs)
    if ragged is not None:
        return ragged
    if not sized:
        return Verdict(whole, guards)
    guarded = frozenset(k for terms, _ in guards for k, _ in terms)
    held = admissible(state, whole, guarded, pairs)
    if isinstance(held, Mismatch) and (more := _at_once(state, guards) - whole):
        again = admissible(state, whole | more, guarded, pairs)
        if not isinstance(again, Mismatch):
            return Verdict(whole | more, guards, again)
    return held if isinstance(held, Mismatch) else Verdict(whole, guards, held)


def _at_once(state: Extension, guards: tuple[Term, ...]) -> frozenset[int]:
    """Axes of one size that has one value at which a call takes all of each. No condition leaves out steps of them."""
    left = {k for terms, _ in guards for k, _ in terms}
    out: set[int] = set()
    for name in {e.names[0] for e in state.pattern.extents if len(e.names) == 1}:
        mine = [(c, e) for c, e in enumerate(state.pattern.extents) if e.names == (name,)]
        (first, one), *others = mine
        alike = all(_one_value(state, first, one, c, e) for c, e in others)
        if others and alike and all(state.axes[c] not in left for c, _ in mine):
            out |= {c for c, _ in mine}
    return frozenset(out)


def _one_value(state: Extension, c: int, one: Affine, other: int, e: Affine) -> bool:
    """Whether the kernel's extents of two axes of one size have it in common."""
    (_, times), (_, by) = one.terms[0], e.terms[0]
    return (state.classes[state.axes[c]] - one.const) * by == (state.classes[state.axes[other]] - e.const) * times


def _ragged(
    state: Extension, guards: tuple[Term, ...], whole: frozenset[int], rigid: frozenset[int], pairs: list[Pair]
) -> Mismatch | None:
    """A condition under which no call could take all of an axis at once: it ties two such axes, so that what it leaves
    is no box; or it leaves out the first steps, so that the call would begin elsewhere; or the instruction computes
    with the axis's size."""
    for terms, _ in guards:
        tied = {c: n for c, k in enumerate(state.axes) for other, n in terms if c in whole and k == other}
        if len(tied) > 1 or rigid & tied.keys() or any(n > 0 for n in tied.values()):
            names = " and ".join(state.pattern.axis_names[c] for c in tied)
            axes = " and ".join(state.class_name(state.axes[c]) for c in tied)
            return state._mismatch(
                "domain", f"a condition on {axes} in {state.has(pairs[0].node.statement)}",
                f"all of {names} in one call", pairs[0].node, pairs[0].plays, relation="guard")  # fmt: skip
    return None


def _fixed(state: Extension, pairs: list[Pair], rigid: frozenset[int]) -> frozenset[int] | Mismatch:
    """Axes whose size the instruction computes with (``A[N - 1 - i]``), or that one of the ``rigid`` axes, which calls
    take whole, has as well: whole, and one value per size."""
    sizes = state.sizes()
    out: set[int] = set()
    for c, e in enumerate(state.pattern.extents):
        for name in e.names:
            if name in state.pattern.fixing:
                out.add(c)
                if e.substitute(sizes) != state.classes[state.axes[c]]:
                    return state.unsized(pairs[0], name)
    unknown = state.pattern.fixing - sizes.keys()
    if unknown:
        return state.unsized(pairs[0], min(unknown))
    for c in rigid:
        one = state.pattern.extents[c]
        for other, e in enumerate(state.pattern.extents):
            if other != c and len(e.names) == 1 and e.names == one.names:
                out.add(other)
                if not _one_value(state, c, one, other, e):
                    return state.unsized(pairs[0], one.names[0])
    return frozenset(out)


def _stuck(state: Extension, pairs: list[Pair]) -> dict[int, Pair] | Mismatch:
    """The region's axes along which it cannot be cut, each with a statement that would go wrong."""
    inside = {b for t, b in state.buffers.items() if t in state.pattern.temps and isinstance(b, str)}
    contracted = {b for t, b in state.buffers.items() if t in state.pattern.loose and isinstance(b, str)}
    every = set(range(len(state.classes)))
    out = _missing(pairs, inside, every)
    touches = [
        _Touch(p, w.buffer, h, n == 0)
        for p in pairs
        for n, (w, h) in enumerate(p.forms)
        if isinstance(w, Form) and isinstance(h, Form) and h.buffer not in contracted
    ]
    for i, one in enumerate(touches):
        for two in touches[:i]:
            if one.form.buffer == two.form.buffer and (one.writes or two.writes):
                kept = _agreeing(one, two, every)
                problem = _aliasing(state, two, one, kept)
                if problem is not None:
                    return problem
                for k in every - kept:
                    out.setdefault(k, one.pair)
            if one.operand == two.operand:  # A[i, j] and A[j, i]: the next block is another one for each
                for k in every:
                    if one.column(k) != two.column(k):
                        out.setdefault(k, one.pair)
    for k, p in _summed(pairs, inside).items():
        out.setdefault(k, p)
    return out


def _escaping(state: Extension, pairs: list[Pair]) -> Mismatch | None:
    """A temporary that plays an operand too: a call never writes it where others would read it. (That no statement
    outside the region uses it is seen when it is bound.)"""
    temps = state.pattern.temps
    parts = {b for o, b in state.buffers.items() if o not in temps}
    for p in pairs:
        for w, h in p.forms:
            if not (isinstance(w, Form) and isinstance(h, Form)):
                continue
            if w.buffer in temps and h.buffer in parts:
                return state.escapes(p, w, h)
    return None


def _order(state: Extension, pairs: list[Pair]) -> Mismatch | None:
    """Joined statements in the instruction's order, and nothing in between that both needs and feeds the region."""
    for i, one in enumerate(pairs):
        for two in pairs[:i]:
            if two.node.index > one.node.index and _conflict(two.plays, one.plays):
                return state._mismatch(
                    "domain", f"{state.has(one.node.statement)} before {state.has(two.node.statement)}",
                    f"{state.needs(two.plays.statement)} first", one.node, one.plays, relation="order")  # fmt: skip
    region = {p.node.index for p in pairs}
    first, last = min(region), max(region)
    if last - first + 1 == len(region):
        return None
    region_before: Before = (set(), set())
    between_before: Before = (set(), set())
    culprit: Node | None = None
    for node in state.flow.nodes[first : last + 1]:
        reads, dest = node.reads(), node.dest.buffer
        if node.index in region:
            if culprit and _after(between_before, reads, dest):
                return state._mismatch(
                    "domain", f"{state.has(culprit.statement)} between the statements of the region, which needs one "
                    "and feeds another", "statements that can run together", culprit, pairs[0].plays,
                    relation="between",
                )  # fmt: skip
            before = region_before
        elif _after(region_before, reads, dest) or _after(between_before, reads, dest):
            culprit = culprit or node
            before = between_before
        else:
            continue
        before[0].add(dest)
        before[1].update(reads)
    return None


def _after(before: Before, reads: set[str], dest: str) -> bool:
    """A statement depends on earlier ones that wrote and read the given buffers."""
    written, read = before
    return bool(reads & written) or dest in written or dest in read


def _conflict(a: Node, b: Node) -> bool:
    both = a.statement.accumulate and b.statement.accumulate and a.statement.op == b.statement.op
    if both and a.dest.buffer == b.dest.buffer:  # they commute, unless one of them also reads what they sum into
        return a.dest.buffer in {s.buffer for n in (a, b) for s in n.sources if isinstance(s, Form)}
    return b.dest.buffer in a.reads() | {a.dest.buffer} or a.dest.buffer in b.reads()


def _aliasing(state: Extension, one: _Touch, two: _Touch, kept: set[int]) -> Mismatch | None:
    """Two operands that are one kernel buffer: the same element at the same point, and no read after a write."""
    if one.operand == two.operand:
        return None
    node, plays = two.pair.node, two.pair.plays
    if one.writes and two.writes:
        what = "both write it"
    elif one.writes and one.pair.node.index < two.pair.node.index:
        what = f"it is written as {one.operand} before it is read as {two.operand}"
    elif two.writes and two.pair.node.index < one.pair.node.index:
        what = f"it is written as {two.operand} before it is read as {one.operand}"
    elif missing := [state.class_name(k) for k in range(len(state.classes)) if k not in kept]:
        what = f"{one.form.access} and {two.form.access} overlap across axis {missing[0]}"
    else:
        return None
    return state._mismatch(
        "aliasing", f"{one.form.buffer} as {one.operand} and as {two.operand}: {what}",
        f"different arrays for {one.operand} and {two.operand}", node, plays, at=two.form.access,
        operand=two.operand, buffer=two.form.buffer,
    )  # fmt: skip


def _agreeing(one: _Touch, two: _Touch, every: set[int]) -> set[int]:
    """Region axes that have the same value wherever the two accesses touch the same element."""
    a, b = one.pair, two.pair
    if a is b and a.node.statement.accumulate and a.node.dest.access == one.form.access == two.form.access:
        return every  # an accumulation with itself, read as d = op(d, s)
    both = a.node.statement.accumulate and b.node.statement.accumulate and a.node.statement.op == b.node.statement.op
    if both and one.form.access == a.node.dest.access and two.form.access == b.node.dest.access:
        return set(a.classes) & set(b.classes)  # two accumulations of one kind commute
    equal = [one.row(r)[0] for r in range(one.form.rank) if one.row(r) == two.row(r)]
    if len(equal) == one.form.rank:
        for t in (one, two):
            if t.writes and not t.pair.node.statement.accumulate:
                return set(t.pair.classes)  # a plain assignment is injective (IR-8)
    if any(_apart(one.row(r), two.row(r)) for r in range(one.form.rank)):
        return every  # nowhere
    known: set[int] = set()
    grown = True
    while grown:
        grown = False
        for row in equal:
            left = [k for k, _ in row if k not in known]
            if len(left) == 1:
                known.add(left[0])
                grown = True
    return every if every - known and _nowhere(one, two) else known


def _nowhere(one: _Touch, two: _Touch) -> bool:
    """Whether the conditions of the statements keep the two accesses apart: ``a[i]`` and ``a[0]`` where ``i >= 1``."""
    first, second = one.pair.node.statement.domain, two.pair.node.statement.domain
    if not (first.where or second.where):
        return False
    return _apart_under(first, one.form.access.index, second, two.form.access.index)


@lru_cache(maxsize=256)
def _apart_under(first: Domain, one: tuple[Affine, ...], second: Domain, two: tuple[Affine, ...]) -> bool:
    """Whether two accesses have no element in common, whatever the sizes and the counters of loops around are."""
    from isam.ir.poly_domain import domain_set
    from isam.ir.relation import Region, Rel

    a, b = (Rel.affine(d.names, rows, Region.of(domain_set(d))).range() for d, rows in ((first, one), (second, two)))
    return a.apart(b)


def _apart(one: Term, two: Term) -> bool:
    """Whether two rows without region axes have different values always: ``j`` and ``j + 1``, where ``j`` counts a
    recurrent loop, and so stands still meanwhile."""
    return not one[0] and not two[0] and one[1].terms == two[1].terms and one[1].const != two[1].const


def _summed(pairs: list[Pair], inside: set[str]) -> dict[int, Pair]:
    """Axes along which a temporary of the region is summed up: cutting them would use it half done."""
    out: dict[int, Pair] = {}
    for p in pairs:
        if p.node.dest.buffer in inside:
            indexed = {p.classes[a] for row in p.node.dest.rows for a, _ in row}
            for k in set(p.classes) - indexed:
                out.setdefault(k, p)
    return out


def _missing(pairs: list[Pair], inside: set[str], every: set[int]) -> dict[int, Pair]:
    """Axes that a statement with a visible result lacks: cutting them would repeat it."""
    out: dict[int, Pair] = {}
    for p in pairs:
        if p.node.dest.buffer not in inside:
            for k in every - set(p.classes):
                out.setdefault(k, p)
    return out


def _outer(state: Extension, k: int, lacking: Pair) -> Mismatch:
    name = state.class_name(k)
    return state._mismatch(
        "domain",
        f"axis {name}, left over, over which {state.has(lacking.node.statement)} would be repeated or used half done",
        "that every axis left over runs over all statements of the region", lacking.node, lacking.plays, axis=name,
        relation="left-over",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Conditions:
    """A pair's conditions in terms of region axes: those the instruction makes itself, and the kernel's others."""

    asked: frozenset[Term]
    others: frozenset[Term]
    whole: frozenset[int]  # instruction axes that the asked ones fix


def _conditions_of(state: Extension, p: Pair) -> _Conditions | None:
    """None: the kernel lacks a condition of the instruction. One call then sees all of an axis that it speaks of."""
    have = {(tuple(sorted((p.classes[a], c) for a, c in terms)), rest) for terms, rest in p.node.where}
    sizes = state.sizes() if any(rest.terms for _, rest in p.plays.where) else {}
    asked: set[Term] = set()
    whole: set[int] = set()
    for terms, rest in p.plays.where:
        term = tuple(sorted((state.axes[c], n) for c, n in terms)), rest.substitute(sizes)
        if term not in have:
            return None
        asked.add(term)
        whole |= {c for c, _ in terms}
    return _Conditions(frozenset(asked), frozenset(have - asked), frozenset(whole))


def _conditions(state: Extension, pairs: list[Pair]) -> tuple[frozenset[int], tuple[Term, ...]] | Mismatch:
    """Axes that conditions of the instruction make whole, and the guards: conditions of the kernel on mapped axes.

    A condition of the instruction must be one of the kernel's, on the same axes and nothing else. The others
    must be the same for all statements with a visible result, and a temporary's at most those.
    """
    if not any(p.node.where or p.plays.where for p in pairs):
        return frozenset(), ()
    temps = {b for t, b in state.buffers.items() if t in state.pattern.temps}
    seen = [p for p in pairs if p.node.dest.buffer not in temps] or pairs[:1]
    found: dict[int, _Conditions] = {}
    for p in pairs:
        mine = _conditions_of(state, p)
        if mine is None:
            return state._mismatch("domain", f"{state.has(p.node.statement)} without that condition",
                                   f"the condition of {state.needs(p.plays.statement)}", p.node, p.plays,
                                   relation="instruction-where")  # fmt: skip
        found[p.plays.index] = mine
    full = found[seen[0].plays.index].others
    for p in pairs:
        mine = found[p.plays.index].others
        if mine - full or (p in seen and mine != full):
            lacking = (*_lacking(p, full - mine), *_lacking(seen[0], mine - full))
            return state._mismatch(
                "domain", f"other conditions in {state.has(p.node.statement)} than in "
                f"{state.has(seen[0].node.statement)}", "one domain for the whole region", p.node, p.plays,
                relation="conditions", conditions=lacking,
            )  # fmt: skip
    mapped = set(state.axes)
    guards = tuple(t for t in sorted(full, key=str) if any(k in mapped for k, _ in t[0]))
    return frozenset[int]().union(*(c.whole for c in found.values())), guards


def _lacking(p: Pair, terms: frozenset[Term]) -> tuple[tuple[int, Affine], ...]:
    """(statement, condition in its own axes) of conditions that the rest of the region has and this one could have."""
    names = {k: p.node.names[a] for a, k in enumerate(p.classes)}
    known = sorted((t for t in terms if all(k in names for k, _ in t[0])), key=str)
    return tuple((p.node.index, rest + Affine.from_terms([(names[k], c) for k, c in own])) for own, rest in known)

