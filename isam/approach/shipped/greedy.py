"""The default Approach: at each choice point the option predicted cheapest, ties to the first."""

from __future__ import annotations

from math import inf, prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from isam.approach.choice import Approach, Choice
from isam.approach.shipped.fusing import crowds, idles, keeps, overwrites, passes, spills, stays, swells

if TYPE_CHECKING:
    from collections.abc import Sequence

    from isam.ir.kernel import Kernel
    from isam.ir.mapping import Mapping, OperandMap
    from isam.ir.spacing import Spacing
    from isam.system.graph import System

SWOLLEN = 4  # times the room of the constants that it is made of, up to which a temporary is made when they are bound
CHAINED = 3  # blocks, up to which what the last of them leaves is made in the next iteration around
STEPS = 8  # of a sum by each piece of what becomes of it, up to which these are made between them (measured)
TRIFLE = 1 / 64  # of the time of all sweeps
INEXACT = 2.0  # what a less exact variant's time is multiplied with


class Greedy(Approach):
    """Takes the cheapest option where the core predicts costs, fuses where it may, evicts what costs least."""

    name = "greedy"
    why = "lowest predicted cost"
    reasons = MappingProxyType({
        "device": "done first",
        "variant": "quickest, inexact ones at twice their time",
        "mapping": "lowest predicted cost, and what its neighbours take",
        "boxes": "fewest bytes, in few boxes",
        "bind": "made ahead, unless that takes many times the room",
        "fuse": "shared where whole tiles flow and nothing spills",
        "prefetch": "ahead of what comes too late from its cache",
        "stream": "past what would be gone again anyway",
        "upfront": "under way while calls wait",
        "pipeline": "beside the next sum, where that saves more than it costs",
        "serpentine": "back and forth over what half stays in a cache",
        "interchange": "rows outside",
        "cascade": "as it is; blocks are timed",
        "victim": "next use farthest",
    })

    def because(self, choice: Choice) -> str:
        said = super().because(choice)
        return Approach.why if said == Greedy.why and choice.costs is None else said

    def _cheapest(self, choice: Choice) -> Any:
        if choice.costs is None:
            return choice.options[0]
        return choice.options[min(range(len(choice.options)), key=lambda i: (choice.costs or ())[i])]

    search = kernel = cover = pack = tile = tail = carry = promote = copartition = agree = _cheapest
    source = place = route = schedule = _cheapest

    def boxes(self, choice: Choice) -> Any:
        """The fewest bytes; none of twice as many boxes as another option has: each is code of its own."""
        counts, costs = choice.context["boxes"], choice.costs or [0.0] * len(choice.options)
        few = [i for i, n in enumerate(counts) if n < 2 * min(counts)]
        return choice.options[min(few, key=lambda i: costs[i])]

    def cascade(self, choice: Choice) -> Any:
        """No blocks of rows, which are then made as well: what they take is timed, not predicted."""
        return choice.options[0]

    def device(self, choice: Choice) -> Any:
        """Who would be done first; of equals one that made what the call takes, which need not be waited for."""
        costs, wrote = choice.costs or [0.0] * len(choice.options), choice.context["wrote"]
        order = sorted(range(len(costs)), key=lambda i: (costs[i], choice.options[i] not in wrote))
        return choice.options[order[0]]

    def variant(self, choice: Choice) -> Any:
        """The quickest; one whose results are less exact only where it is predicted to take half the time: predictions
        see no caches."""
        weights = [INEXACT if o.errors else 1.0 for o in choice.options]
        costs = [w * c for w, c in zip(weights, choice.costs or weights, strict=True)]
        return choice.options[costs.index(min(costs))]

    def mapping(self, choice: Choice) -> Any:
        """The cheapest, where what is chosen already and this one take a buffer between them along the same dimensions:
        every buffer on which they disagree counts as twice the price. Rows with gaps that the instruction does not
        take are gathered anew at every use, unless they are constants, which are laid out once: four times the price.
        A vector of what another one sums into element by element is taken apart, and put together again. What one
        leaves in registers that the other does not take it from goes through memory, a call per element, as often as
        the loops around come by. Of equals for the first value of a sum one that sets what a call of the sum takes:
        they can share loops.
        """
        from isam.mapper.pricing import trips

        kernel, chosen = choice.context["_kernel"], choice.context["_chosen"]
        times = trips(kernel)
        theirs = [(o.buffer, set(o.dims)) for m in chosen for o in m.operands if o.dims]
        sums = {kernel.statements[s].dest.buffer for m in chosen for s in m.statements if kernel.statements[s].reduces}
        single = {o.buffer for m in chosen for o in m.operands if not o.dims and o.buffer in sums & made(kernel, m)}

        def price(i: int) -> float:
            m = choice.options[i]
            written = {kernel.statements[s].dest.buffer for n in (*chosen, m) for s in n.statements}
            mine = {o.buffer: set(o.dims) for o in m.operands if o.dims and o.buffer in written}
            clashes = {b for b, d in theirs if b in mine and not (d <= mine[b] or mine[b] <= d)}
            apart = 1 + 2 * lanes(m) if single & mine.keys() else 1
            apart_from = sum(elements(kernel, b) for b in strangers(m, chosen) if b in written)
            cost = (choice.costs or ())[i] + times[m.statements[0]] * apart_from
            return cost * 2.0 ** len(clashes) * 4.0 ** gathered(kernel, m, choice.context["_spacing"]) * apart

        blocks = [(b, block) for m in chosen for b, block in taken(kernel, m).items() if b in sums & made(kernel, m)]

        def order(i: int) -> tuple[float, int]:
            m = choice.options[i]
            mine, first = taken(kernel, m), made(kernel, m)
            return price(i), sum(b in first and mine.get(b, block) != block for b, block in blocks)

        return choice.options[min(range(len(choice.options)), key=order)]

    def bind(self, choice: Choice) -> Any:
        """Makes ahead what does not take many times the room of what it is made of: reading that would take longer than
        making it again."""
        return choice.context["bytes"] <= SWOLLEN * choice.context["of"]

    def fuse(self, choice: Choice) -> Any:
        """Fuses where a whole tile flows from one nest to the next: every dimension of some buffer that joins them is
        indexed by shared axes alone, and one call takes as much of each shared axis in both: even if not, where a
        temporary between them would be larger than every argument, or some temporary than every cache, or where it goes
        through memory in any case (what tiles leave and vectors read). So it does from
        one step of a recurrent loop to the next, where a nest overwrites the tiles that another one reads. Loops around
        loops of their own where a temporary between them would be larger than every argument and leave a cache, and all
        that is read again inside does not. Not where what is kept for later would take longer than what it is made of,
        read again then, nor two products in the loop of one sum. What takes parts of the same lines goes over them
        together, and so does what writes over a part of each row of what others fill."""
        nest, group = choice.context["_nest"], choice.context["_group"]
        if keeps(choice.context["_kernel"], choice.context["_system"], nest, group, choice.context["kept"]):
            return False
        if choice.context["apart"]:
            kernel, system = choice.context["_kernel"], choice.context["_system"]
            return swells(kernel, nest, group) and stays(kernel, system, nest, group)
        shared = {a for n in group for a in n.extents}
        crossed = any(n.unit(a) != nest.unit(a) for n in group for a in n.axes if a in nest.extents)
        if (crossed and not self._anyway(choice)) or idles(choice.context["_system"], nest, group):
            return False
        if choice.context["_system"].caches and crowds(nest, group):
            return False
        written = {u.buffer for n in group for u in n.uses if u.writes}
        state = {(u.buffer, u.index) for n in group for u in n.uses if u.reads and nest.mapping.loops}
        if choice.context["lines"] or any(
            (u.buffer in written or (u.writes and (u.buffer, u.index) in state))
            and all(a in shared for row in u.index for a in row.names if a in nest.extents)
            for u in nest.uses
        ):
            return True
        kernel, system = choice.context["_kernel"], choice.context["_system"]
        swollen = swells(kernel, nest, group) and stays(kernel, system, nest, group)
        return swollen or overwrites(kernel, system, nest, group)

    def _anyway(self, choice: Choice) -> bool:
        """Whether nests of unequal calls share loops nevertheless: some temporary is too large to be kept whole."""
        c = choice.context
        kernel, group, nest = c["_kernel"], c["_group"], c["_nest"]
        if not c["past"] and swells(kernel, nest, group):
            return True
        return spills(kernel, c["_system"], [*group, nest]) or passes(c["_system"], nest, group)

    def prefetch(self, choice: Choice) -> Any:
        """Rows, where all that the loop goes through does not stay in the last cache: the nearest that holds two
        iterations of it; none where that is the nearest of all, for so little at a time hardware brings in time, but
        where the last is much slower, which in turn brings rows of more than a page as fast as it can (measured).
        Blocks, where the first sweep over them waits long enough: the one of the nearest two that holds two of them;
        those that are rows of an argument where the last cache is much slower (measured).
        Streams, where the cache that holds them is known to be slower than they are read: the nearest."""
        from isam.caches import PERIOD
        from isam.system.hierarchy import SHARE, slow

        context, caches, none = choice.context, choice.context["_system"].caches, choice.options[0]
        able = [m.name for m in caches if 2 * context["bytes"] <= SHARE * m.capacity]
        if context["sweeps"] > 1:
            near = {m.name for m in caches[:2]}.intersection(able[:1])
            able = able if context["laid"] or slow(caches) else []
            return able[0] if near and able and awaited(context, choice.context["_system"]) else none
        if context["rate"]:
            holds = next((m for m in caches if context["whole"] <= SHARE * m.capacity), None)
            given = (caches[-1].bandwidth or 0.0) / 2 if holds is None else holds.bandwidth or 0.0
            return caches[0].name if 0 < given < context["rate"] else none
        in_time = context["row"] > PERIOD if slow(caches) else able[:1] == [caches[0].name]
        stays = context["bytes"] * context["iterations"] <= caches[-1].capacity // 2
        return none if stays or not able or in_time else able[0]

    def stream(self, choice: Choice) -> Any:
        """Where it would not be found again: more comes in between than the nearest cache holds."""
        return choice.options[choice.context["between"] > choice.context["_system"].caches[0].capacity]

    def upfront(self, choice: Choice) -> Any:
        """Before the calls: moves are under way while these wait for each other."""
        return choice.options[-1]

    def pipeline(self, choice: Choice) -> Any:
        """Woven: what takes the sum up has units of its own, and waits for nothing of the next one. Not so where it
        is little beside the sum, whose rows it drives from the nearest cache; loops around are where an iteration has
        so few blocks that those which begin and end it count."""
        c = choice.context
        little = c["steps"] > STEPS * c["pieces"]
        return choice.options[c["blocks"] < CHAINED and not little]

    def serpentine(self, choice: Choice) -> Any:
        """Back and forth, where a cache holds at least half of what is gone through, but is slower than the
        computations: nearer ones then have part of it. One whose bandwidth is not known is taken to have half that of
        the second. What comes from memory is left to the hardware, which fetches ahead of what goes on and on."""
        caches, size = choice.context["_system"].caches, choice.context["bytes"]
        holds = next((m for m in caches[2:] if size <= 2 * m.capacity), None)
        if holds is None:
            return choice.options[0]
        speed = holds.bandwidth or (caches[1].bandwidth or 0.0) / 2
        return choice.options[0 < speed < choice.context["rate"]]

    def interchange(self, choice: Choice) -> Any:
        """Rows outside: a line of each is near for as many steps as it has words for."""
        return choice.options[-1]

    def victim(self, choice: Choice) -> Any:
        """The copy whose next use lies farthest (Belady); of those never used again a clean one before a dirty one."""
        return min(choice.options, key=lambda v: (-inf if v.next_use is None else -v.next_use, v.dirty))


