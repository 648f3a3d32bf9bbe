"""Duplicate a temporary, so that it no longer escapes from the region of an instruction; and the inverse (TR-1)."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.kernel import Kernel
from isam.ir.mismatch import Mismatch
from isam.transforms.edit import (
    Part,
    fresh,
    names_in,
    readers,
    splice,
    together,
    touches,
    writers,
    written_between,
)
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform


class Duplicate(Transform):
    """Some readers of a temporary (or of an output) get one of their own: every statement that writes it is carried out
    twice, so that at any time both hold the same. A site with ``late``, which no law offers by itself, makes it just
    before the first of these readers, where what it is made of is still the same there."""

    law = "duplicate"
    equation = "t = f; y = g(t); z = h(t)  =>  t = f; t2 = f; y = g(t2); z = h(t)"
    kinds = frozenset({"escapes"})
    grows = True
    inverse = "unify"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(buffer=b.name, readers=(j,))
            for b in kernel.buffers
            for j in _others(kernel, b.name)
            if b.role == "out" or len(_others(kernel, b.name)) > 1
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        name, mine = site["buffer"], set(site["readers"])
        if not mine <= set(_others(kernel, name)):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        own = fresh(names_in(kernel), name)
        parts: dict[int, tuple[Part, ...]] = {j: ((kernel.statements[j].renamed({name: own}), (j,)),) for j in mine}
        for i in writers(kernel, name):
            s = kernel.statements[i]
            copy = s.renamed({name: own}), (i,)
            if not site.get("late"):
                parts[i] = (copy, (s, (i,)))
            elif _stays(kernel, i, min(mine)):
                parts[min(mine)] = (copy, *parts[min(mine)])
            else:
                raise NoSite(f"'{self.law}' does not apply at {site}")
        made = replace(kernel.buffer(name), name=own, role="temp", declared=True)
        new, origin = splice(kernel, parts, buffers=(*kernel.buffers, made))
        back = Correspondence(origin, buffers=((name, (name, own)),), meanings=((own, name),))
        return Rewrite(new, back)

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The readers that are not in the way of the instruction get their own; of an output, the one that is."""
        name = mismatch.about("buffer")
        if not self.answers(mismatch):
            return ()
        return tuple(s for s in self.sites(kernel) if s["buffer"] == name)


def _stays(kernel: Kernel, writer: int, reader: int) -> bool:
    """Whether one statement writes a buffer, its own sums apart, and could stand just before a later reader of it: in
    the same loops, and none between writes what it reads."""
    s = kernel.statements[writer]
    alone = writers(kernel, s.dest.buffer) == (writer,) and not s.accumulate and writer < reader
    between = written_between(kernel, writer, reader)
    return alone and together(kernel, writer, reader) and not between & {x.buffer for x in s.reads}


class Unify(Transform):
    """Two temporaries made by the same statements side by side are one."""

    law = "unify"
    equation = "t = f; t2 = f; y = g(t2); z = h(t)  =>  t = f; y = g(t); z = h(t)"
    kinds = frozenset({"aliasing"})
    inverse = "duplicate"

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        temps = [b.name for b in kernel.buffers if b.role == "temp"]
        return tuple(
            Site.of(buffer=b.name, copy=t)
            for b in kernel.buffers
            for t in temps
            if b.role in ("temp", "out") and _alike(kernel, b.name, t)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        name, copy = site["buffer"], site["copy"]
        if not _alike(kernel, name, copy):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        pairs = dict(zip(writers(kernel, copy), writers(kernel, name), strict=True))
        kept = {i: j for j, i in pairs.items()}
        parts: dict[int, tuple[Part, ...]] = dict.fromkeys(pairs, ())
        parts |= {i: ((kernel.statements[i], (i, j)),) for i, j in kept.items()}
        for j in readers(kernel, copy):
            if j not in pairs:
                parts[j] = ((kernel.statements[j].renamed({copy: name}), (j,)),)
        new, origin = splice(kernel, parts)
        return Rewrite(new, Correspondence(origin, buffers=((copy, (name,)),)))

    def sites_for(self, kernel: Kernel, mismatch: Mismatch) -> tuple[Site, ...]:
        """The instruction wants one array in two places; the kernel has two that hold the same."""
        if not self.answers(mismatch):
            return ()
        pair = {mismatch.about("need"), mismatch.about("have")}
        return tuple(s for s in self.sites(kernel) if {s["buffer"], s["copy"]} == pair)


def _others(kernel: Kernel, name: str) -> tuple[int, ...]:
    """Statements that read the buffer and do not write it; none where what it held before the first write counts."""
    if kernel.buffer(name).role not in ("temp", "out"):
        return ()
    return tuple(j for j in readers(kernel, name) if kernel.statements[j].dest.buffer != name)


def _alike(kernel: Kernel, name: str, copy: str) -> bool:
    """Are the two filled by the same statements, each pair side by side?"""
    a, b = kernel.buffer(name), kernel.buffer(copy)
    one, two = writers(kernel, name), writers(kernel, copy)
    if (a.shape, a.dtype) != (b.shape, b.dtype) or len(one) != len(two) or not one:
        return False
    return all(abs(i - j) == 1 and _same(kernel, i, name, j, copy) for i, j in zip(one, two, strict=True))


def _same(kernel: Kernel, i: int, name: str, j: int, copy: str) -> bool:
    """Statement ``j`` does to ``copy`` what ``i`` does to ``name``, and neither looks at the other's."""
    a, b = kernel.statements[i], kernel.statements[j]
    return name not in touches(b) and together(kernel, i, j) and b.renamed({copy: name}) == a
