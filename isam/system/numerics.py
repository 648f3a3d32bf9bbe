"""Whether the numerics that an instruction declares can be those of its body.

``permits contract`` needs a product that goes into a sum, ``reassociate`` an operation repeated, ``flush`` floats,
``ulp`` a function that may be approximated; ``permits exact`` and an error contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterator

from isam.ir.dtype import DTYPES
from isam.ir.instruction import Instruction
from isam.ir.kernel import REDUCTIONS, Access, Kernel

APPROXIMATED = frozenset({"exp", "log", "tanh", "sigmoid", "erf", "sin", "cos", "sqrt", "rsqrt", "pow", "div"})
Contradiction = tuple[str, str, str]  # what declares it (ulp, permits), message, hint


def contradictions(instruction: Instruction) -> Iterator[Contradiction]:
    """Every declaration that the body contradicts."""
    body, name = instruction.body, instruction.name
    if instruction.ulp:
        yield from _error(instruction)
    if "contract" in body.permits and not _product_into_sum(body):
        yield "permits", f"'{name}' permits 'contract', but no product goes into a sum", "leave 'contract' out"
    if "reassociate" in body.permits and not _repeated(body):
        yield "permits", f"'{name}' permits 'reassociate', but nothing is summed up", "leave 'reassociate' out"
    if "flush" in body.permits and not any(DTYPES[b.dtype].kind == "f" for b in body.buffers if b.dtype in DTYPES):
        yield "permits", f"'{name}' permits 'flush', but computes with whole numbers", "leave 'flush' out"


def meaningful(body: Kernel) -> frozenset[str]:
    """The permissions that can make a difference to a body of floats."""
    if not any(b.dtype in DTYPES and DTYPES[b.dtype].kind == "f" for b in body.buffers):
        return frozenset()
    found = {"contract": _product_into_sum(body), "reassociate": _repeated(body)}
    return frozenset(p for p, can in found.items() if can)


def _error(instruction: Instruction) -> Iterator[Contradiction]:
    body, name = instruction.body, instruction.name
    kinds = {DTYPES[b.dtype].kind for b in body.buffers if b.dtype in DTYPES}
    if "f" not in kinds:
        yield "ulp", f"'{name}' computes with whole numbers: it has no error in ulp", "remove 'ulp'"
    elif not any(s.op in APPROXIMATED for s in body.statements):
        yield ("ulp", f"'{name}' declares an error, but nothing in its body is approximated",
               "remove 'ulp'; permissions say how sums may be rounded")  # fmt: skip
    elif "exact" in body.permits:
        yield ("ulp", f"'{name}' declares an error of {instruction.ulp:g} ulp and permits 'exact'",
               "remove one of the two")  # fmt: skip


def _product_into_sum(body: Kernel) -> bool:
    """Also one that is negated first."""
    products = {s.dest.buffer for s in body.statements if s.op == "mul"}
    products |= {s.dest.buffer for s in body.statements if s.op == "neg" and _reads(s.sources, products)}
    return any(s.op in ("add", "sub") and not products.isdisjoint(a.buffer for a in s.reads) for s in body.statements)


def _repeated(body: Kernel) -> bool:
    """An accumulation over an axis, or an operation on a result of the same operation."""
    for op in REDUCTIONS:
        mine = [s for s in body.statements if s.op == op]
        results = {s.dest.buffer for s in mine}
        if any((s.accumulate and s.reduces) or _reads(s.sources, results) for s in mine):
            return True
    return False


def _reads(sources: tuple[object, ...], buffers: set[str]) -> bool:
    return any(isinstance(a, Access) and a.buffer in buffers for a in sources)
