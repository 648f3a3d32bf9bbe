"""Whether a range of batch sizes is made of its variants: rows are a batch, and calls of variants are all rows of every
size. Whether each variant is right is proved of it alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isam.cli.progress import counting

if TYPE_CHECKING:
    from isam.artifact import Artifact
    from isam.ir.kernel import Kernel
    from isam.runtime.ranged import Batch


def doubts(kernel: Kernel, artifact: Artifact, batch: Batch) -> list[str]:
    """What speaks against it; nothing where it is."""
    from isam.ir.batch import not_a_batch, rows_of
    from isam.ir.signature import arguments_of
    from isam.runtime.dispatch import covers

    size, dispatch = batch.size, batch.dispatch
    admitted = next((s for s in kernel.given if s.name == size), None)
    if admitted is None:
        return [f"the kernel has no size {size}"]
    found = [d.message for d in not_a_batch(kernel, size)]
    arguments = arguments_of(kernel.with_sizes(dict(artifact.given)))
    if rows_of(kernel, size) != batch.rows or arguments != artifact.arguments:
        found.append("the arguments are not those of the kernel")
    if dispatch.twice and any(b.role == "inout" and b.name in batch.rows for b in kernel.arguments):
        found.append("rows are updated in place, and some are computed twice")
    limits = next(s for s in artifact.sizes if s.name == size)
    beyond = admitted.hi is not None and dispatch.hi > admitted.hi
    if beyond or 0 < limits.lo < admitted.lo or dispatch.step % admitted.multiple_of:
        found.append(f"the kernel does not admit all sizes of {limits.lo} <= {size} <= {limits.hi}")
    sizes = range(-(-limits.lo // dispatch.step) * dispatch.step, dispatch.hi + 1, dispatch.step)
    for rows in counting(sizes, "sizes made of variants"):
        spans = dispatch.spans(rows)
        if not covers(spans, rows, dispatch.twice) or any(end - begin not in dispatch.times for begin, end in spans):
            found.append(f"{rows} rows are not made of {spans}")
    return found
