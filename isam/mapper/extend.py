"""The search (MAP-4): extend statement, buffer, axis and dimension by one pair, check at once, cut on contradiction.

Statements of the instruction are taken in the pattern's order. For each: candidate statements of the kernel (from the
readers and writers of a buffer already paired, else by operation), then its buffers, then the axes that follow from
the dataflow, then the remaining axes (fewest candidates first), then the rows. Depth counts agreed pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from functools import partial
from typing import Any

from isam.ir.affine import Affine
from isam.ir.dtype import ANY
from isam.ir.kernel import Kernel, Literal
from isam.ir.mismatch import Mismatch
from isam.mapper.contradiction import Contradictions
from isam.mapper.dataflow import Form, Node, Pattern, View, flow_of
from isam.mapper.linking import unify
from isam.mapper.pair import ANYWAY, Blame, Pair, joined
from isam.mapper.report import Reporter
from isam.mapper.rows import Base, base_of, choices

Report = Callable[[], Mismatch]  # made only when it will be kept


def _unlike(plays: Node, node: Node) -> tuple[bool, ...]:
    """How far a statement is from the one needed, whatever its operation: for reports only."""
    s, t = plays.statement, node.statement
    arrays = any(isinstance(x, Form) for x in plays.sources) != any(isinstance(x, Form) for x in node.sources)
    return arrays, s.accumulate != t.accumulate, len(s.sources) != len(t.sources)


class Exhausted(Exception):
    """The budget ended the search."""


class Extension(Contradictions):
    """One search: the agreed pairs and how to extend them."""

    def __init__(self, kernel: Kernel, pattern: Pattern, reporter: Reporter, *, strided: bool, swap: bool, typed: bool,
                 region: frozenset[int] | None, budget: int):  # fmt: skip
        self.kernel, self.flow = kernel, flow_of(kernel)
        self.pattern = pattern
        self.reporter = reporter
        self.strided = strided
        self.swap = swap
        self.typed = typed
        self.region = region
        self.budget = budget
        self.pairs: dict[int, Pair] = {}  # by the instruction's statement
        self.taken: set[int] = set()
        self.buffers: dict[str, str | Literal] = {}
        self.axes: list[int] = [-1] * len(pattern.axis_names)
        self.classes: list[Affine] = []  # extent of each axis of the region
        self.class_origin: list[tuple[Node, int]] = []
        self.dims: dict[str, tuple[int, ...]] = {}
        self.steps: dict[str, tuple[int, ...]] = {}
        self.bases: dict[str, Base] = {}
        self.any: str | None = None
        self.fits: dict[tuple[Any, ...], dict[tuple[int, int], bool]] = {}  # the same two statements meet many times

    def run(self) -> Iterator[None]:
        """Pauses at every complete assignment; the state then holds it. Legality is the caller's."""
        yield from self._statement(0)

    @property
    def depth(self) -> int:
        axes = len(self.axes) - self.axes.count(-1)
        return len(self.pairs) + len(self.buffers) + axes + sum(map(len, self.dims.values()))

    def _tick(self) -> None:
        self.budget -= 1
        if self.budget < 0:
            raise Exhausted

    # statements ------------------------------------------------------------------------------------------------

    def _statement(self, at: int) -> Generator[None, None, Blame | None]:
        """The statements from this one on. Returns what is to blame where they cannot be joined."""
        if at == len(self.pattern.order):
            yield None
            return None
        blame: Blame | None = ANYWAY
        plays = self.pattern.flow.nodes[self.pattern.order[at]]
        for node, view in self._candidates(plays):
            for swapped, sources in view.orders(self.swap):
                self._tick()
                both = list(zip((plays.dest, *plays.sources), (view.dest, *sources), strict=True))
                pair = Pair(plays, node, swapped, both)
                pair.fits = self.fits.setdefault((plays.index, node.index, view.key, swapped), {})
                blame = joined(blame, (yield from self._pair(at, pair)))
        return blame

    def _candidates(self, plays: Node) -> list[tuple[Node, View]]:
        key = plays.views[0].key
        joined = self._joined(plays)
        if joined is None:
            found = self.flow.by_key.get(key, [])
            nodes = sorted(self.flow.nodes, key=lambda n: _unlike(plays, n)) if not found else ()
        else:
            nodes = joined
            found = [(n, v) for n in joined for v in n.views if v.key == key]
        out = []
        late: Node | None = None
        for node, view in found:
            if node.index in self.taken or (self.region is not None and node.index not in self.region):
                continue
            if self.pairs and node.loops != next(iter(self.pairs.values())).node.loops:
                continue
            if self._follows(plays, node):
                out.append((node, view))
            else:
                late = late or node
        if late is not None and not out:
            self.reporter.no(self.depth, lambda n=late: self.interrupted(plays, n))
        for node in nodes if not out else ():
            free = node.index not in self.taken and (self.region is None or node.index in self.region)
            if free and not any(v.key == key for v in node.views):
                self.reporter.no(self.depth, lambda n=node: self.operation(plays, n))
        if not out and self.pairs and all(n.index in self.taken for n in nodes):
            last = next(reversed(self.pairs.values())).node
            self.reporter.no(self.depth, lambda: self.absent(plays, last))
        return out

    def _follows(self, plays: Node, node: Node) -> bool:
        """What follows directly on a buffer in the instruction does so in the kernel, in the same order."""
        for other, buffer in self.pattern.steps[plays.index]:
            pair, played = self.pairs.get(other), self.buffers.get(buffer)
            if pair is None or not isinstance(played, str):
                continue
            a, b = pair.node.index, node.index
            if (a < b) != (other < plays.index):
                return False
            if not self.flow.undisturbed(played, a, b):
                return False
        return True

    def _joined(self, plays: Node) -> list[Node] | None:
        """The kernel statements that touch a buffer already paired as ``plays`` touches it; the shortest such list."""
        lists = []
        b = self.buffers.get(plays.dest.buffer)
        if isinstance(b, str):
            lists.append(self.flow.writers.get(b, []))
        for s in plays.sources:
            if isinstance(s, Form) and isinstance(b := self.buffers.get(s.buffer), str):
                lists.append(self.flow.readers.get(b, []))
        return min(lists, key=len) if lists else None

    def _pair(self, at: int, pair: Pair) -> Generator[None, None, Blame | None]:
        mark = dict(self.buffers), self.any
        blame: Blame | None = ANYWAY
        problem = self._bind(pair)
        if problem is not None:
            self.reporter.no(self.depth + 1, problem)
        else:
            self.pairs[pair.plays.index] = pair
            self.taken.add(pair.node.index)
            linked = False
            for classes in self._links(pair):
                linked = True
                pair.begin(classes)
                wrong = self._carry_over(pair)
                if wrong is None:
                    yield from self._assign(at, pair)
                blame = joined(blame, wrong)
            if not linked:
                self.reporter.no(self.depth, lambda: self.unlinked(pair))
            del self.pairs[pair.plays.index]
            self.taken.discard(pair.node.index)
        self.buffers, self.any = mark
        return blame

    # buffers ---------------------------------------------------------------------------------------------------

    def _bind(self, pair: Pair) -> Report | None:
        for want, have in pair.forms:
            if isinstance(want, Literal):
                if not (isinstance(have, Literal) and have.value == want.value):
                    return partial(self.literal, pair, want, have)
                continue
            bound = self.buffers.get(want.buffer)
            if isinstance(have, Literal):
                if want.rank or want.buffer in self.pattern.temps or (bound is not None and bound != have):
                    return partial(self.literal, pair, want, have)
                self.buffers[want.buffer] = have
                continue
            if bound is None:
                problem = self._new_buffer(pair, want, have)
                if problem is not None:
                    return problem
                self.buffers[want.buffer] = have.buffer
            elif bound != have.buffer:
                return partial(self.two_roles, pair, want, have, bound)
        return None

    def _new_buffer(self, pair: Pair, want: Form, have: Form) -> Report | None:
        buffer = self.kernel.buffer(have.buffer)
        if want.buffer in self.pattern.temps:
            if buffer.role != "temp" or have.buffer in self.buffers.values():
                return partial(self.escapes, pair, want, have)
            if len(self.flow.touching(have.buffer)) != len(self.pattern.flow.touching(want.buffer)):
                return partial(self.escapes, pair, want, have)
        if self.typed:
            need = self.pattern.body.buffer(want.buffer).dtype
            if need == ANY:
                need = self.any = self.any or buffer.dtype
            if need != buffer.dtype:
                return partial(self.dtype, pair, want, have, need, buffer.dtype)
        return None

    # axes ------------------------------------------------------------------------------------------------------

    def _links(self, pair: Pair) -> Iterator[list[int]]:
        """The axes of the new statement that the dataflow identifies with axes of the statements before."""
        known: list[Any] = []
        local: list[Any] = []
        for want, have in pair.forms:
            if not (isinstance(want, Form) and isinstance(have, Form)):
                continue
            for other in self.pairs.values():
                if other is pair:
                    continue
                for w, h in other.forms:
                    if isinstance(w, Form) and isinstance(h, Form) and w.buffer == want.buffer:
                        if (w.rows, w.rests) != (want.rows, want.rests):
                            continue
                        for row, rest in zip(h.rows, h.rests, strict=True):
                            known.append((tuple((other.classes[a], c) for a, c in row), rest))
                        local.extend(zip(have.rows, have.rests, strict=True))
        if not known:
            return iter((list(pair.classes),))
        return unify(known, local, self.classes, pair.node.extents, [-1] * pair.node.width)

    def _carry_over(self, pair: Pair) -> Blame | None:
        """Axes agreed before must fit the new statement too. Returns the first that does not."""
        owner = {k: c for c, k in enumerate(self.axes) if k >= 0}
        for a, k in enumerate(pair.classes):
            if k in owner:
                c = owner[k]
                if not self._agrees(pair, c, a):
                    self.reporter.no(self.depth, lambda a=a, c=c: self.column(pair, c, a))
                    return frozenset({(c, k)})
        return None

    def _agrees(self, pair: Pair, c: int, a: int) -> bool:
        """Column ``a`` of the kernel statement could be column ``c`` of the instruction's, access by access."""
        known = pair.fits.get((c, a))
        if known is None:
            known = pair.fits[c, a] = self._compared(pair, c, a)
        return known

    def _compared(self, pair: Pair, c: int, a: int) -> bool:
        for want, have in pair.forms:
            if not isinstance(want, Form):
                continue
            w = want.signs[c]
            h = have.signs[a] if isinstance(have, Form) else ()
            if w == h:
                continue
            if want.buffer in self.pattern.loose:
                if bool(w) != bool(h):
                    return False
            elif not (self.strided and len(w) == len(h)):
                return False
        return True

    def _assign(self, at: int, pair: Pair) -> Iterator[None]:
        here = pair.classes
        open_axes = [c for c in pair.plays.axes if self.axes[c] < 0 or self.axes[c] not in here]
        if not open_axes:
            yield from self._rows(at, pair)
            return
        options = []
        for c in open_axes:
            k = self.axes[c]
            free = [
                a
                for a in pair.node.axes
                if here[a] < 0 and self._agrees(pair, c, a) and (k < 0 or self.classes[k] == pair.node.extents[a])
            ]
            options.append((len(free), c, free))
        _, c, free = min(options)
        if not free:
            self.reporter.no(self.depth, lambda: self.no_axis(pair, c, options))
            return
        for a in free:
            if pair.hopeless(self.axes):
                return
            self._tick()
            yield from self._axis(at, pair, c, a)

    def _axis(self, at: int, pair: Pair, c: int, a: int) -> Iterator[None]:
        before = self.axes[c]
        fresh = before < 0
        if fresh:
            self.axes[c] = len(self.classes)
            self.classes.append(pair.node.extents[a])
            self.class_origin.append((pair.node, a))
        pair.classes[a] = self.axes[c]
        if self._patterns(pair):
            yield from self._assign(at, pair)
        else:
            self.reporter.no(self.depth, lambda: self.mixed_row(pair, c, a))
        pair.classes[a] = -1
        if fresh:
            self.axes[c] = -1
            self.classes.pop()
            self.class_origin.pop()

    def _patterns(self, pair: Pair) -> bool:
        """The rows restricted to the columns agreed so far must be the same rows, in any order (MAP-2 i, ii)."""
        owner = {k: c for c, k in enumerate(self.axes) if k >= 0}
        names = {a: owner[k] for a, k in enumerate(pair.classes) if k in owner}
        mine = {c: c for c in names.values()}
        for want, have in pair.forms:
            if isinstance(want, Form) and isinstance(have, Form) and want.buffer not in self.pattern.loose:
                need = self._restricted(want, mine)
                got = self._restricted(have, names)
                if need != got:
                    return False
        return True

    def _restricted(self, form: Form, names: dict[int, int]) -> list[Any]:
        """The rows that are not zero in the named columns, in an order of their own."""
        out = []
        for row in form.rows:
            if kept := [(names[a], 1 if self.strided else c) for a, c in row if a in names]:
                kept.sort()
                out.append(kept)
        out.sort()
        return out

    def sizes(self) -> dict[str, Affine]:
        """The instruction's sizes where a mapped axis gives them: what they are when that axis is taken whole."""
        out: dict[str, Affine] = {}
        for e, k in zip(self.pattern.extents, self.axes, strict=True):
            if k >= 0 and len(e.terms) == 1 and e.terms[0][1] == 1:
                out.setdefault(e.terms[0][0], self.classes[k] - e.const)
        return out

    # rows ------------------------------------------------------------------------------------------------------

    def _rows(self, at: int, pair: Pair) -> Iterator[None]:
        """All axes of the statement are agreed: name what is left, choose rows, go on to the next statement."""
        size = len(self.classes)
        kept = list(pair.classes)
        for a in pair.node.axes:
            if pair.classes[a] < 0:
                pair.classes[a] = len(self.classes)
                self.classes.append(pair.node.extents[a])
                self.class_origin.append((pair.node, a))
        owner = {k: c for c, k in enumerate(self.axes) if k >= 0}
        names = {a: owner[k] for a, k in enumerate(pair.classes) if k in owner}
        yield from self._operand(at, pair, 0, owner, names)
        pair.classes = kept
        del self.classes[size:]
        del self.class_origin[size:]

    def _operand(self, at: int, pair: Pair, n: int, owner: dict[int, int], names: dict[int, int]) -> Iterator[None]:
        """``owner``: per axis of the region the instruction's, ``names``: per axis of the statement."""
        while n < len(pair.forms):
            want, have = pair.forms[n]
            if isinstance(want, Form) and isinstance(have, Form) and want.buffer not in self.pattern.loose:
                break
            n += 1
        else:
            if pair.blame is None and not pair.hopeless(self.axes):
                blame = yield from self._statement(at + 1)
                if blame is not None:
                    pair.learn(blame)
            return
        name = want.buffer
        found = False
        own = want.rests
        if any(r.terms for r in own):
            sizes = self.sizes()
            for size in (n for r in own for n in r.names if n not in sizes):
                self.reporter.no(self.depth, lambda size=size: self.unsized(pair, size))
                return
            own = tuple([r.substitute(sizes) for r in own])
        for dims, steps in choices(want, have, names, self.strided):
            base = base_of(own, have, dims, steps, pair.classes, owner)
            if name in self.dims:
                if (dims, steps, base) == (self.dims[name], self.steps[name], self.bases[name]):
                    found = True
                    yield from self._operand(at, pair, n + 1, owner, names)
                continue
            found = True
            self.dims[name], self.steps[name], self.bases[name] = dims, steps, base
            yield from self._operand(at, pair, n + 1, owner, names)
            del self.dims[name], self.steps[name], self.bases[name]
        if not found:
            self.reporter.no(self.depth, lambda: self.no_rows(pair, want, have))
