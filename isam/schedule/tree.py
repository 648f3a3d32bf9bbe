"""What a schedule is: two trees of Loop, Seq and Issue with shared nodes (SCH-10).

Every address is affine in the loop variables in scope. A loop variable's value is an element offset
(``lo + step * t``), not a counter, so that sibling loops over disjoint parts of an axis share their bodies: equal nodes
are one object (the scheduler interns them), emitters make a function of a node used twice. (Blocks that lie at
multiples whatever a line does are counted: their loops have bounds with a divisor.)
The tree is self-describing: a checker can tell from it alone what lies where and which statement instances are
executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.once import once
from isam.schedule.literals import Dtypes
from isam.system.graph import System


@dataclass(frozen=True, slots=True)
class Place:
    """Where a tile lies: ``base`` plus ``offset`` bytes in ``memory``, one byte stride per *buffer* dimension.

    ``base`` is an argument's name or a workspace slot's name in memories with named bases (home and workspace), and ''
    in a memory with explicit addresses. In a memory with cells, ``cell`` is the first cell and ``offset`` is within it.
    Element at buffer index ``start + d`` lies at ``offset + sum(strides[i] * d[i])``: ``offset`` is that of the tile's
    first element.
    """

    memory: str
    base: str
    offset: Affine
    strides: tuple[int, ...]
    cell: int | None = None


class Tile(NamedTuple):
    """A box of a buffer: ``start`` per dimension (affine in loop variables), ``shape`` elements, ``steps`` between.

    A tuple underneath, as :class:`Affine` is: a dry run looks tens of thousands of them up. Nothing but the fields may
    be used of that.
    """

    buffer: str
    start: tuple[Affine, ...]
    shape: tuple[int, ...]
    steps: tuple[int, ...]

    def __str__(self) -> str:
        return _shown(self)


@lru_cache(1 << 12)  # decisions are recorded with the tiles that they are about, which are the same again and again
def _shown(tile: Tile) -> str:
    def one(s: Affine, n: int, k: int) -> str:
        return str(s) if n == 1 else f"{s}:+{n}" + (f":{k}" if k != 1 else "")

    return f"{tile.buffer}[{', '.join(one(*t) for t in zip(tile.start, tile.shape, tile.steps, strict=True))}]"


@dataclass(frozen=True, slots=True)
class Operand:
    """An instruction operand bound to a tile at a place. ``dims``: the buffer dimension that plays each operand
    dimension; ``None`` for a size-1 operand dimension that no buffer dimension plays."""

    name: str
    tile: Tile
    place: Place
    dims: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """Before a call starts, ``stream`` has finished every call that stands before it in the tree's order, but for the
    last ``lag`` of them. A unit is a stream: it starts its calls in the tree's order (SCH-8). The units of a cluster
    are one, which has its name: its calls are steps, and what is joined to a call stands in the same one.

    A unit with replicas is a stream per instance. A call on an instance waits for the streams of that instance,
    counting the calls given to it; ``every``: for those of all instances, all of their calls but for those from an
    outermost dealt loop on: with ``lag`` 0 the one that the call itself stands in, with 1 the one before that, and so
    on. A call that stands in none waits for all of them (``lag`` 0)."""

    stream: str
    lag: int
    every: bool = False


LINES = 64  # that a prefetch is for, at most


class Prefetch(NamedTuple):
    """A cached ``memory`` is asked for what lies ``ahead`` bytes behind what a move moves, in terms of the loops around
    it: for so many ``lines``, ``apart`` bytes from one to the next (0: there is one). A tuple, as a tile is."""

    ahead: Affine
    memory: str
    lines: int = 1
    apart: int = 0


@dataclass(frozen=True, slots=True)
class Issue:
    """One instruction call on a unit. ``sizes``: values of the instruction's size symbols. ``after``: its waits.

    ``nest`` indexes ``Schedule.nests`` and ``point`` gives the start of each of that nest's axes (affine in loop
    variables); the call covers, for a mapped axis, as many elements as the size it plays. Moves have ``nest`` None, and
    so has what only sets registers: that has no operands.
    ``joined``: in one step with the call before it in the same sequence: of a cluster, on another member (SYS-4); or
    on the same unit, by the command that carries out that one (a burst).
    ``prefetch``: what a cache is asked for with a move; nothing depends on it but time.
    """

    unit: str
    instruction: str
    sizes: tuple[tuple[str, int], ...]
    operands: tuple[Operand, ...]
    nest: int | None = None
    point: tuple[tuple[str, Affine], ...] = ()
    after: tuple[Wait, ...] = ()
    joined: bool = False
    prefetch: Prefetch | None = None

    def waiting(self, after: tuple[Wait, ...]) -> Issue:
        """The same call with other waits."""
        return Issue(self.unit, self.instruction, self.sizes, self.operands, self.nest, self.point, after, self.joined,
                     self.prefetch)  # fmt: skip

    @property
    def is_move(self) -> bool:
        return self.nest is None and bool(self.operands)

    @property
    def configures(self) -> bool:
        """It sets configuration registers and touches no data (SYS-5)."""
        return self.nest is None and not self.operands


@dataclass(frozen=True, slots=True)
class Seq:
    """Children one after the other."""

    children: tuple[Node, ...] = ()


class Bound(NamedTuple):
    """``ceil(expr / div)`` in a lower bound, ``floor(expr / div)`` in an upper one. A tuple, as a tile is."""

    expr: Affine
    div: int = 1


@dataclass(frozen=True, slots=True)
class Deal:
    """Iterations of a loop are dealt out to the instances of a replicated group: iteration ``t`` (from 0) runs on
    instance ``first + stride * t``, plus what loops around it that are dealt to the same group add."""

    group: str
    first: int = 0
    stride: int = 1


class Serpentine(NamedTuple):
    """A loop goes through its iterations backwards where ``var // period`` is odd, ``var`` being the variable of a loop
    around it: what one sweep has left in a cache, the next one begins with."""

    var: str
    period: int

    def back(self, scope: Mapping[str, int]) -> bool:
        """Whether iterations go backwards. Raises ``KeyError`` where the loop around has no value."""
        return scope[self.var] // self.period % 2 == 1


@dataclass(frozen=True, slots=True)
class Loop:
    """``for var in range(max(lo), min(hi), step)``.

    Order of execution when it runs at least once: enter, first (or body), body ..., last (or body), exit. ``enter`` and
    ``exit`` run once, outside the variable's scope; with no iteration nothing runs, not even enter. ``first``/``last``
    are peeled bodies, present only where they differ; a loop that has one has a static trip of at least one for each
    peeled copy (so a trip of 1 has at most one of the two).

    ``deal``: iterations run side by side, each on an instance of its own: no two of them touch the same element of a
    shared memory where one writes it, and none finds anything in an instance's memories but what it has brought there,
    and in the instance's slots what an iteration on the same instance has left. Such a loop has a static trip, no
    peeled bodies, and nothing in ``enter`` and ``exit``. What is dealt to nobody runs on instance 0.

    ``serpentine``: every other time the iterations come in the opposite order. None of them finds anything that another
    one has left, and no two write one element of what is used after the loop. Such a loop has a trip known ahead and
    no peeled bodies, and nothing in it waits.
    """

    var: str
    lo: tuple[Bound, ...]
    hi: tuple[Bound, ...]
    step: int
    body: Node
    enter: Node = Seq()
    first: Node | None = None
    last: Node | None = None
    exit: Node = Seq()
    axis: str = ""  # the kernel axis it cuts, or the buffer that it moves, for printing
    deal: Deal | None = None
    serpentine: Serpentine | None = None

    @property
    def static(self) -> tuple[int, int] | None:
        """``(lo, hi)`` when both are numbers."""
        if all(b.expr.is_constant for b in self.lo + self.hi):
            return max(-(-b.expr.const // b.div) for b in self.lo), min(b.expr.const // b.div for b in self.hi)
        return None

    def values(self, scope: Mapping[str, int]) -> range:
        """The values of the variable in order of execution, given those of the variables and sizes around the loop.
        Raises ``KeyError``."""
        low = max(-(-b.expr.evaluate(scope) // b.div) for b in self.lo)
        high = min(b.expr.evaluate(scope) // b.div for b in self.hi)
        values = range(low, high, self.step)
        return values[::-1] if self.serpentine is not None and self.serpentine.back(scope) else values

    @property
    def trip(self) -> int | None:
        """Number of iterations when known ahead (also when only the origin is symbolic)."""
        if len(self.lo) == len(self.hi) == 1 and self.lo[0].div == self.hi[0].div == 1:
            begin, end = self.lo[0].expr, self.hi[0].expr
            return max(0, -(-(end.const - begin.const) // self.step)) if begin.terms == end.terms else None
        s = self.static
        return None if s is None else max(0, -(-(s[1] - s[0]) // self.step))


Node = Seq | Loop | Issue


@dataclass(frozen=True, slots=True)
class Slot:
    """Workspace: ``bytes`` at a multiple of ``align`` in ``memory``. ``bound`` True: filled once when constants are
    bound, and kept. ``literal``: a constant scalar that is there from the start.

    In a memory with explicit addresses slots lie at its end, and nothing without a base lies there. In one that every
    instance of a replica has for itself, each has a slot of its own, which keeps what it holds from one dealt loop to
    the next."""

    name: str
    memory: str
    bytes: int
    align: int = 64
    bound: bool = False
    dtype: str = ""
    literal: float | int | bool | None = None


@dataclass(frozen=True, slots=True)
class Nest:
    """A piece of the cover as the schedule executes it: ``mapping`` is an index into ``cover.mappings``; ``axes`` all
    axes of its domain with their extents (a number, or a size symbol for a run-time trip)."""

    mapping: int
    axes: tuple[tuple[str, Affine], ...]


@dataclass(frozen=True)
class Schedule:
    """``bind`` runs once when constants are bound (packing weights), ``call`` runs per call.

    ``homes``: for every buffer with an address of its own, in home memory or a slot near, its place as a whole
    (``offset`` 0). Argument strides are those of a C-contiguous array of the kernel's shape.
    """

    kernel: Kernel
    system: System
    cover: Cover
    nests: tuple[Nest, ...]
    bind: Node
    call: Node
    workspace: tuple[Slot, ...]
    homes: dict[str, Place] = field(default_factory=dict)
    trace: object | None = field(default=None, compare=False)

    def dtype(self, buffer: str) -> str:
        """The element type of a buffer of the kernel, or of a literal (named ``#dtype:value``)."""
        return self._dtypes[buffer]

    @cached_property
    def _dtypes(self) -> Dtypes:
        return Dtypes(self.kernel)

    @cached_property
    def panels(self) -> dict[str, int]:
        """Slots with what was laid out anew, no literals and no buffers of the kernel: their bytes."""
        known = {b.name for b in self.kernel.buffers}
        return {s.name: s.bytes for s in self.workspace if s.literal is None and s.name not in known}

    @once
    def called(self) -> frozenset[str]:
        """The instructions that are called, moves included."""
        nodes = (n for tree in (self.bind, self.call) for n in distinct(tree))
        return frozenset(n.instruction for n in nodes if isinstance(n, Issue))

    @once
    def in_turn(self) -> bool:
        """Whether calls need to wait for nothing: one stream alone, of hardware that waits for operands by itself."""
        nodes = [n for tree in (self.bind, self.call) for n in distinct(tree)]
        dealt = any(isinstance(n, Loop) and n.deal is not None for n in nodes)
        units = {n.unit for n in nodes if isinstance(n, Issue)}
        resolved = self.system.backend == "llvm" or all(self.system.units[u].hazards == "resolved" for u in units)
        return not dealt and len({self.system.stream_of(u) for u in units}) < 2 and resolved

    @once
    def named(self) -> frozenset[str]:
        """The machine's memories with named cells (``System.named``), where one unit is given all calls, in the order
        of the tree; else none."""
        units = {n.unit for n in distinct(self.call) if isinstance(n, Issue)}
        return self.system.named if len(units) < 2 else frozenset()

    def __str__(self) -> str:
        from isam.schedule.text import print_schedule

        return print_schedule(self)


def children(node: Node) -> tuple[Node, ...]:
    """Direct parts of a node in order of execution."""
    if isinstance(node, Seq):
        return node.children
    if isinstance(node, Loop):
        parts = (node.enter, node.first, node.body, node.last, node.exit)
        return tuple(p for p in parts if p is not None)
    return ()


def distinct(node: Node) -> Iterator[Node]:
    """Every distinct node once, parents first (shared nodes are one object)."""
    seen: set[int] = set()
    stack = [node]
    while stack:
        n = stack.pop()
        if id(n) in seen:
            continue
        seen.add(id(n))
        yield n
        if not isinstance(n, Issue):  # most are
            stack.extend(reversed(children(n)))


def leaves(node: Node) -> tuple[Node, ...]:
    """Parts of a node that are no sequences, in order."""
    if isinstance(node, Seq):
        return tuple(p for c in node.children for p in leaves(c))
    return (node,)


def mapped(node: Node, change: Callable[[Node], Node]) -> Node:
    """A node with its parts changed; itself where none is."""
    if isinstance(node, Seq):
        parts = tuple(change(c) for c in node.children)
        return node if all(a is b for a, b in zip(parts, node.children, strict=True)) else Seq(parts)
    if isinstance(node, Loop):
        old = {n: p for n in ("enter", "first", "body", "last", "exit") if (p := getattr(node, n)) is not None}
        new = {n: change(p) for n, p in old.items()}
        return node if all(new[n] is old[n] for n in old) else replace(node, **new)
    return node
