"""Offers: equivalent kernels that may take less time than one as it is covered, each scheduled and compared with it
(``isam.compiler.variants``, which also says what else is compared: covers without steps that only save calls, and
second schedules of a cover by choices that are left to time).

A search for covers ends where a kernel is carried out as it stands. What an offer does instead depends on what else
competes for room and bandwidth, which only schedules tell. The table says which offers there are, when each is asked
for and why it has its place: of two that take the same time the earlier one is taken, and once one is scheduled, those
whose calls alone take longer are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from isam.classes import dataclass
from isam.compiler.offers.subject import Subject
from isam.ir.kernel import Literal, recurrences
from isam.system.hierarchy import levels

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps
    from isam.ir.mapping import Cover
    from isam.transforms.law import Site

__all__ = ["OFFERS", "Offer", "Subject", "equivalents", "further"]


@dataclass(frozen=True, slots=True)
class Offer:
    """``makes``: what is otherwise there; ``asked``: whether it comes into question; ``by``: the module of this package
    and the function in it that offers, imported where it is asked for; ``why``: the reason for its place here."""

    name: str
    makes: str
    asked: Callable[[Subject], bool]
    by: str
    why: str

    def steps(self, of: Subject) -> Iterable[Steps]:
        """Rewritings that lead to a kernel each, none of which the judge of rewritings cannot decide (empty: it is not
        offered)."""
        module, _, function = self.by.partition(".")
        offer: Callable[[Subject], Iterable[Steps]] = getattr(import_module(f"{__name__}.{module}"), function)
        return offer(of)


def _looped(of: Subject) -> bool:
    return any(True for _ in recurrences(of.kernel.body))


def _recurs(of: Subject) -> bool:
    """Where loops recur, on machines with a memory that is filled ahead."""
    return _looped(of) and any(m.scratchpad for m in of.system.memories.values())


def _keeps(of: Subject) -> bool:
    """Where loops recur, on machines that keep values near a unit."""
    return _looped(of) and any(m.fetched for m in of.system.memories.values())


def _cached(of: Subject) -> bool:
    """Where loops recur, on machines with caches of which it is known how fast they are."""
    return _recurs(of) and any(speed for _, speed in levels(of.system)[1:2])


def _as_written(of: Subject) -> bool:
    """Where the cover takes no steps of its own."""
    return not of.cover.steps


def _guarded(of: Subject) -> bool:
    """Where temporaries are made at the points of a condition."""
    temps = {b.name for b in of.kernel.buffers if b.role == "temp"}
    return any(s.domain.where and s.dest.buffer in temps for s in of.kernel.statements)


def _padded(of: Subject) -> bool:
    """Where a temporary is filled twice, with a number at first: a border around some data."""
    kernel = of.kernel
    twice = (kernel.writers.get(b.name, ()) for b in kernel.buffers if b.role == "temp")
    firsts = (kernel.statements[w[0]] for w in twice if len(w) == 2)
    return any(s.op == "copy" and isinstance(s.sources[0], Literal) for s in firsts)


def _unfilled(of: Subject) -> bool:
    """Where the cover takes no steps of its own, and leaves steps of a sum empty that its calls could take."""
    return not of.cover.steps and any(True for _ in of.unfilled)


def _of_terms(of: Subject) -> bool:
    """Where something is summed up that a statement adds, subtracts or negates, and the cover takes no steps but such
    as make a sum per term: it need not take all of them."""
    made = {s.dest.buffer for s in of.kernel.statements if s.op in ("add", "sub", "neg") and not s.accumulate}
    sums = (s for s in of.kernel.statements if s.accumulate and s.op == "add" and s.reduces)
    return all(s.startswith("sum-apart ") for s in of.cover.steps) and any(
        x.buffer in made for s in sums for x in s.reads
    )


def _of_bytes(of: Subject) -> bool:
    """Where the cover takes no steps of its own, and bytes are multiplied."""
    return not of.cover.steps and any(b.dtype in ("i8", "u8") for b in of.kernel.buffers)


def _across(of: Subject) -> bool:
    """Where an instruction sums all lanes of a vector into one number."""
    return bool(of.sums)


def _several(of: Subject) -> bool:
    """Where several units of the machine run one of its instructions."""
    return any(of.system.spread(m.instruction.name)[1] > 1 for m in of.cover.mappings)


def _begins_elsewhere(of: Subject) -> bool:
    """Where sums may begin with what is not where they are made."""
    from isam.compiler.offers.by_themselves import brought

    return bool(of.system.closed or brought(of))


OFFERS = (
    Offer("by themselves", "sums that go on from what is not where they are made begin with zero there",
          _begins_elsewhere, "by_themselves.by_themselves",
          "before all: without it there is no schedule"),
    Offer("hoisted", "sums that need nothing of the step before are made for all steps at once, before the loop",
          _recurs, "hoisted.hoisted",
          "before the others: it alone takes work out of recurrent loops, which others leave alone"),
    Offer("in blocks", "sums that are made for all steps of a recurrent loop are made for a block of steps at a time",
          _cached, "in_blocks.in_blocks",
          "beside `hoisted`, whose steps come before its own"),
    Offer("carried", "what a step reads of the step before, at another place of a buffer, is a temporary of its own",
          _keeps, "carried.carried",
          "beside `hoisted`, the other one for recurrent loops; as much is left to do"),
    Offer("aside", "what a block reads of a buffer that it goes on to overwrite is copied first",
          _as_written, "aside.set_aside",
          "beside `carried`: the other one that takes reads away from what is written"),
    Offer("inside", "products with zeros around some data are left out of the sums that they would be added to",
          _padded, "inside.inside",
          "beside `once`, which does less work, too"),
    Offer("once", "what was typed along an axis that it does not depend on is made once",
          _as_written, "temporaries.made_once",
          "before all that does as much work in another way: this is less work"),
    Offer("everywhere", "temporaries that are made at some points only are made at all of a box, in larger calls",
          _guarded, "temporaries.speculated",
          "beside `once`: the other one that changes at which points temporaries are made"),
    Offer("lying", "temporaries that nobody said how they lie have another dimension last",
          _as_written, "lying.lying",
          "the last of those that leave every sum as it is"),
    Offer("by terms", "sums of several products are one sum per product, for instructions that multiply and add",
          _of_terms, "by_terms.each_term",
          "before `quicker`, beside it the other one that says what a sum is made of"),
    Offer("quicker", "large sums are cut, and a factor laid out, for an instruction that does far more in a cycle",
          _as_written, "quicker.quicker",
          "the first of those for sums: what takes longer than it is not scheduled any more"),
    Offer("expanded", "bytes are taken with or without a sign, what is added to a factor leaves the sum",
          _of_bytes, "expanded.expanded",
          "beside `quicker`: the other one for an instruction that does more in a cycle"),
    Offer("widened", "bytes are made words ahead, for an instruction that sums products of words",
          _of_bytes, "widened.widened",
          "after `expanded`: bytes as they are take less room than words made of them"),
    Offer("longer", "an inner axis that leaves some of a call's groups empty is one with the axis around it",
          _unfilled, "longer.longer_rows",
          "after `quicker`, which puts axes together for its own instruction, too"),
    Offer("partial", "sums across the lanes of a vector are partial sums in lanes, added up once, at the end",
          _across, "partial.partial",
          "before `again`, which takes these steps as well: of equals the one with fewer is taken"),
    Offer("again", "temporaries that are quickly made are made again where they are read after a sum over them",
          _as_written, "again.made_again",
          "after `partial`, whose steps follow its own"),
    Offer("split", "parts of the largest sum are made side by side, by units that would be idle",
          _several, "splits.split_sums",
          "last: the only one whose results go through main memory, to be added up"),
)  # fmt: skip


def equivalents(of: Subject) -> Iterator[Steps]:
    """Steps to each kernel that is offered; two offers may come to the same one."""
    seen: set[tuple[tuple[str, Site], ...]] = set()
    for offer in OFFERS:
        if offer.asked(of):
            for steps in filter(None, offer.steps(of)):
                taken = tuple((s.transform.law, s.site) for s in steps)
                if taken not in seen:
                    seen.add(taken)
                    yield steps


def further(of: Subject, covers: Iterable[tuple[Steps, Cover]]) -> Iterator[Steps]:
    """Steps that go on from those to other kernels as these are covered, unless some of their kind were taken already:
    sums that are made across lanes there, as partial sums in lanes (how something lies decides which axis that is);
    sums that begin with what is brought to cells with names, by themselves."""
    from isam.compiler.offers.by_themselves import brought, from_zero

    for steps, cover in covers:
        there = Subject(cover.kernel, cover, of.system, of.offered)
        begun = brought(there)
        if len(cover.steps) != cover.ahead or not (there.sums or begun):
            continue
        from isam.compiler.offers.partial import in_lanes
        from isam.transforms.values.nest import NestSum

        if not any(isinstance(s.transform, NestSum) for s in steps):
            lanes = in_lanes(there) if there.sums else ()
            yield from ((*steps, *more) for more in (lanes, from_zero(there, begun)) if more)
