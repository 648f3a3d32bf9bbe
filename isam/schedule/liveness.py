"""Which registers a part of a schedule reads before it writes them, writes for certain, and may write."""

from __future__ import annotations

from isam.classes import dataclass
from isam.ir.kernel import Buffer
from isam.schedule.tree import Issue, Loop, Node, Operand, Schedule, Seq, children, distinct
from isam.system.graph import COUNTED

Cell = tuple[str, int]  # memory, first cell
NOTHING: frozenset[Cell] = frozenset()


@dataclass(frozen=True, slots=True)
class Effect:
    """``exposed``: read before written; ``kills``: written whatever happens; ``writes``: may be written."""

    exposed: frozenset[Cell] = NOTHING
    kills: frozenset[Cell] = NOTHING
    writes: frozenset[Cell] = NOTHING

    def then(self, later: Effect, certain: bool = True) -> Effect:
        """This, then ``later`` (which may not run at all when not ``certain``)."""
        return Effect(self.exposed | (later.exposed - self.kills), self.kills | (later.kills if certain else NOTHING),
                      self.writes | later.writes)  # fmt: skip

    def before(self, live: frozenset[Cell]) -> frozenset[Cell]:
        """Cells whose value matters before this runs, when those in ``live`` matter after it."""
        return self.exposed | (live - self.kills)


class Flow:
    """Effects of the nodes of one schedule, each distinct node looked at once."""

    def __init__(self, schedule: Schedule):
        self.schedule = schedule
        self._effects: dict[int, Effect] = {}
        self._formals: dict[tuple[str, str], Buffer] = {}
        self._keep: list[Node] = []  # ids stay valid while their nodes live

    def cell(self, o: Operand) -> Cell | None:
        """The cell that holds the operand's value, or None for an operand in addressed memory."""
        memory = self.schedule.system.memories[o.place.memory]
        return (memory.name, o.place.cell or 0) if memory.kind == COUNTED else None

    def formal(self, issue: Issue, o: Operand) -> Buffer:
        key = issue.instruction, o.name
        known = self._formals.get(key)
        if known is None:
            known = self._formals[key] = self.schedule.system.instructions[key[0]].operand(o.name)
        return known

    def effect(self, node: Node) -> Effect:
        known = self._effects.get(id(node))
        if known is None:
            known = self._issue(node) if isinstance(node, Issue) else self._parts(node)
            self._effects[id(node)] = known
            self._keep.append(node)
        return known

    def _issue(self, issue: Issue) -> Effect:
        reads: set[Cell] = set()
        writes: set[Cell] = set()
        for o in issue.operands:
            cell = self.cell(o)
            if cell is None:
                continue
            role = self.formal(issue, o).role
            if role != "out":
                reads.add(cell)
            if role in ("out", "inout"):
                writes.add(cell)
        return Effect(frozenset(reads), frozenset(writes), frozenset(writes))

    def _parts(self, node: Seq | Loop) -> Effect:
        if isinstance(node, Seq):
            return self._sequence(node.children)
        trip = node.trip
        peeled = (node.first is not None) + (node.last is not None)
        parts = [node.enter]
        if node.first is not None:
            parts.append(node.first)
        if trip is None or trip > peeled:
            parts.append(node.body)
        if node.last is not None:
            parts.append(node.last)
        whole = self._sequence((*parts, node.exit))
        return Effect(whole.exposed, NOTHING, whole.writes) if not trip else whole

    def _sequence(self, parts: tuple[Node, ...]) -> Effect:
        exposed: set[Cell] = set()
        kills: set[Cell] = set()
        writes: set[Cell] = set()
        for p in parts:
            e = self.effect(p)
            exposed |= e.exposed - kills
            kills |= e.kills
            writes |= e.writes
        return Effect(frozenset(exposed), frozenset(kills), frozenset(writes))


def references(*roots: Node) -> dict[int, int]:
    """How many places of the trees refer to each node (by identity)."""
    count: dict[int, int] = {}
    for root in roots:
        count[id(root)] = count.get(id(root), 0) + 1
        for n in distinct(root):
            for c in children(n):
                count[id(c)] = count.get(id(c), 0) + 1
    return count


def weight(node: Node, limit: int) -> int:
    """Number of distinct issues below a node, counted up to ``limit``."""
    n = 0
    for d in distinct(node):
        n += isinstance(d, Issue)
        if n >= limit:
            break
    return n
