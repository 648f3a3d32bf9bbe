"""Obligation 7 and the addresses of obligation 9 for one step, for all values of the loop variables in scope."""

from __future__ import annotations

from isam.ir.affine import Affine
from isam.proof.context import Context
from isam.proof.geometry import resolve
from isam.proof.legal import Legality
from isam.proof.sets import Isl
from isam.proof.violation import Findings
from isam.schedule.tree import Issue, Operand


def check_bounds(issue: Issue, lg: Legality, ctx: Context, isl: Isl, phase: str, out: Findings) -> None:
    """Tiles inside buffers, places inside memories and slots, aligned, nothing protected written.

    A step is judged once per context and phase; asking again repeats nothing.
    """
    key = (id(issue), ctx, phase)
    if key not in lg.bounded:
        found = Findings()
        _judge(issue, lg, ctx, isl, phase, found)
        lg.bounded[key] = found.found
    if lg.bounded[key]:
        out.extend(lg.bounded[key])


def _judge(issue: Issue, lg: Legality, ctx: Context, isl: Isl, phase: str, out: Findings) -> None:
    sig = lg.signature(issue)
    if sig.instruction is None:
        return
    for o in issue.operands:
        b = lg.buffers[o.tile.buffer]
        if phase == "bind" and b.role in ("in", "out", "inout"):
            out.add(8, "bind", f"'{b.name}' is not there when constants are bound", issue)
        align = sig.instruction.contract(o.name).align
        key, before = (id(o), align), len(out)
        if key not in ctx.placed:
            _tile(o, b.shape, ctx, isl, issue, out)
            _address(o, lg, ctx, isl, issue, out, align)
            if len(out) == before:
                ctx.placed.add(key)
        if phase == "call" and o.name in sig.writes and o.place.base in lg.kept:
            out.add(8, "bind", f"operand {o.name} writes the slot '{o.place.base}', which is kept from bind on", issue)


def proved(e: Affine, ctx: Context, isl: Isl) -> bool:
    return ctx.nonneg(e) or (not e.is_constant and isl.nonneg(e, ctx))


def _between(least: int, at: Affine, most: int, ctx: Context, isl: Isl) -> bool:
    """Whether ``at + least >= 0`` and ``at <= most``; of many places only the constants differ."""
    low, high = ctx.lower(at), ctx.upper(at)
    begins = (low is not None and low + least >= 0) or proved(at + least, ctx, isl)
    return begins and ((high is not None and high <= most) or proved(most - at, ctx, isl))


def _tile(o: Operand, shape: tuple[Affine, ...], ctx: Context, isl: Isl, issue: Issue, out: Findings) -> None:
    for d, (s, n, k, full) in enumerate(zip(o.tile.start, o.tile.shape, o.tile.steps, shape, strict=True)):
        key = (s, (n - 1) * k, full)
        inside = ctx.inside.get(key)
        if inside is None:
            inside = ctx.inside[key] = proved(s, ctx, isl) and proved(full - 1 - (n - 1) * k - s, ctx, isl)
        if not inside:
            text = f"operand {o.name}: dimension {d} of {o.tile} leaves '{o.tile.buffer}' (0 to {full})"
            out.add(7, "bounds", text, issue)
            return


def _address(o: Operand, lg: Legality, ctx: Context, isl: Isl, issue: Issue, out: Findings, align: int) -> None:
    p = o.place
    memory = lg.schedule.system.memories[resolve(lg.schedule.system, p.memory)]
    cell = memory.cell or 0
    if memory.cells is None and (not p.base or not memory.home):
        align = max(align, memory.align)
    at = p.offset + (p.cell or 0) * cell
    if not ctx.divides(align, at):
        out.add(9, "align", f"operand {o.name}: byte {at} may be no multiple of {align}", issue)
    if p.base and p.base not in lg.slots:
        return  # an argument: its tile lies in it (obligation 7), at its own address (obligation 2)
    far = [k * m * (n - 1) for k, m, n in zip(p.strides, o.tile.steps, o.tile.shape, strict=True)]
    least, most = sum([f for f in far if f < 0]), sum([f for f in far if f > 0]) + lg.buffers[o.tile.buffer].bytes
    whole = memory.capacity if memory.cells is None else memory.cells * cell
    size = lg.slots[p.base] if p.base else whole - lg.reserved(memory.name)
    if p.cell is not None and p.offset.terms:  # what a step overwrites is known by its cells
        inside = proved(p.offset + least, ctx, isl) and proved(cell - most - p.offset, ctx, isl)
        if not inside:
            out.add(9, "cell", f"operand {o.name}: byte {p.offset} to {p.offset + most} may leave its cell", issue)
    if not _between(least, at, size - most, ctx, isl):
        what = f"'{p.base}'" if p.base else f"'{memory.name}'"
        out.add(7, "address", f"operand {o.name}: byte {at} to {at + most} leaves {what} ({size} bytes)", issue)
