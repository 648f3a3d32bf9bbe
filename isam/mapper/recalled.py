"""What an instruction of one statement can do with a statement, found once for all kernels of a chain of rewritings.

A step changes few statements of a kernel, and an instruction of one statement is mapped to one statement whatever
stands around it: what was found for an unchanged one is taken over, at the place where it stands now.
"""

from __future__ import annotations

from collections.abc import Hashable

from isam.classes import dataclass
from isam.ir.dataflow import mask_of
from isam.ir.instruction import Instruction
from isam.ir.kernel import Access, Kernel, Recurrence
from isam.ir.mapping import Mapping as Mapped
from isam.mapper.alike import moved
from isam.mapper.dataflow import Key, Node, pattern_of
from isam.mapper.match import normal
from isam.mapper.pricing import PricedMapping, Pricing
from isam.once import know, once

MOST = 4096  # statements of one chain that are remembered


@dataclass(frozen=True, slots=True)
class Found:
    """What an instruction can do with the statement number ``at``, and the mappings whose operands could not be laid
    out; ``cut``: some were not looked at."""

    instruction: Instruction
    at: int
    candidates: tuple[PricedMapping, ...]
    refused: tuple[Mapped, ...]
    cut: bool

    def moved(self, kernel: Kernel, at: int) -> Found:
        """The same at another statement, which is equal."""
        if at == self.at:
            return self
        s = kernel.statements[at]
        names = {x.buffer: x.buffer for x in (s.dest, *s.reads)}
        to = {self.at: at}
        some = [(c, moved(c.mapping, to, names)) for c in self.candidates]
        candidates = tuple([PricedMapping(m, mask_of(m.statements), c.calls, c.bytes) for c, m in some])
        return Found(self.instruction, at, candidates, tuple([moved(m, to, names) for m in self.refused]), self.cut)


Recalled = dict[Hashable, dict[int, Found]]  # per statement what was found, by the identity of the instruction


@once
def _recalled(kernel: Kernel) -> Recalled:
    """Kept with the kernels of a chain; filled in as they are looked at."""
    return {}


def follow(kernel: Kernel, first: Kernel) -> None:
    """A kernel of the chain that begins with another."""
    know(_recalled, kernel, _recalled(first))


def found_at(kernel: Kernel, node: Node, pricing: Pricing) -> dict[int, Found]:
    """What was found so far at a statement, by the identity of the instruction; to be filled in."""
    known, place = _recalled(kernel), _place(kernel, node, pricing)
    if place not in known:
        if len(known) >= MOST:
            known.clear()
        known[place] = {}
    return known[place]


def _place(kernel: Kernel, node: Node, pricing: Pricing) -> Hashable:
    """All of a kernel that mappings of the statement alone, and their prices, depend on."""
    s = node.statement
    names = dict.fromkeys(x.buffer for x in (s.dest, *s.sources) if isinstance(x, Access))
    buffers = tuple([(b, b.name in pricing.ahead, b.name in pricing.fixed) for b in map(kernel.buffer, names)])
    loops = tuple([r.axis for r in node.loops])
    return s, buffers, loops, pricing.trips[node.index], kernel.syms, kernel.permits


@once
def sole(instruction: Instruction) -> Key | None:
    """How the only statement of an instruction is looked for; None where it has several, or a recurrent loop."""
    body = normal(instruction.body)
    if len(body.body) != 1 or isinstance(body.body[0], Recurrence):
        return None
    return pattern_of(instruction, body).flow.nodes[0].views[0].key
