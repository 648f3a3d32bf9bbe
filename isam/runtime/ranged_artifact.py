"""A kernel for a range of batch sizes on disk: the artifacts of its variants in one, and which of them make up a size.

Parts: ``kernel.isam`` (text), ``dispatch.json``, ``variants/ROWS`` (each an artifact). Whoever reads one sees to it
that every variant takes just what the range says it does for so many rows, and that every size is made of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from isam.artifact import RANGE, Argument, Artifact, Row, Size, from_bytes
from isam.diagnostics import Loc, fail
from isam.runtime.dispatch import Dispatch
from isam.runtime.entry import Entry
from isam.runtime.ranged import Batch, RangedFunction
from isam.runtime.signature import Signature

DISPATCH, VARIANT = "dispatch.json", "variants/"


def to_artifact(fn: RangedFunction) -> Artifact:
    """All that it is made of, but for what is bound."""
    batch, some = fn.batch, {rows: entry.artifact for rows, entry in fn.variants.items()}
    first = next(iter(some.values()))
    said = {"size": batch.size, "rows": sorted(batch.rows), **batch.dispatch.to_json()}
    parts = {VARIANT + str(rows): a.to_bytes() for rows, a in some.items()}
    parts |= {"kernel.isam": first.parts["kernel.isam"], DISPATCH: json.dumps(said, indent=1).encode()}
    return Artifact(
        fn.signature.name, RANGE, fn.signature.arguments, fn.signature.sizes,
        needs=_all(a.needs for a in some.values()), externals=_all(a.externals for a in some.values()),
        given=tuple((n, v) for n, v in first.given if n != batch.size), provenance=first.provenance, parts=parts,
    )  # fmt: skip


def from_artifact(artifact: Artifact, loc: Loc, functions: Mapping[str, Any] | None = None) -> RangedFunction:
    """Ready to be called. Raises ``IsamError`` where it is damaged, its variants are not those that the range wants, or
    one of them cannot run here."""
    batch, variants = read(artifact, loc)
    entries = {rows: Entry(a, functions) for rows, a in variants.items()}
    signature = Signature(artifact.name, artifact.arguments, artifact.sizes, (), loc)
    return RangedFunction(signature, batch, entries)


def read(artifact: Artifact, loc: Loc) -> tuple[Batch, dict[int, Artifact]]:
    """What makes up a size, and the variants by their rows; nothing is run. Raises ``IsamError``."""
    try:
        said = json.loads(artifact.parts.get(DISPATCH, b""))
        batch = Batch(said["size"], frozenset(said["rows"]), Dispatch.from_json(said))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError) as e:
        raise fail("artifact-damaged", f"{loc.file}: nothing says which variants make up a size: {e}", loc) from None
    of_rows = [a.name for a in artifact.arguments if _is_batch(a, batch.size)]
    limits = [s for s in artifact.sizes if s.name == batch.size]
    if set(of_rows) != batch.rows or not _limited(artifact, batch):
        what = f"{loc.file}: the arguments are not those of a batch of {batch.size} that its variants make up"
        raise fail("artifact-damaged", what, loc)
    if not batch.dispatch.reaches(limits[0].lo):
        raise fail("artifact-damaged", f"{loc.file}: some sizes of the range are not made of variants", loc)
    variants: dict[int, Artifact] = {}
    for rows in batch.dispatch.times:
        part = f"{VARIANT}{rows}"
        if part not in artifact.parts:
            raise fail("artifact-part", f"{loc.file} lacks the variant for {rows} rows", loc)
        one = variants[rows] = from_bytes(artifact.parts[part], f"{loc.file}/{part}")
        wanted = tuple(_of(a, batch.size, rows) for a in artifact.arguments)
        others = tuple(s for s in artifact.sizes if s.name != batch.size)
        if (one.name, one.arguments, one.sizes) != (artifact.name, wanted, others):
            raise fail("artifact-damaged", f"{loc.file}: the variant for {rows} rows takes something else", loc)
    return batch, variants


def _limited(artifact: Artifact, batch: Batch) -> bool:
    """Whether the size has the limits that its variants were chosen for, and no argument depends on it otherwise."""
    own = [s for s in artifact.sizes if s.name == batch.size]
    used = {a.name for a in artifact.arguments for _, terms in a.shape for n, _ in terms if n == batch.size}
    wanted = [Size(batch.size, s.lo, batch.dispatch.hi, batch.dispatch.step) for s in own[:1]]
    return own == wanted and len(own) == 1 and 0 <= own[0].lo <= batch.dispatch.hi and used == batch.rows


def _is_batch(a: Argument, size: str) -> bool:
    """Whether the size counts the first dimension, and nothing but it."""
    here = [d for d, (_, terms) in enumerate(a.shape) if any(n == size for n, _ in terms)]
    return here == [0] and a.shape[0] == (0, ((size, 1),))


def _of(a: Argument, size: str, rows: int) -> Argument:
    def known(row: Row) -> Row:
        const, terms = row
        return const + rows * sum(c for n, c in terms if n == size), tuple(t for t in terms if t[0] != size)

    return replace(a, shape=tuple(map(known, a.shape)))


def _all(each: Iterable[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(dict.fromkeys(x for some in each for x in some))
