"""Sums of several products, each made by itself: an instruction that multiplies and adds takes one product at a time,
and what is laid out, cut and kept for a product is so for each of them.

Vectors multiply, add and sum apart, so that such a sum can be carried out as it is written. What is negated on its way
into a sum stays so where an instruction subtracts products, and is summed first where none does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from isam.ir.kernel import Kernel

if TYPE_CHECKING:
    from isam.compiler.offers.subject import Steps, Subject
    from isam.transforms.law import Site

MOST = 16  # terms that leave their sums


def each_term(of: Subject) -> Iterator[Steps]:
    """Steps after which no sum over an axis has a product as one of several terms; and those with others behind them
    that lay what terms are made of as that is made, where it lies otherwise: sums of products were not asked about
    before. What the judge of rewritings cannot decide is not offered."""
    if not any(True for _ in _sites(of.kernel)):
        return
    from isam.compiler.offers.lying import as_made
    from isam.compiler.offers.way import Way
    from isam.transforms.values.terms import SumApart

    way = Way(of.kernel, 0)
    way.take_each(SumApart(), lambda k: tuple(_sites(k)), MOST)
    yield way.steps
    if way.steps and (more := as_made(way.kernel)):
        yield (*way.steps, *more)


def _sites(kernel: Kernel) -> Iterator[Site]:
    from isam.transforms.values.terms import SumApart

    for site in SumApart().sites(kernel):
        if kernel.statements[site["sum"]].reduces and any(_of_products(kernel, site["terms"], k) for k in (0, 1)):
            yield site


def _of_products(kernel: Kernel, j: int, k: int) -> bool:
    """Whether a source of a statement is a product, or made of such by adding or negating."""
    from isam.transforms.edit import made_by

    for m in made_by(kernel, j, kernel.statements[j].sources[k]):
        s = kernel.statements[m]
        if s.accumulate:
            return False
        if s.op == "mul":
            return True
        if s.op in ("add", "sub", "neg"):
            return any(_of_products(kernel, m, i) for i in range(len(s.sources)))
    return False
