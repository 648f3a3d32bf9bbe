"""What the groups of a recurrent loop hand on in near memory, to one another and from step to step (SCH-10).

Each group by itself begins with nothing near and leaves nothing there. Such a pass over a step shows what one group
leaves and another one, or the next step, brings back unchanged. That stays where it is, if a step can be made that ends
with it in the place where it has begun: the loop's ``enter`` brings it, its ``exit`` sends it home.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import NamedTuple

from isam.approach.choice import NOTHING, Choice, Trace
from isam.ir.affine import Affine
from isam.ir.kernel import FAR
from isam.schedule.tree import Bound, Issue, Loop, Node, Seq, distinct
from isam.scheduler.conform import conform, leave
from isam.scheduler.dry import DryRun
from isam.scheduler.infeasible import NoSchedule
from isam.scheduler.lifetimes import Lifetimes
from isam.scheduler.parts import RecurrentLoop
from isam.scheduler.plan import Group
from isam.scheduler.recur import calls
from isam.scheduler.state import Copy, Entering, Key, MachineState, Since
from isam.scheduler.tiles import mentions

HANDED_ON = "handed on"
ROUNDS = 3  # attempts with less and less handed on from step to step
WORTH = 0.99  # of the calls of a loop that hands on nothing, which one that does may take
MOVES = 6  # that a tile takes at most to go home and come back
RunPart = Callable[[int, Collection[Key]], tuple[Key, ...]]  # runs a part of a step and says what was near at its end


class MadePart(NamedTuple):
    """A part of a step: what was near at its end, and what happened in it."""

    left: tuple[Key, ...]
    since: Since


class MadeStep(NamedTuple):
    """What was made of the parts: ``node`` is None where a step does not end as it has begun. ``state``: what is near
    then."""

    parts: list[MadePart]
    node: Node | None
    state: MachineState

    def entered(self) -> Iterator[Entering]:
        """What recurrent loops around the parts do for them before their first steps."""
        return (e for p in self.parts for e in p.since.entered)


def handed_on(groups: Sequence[Group], run: DryRun, part: RunPart, it: RecurrentLoop | None = None) -> Node:
    """``groups`` in a row, or the steps of a recurrent loop (``it``) that has them and nothing else, begun with nothing
    near: with what can be handed on, where that takes fewer calls and the Approach wants it. Without groups the steps
    of a loop are one part each."""
    return _Row(groups, run, part, it).made()


def wanted(trace: Trace, groups: Sequence[Group], taken: tuple[int, int], loop: str, behind: Sequence[int]) -> bool:
    """Whether the Approach wants groups to hand on, so many tiles ``behind`` each; ``taken``: calls without and with
    that."""
    if taken[1] >= WORTH * taken[0]:
        return False
    context = {"loop": loop, "nests": [[n.number for n in g.nests] for g in groups], "behind": [*behind]}
    return trace.choose(Choice("carry", (NOTHING, HANDED_ON), context, tuple(map(float, taken)))) == HANDED_ON


class _Row:
    def __init__(self, groups: Sequence[Group], run: DryRun, part: RunPart, it: RecurrentLoop | None):
        self.groups, self.it, self.run, self.part = groups, it, run, part
        self.data, self.scope = run.data, run.scope
        self.usual = 1 if it is None else it.trip

    def made(self) -> Node:
        made = self._best()
        assert made.node is not None, "what begins and ends with nothing near is always a step"
        self.data.state = made.state
        self.data.since.entered |= {e: None for e in made.entered() if e.loop is not self.it}
        return made.node

    def _best(self) -> MadeStep:
        plain = self._attempt([()] * max(1, len(self.groups)), {})
        held = _held(plain.parts, self.it and self.it.loop.axis.name) if self.groups else []
        taken = self._calls(plain)
        if self.usual * MOVES * sum(map(len, held)) <= (1 - WORTH) * taken:
            return plain
        try:
            with self.run.trace.comparing():
                better = self._handing_on(held)
        except NoSchedule:
            better = None
        loop = self.it.loop.axis.name if self.it else ""
        if better is not None and wanted(self.run.trace, self.groups, (taken, self._calls(better)), loop,
                                         [*map(len, held)]):  # fmt: skip
            return better
        return plain

    def _calls(self, made: MadeStep) -> int:
        return 0 if made.node is None else calls(made.node, self.usual)

    def _handing_on(self, held: Sequence[Collection[Key]]) -> MadeStep | None:
        """With as much handed on as survives."""
        carried: dict[Key, Copy] = {}
        if held[-1]:
            with self._anew(), self.scope.recording():
                self._step(held)
                carried = {k: c for k, c in self.data.state.copies.items() if k in held[-1]}
        for _ in range(ROUNDS):
            made = self._attempt(held, carried)
            if made.node is not None:
                return self._without_stores(made, made.node, held, carried)
            there = made.state.copies
            carried = {k: c for k, c in carried.items() if k in there and there[k].place == c.place}
            held = [*held[:-1], tuple(carried)]
        return None

    def _without_stores(self, made: MadeStep, node: Node, held: Sequence[Collection[Key]],
                        carried: dict[Key, Copy]) -> MadeStep:  # fmt: skip
        """Without sending home what is nowhere brought from there any more."""
        unread = frozenset(self._at_home(node, "out") - self._at_home(node, "in"))
        try:
            less = self._attempt(held, carried, unread) if unread else made
        except NoSchedule:
            return made
        return made if less.node is None or self._at_home(less.node, "in") & unread else less

    def _at_home(self, made: Node, role: str) -> set[str]:
        """The temporaries of the groups alone that are sent home (``out``) or brought from there (``in``)."""
        system, own = self.run.system, self.own
        issues = (n for n in distinct(made) if isinstance(n, Issue))
        return {o.tile.buffer for n in issues for o in n.operands
                if o.tile.buffer in own and o.place.base == o.tile.buffer
                and system.instructions[n.instruction].operand(o.name).role in (role, "inout")}  # fmt: skip

    @cached_property
    def own(self) -> set[str]:
        """Temporaries that nothing but the groups touches."""
        kernel = self.run.kernel
        mine = {s for g in self.groups for n in g.nests for s in n.mapping.statements}
        others = (s for n, s in enumerate(kernel.statements) if n not in mine)
        touched = {b for s in others for b in (s.dest.buffer, *(a.buffer for a in s.reads))}
        return {b.name for b in kernel.buffers if b.role == "temp"} - touched

    @contextmanager
    def _anew(self) -> Iterator[None]:
        """As it was before the loop, and is again behind this."""
        with self.data.attempt():
            self.data.lifetimes = Lifetimes()
            yield

    def _attempt(self, held: Sequence[Collection[Key]], carried: dict[Key, Copy],
                 unread: frozenset[str] = frozenset()) -> MadeStep:  # fmt: skip
        """What is made with what is ``held`` behind each part of a step, of which some is ``carried`` to the next;
        what is ``unread`` is not sent home."""
        with self._anew():
            self.data.unread = unread
            parts, node = self._attempted(held, carried)
            return MadeStep(parts, node, self.data.state)

    def _attempted(self, held: Sequence[Collection[Key]],
                   carried: dict[Key, Copy]) -> tuple[list[MadePart], Node | None]:  # fmt: skip
        data, scope, it = self.data, self.scope, self.it
        with scope.recording() as enter:
            conform(data, carried, fetch=True)
        for key, c in carried.items():
            if key not in data.state.copies:
                return [], None
            data.state.mark(key, c.dirty)
        begin = data.state.copy()
        with scope.recording() as body:
            parts = self._step(held)
            end = data.state.copies
            if any(k not in end or end[k].place != c.place for k, c in begin.copies.items()):
                return parts, None
            if conform(data, begin.copies, fetch=False):
                return parts, None
        if it is None:
            return parts, Seq(tuple(body))
        data.state, data.lifetimes = begin, Lifetimes()
        with scope.recording() as leaving:
            leave(data, {})
        axis = it.loop.axis
        bounds = (Bound(Affine()),), (Bound(axis.extent),)
        stays = (n for p in parts for e in p.since.entered if e.loop is it for n in e.nodes)
        first = Seq((*stays, *enter))
        return parts, Loop(axis.name, *bounds, 1, Seq(tuple(body)), first, exit=Seq(tuple(leaving)), axis=axis.name)

    def _step(self, held: Sequence[Collection[Key]]) -> list[MadePart]:
        """The parts of a step, from the present state on."""
        data, out = self.data, list[MadePart]()
        with self._variable():
            for n, keys in enumerate(held):
                data.since = Since()
                out.append(MadePart(self.part(n, keys), data.since))
        return out

    def _variable(self) -> AbstractContextManager[None]:
        """In a step of the loop, if there is one."""
        if self.it is None:
            return nullcontext()
        axis = self.it.loop.axis
        last = (axis.extent.const if axis.extent.is_constant else FAR) - 1
        return self.scope.variable(axis.name, Affine(), 1, (0, last))


def _held(parts: Sequence[MadePart], step: str | None) -> list[tuple[Key, ...]]:
    """Behind each part what it leaves that is brought back unchanged, by a part after it or, of a loop over ``step``,
    in the next step. Of that also what is written anew in this step: it need not go home before."""
    out: list[dict[Key, None]] = [{} for _ in parts]
    for n, part in enumerate(parts):
        for key in part.left:
            last = len(parts) - 1 if step is None or mentions(key[1], step) else len(parts) + n
            _hold(out, key, _until(parts, key, n, last, lambda since, k: k in since.fetched))
    every = {k: None for held in out for k in held}
    for n, part in enumerate(parts):
        for key in part.left:
            if key in every and key not in out[n]:
                written = _until(parts, key, n, len(parts) - 1, lambda since, k: since.writes(k[1]))
                _hold(out, key, written)
    return [tuple(held) for held in out]


def _until(parts: Sequence[MadePart], key: Key, n: int, last: int, found: Callable[[Since, Key], bool]) -> range:
    """The parts from ``n`` to before the one, the ``last`` at most, in which something is found, and none before it
    writes any of the tile; none where there is no such part."""
    for at in range(n, last):
        later = parts[(at + 1) % len(parts)].since
        if found(later, key):
            return range(n, at + 1)
        if not later.disjoint(key[1], {}):
            break
    return range(0)


def _hold(out: Sequence[dict[Key, None]], key: Key, behind: range) -> None:
    for at in behind:
        out[at % len(out)][key] = None
