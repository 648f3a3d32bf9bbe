"""What two kernels differ in: the same items at their beginning and at their end need not be executed.

After the same items every buffer holds the same, whatever it is; and where all that the last items read is the same, so
is what they leave. So it is enough that the items between make the same of anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from isam.ir.kernel import Item, Kernel, statements_in


def between(a: Kernel, b: Kernel) -> tuple[Kernel, Kernel, frozenset[str]] | None:
    """Both kernels without their common beginning and end, and the buffers that have to be the same afterwards. None
    where they have nothing in common."""
    alike = {x.name for x in a.buffers if b.by_name.get(x.name) == x}
    first = _common(a.body, b.body, alike)
    last = _common(a.body[first:][::-1], b.body[first:][::-1], alike)
    if not first + last:
        return None
    rest = a.body[len(a.body) - last :]
    seen = {x.buffer for s in statements_in(rest) for x in s.reads} | {
        x.name for x in a.arguments if x.role in ("out", "inout")
    }
    one, two = (replace(k, body=k.body[first : len(k.body) - last], template=None) for k in (a, b))
    return one, two, frozenset(seen)


def _common(a: Sequence[Item], b: Sequence[Item], alike: set[str]) -> int:
    """How many items at the beginning are the same, on buffers that are the same."""
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y or not {n.buffer for s in statements_in((x,)) for n in (s.dest, *s.reads)} <= alike:
            break
        count += 1
    return count
