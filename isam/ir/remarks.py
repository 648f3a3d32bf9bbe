"""What in a text of the language is legal and still looks wrong: remarks, never refusals.

A ``where`` that no step satisfies is one. It is no fault: a kernel whose sizes have been put in may have such
conditions, and its printed form is a text too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isam.classes import dataclass
from isam.diagnostics import Diagnostic, Loc
from isam.ir.affine import Affine
from isam.ir.kernel import Axis, Domain, Sym
from isam.ir.printer import print_condition
from isam.ir.syntax import Definition, Loop

WORK = 200_000  # elementary steps of the library for one 'where'


@dataclass(frozen=True, slots=True)
class Where:
    """A ``where`` as it stands in the text: its conditions, each with its place, over the ``axes`` of its block and
    those of the loops around it, for sizes ``syms``."""

    conditions: tuple[tuple[Loc, tuple[Affine, ...]], ...]
    axes: tuple[Axis, ...]
    outer: tuple[Axis, ...]
    syms: tuple[Sym, ...]


def remarks(wheres: Iterable[Where]) -> list[Diagnostic]:
    """Those that no step of their block satisfies, whatever the sizes: decided exactly, within a budget."""
    return [d for w in wheres for d in _empty(w)]


def looping(found: Iterable[Definition]) -> list[Diagnostic]:
    """Instructions with a recurrent loop: no kernel is carried out by such."""
    return [Diagnostic("L245", f"the instruction '{d.name}' has a recurrent loop over {block.axis.name}, and is one "
                       "step: no kernel is carried out by it", block.loc, "describe that of one iteration")
            for d in found if d.keyword == "instruction" for block in d.body if isinstance(block, Loop)]  # fmt: skip


def _empty(w: Where) -> list[Diagnostic]:
    if _never(w, ()):  # the block has no steps anyway
        return []
    rows = [rows for _, rows in w.conditions]
    last = next((n for n in range(len(rows)) if _never(w, rows[: n + 1])), None)
    if last is None:
        return []
    loc, own = w.conditions[last]
    said = f"'{_text(own)}'"
    if _never(w, rows[last : last + 1]):
        what = f"{said} holds nowhere in the block"
    else:
        one = next((rows[n] for n in range(last) if _never(w, (rows[n], own))), None)
        other = f"'{_text(one)}'" if one else "the conditions before it"
        what = f"{said} contradicts {other}"
    hint = "a 'where' asks that all of its conditions hold; write a statement for each of several cases"
    return [Diagnostic("L241", f"no step satisfies this 'where': {what}", loc, hint)]


def _text(rows: Sequence[Affine]) -> str:
    if len(rows) == 2:  # two sides of an equation
        return print_condition(rows[0]).replace("<=", "==")
    return print_condition(rows[0])


def _never(w: Where, conditions: Sequence[Sequence[Affine]]) -> bool:
    """Whether it is known that no step satisfies the conditions."""
    from isam.ir.poly_domain import domain_set
    from isam.ir.relation import TooMuch, bounded

    domain = Domain(w.axes, tuple(e for rows in conditions for e in rows))
    outer = tuple((a.name, a.extent) for a in w.outer)
    try:
        return bounded(lambda: domain_set(domain, w.syms, outer).is_empty(), WORK)
    except TooMuch:
        return False
