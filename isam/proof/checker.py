"""The checker of certificates of mappings and rewritings: small, and apart from what makes them.

It reads one JSON document and nothing else. The kernels in it are judged, step by step, by value
(:mod:`isam.proof.equivalence`); the mappings by putting the instructions' bodies in the place of the statements
(:mod:`isam.proof.carried`) and judging that kernel too; whether calls of those sizes do it, at all sizes at which the
mappings are said to hold, is asked of :mod:`isam.proof.calls`. Everything the document says besides (texts, hashes,
verdicts, numerics) must be what comes out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from isam.ir.kernel import Kernel
from isam.ir.mapping import Mapping as Mapped
from isam.proof.calls import lacking
from isam.proof.carried import Part, Unfit, carried
from isam.proof.equivalence import Equivalence
from isam.proof.violation import NONSENSE, OBLIGATIONS

SCHEMA = "isam.mapping-certificate/2"
FIELDS = {"schema", "kernel", "chain", "mappings", "carried", "holds", "numerics", "obligations", "seal"}
KERNEL = {"name", "text", "hash", "value"}
STEP = {"law", "site", "claims", "numerics", "kernel", "hash", "verdict"}


def refusals(certificate: str | bytes | Mapping[str, Any]) -> list[str]:
    """Every reason not to accept a certificate; an empty list means that it holds."""
    try:
        data = json.loads(certificate) if isinstance(certificate, (str, bytes)) else json.loads(json.dumps(certificate))
        return list(_refusals(data))
    except NONSENSE as e:
        return [f"this is no certificate: {type(e).__name__}: {e}"]


def _refusals(data: dict[str, Any]) -> Iterator[str]:
    from isam.schedule.values import Reader

    if data["schema"] != SCHEMA or data.keys() != FIELDS:
        yield "not the schema, or fields that do not belong there"
        return
    if data != sealed({k: v for k, v in data.items() if k != "seal"}):
        yield "the seal does not fit"
    read, equivalence = Reader(), Equivalence()
    kernel = _kernel(read.value(data["kernel"]["value"]))
    said = {"name": kernel.name, "text": str(kernel), "hash": hash_of(kernel), "value": data["kernel"]["value"]}
    if data["kernel"] != said:
        yield "the kernel is not the one whose text and hash are given"
    for n, step in enumerate(data["chain"], 1):
        after = _kernel(read.value(step["kernel"]))
        if step.keys() != STEP or step["hash"] != hash_of(after) or step["verdict"] != "equal":
            yield f"step {n}: not what a step that holds says"
        verdict = equivalence.judge(kernel, after, step["claims"])
        if not verdict:
            yield f"step {n}, {step['law']} ({step['site']}): {verdict}"
        elif list(verdict.numerics) != step["numerics"]:
            yield f"step {n} uses {', '.join(verdict.numerics) or 'no numerics'}, not what is said"
        kernel = after
    mappings = [read.value(m["value"]) for m in data["mappings"]]
    if any(not isinstance(m, Mapped) or x != {"text": str(m), "value": x["value"]}
           for m, x in zip(mappings, data["mappings"], strict=True)):  # fmt: skip
        yield "a mapping is not the one whose text is given"
        return
    if data["carried"] != carried_of(kernel, mappings):
        yield "the mappings carry out other statements than is said"
    if data["holds"] != holds_of(mappings):
        yield "the mappings hold under other conditions than is said"
    numerics, why = judged_mappings(kernel, mappings)
    yield from why
    if not why and list(numerics) != data["numerics"]:
        yield f"the mappings use {', '.join(numerics) or 'no numerics'}, not what is said"
    proved = [{"number": n, "statement": OBLIGATIONS[n], "verdict": "proved"} for n in range(1, 8)]
    if data["obligations"] != proved:
        yield "the obligations are not the seven, proved"


def judged_mappings(kernel: Kernel, mappings: Sequence[Mapped]) -> tuple[tuple[str, ...], list[str]]:
    """The numerics that carrying the kernel out by these mappings uses; and what speaks against it."""
    why = [f"'{m.instruction.name}' takes numerics that the kernel does not permit: {', '.join(sorted(missing))}"
           for m in mappings if (missing := m.instruction.takes - kernel.permits)]  # fmt: skip
    try:
        made = carried(kernel, mappings)
    except Unfit as e:
        return (), [*why, str(e)]
    verdict = Equivalence().judge(kernel, made)
    if not verdict:
        why.append(f"the instructions do not carry the kernel out: {verdict}")
        return verdict.numerics, why
    try:
        why += [w for n, m in enumerate(mappings) for w in lacking(kernel, m, Part(kernel, m, n))]
    except Unfit as e:
        why.append(str(e))
    return verdict.numerics, why


def holds_of(mappings: Sequence[Mapped]) -> list[str]:
    """The conditions on open sizes under which the mappings carry the kernel out."""
    return list(dict.fromkeys(str(c) for m in mappings for c in m.conditions))


def carried_of(kernel: Kernel, mappings: Sequence[Mapped]) -> dict[str, Any]:
    """Which statements the mappings carry out, and of how many."""
    return {"statements": sorted(i for m in mappings for i in m.statements), "of": len(kernel.statements)}


def _kernel(k: object) -> Kernel:
    if not isinstance(k, Kernel):
        raise ValueError("a kernel is needed")
    return k


def hash_of(kernel: Kernel) -> str:
    return hashlib.sha256(str(kernel).encode()).hexdigest()


def sealed(data: Mapping[str, Any]) -> dict[str, Any]:
    """The document with a hash over it."""
    text = json.dumps(data, sort_keys=True, ensure_ascii=False)
    return {**data, "seal": hashlib.sha256(text.encode()).hexdigest()}
