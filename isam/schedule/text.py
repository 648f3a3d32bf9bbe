"""The drawing of a schedule: what runs once, what runs per call, what lies where.

A body that is used more than once is printed at its first use with a name (``b1:``) and referred to afterwards
(``b1 again``). Runs of unrolled calls are drawn as one line with the hull of their tiles; ``full=True`` prints every
call with its addresses. The text is for reading; the exact form is :mod:`isam.schedule.serial`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from isam.schedule.summary import Group, Run, groups, hull, place_range
from isam.schedule.tree import (
    Bound,
    Deal,
    Issue,
    Loop,
    Node,
    Operand,
    Place,
    Schedule,
    Seq,
    Serpentine,
    Tile,
    children,
    distinct,
)


def print_schedule(schedule: Schedule, full: bool = False) -> str:
    """The whole schedule as text. ``full``: every call on its own line, with addresses."""
    lines = [_headline(schedule)]
    lines += _table("nests", ("", "instruction", "operands", "axes"), list(_nest_rows(schedule)))
    lines += _table("homes", ("buffer", "dtype", "shape", "at", "strides"), list(_home_rows(schedule)))
    lines += _table("workspace", ("slot", "memory", "bytes", "align", "holds"), list(_slot_rows(schedule)))
    drawing = _Drawing(schedule, full)
    for title, tree in (("bind (once, when constants are bound)", schedule.bind), ("call", schedule.call)):
        if tree != Seq():
            lines += ["", title, *drawing.node(tree, 1)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def figures(node: Node) -> dict[str, int]:
    """Sizes of a tree: distinct nodes by kind, and ``bodies``: distinct innermost loop bodies."""
    kinds = Counter(type(n).__name__.lower() for n in distinct(node))
    inner: set[int] = set()
    for n in distinct(node):
        if isinstance(n, Loop):
            inner |= {id(b) for b in (n.first, n.body, n.last) if b is not None and not _has_loop(b)}
    return {"loops": kinds["loop"], "calls": kinds["issue"], "bodies": len(inner)}


def print_issue(issue: Issue) -> str:
    """One call on one line: unit, instruction, sizes, operands with tiles and addresses."""
    sizes = ", ".join(f"{n}={v}" for n, v in issue.sizes)
    operands = "  ".join(f"{o.name}={o.tile} @{print_place(o.place)}" for o in issue.operands)
    with_ = "with the one before: " if issue.joined else ""
    return f"{with_}{issue.instruction}{f'({sizes})' if sizes else ''} on {issue.unit}  {operands}{_prefetch(issue)}"


def _prefetch(issue: Issue) -> str:
    if (p := issue.prefetch) is None:
        return ""
    ahead = f"{p.ahead.const:+}" if p.ahead.is_constant else f"+({p.ahead})"
    lines = "" if p.lines == 1 else f"{p.lines} lines {p.apart} B apart from "
    return f", prefetch {lines}{ahead} B to {p.memory}"


def print_serpentine(serpentine: Serpentine) -> str:
    var, period = serpentine
    return f"backwards where {var if period == 1 else f'{var} / {period}'} is odd"


def print_deal(deal: Deal) -> str:
    """``group[first, first+stride, ...]``."""
    return f"{deal.group}[{deal.first}, {deal.first + deal.stride}, ...]"


def print_place(place: Place) -> str:
    """``memory.base+offset``, ``memory[cell]+offset``."""
    text = place.memory + (f".{place.base}" if place.base else "")
    text += f"[{place.cell}]" if place.cell is not None else ""
    offset = str(place.offset)
    return text if offset == "0" else f"{text}+{offset}" if not place.offset.terms else f"{text}+({offset})"


def _headline(s: Schedule) -> str:
    call, bind = figures(s.call), figures(s.bind)
    total = sum(w.bytes for w in s.workspace)
    text = f"schedule of {s.kernel.name} on {s.system.name}: {call['loops']} loops, {call['calls']} distinct calls"
    text += f", {call['bodies']} distinct innermost bodies, workspace {total} B"
    return text + (f"; bind: {bind['loops']} loops, {bind['calls']} calls" if bind["calls"] else "")


def _table(title: str, head: tuple[str, ...], rows: list[tuple[str, ...]]) -> list[str]:
    if not rows:
        return []
    width = [max(len(r[c]) for r in [head, *rows]) for c in range(len(head))]
    return ["", title] + ["  " + "  ".join(c.ljust(w) for c, w in zip(r, width, strict=True)) for r in [head, *rows]]


def _nest_rows(s: Schedule) -> Iterator[tuple[str, ...]]:
    for index, nest in enumerate(s.nests):
        m = s.cover.mappings[nest.mapping]
        roles = ", ".join(f"{o.operand}={o.buffer or o.literal}" for o in m.operands)
        played = {k: i for i, k in m.axes}
        axes = ", ".join(f"{a} < {e}" + (f" as {played[a]}" if a in played else "") for a, e in nest.axes)
        yield str(index), m.instruction.name, roles, axes


def _home_rows(s: Schedule) -> Iterator[tuple[str, ...]]:
    known = s.kernel.by_name
    for name, place in s.homes.items():
        b = known.get(name)
        shape = "[" + ", ".join(map(str, b.shape)) + "]" if b else ""
        yield name, b.dtype if b else "", shape, print_place(place), " ".join(map(str, place.strides))


def _slot_rows(s: Schedule) -> Iterator[tuple[str, ...]]:
    for w in s.workspace:
        holds = f"literal {w.literal}" if w.literal is not None else "bound constants" if w.bound else ""
        yield w.name, w.memory, str(w.bytes), str(w.align), holds


def _has_loop(node: Node) -> bool:
    return isinstance(node, Loop) or any(_has_loop(c) for c in children(node))


def _bound(bounds: Sequence[Bound], kind: str, rounding: str) -> str:
    parts = [str(b.expr) if b.div == 1 else f"{rounding}(({b.expr}) / {b.div})" for b in bounds]
    return parts[0] if len(parts) == 1 else f"{kind}({', '.join(parts)})"


class _Drawing:
    """Draws nodes; knows which are shared and which have been drawn."""

    def __init__(self, schedule: Schedule, full: bool):
        self.schedule, self.full = schedule, full
        uses: Counter[int] = Counter()
        for tree in (schedule.bind, schedule.call):
            for n in distinct(tree):
                uses.update(id(c) for c in children(n))
        self.shared = {i for i, n in uses.items() if n > 1}
        self.names: dict[int, str] = {}

    def node(self, node: Node, depth: int) -> Iterator[str]:
        pad = "  " * depth
        if id(node) in self.shared and not isinstance(node, Issue) and children(node):
            known = self.names.get(id(node))
            if known:
                yield f"{pad}{known} again"
                return
            self.names[id(node)] = name = f"b{len(self.names) + 1}"
            yield f"{pad}{name}:"
            depth += 1
        if isinstance(node, Loop):
            yield from self.loop(node, depth)
        elif isinstance(node, Issue):
            yield "  " * depth + self.one(node)
        else:
            yield from self.seq(node, depth)

    def loop(self, loop: Loop, depth: int) -> Iterator[str]:
        pad = "  " * depth
        trip = "" if loop.trip is None else "   # once" if loop.trip == 1 else f"   # {loop.trip} times"
        of = "buffer" if loop.axis in self.schedule.kernel.by_name else "axis"
        of = f" ({of} {loop.axis})" if loop.axis and loop.axis != loop.var else ""
        lo, hi = _bound(loop.lo, "max", "ceil"), _bound(loop.hi, "min", "floor")
        dealt = "" if loop.deal is None else f" dealt to {print_deal(loop.deal)}"
        back = "" if loop.serpentine is None else f", {print_serpentine(loop.serpentine)}"
        yield f"{pad}for {loop.var} from {lo} below {hi} step {loop.step}{of}{dealt}{back}{trip}"
        parts = [(p, getattr(loop, p)) for p in ("enter", "first", "body", "last", "exit")]
        shown = [(t, n) for t, n in parts if n is not None and n != Seq()]
        for title, n in shown:
            if title == "body" and len(shown) == 1:
                yield from self.node(n, depth + 1)
            else:
                yield f"{pad}  {title}"
                yield from self.node(n, depth + 2)
        if not shown:
            yield f"{pad}  nothing"

    def seq(self, seq: Seq, depth: int) -> Iterator[str]:
        pending: list[Issue] = []
        for c in seq.children:
            if isinstance(c, Issue) and not self.full:
                pending.append(c)
                continue
            yield from self.issues(pending, depth)
            pending = []
            yield from self.node(c, depth)
        yield from self.issues(pending, depth)

    def issues(self, issues: list[Issue], depth: int) -> Iterator[str]:
        for item in groups(issues):
            yield from self.item(item, depth)

    def item(self, item: Run | Group, depth: int) -> Iterator[str]:
        if isinstance(item, Run):
            yield "  " * depth + self.run(item)
            return
        yield "  " * depth + f"{item.times} times"
        for part in item.parts:
            yield from self.item(part, depth + 1)

    def one(self, issue: Issue) -> str:
        return print_issue(issue) if self.full else self.run(Run(1, (issue,)))

    def run(self, run: Run) -> str:
        """``fma x112: C[...] @acc, A[...] @a, B[...] @b`` or, for moves, ``copy: A[...] dram -> sp``."""
        first = run.issues[0]
        times = f" x{run.count}" if run.count > 1 else ""
        parts = [_operand([i.operands[o] for i in run.issues]) for o in range(len(first.operands))]
        if first.is_move and len(parts) == 2:
            (source, at), (target, to) = self.direction(first, parts)
            what = source if source == target else f"{source} -> {target}"
            return f"{first.instruction}{times}: {what} from {at} to {to}{_prefetch(first)}"
        sizes = " ".join(f"{n}={v}" for n, v in first.sizes)
        named = zip(first.operands, parts, strict=True)
        body = ", ".join(("" if o.name == o.tile.buffer else f"{o.name}=") + f"{t} @{p}" for o, (t, p) in named)
        return f"{first.instruction}{times}{f' ({sizes})' if sizes else ''}: {body}"

    def direction(self, issue: Issue, parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Source first, target second, whatever the order of the operands."""
        ins = self.schedule.system.instructions.get(issue.instruction)
        flip = ins is not None and ins.operand(issue.operands[0].name).role != "in"
        return parts[::-1] if flip else parts


def _operand(operands: list[Operand]) -> tuple[str, str]:
    tile: Tile = hull([o.tile for o in operands])
    return str(tile), place_range([o.place for o in operands])


