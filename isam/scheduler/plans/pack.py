"""What is laid out anew in home memory: panels, rows that begin within lines, operands whose contract asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile
from math import prod

from isam.caches import LINE
from isam.ir.affine import Affine
from isam.ir.dtype import size_of
from isam.schedule.literals import is_literal
from isam.scheduler.nests import Nest, Use
from isam.scheduler.plan import Group, Plan, StagedBox
from isam.scheduler.plans.register import axes_of
from isam.scheduler.plans.request import Request
from isam.scheduler.plans.traffic import WORTH_PACKING, outside, volume
from isam.system.graph import System
from isam.system.hierarchy import SHARE, capacities

ONCE = 3  # blocks of columns that rows are copied for, from which on they are copied once for all (measured)
ROOM = 1 << 27  # bytes that such a copy may take: as much memory more in a call
LINED_UP = 8  # times a row is brought, from which on copying it to whole lines pays (measured)


def repack(use: Use, system: System, bindable: frozenset[str]) -> StagedBox | None:
    """A stage that lays a read operand out as its contract asks, when the buffer's own layout does not."""
    if use.writes or not use.reads or all(s != 1 for s in use.strides) or not use.dims:
        return None
    need = [d for d, s in zip(use.dims, use.strides, strict=True) if s == 1]
    last = len(use.index) - 1
    if all(d == last for d in need):
        return None
    order = tuple(d for d in range(len(use.index)) if d not in use.dims) + tuple(d for d in use.dims if d not in need)
    return StagedBox(use.buffer, 0, system.home, order + tuple(need), at_bind=use.buffer in bindable)


def repacked(
    group: Group, main: Nest, width: dict[str, int], system: System, bindable: frozenset[str]
) -> tuple[StagedBox, ...]:
    """What is read again and again by calls of one element each, as registers take it only where it lies together along
    a dimension that is not its last: laid out so once."""
    out = []
    for u in main.uses:
        stage = repack(u, system, bindable) if cached(u, system) and u.homes else None
        written = any(v.writes and v.buffer == u.buffer for n in group.nests for v in n.uses)
        if stage is None or written or is_literal(u.buffer) or _taken_apart(u, system):
            continue
        if stage.at_bind or outside(main, u, width) >= WORTH_PACKING:
            out.append(stage)
    return tuple(out)


def _taken_apart(use: Use, system: System) -> bool:
    """Whether a move brings elements of a row of an operand to its register wherever they lie."""
    moves = (m for h in use.homes for m in system.moves_by_edge.get((system.home, h), ()))
    contracts = [i.contract(a.name) for i in (system.instructions[m.by] for m in moves) for a in i.body.arguments
                 if a.role == "in" and len(a.shape) == len(use.dims)]  # fmt: skip
    return any(c.strides and c.strides[-1] != 1 for c in contracts)


def packs(
    plan: Plan, main: Nest, width: dict[str, int], around: Sequence[str], request: Request
) -> tuple[StagedBox, ...]:
    """Boxes to lay out anew: panels of what is read along the vector axis, rows that begin within lines.
    ``around``: axes of the outermost loops; panels are made below those that all move the operand along."""
    system, bindable, out = request.system, request.bindable, []
    for u in main.uses:
        if u.writes or not u.reads or is_literal(u.buffer) or not u.index or not main.reduced or not cached(u, system):
            continue
        mine = axes_of(u)
        if any(v.writes and v.buffer == u.buffer for n in plan.group.nests for v in n.uses):
            continue
        along = [a for a in mine if a in main.mapped and a not in main.reduced]
        split = (grouped(u, system) or (None,))[0]  # steps of a sum may count this dimension: its groups stay whole
        if along and all(
            len(r.names) <= 1 or digits(main, r, along[0]) or (d == split and counted(main, r))
            for d, r in enumerate(u.index)
        ):
            depth = sum(1 for _ in takewhile(mine.__contains__, around))
            stage = panel(main, u, along[0], width, depth, bindable, system)
            if stage is not None:
                out.append(replace(stage, access=u.index))
        elif along and u.buffer not in request.lined:
            rows = lined_up(plan, main, u, system)
            if rows is not None:
                out.append(once(plan, main, u, rows, system))
    return tuple(out)


def cached(use: Use, system: System) -> bool:
    """Whether calls, or registers, read an operand through the caches: from home, not by way of a memory between."""
    home = next(iter(use.homes), system.home)
    registers = system.memories[home].cells is not None and (system.home, home) in system.moves_by_edge
    return home == system.home or registers


