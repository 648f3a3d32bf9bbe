"""Store at: one buffer is stored inside another, so that one operand serves both (a bias as the last row of a matrix);
store apart: two parts of a buffer that no access mixes become two buffers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Buffer, Kernel, Statement
from isam.ir.mismatch import Mismatch
from isam.ir.ranges import lower, nonnegative, upper
from isam.transforms.edit import Part, accesses, fresh, names_in, splice
from isam.transforms.law import Correspondence, Rewrite, Site, Transform
from isam.transforms.staging import Index, box_copy
from isam.transforms.structure.rows import resized

Move = Callable[[Access], Access]


class StoreAt(Transform):
    """``guest`` lies behind the last element of ``host`` along a dimension: as one line of it, or as a block."""

    law = "store-at"
    equation = "f(a[k][j]), g(b[j])  =>  s[k][j] = a[k][j]; s[K][j] = b[j]; f(s[k][j]), g(s[K][j])"
    kinds = frozenset({"aliasing", "operation"})
    grows = True
    inverse = "store-apart"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        free = [b for b in kernel.buffers if b.role in ("in", "const", "temp")]
        return tuple(
            Site.of(host=a.name, guest=b.name, dim=d)
            for a in free
            for b in free
            for d in range(len(a.shape))
            if a is not b and a.dtype == b.dtype and a.role == b.role and _fits(a, b, d)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        host, guest, d = kernel.buffer(site["host"]), kernel.buffer(site["guest"]), site["dim"]
        name = fresh(names_in(kernel), f"{host.name}_{guest.name}")
        begin = host.shape[d]
        line = len(guest.shape) < len(host.shape)
        both = replace(
            resized(host, d, begin + (1 if line else guest.shape[d])), name=name, role="temp", declared=True
        )

        def behind(index: Index) -> Index:
            if line:
                return (*index[:d], begin, *index[d:])
            return (*index[:d], index[d] + begin, *index[d + 1 :])

        def move(a: Access) -> Access:
            if a.buffer == host.name:
                return replace(a, buffer=name)
            return Access(name, behind(a.index), a.loc) if a.buffer == guest.name else a

        copies = [] if host.role == "temp" else [_filled(kernel, b.name, move) for b in (host, guest)]
        return _moved(kernel, lambda _: move, (both,), copies, [], f"{host.name} and behind it {guest.name}")

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction has one operand where the kernel has two buffers: two that are named, or one of the region
        and one that a statement of the operation still wanted reads."""
        need, have = mismatch.about("need"), mismatch.about("have")
        if mismatch.kind == "aliasing":
            return tuple(s for s in self.sites(kernel) if {s["host"], s["guest"]} == {need, have})
        if mismatch.kind != "operation" or have is not None:
            return ()
        hosts = {b for _, b in mismatch.about("roles") or ()}
        like = [s for s in kernel.statements if (s.op, s.accumulate) == need]
        guests = {x.buffer for s in like for x in s.sources if isinstance(x, Access)}
        return tuple(s for s in self.sites(kernel) if s["host"] in hosts and s["guest"] in guests - hosts)