class Locality(Greedy):
    """Keeps computations on the same data close, in the manner of the paper's case study (6.2): nests share their loops
    wherever they touch a buffer in common. Decides like ``greedy`` elsewhere; data takes the shortest way there, too.
    """

    name = "locality"
    why = "stays where its data is"

    def fuse(self, choice: Choice) -> Any:
        """Fuses whatever touches a buffer in common, unless a temporary would grow beyond every argument."""
        nest, group = choice.context["_nest"], choice.context["_group"]
        if choice.context["apart"]:
            return super().fuse(choice)
        common = {u.buffer for n in group for u in n.uses} & {u.buffer for u in nest.uses}
        kept = common and not swells(choice.context["_kernel"], nest, group)
        kept = kept and not idles(choice.context["_system"], nest, group)
        return bool(kept) or super().fuse(choice)


def awaited(context: dict[str, Any], system: System) -> bool:
    """Whether the first sweep over a block, which comes from a cache behind the second or from memory, makes up more
    than a trifle of all sweeps beyond what calls hide."""
    from isam.system.hierarchy import HIDDEN, SHARE, beyond

    near = system.caches[:2][-1]
    if not near.bandwidth or context["whole"] <= SHARE * near.capacity:
        return False
    speed, cached = beyond(context["whole"], near.bandwidth, system)
    hidden = HIDDEN if cached and context["laid"] else 0.0
    return context["rate"] / speed - hidden > TRIFLE * context["sweeps"]


