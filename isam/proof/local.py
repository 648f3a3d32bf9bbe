"""What two kernels differ in: the same items at their beginning and at their end need not be executed.

After the same items every buffer holds the same, whatever it is; and where all that the last items read is the same, so
is what they leave. So it is enough that the items between make the same of anything.

What is between has places, too, where both hold the same (cutpoints, as in the comparison of circuits): sums that were
shown to be the same are any numbers to what follows, which need not know what they are sums of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from isam.ir.kernel import Item, Kernel, Statement, statements_in


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


def cutpoints(a: Sequence[Item], b: Sequence[Item]) -> Iterator[tuple[int, int, str]]:
    """Buffers whose sums both lists of statements have made after so many statements of each, and that are read after
    that: in order, of both lists."""
    one, two = _summed(a), _summed(b)
    behind = 0
    for name, i in sorted(one.items(), key=lambda x: x[1]):
        j = two.get(name, 0)
        if j > behind and any(x.buffer == name for s in statements_in((*a[i:], *b[j:])) for x in s.reads):
            yield i, j, name
            behind = j


def _summed(items: Sequence[Item]) -> dict[str, int]:
    """The buffers that statements add up points of an axis in, each with the number of statements after which nothing
    writes it any more."""
    last = {s.dest.buffer: n for n, s in enumerate(statements_in(items), 1)}
    sums = {s.dest.buffer for s in items if isinstance(s, Statement) and s.accumulate and s.reduces}
    return {name: last[name] for name in sums}


def _common(a: Sequence[Item], b: Sequence[Item], alike: set[str]) -> int:
    """How many items at the beginning are the same, on buffers that are the same."""
    count = 0
    for x, y in zip(a, b, strict=False):
        if x != y or not {n.buffer for s in statements_in((x,)) for n in (s.dest, *s.reads)} <= alike:
            break
        count += 1
    return count
