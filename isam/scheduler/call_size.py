"""How much one call takes where the operands of the largest call do not fit the memories they must lie in together, or
cannot be brought there whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from isam.approach.choice import Choice
from isam.classes import dataclass
from isam.ir.span import Span
from isam.schedule.tree import Tile
from isam.scheduler import move as mv
from isam.scheduler.hops import End, Hops
from isam.scheduler.nests import Nest, Use, sizes_of, tile_of
from isam.scheduler.placement import joint_placements
from isam.scheduler.plans.pack import laid_anew
from isam.scheduler.residency import Residency
from isam.system.graph import COUNTED

OFFERED = 16  # sizes of a call offered at most


@dataclass(frozen=True)
class CallSize:
    """An option at ``tail``: elements of each mapped axis that a call takes at most, and the calls that this makes."""

    units: tuple[tuple[str, int], ...]
    calls: int

    def label(self) -> str:
        return ", ".join(f"{n} of {a}" for a, n in self.units)


def fitting(nest: Nest, data: Residency, refused: Sequence[Mapping[str, int]] = ()) -> Nest | None:
    """The nest with calls that fit: as it is where the largest do, else as large as the Approach takes them. Where no
    call fits, as it is: the dry run will say what is lacking. ``refused``: calls for which it found no room; none as
    large is taken. None: nothing smaller is left."""
    most = {a: nest.unit(a) for a in nest.mapped}
    if not refused and (fits(nest, data, most) or any(n == 0 for n in map(nest.length, nest.axes))):
        return nest
    options = sorted(_largest(nest, data, most, refused), key=lambda o: o.calls)[:OFFERED]
    if not options:
        return None if refused else nest
    context = {"nest": nest.number, "instruction": nest.instruction.name}
    chosen: CallSize = data.trace.choose(Choice("tail", options, context, [float(o.calls) for o in options]))
    smaller = {a: replace(nest.mapped[a], limit=n) for a, n in chosen.units if n < most[a]}
    return replace(nest, mapped={**nest.mapped, **smaller})


def fits(nest: Nest, data: Residency, units: Mapping[str, int]) -> bool:
    """Whether some joint placement has room for one call's operands, everything else evicted, and all can be brought
    there."""
    sizes = sizes_of(nest, dict(units))
    system = data.system
    for placement in joint_placements(nest, system):
        places = zip(nest.uses, placement.memories, strict=True)
        away = [(u, tile_of(u, {}, sizes), m) for u, m in places if m != system.home]
        if data.fit.roomy(away) and all(_brought(data, u, tile, m) for u, tile, m in away):
            return True
    return False


def _brought(data: Residency, use: Use, tile: Tile, memory: str) -> bool:
    """Whether the tile can be carried from home to ``memory``, apart from what lies on its way, to lie there as its
    contract says: whole where that has cells, one operand in each."""
    m, path = data.system.memories[memory], data.fit.route(data.system.home, memory, use.dtype)
    if m.kind == COUNTED or path is None or laid_anew(use, data.system):
        return True  # or no call fits, which the dry run says better
    shape = data.homes.shape(tile.buffer)
    here = mv.home_place(tile.buffer, data.system.home, shape, use.dtype)
    form = data.fit.form(memory, tile, use.dims, use.strides)
    there = data.fit.placed(memory, tile, 0, form)
    if not data.suits(use, tile, there):
        return False
    end = End(memory, lambda t: there, form, alone=True)
    hops = Hops(data.fit, tile, path, End(path[0], lambda t: here), end)
    return hops.possible() if m.cells is None else hops.whole()  # to bytes parts may come one by one


def _largest(
    nest: Nest, data: Residency, most: Mapping[str, int], refused: Sequence[Mapping[str, int]]
) -> Iterator[CallSize]:
    """Sizes that fit and that no other fitting size exceeds in every axis; not as large as one of ``refused``."""
    steps = [[n] if a in nest.uncut else _smaller(nest.mapped[a].span, nest.length(a), n) for a, n in most.items()]
    found: list[tuple[int, ...]] = []
    for sizes in sorted(product(*steps), key=lambda s: (-prod(s), s)):
        if any(all(a <= b for a, b in zip(sizes, f, strict=True)) for f in found):
            continue
        units = dict(zip(most, sizes, strict=True))
        if any(all(units[a] >= n for a, n in r.items()) for r in refused):
            continue
        if fits(nest, data, units):
            found.append(sizes)
            lengths = {a: nest.length(a) for a in nest.axes}
            yield CallSize(tuple(units.items()), prod(-(-n // units.get(a, 1)) for a, n in lengths.items()))


def _smaller(span: Span, length: int, most: int) -> list[int]:
    """What a call may take of an axis: all of it, halved again and again as far as the instruction allows."""
    out = [most]
    while (half := span.nearest(out[-1] // 2)) is not None and 0 < half < out[-1] and span.cuts(length, half):
        out.append(half)
    return out