def made(kernel: Kernel, mapping: Mapping) -> set[str]:
    """Buffers that a mapping writes."""
    return {kernel.statements[s].dest.buffer for s in mapping.statements}


def strangers(mapping: Mapping, others: Sequence[Mapping]) -> set[str]:
    """Buffers that a mapping and another one take from, or leave in, memories that they do not share."""
    mine = {o.buffer: set(mapping.instruction.contract(o.operand).homes) for o in mapping.operands if o.buffer}
    theirs = [(o.buffer, set(m.instruction.contract(o.operand).homes)) for m in others for o in m.operands]
    return {b for b, homes in theirs if homes and mine.get(b) and not homes & mine[b]}


def elements(kernel: Kernel, buffer: str) -> int:
    """Of a buffer; of sizes that are not known, none."""
    return kernel.buffer(buffer).elements or 0


def lanes(mapping: Mapping) -> int:
    """Elements that one call takes at most."""
    return prod(mapping.instruction.span(a).most or 1 for a, _ in mapping.axes)


def taken(kernel: Kernel, mapping: Mapping) -> dict[str, tuple[float, ...]]:
    """What one call takes of each buffer along its dimensions, where these follow one axis each."""
    domain = kernel.statements[mapping.statements[0]].domain
    sizes = {a.name: a.extent.const for a in domain.axes if a.extent.is_constant}
    most = {k: min(mapping.instruction.span(a).most or inf, sizes.get(k, inf)) for a, k in mapping.axes}
    out: dict[str, tuple[float, ...]] = {}
    for o in mapping.operands:
        names = [list(row.names) for row in o.index]
        if o.buffer and all(len(n) == 1 for n in names):
            out[o.buffer] = tuple(most.get(n[0], 1) for n in names)
    return out


def gathered(kernel: Kernel, mapping: Mapping, spacing: Spacing) -> int:
    """Operands whose elements lie apart where the instruction wants them together, and no move takes them so."""
    written = {kernel.statements[s].dest.buffer for s in mapping.statements}

    def gaps(o: OperandMap) -> bool:
        contract = mapping.instruction.contract(o.operand)
        if not any(abs(step) > 1 and need is not None for step, need in zip(o.steps, contract.strides, strict=True)):
            return False
        last = o.dims == (len(kernel.buffer(o.buffer).shape) - 1,)
        return not last or spacing.cycles(contract.homes, o.steps[0], o.buffer in written) is None

    return sum(gaps(o) and kernel.buffer(o.buffer).role != "const" for o in mapping.operands if o.buffer)