class StoreApart(Transform):
    """A buffer of which every access lies on one side of a cut along a dimension is two buffers."""

    law = "store-apart"
    equation = "f(s[k]), g(s[m + j])  =>  a[k] = s[k]; b[j] = s[m + j]; f(a[k]), g(b[j])   (k < m)"
    kinds = frozenset({"aliasing"})
    grows = True
    inverse = "store-at"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(buffer=b.name, dim=d, begin=cut)
            for b in kernel.buffers
            if b.role != "out"
            for d in range(len(b.shape))
            for cut in dict.fromkeys(lo for lo, _ in _spans(kernel, b.name, d))
            if nonnegative(cut - 1, kernel.syms) and _apart(kernel, b.name, d, cut)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        old, d, cut = kernel.buffer(site["buffer"]), site["dim"], site["begin"]
        taken = names_in(kernel)
        names = [fresh(taken, f"{old.name}_a"), fresh(taken, f"{old.name}_b")]
        low = replace(resized(old, d, cut), name=names[0], role="temp", declared=True)
        rest = old.shape[d] - cut
        line = rest == Affine((), 1)
        high = replace(resized(old, d, rest), name=names[1], role="temp", declared=True)
        high = replace(high, shape=(*old.shape[:d], *old.shape[d + 1 :])) if line else high

        def ahead(index: Index) -> Index:
            return (*index[:d], *([] if line else [index[d] - cut]), *index[d + 1 :])

        def moved_in(s: Statement) -> Move:
            def move(a: Access) -> Access:
                if a.buffer != old.name:
                    return a
                if nonnegative(lower(a.index[d], s.domain.axes) - cut, kernel.syms, s.domain.axes):
                    return Access(names[1], ahead(a.index), a.loc)
                return replace(a, buffer=names[0])

            return move

        into: list[Statement] = []
        if old.role != "temp":
            for part, index in ((low, lambda i: i), (high, lambda i: (*i[:d], cut, *i[d:]) if line
                                                     else (*i[:d], i[d] + cut, *i[d + 1 :]))):  # fmt: skip
                copy = _box(kernel, part)
                source = Access(old.name, index(copy.dest.index), old.loc)
                into.append(replace(copy, sources=(source,)))
        back = [replace(s, dest=s.sources[0], sources=(s.dest,)) for s in into if isinstance(s.sources[0], Access)]
        meaning = f"{old.name} in two parts at {cut} of dimension {d}"
        return _moved(kernel, moved_in, (low, high), into, back if old.role == "inout" else [], meaning)

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """One buffer plays two operands that must be different arrays."""
        if not self.answers(mismatch):
            return ()
        return tuple(s for s in self.sites(kernel) if s["buffer"] == mismatch.about("buffer"))


def _fits(host: Buffer, guest: Buffer, d: int) -> bool:
    around = (*host.shape[:d], *host.shape[d + 1 :])
    if len(guest.shape) == len(host.shape):
        return around == (*guest.shape[:d], *guest.shape[d + 1 :])
    return guest.shape == around


def _spans(kernel: Kernel, buffer: str, d: int) -> tuple[tuple[Affine, Affine], ...]:
    """Least and largest index of every access along a dimension, over the box of its statement."""
    return tuple(
        (lower(a.index[d], s.domain.axes), upper(a.index[d], s.domain.axes))
        for s in kernel.statements
        for a in accesses(s)
        if a.buffer == buffer
    )


def _apart(kernel: Kernel, buffer: str, d: int, cut: Affine) -> bool:
    """Every access certainly lies below the cut, or from it on."""
    below = [nonnegative(cut - 1 - hi, kernel.syms) for _, hi in _spans(kernel, buffer, d)]
    from_it = [nonnegative(lo - cut, kernel.syms) for lo, _ in _spans(kernel, buffer, d)]
    inside = nonnegative(kernel.buffer(buffer).shape[d] - 1 - cut, kernel.syms)
    return inside and any(below) and all(b or f for b, f in zip(below, from_it, strict=True))


def _box(kernel: Kernel, b: Buffer) -> Statement:
    """A copy over all elements of a buffer that the kernel does not have yet."""
    made = box_copy(replace(kernel, buffers=(*kernel.buffers, b)), b.name, lambda index: index)
    return replace(made, dest=replace(made.dest, buffer=b.name))


def _filled(kernel: Kernel, buffer: str, move: Move) -> Statement:
    made = box_copy(kernel, buffer, lambda index: index)
    source = made.sources[0]
    assert isinstance(source, Access)
    return replace(made, dest=move(source))


def _moved(kernel: Kernel, at: Callable[[Statement], Move], made: tuple[Buffer, ...], into: list[Statement],
           back: list[Statement], meaning: str) -> Rewrite:  # fmt: skip
    """The kernel with every access moved, and copies into and out of the new buffers around it."""

    parts = {i: ((s.accessing(at(s)), (i,)),) for i, s in enumerate(kernel.statements)}
    first: list[Part] = [(s, ()) for s in into]
    last: list[Part] = [(s, ()) for s in back]
    new, origin = splice(kernel, parts, buffers=(*kernel.buffers, *made), first=first, last=last)
    meanings = tuple(sorted((b.name, meaning) for b in made))
    return Rewrite(new, Correspondence(origin, meanings=meanings))
