"""What depends on what between the statements of a kernel, buffer by buffer (conservative: any two accesses to one
buffer, one of them a write, are kept in order). Sets of statements are bit masks: bit ``i`` is statement ``i``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isam.classes import dataclass
from isam.ir.affine import Affine
from isam.ir.kernel import Access, Item, Kernel, Recurrence, Statement
from isam.once import once


def mask_of(statements: Iterable[int]) -> int:
    """The bit mask of a set of statement indices."""
    mask = 0
    for s in statements:
        mask |= 1 << s
    return mask


def bits(mask: int) -> tuple[int, ...]:
    """The statement indices of a bit mask, ascending."""
    out: list[int] = []
    while mask:
        low = mask & -mask
        out.append(low.bit_length() - 1)
        mask ^= low
    return tuple(out)


@dataclass(frozen=True, slots=True)
class Level:
    """One straight-line list of items: the kernel's body or that of a recurrent loop (IR-12).

    ``own``: statements directly in it. ``inner``: one mask per recurrent loop in it (executed as a unit here).
    ``recurrences``: the recurrent loops around it, outermost first.
    """

    own: int
    inner: tuple[int, ...]
    recurrences: tuple[Recurrence, ...]


@once
def levels(kernel: Kernel) -> tuple[Level, ...]:
    """Every straight-line list of the kernel, outermost first."""
    out: list[Level] = []
    _levels(kernel.body, 0, (), out)
    return tuple(out)


@once
def rows_apart(kernel: Kernel) -> frozenset[str]:
    """The recurrent loops whose steps may be taken for some rows after the others: in one dimension of whatever they
    write every access goes along an axis alone, so that no row finds what another one leaves."""
    inside: dict[str, list[Statement]] = {}
    for level in levels(kernel):
        for r in level.recurrences:
            inside.setdefault(r.axis.name, []).extend(s for i, s in enumerate(kernel.statements) if level.own >> i & 1)
    written = {loop: {s.dest.buffer for s in some} for loop, some in inside.items()}
    return frozenset(loop for loop, some in inside.items() if all(_apart(some, b) for b in written[loop]))


def _apart(statements: list[Statement], buffer: str) -> bool:
    """Whether statements have an axis of their own, and nothing else, in one dimension of a buffer, always the same."""
    alone = [[any(row == Affine.of(a) for a in s.domain.names) for row in access.index]
             for s in statements for access in (s.dest, *s.reads) if access.buffer == buffer]  # fmt: skip
    return any(map(all, zip(*alone, strict=True)))


def _levels(body: tuple[Item, ...], at: int, around: tuple[Recurrence, ...], out: list[Level]) -> int:
    """Adds those of a body that begins with the ``at``-th statement; returns the statement behind it."""
    own, inner, place = 0, [], len(out)
    out.append(Level(0, (), ()))
    for it in body:
        if isinstance(it, Statement):
            own |= 1 << at
            at += 1
        else:
            end = _levels(it.body, at, (*around, it), out)
            inner.append((1 << end) - (1 << at))
            at = end
    out[place] = Level(own, tuple(inner), around)
    return at


@once
def determined(kernel: Kernel) -> frozenset[str]:
    """Temporaries that constants alone determine: every statement that writes one reads constants, numbers and such
    temporaries, and stands outside recurrent loops; who else reads it comes after the last of these."""
    fixed = {b.name for b in kernel.buffers if b.role == "const"}
    if not fixed:
        return frozenset()
    out: set[str] = set()
    once = levels(kernel)[0].own
    writers: dict[str, list[int]] = {}
    for i, s in enumerate(kernel.statements):
        writers.setdefault(s.dest.buffer, []).append(i)
    able: dict[str, set[str]] = {}  # what may be determined, by what it is made of
    for name, mine in writers.items():
        if kernel.buffer(name).role != "temp" or any(not once >> i & 1 for i in mine):
            continue
        read = set().union(*(_read(kernel.statements[i]) for i in mine)) - {name}
        others = (_read(s) for i, s in enumerate(kernel.statements[: mine[-1]]) if i not in mine)
        if read and not any(name in o for o in others):
            able[name] = read
    while more := {n for n, read in able.items() if n not in out and read <= fixed | out}:
        out |= more
    return frozenset(out)


def _read(s: Statement) -> set[str]:
    return {x.buffer for x in s.sources if isinstance(x, Access)}


@dataclass(frozen=True, slots=True)
class Order:
    """Transitively closed dependences: per statement the masks of what must stay before and after it."""

    before: tuple[int, ...]
    after: tuple[int, ...]

    def ahead(self, region: int) -> int:
        """Statements outside the region that must stay before some statement of it."""
        mask = 0
        for i in bits(region):
            mask |= self.before[i]
        return mask & ~region

    def behind(self, region: int) -> int:
        """Statements outside the region that must stay after some statement of it."""
        mask = 0
        for i in bits(region):
            mask |= self.after[i]
        return mask & ~region

    def is_convex(self, region: int) -> bool:
        """No statement lies between two of the region's: it can be executed as a unit."""
        return not self.ahead(region) & self.behind(region)


def order_of(statements: Sequence[Statement]) -> Order:
    """Dependences within one execution of the list (text order; a recurrent body counts as executed once)."""
    n = len(statements)
    direct: list[set[int]] = [set() for _ in range(n)]  # predecessors
    writer: dict[str, int] = {}
    readers: dict[str, list[int]] = {}
    for i, s in enumerate(statements):
        for a in s.reads:
            if a.buffer in writer:
                direct[i].add(writer[a.buffer])
        b = s.dest.buffer
        direct[i].update(readers.get(b, ()))
        if b in writer:
            direct[i].add(writer[b])
        writer[b], readers[b] = i, []
        for a in s.reads:
            readers.setdefault(a.buffer, []).append(i)
        direct[i].discard(i)
    before, after = [0] * n, [0] * n
    for i in range(n):
        for p in direct[i]:
            before[i] |= before[p] | 1 << p
    for i in range(n - 1, -1, -1):
        for p in direct[i]:
            after[p] |= after[i] | 1 << i
    return Order(tuple(before), tuple(after))


def ordered(parts: Sequence[int], order: Order) -> tuple[int, ...] | None:
    """Indices of ``parts`` (disjoint masks) in an order that respects every dependence, ties by first statement; or
    None when executing each part as a unit is impossible (the parts depend on each other in a circle)."""
    everything = 0
    for p in parts:
        everything |= p
    waits = [order.ahead(p) & everything for p in parts]
    left = sorted(range(len(parts)), key=lambda i: parts[i] & -parts[i])
    out: list[int] = []
    while left:
        ready = next((i for i in left if not waits[i] & everything), None)
        if ready is None:
            return None
        out.append(ready)
        left.remove(ready)
        everything &= ~parts[ready]
    return tuple(out)
