"""The legal covers of a kernel as it stands: every statement by exactly one instruction (SEL-1 to SEL-3).

Fused instructions compete with sequences; without an opinion what takes least time by the descriptions' costs is taken
(:mod:`isam.mapper.pricing`), and of that what moves the fewest bytes.
Covers and mappings are choices of the Approach (APP-1), the offers are legal and sorted by price. A statement that
nothing covers is an error with its reports, never silently dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from isam.approach.choice import Choice, Trace
from isam.classes import dataclass
from isam.ir.dataflow import Level, Order, bits, levels, mask_of, order_of, ordered
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.ir.mapping import Mapping as Mapped
from isam.ir.spacing import TOGETHER, Spacing
from isam.ir.table import spacing_of
from isam.mapper.begun import beginning_there
from isam.mapper.candidates import gather
from isam.mapper.demand import Demand
from isam.mapper.pricing import PricedMapping, Pricing
from isam.mapper.selection import Price, Region, Selected, select, total
from isam.mapper.uncovered import Uncovered, reports

WORTH = 16.0  # covers dearer than this many times the best are not offered
OFFERED = 8  # covers offered at most

Ways = dict[int, list[PricedMapping]]  # candidates by the mask of their statements


@dataclass(frozen=True)
class CoverOption:
    """A complete cover of one straight-line list of statements, as offered to the Approach."""

    regions: tuple[Region, ...]
    label: str
    price: tuple[float, float]


@dataclass(frozen=True)
class Selection:
    """Everything selection found for a kernel, before any choice: candidates, and per straight-line list its covers."""

    kernel: Kernel
    order: Order
    candidates: tuple[PricedMapping, ...]
    levels: tuple[tuple[Level, Selected], ...]
    cut: bool
    spacing: Spacing = TOGETHER

    @property
    def price(self) -> Price:
        """That of the best covers."""
        return total([r for _, selected in self.levels for r in selected.covers[0]])


def selection(kernel: Kernel, demand: Demand, *, remedies: bool = True) -> Selection | Uncovered:
    """The legal covers of a kernel, or why there are none (``remedies``: and what would do); chooses nothing."""
    instructions, require = demand.instructions, demand.require
    order, spacing = order_of(kernel.statements), spacing_of(instructions)
    gathered = gather(kernel, instructions, order, Pricing(kernel, spacing))
    candidates = beginning_there(gathered.candidates, kernel, spacing.closed, require)
    found = _select_levels(kernel, candidates, order, frozenset(require))
    if isinstance(found, int):
        usable = {c.mapping.instruction.name for c in candidates}
        unmet = sorted(set(require) if not found else set(require) - usable)
        return reports(kernel, instructions, bits(found), unmet, gathered.refused, remedies=remedies)
    return Selection(kernel, order, candidates, tuple(found), gathered.cut, spacing)


def settle(found: Selection, trace: Trace) -> Cover:
    """Asks the Approach which cover and which mappings to take."""
    chosen: list[PricedMapping] = []
    touching: dict[str, list[Mapped]] = {s.dest.buffer: [] for s in found.kernel.statements}  # what was chosen
    gap: float | None = None
    ways = _ways(found.candidates)
    for level, selected in found.levels:
        regions = _choose_cover(found.kernel, level, selected, ways, trace)
        gap = selected.gap if gap is None else max(gap, selected.gap or 0.0)
        for r in sorted(regions, key=lambda r: (-r.price[0], r.mask & -r.mask)):
            chosen.append(_choose_mapping(found.kernel, r, ways, touching, found.spacing, trace))
            for buffer in {o.buffer for o in chosen[-1].mapping.operands} & touching.keys():
                touching[buffer].append(chosen[-1].mapping)
    mappings = _in_order(found.kernel, chosen, found.order)
    calls, moved = sum(c.calls for c in chosen), sum(c.bytes for c in chosen)
    notes = {"calls": calls, "bytes": moved, "candidates": len(found.candidates), "enumeration cut": found.cut}
    return Cover(found.kernel, found.kernel, mappings, gap=gap, notes=notes)


def _select_levels(
    kernel: Kernel, candidates: Sequence[PricedMapping], order: Order, require: frozenset[str]
) -> list[tuple[Level, Selected]] | int:
    """The covers of every straight-line list; or the mask of the statements that cannot be covered."""
    regions = _regions(candidates, require)
    out: list[tuple[Level, Selected]] = []
    stuck, unmet = 0, set(require)
    for level in levels(kernel):
        here = [r for r in regions if r.mask & level.own]
        demanded = frozenset(r.tag for r in here if r.tag) & unmet
        selected = select(here, level.own, order, level.inner, demanded)
        if not selected.covers and demanded:
            selected = select(here, level.own, order, level.inner)
        elif selected.covers:
            unmet -= demanded
        stuck |= selected.stuck
        out.append((level, selected))
    return stuck if stuck or unmet else out


def _regions(candidates: Sequence[PricedMapping], require: frozenset[str]) -> list[Region]:
    best: dict[tuple[int, str], tuple[float, float]] = {}
    for c in candidates:
        name = c.mapping.instruction.name
        key = (c.mask, name if name in require else "")
        if key not in best or c.price < best[key]:
            best[key] = c.price
    return [Region(mask, price, tag) for (mask, tag), price in best.items()]


def _ways(candidates: Sequence[PricedMapping]) -> Ways:
    """The candidates by the statements they carry out, best first."""
    out: dict[int, list[PricedMapping]] = {}
    for c in candidates:
        out.setdefault(c.mask, []).append(c)
    return out


def _options(region: Region, ways: Ways) -> list[PricedMapping]:
    """The ways to carry out a region, best first."""
    return [c for c in ways[region.mask] if not region.tag or c.mapping.instruction.name == region.tag]


def _choose_cover(
    kernel: Kernel, level: Level, selected: Selected, ways: Ways, trace: Trace
) -> tuple[Region, ...]:
    if not level.own:
        return ()
    best = total(selected.covers[0])[0]
    options = [
        CoverOption(regions, _label(regions, ways), total(regions))
        for regions in selected.covers
        if total(regions)[0] <= WORTH * max(best, 1.0)
    ][:OFFERED]
    if len(options) == 1:
        return options[0].regions
    context = {
        "kernel": kernel.name,
        "statements": list(bits(level.own)),
        "options": [o.label for o in options],
        "gap": selected.gap,
        "_kernel": kernel,
    }
    return trace.choose(Choice("cover", options, context, [o.price[0] for o in options])).regions


def _label(regions: Sequence[Region], ways: Ways) -> str:
    """The parts of a cover, each by its cheapest way and the statements: which way is taken is decided later."""

    def one(r: Region) -> str:
        some = _options(r, ways)
        others = f"; first of {len(some)}" if len(some) > 1 else ""
        return f"{some[0].mapping.instruction.name}({', '.join(map(str, bits(r.mask)))}{others})"

    return " + ".join(one(r) for r in sorted(regions, key=lambda r: r.mask & -r.mask))


def _choose_mapping(
    kernel: Kernel, region: Region, ways: Ways, touching: Mapping[str, list[Mapped]], spacing: Spacing, trace: Trace
) -> PricedMapping:
    """One of the mappings of a region; the options are the mappings themselves, sorted by price. Dear regions are asked
    first, so that cheap ones can follow them: ``_chosen`` are those taken before that touch a buffer of the region
    which the kernel writes."""
    options = _options(region, ways)
    by_mapping: list[Mapped] = [c.mapping for c in options]
    buffers = dict.fromkeys(o.buffer for m in by_mapping for o in m.operands)
    near = {id(m): m for b in buffers if b for m in touching.get(b, ())}
    context = {
        "kernel": kernel.name,
        "statements": list(bits(region.mask)),
        "bytes": [c.bytes for c in options],
        "_kernel": kernel,
        "_chosen": list(near.values()),
        "_spacing": spacing,
    }
    picked = trace.choose(Choice("mapping", by_mapping, context, [c.calls for c in options]))
    return next(c for c in options if c.mapping is picked)


def _in_order(kernel: Kernel, chosen: Sequence[PricedMapping], order: Order) -> tuple[Mapped, ...]:
    """Dataflow order; mappings inside a recurrent loop stay together, where the loop stands."""
    return tuple(_placed(levels(kernel)[0], levels(kernel), chosen, order))


def _placed(level: Level, by_level: tuple[Level, ...], chosen: Sequence[PricedMapping], order: Order) -> list[Mapped]:
    """Those of a level and of the loops in it."""
    own = [c for c in chosen if c.mask & level.own]
    parts: list[int] = [c.mask for c in own] + list(level.inner)
    out: list[Mapped] = []
    for i in ordered(parts, order) or range(len(parts)):
        if i < len(own):
            out.append(own[i].mapping)
        else:
            for inner in by_level:
                if _directly_in(inner, level, parts[i]):
                    out += _placed(inner, by_level, chosen, order)
    return out


def _directly_in(inner: Level, outer: Level, unit: int) -> bool:
    covered = inner.own | mask_of(i for m in inner.inner for i in bits(m))
    return len(inner.recurrences) == len(outer.recurrences) + 1 and covered == unit and bool(unit)
