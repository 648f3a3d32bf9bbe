"""Which operands of an instruction may be one and the same tile."""

from __future__ import annotations

from isam.proof.signature import Signature


def pointwise(sig: Signature) -> frozenset[tuple[str, str]]:
    """Pairs (written, read) of operands that the instruction accesses at the same index, once per element, and reads
    no later than it writes."""
    writes = [p for p in sig.semantics.pairs if p.writes]
    reads = [p for p in sig.semantics.pairs if not p.writes]
    free = {
        p.operand
        for p in writes
        if all(n == 1 for a, n in sig.extents.items() if not any(a in r.names for r in p.own.index))
    }
    alike = [(w, r) for w in writes for r in reads if w.operand in free and w.own.index == r.own.index]
    late = {(w.operand, r.operand) for w in writes for r in reads if r.own_at > w.own_at}
    return frozenset((w.operand, r.operand) for w, r in alike) - late
