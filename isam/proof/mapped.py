"""Certificates of mappings and of chains of rewritings, without a schedule.

A certificate holds everything that :mod:`isam.proof.checker` needs to judge it: the user's kernel, the kernel after
every step, the instructions and how they are mapped. It is worth only what the checker makes of it.
"""

from __future__ import annotations

import json
from typing import Any

from isam.diagnostics import InternalError
from isam.ir.kernel import Kernel
from isam.ir.mapping import Cover
from isam.ir.mapping import Mapping as Mapped
from isam.proof.chain import check_chain
from isam.proof.checker import SCHEMA, carried_of, hash_of, holds_of, judged_mappings, sealed
from isam.proof.violation import OBLIGATIONS, Violation


def of_mapping(mapping: Mapped, kernel: Kernel) -> Cover:
    """One mapping by itself, as a cover of the statements it names."""
    return Cover(kernel, kernel, (mapping,))


def certify(cover: Cover) -> dict[str, Any]:
    """The certificate of a cover: JSON values. Raises ``InternalError`` when something in it does not hold."""
    chain, bad = check_chain(cover)
    numerics, why = judged_mappings(cover.kernel, cover.mappings)
    bad += [Violation(3, "mapping", w) for w in why]
    if bad:
        found = "\n".join(map(str, bad))
        raise InternalError(f"the mappings of '{cover.original.name}' are not proved\n{found}\n{cover.original}")
    return document(cover, chain, numerics)


def document(cover: Cover, chain: list[dict[str, Any]], numerics: tuple[str, ...]) -> dict[str, Any]:
    """What a certificate says when everything holds."""
    from isam.schedule.values import Writer

    writer = Writer()
    steps = [{**said, "kernel": writer.value(step.kernel)} for said, step in zip(chain, cover.chain, strict=True)]
    data = {
        "schema": SCHEMA,
        "kernel": {"name": cover.original.name, "text": str(cover.original), "hash": hash_of(cover.original),
                   "value": writer.value(cover.original)},
        "chain": steps,
        "mappings": [{"text": str(m), "value": writer.value(m)} for m in cover.mappings],
        "carried": carried_of(cover.kernel, cover.mappings),
        "holds": holds_of(cover.mappings),
        "numerics": list(numerics),
        "obligations": [{"number": n, "statement": OBLIGATIONS[n], "verdict": "proved"} for n in range(1, 8)],
    }  # fmt: skip
    return sealed(json.loads(json.dumps(data)))