def panel(
    main: Nest,
    use: Use,
    axis: str,
    width: dict[str, int],
    depth: int,
    bindable: frozenset[str],
    system: System,
) -> StagedBox | None:
    """The operand in panels as wide as the register block, contiguous in the order in which they are read, made below
    ``depth`` loops."""
    dim = next(d for d, r in enumerate(use.index) if axis in r.names)
    parts = digits(main, use.index[dim], axis) or [axis]
    extent, wide = prod(main.length(a) for a in parts), 1
    for a in parts:
        wide *= width[a]
        if width[a] < main.length(a):
            break
    group = grouped(use, system)
    native = dim == len(use.index) - 1 and use.steps[use.dims.index(dim)] == 1 and group is None
    bound = use.buffer in bindable
    if native and not bound and outside(main, use, width) < WORTH_PACKING:
        return None
    if extent <= wide and native:
        return None
    gathers = bool(system.memories[use.homes[0]].lane)  # registers take it however it lies
    if group is not None and gathers and not bound and outside(main, use, width) < 2:
        return None
    order = (dim, *(d for d in range(len(use.index)) if d != dim))
    cut = ((dim, wide),) if extent > wide else ()
    if not cut:
        order = (*(d for d in range(len(use.index)) if d != dim), dim)
    cut = (*(() if group is None else (group,)), *cut)
    return StagedBox(use.buffer, 0 if bound else depth, system.home, order, cut, at_bind=bound,
                 form=None if group is None else (use.dims[-2], use.dims[-1]))  # fmt: skip


def digits(main: Nest, row: Affine, axis: str) -> list[str]:
    """The axes that a dimension was split into, innermost first, which is ``axis``; empty where they do not count it
    element by element."""
    out = counted(main, row)
    return out if out[:1] == [axis] and not any(a in main.reduced for a in out) else []


def counted(main: Nest, row: Affine) -> list[str]:
    """The axes, innermost first, that count a dimension element by element, from where recurrent loops around the nest
    have come to; empty where they do not."""
    terms, size, out = sorted((c, a) for a, c in row.terms if a in main.extents), 1, []
    for c, a in terms:
        if c != size:
            return []
        size *= main.length(a)
        out.append(a)
    return out


def laid_anew(use: Use, system: System) -> bool:
    """Whether plans lay a read operand out in groups before it is brought where calls find it."""
    return bool(capacities(system)) and use.reads and not use.writes and grouped(use, system) is not None


def grouped(use: Use, system: System) -> tuple[int, int] | None:
    """The dimension of a buffer that lies within the lanes of the registers that the operand goes to, or that its
    contract lays between neighbours along the vector axis, and how much of it goes there."""
    m = system.memories[use.homes[0]]
    if len(use.dims) < 2:
        return None
    if m.lane:
        inner, between = 1, m.lane // size_of(use.dtype) if len(use.dims) == 2 else None
    else:
        between, inner = use.strides[-2:]
    steps = sorted(c for _, c in use.index[use.dims[-1]].terms)
    if inner != 1 or between is None or steps[:1] != [1] or any(c % between for c in steps[1:]):
        return None
    return (use.dims[-1], between) if m.lane or between > 1 else None


def once(plan: Plan, main: Nest, use: Use, stage: StagedBox, system: System) -> StagedBox:
    """Rows that are copied anew for each of several blocks of columns, copied once before these; where no cache holds
    all of them, for twice as many: what is copied comes from as far away, but all goes there first."""
    mine, length, through = axes_of(use), {a: main.length(a) for a in main.axes}, 1
    for a, size in plan.order[: stage.depth]:
        through *= 1 if a in mine else -(-length[a] // size)
        length[a] = min(size, length[a])
    outer = sum(1 for _ in takewhile(mine.__contains__, (a for a, _ in plan.order)))
    whole = volume(main, use, {a for a, _ in plan.order[:outer]}) * size_of(use.dtype)
    enough = ONCE if whole <= SHARE * capacities(system)[-1] else 2 * ONCE
    return replace(stage, depth=outer, by=None) if through >= enough and whole <= ROOM else stage


def below(plan: Plan, main: Nest, use: Use) -> int:
    """The loops of a plan that choose the rows of an operand."""
    return max(i for i, (a, _) in enumerate(plan.order) if a in axes_of(use) and a not in main.reduced) + 1


def lined_up(plan: Plan, main: Nest, use: Use, system: System) -> StagedBox | None:
    """Rows of whole lines that are brought to tiles, again for every block of columns: where arguments begin is not
    known, and a row that begins within a line takes two. Copied, each begins with one: step by step, between the calls
    for the first block of columns, if the group has one sum: that block is code of its own then, as other sums would
    be."""
    *rows, last = use.index
    along = [a for a in last.names if a in main.reduced and a in main.mapped]
    line = prod(main.unit(a) for a in along) * size_of(use.dtype)
    home, tiles = system.memories[system.home], system.memories[use.homes[0]]
    if not tiles.local or home.align >= LINE or line % LINE or set(along) != set(last.names):
        return None
    if grouped(use, system) or any(len(r.names) > 1 for r in rows):
        return None
    at, again, block = below(plan, main, use), 1, {a: main.length(a) for a in main.axes}
    for n, (a, size) in enumerate(plan.order):
        if n >= at and a not in axes_of(use):
            again *= -(-block.get(a, 1) // size)
        block[a] = size
    if again < LINED_UP:
        return None
    steps = [d for d, (a, _) in enumerate(plan.order) if d >= at and a in along]
    alone = sum(bool(n.reduced) for n in plan.group.nests) == 1 and not main.one_by_one
    by = steps[-1] + 1 if steps and alone else None
    return StagedBox(use.buffer, at, system.home, tuple(range(len(use.index))), pad=LINE, by=by)
