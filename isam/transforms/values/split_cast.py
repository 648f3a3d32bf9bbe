"""Cast by way of a dtype in between: some instructions want one that is wider than what is there."""

from __future__ import annotations

from dataclasses import replace
from itertools import takewhile

from isam.ir.dtype import DTYPES
from isam.ir.kernel import Access, Buffer, Kernel, Statement
from isam.transforms.edit import Part, fresh, is_full_box, names_in, splice, within_step, writers
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.staging import box_copy
from isam.transforms.values.casts import holds


class SplitCast(Transform):
    """A cast to a dtype that has every number of the first one is two, by way of one in between. Of an array that was
    given, all elements are cast so, at the begin, once for all that read it so."""

    law = "split-cast"
    equation = "t = i32(a)  =>  f = i16(a); t = i32(f)   (every value of a is one of f, and every one of f one of t)"
    judge = "interpreter"
    grows = True
    wants = frozenset({"cast"})
    makes = frozenset({"cast"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(
            Site.of(statement=i, dtype=d) for i, s in enumerate(kernel.statements) for d in _between(kernel, s)
        )

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i, dtype = site["statement"], site["dtype"]
        s = kernel.statements[i]
        x = s.sources[0]
        if dtype not in _between(kernel, s) or not isinstance(x, Access):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        name, made, ahead, here = fresh(names_in(kernel), "f"), list[Buffer](), list[Part](), list[Part]()
        if kernel.buffer(x.buffer).role not in ("in", "const"):
            buffer, at = within_step(kernel, s, name, dtype)
            made.append(buffer)
            here.append((replace(s, dest=at), (i,)))
        elif there := _made(kernel, x.buffer, dtype, i):
            at = replace(x, buffer=there)
        else:
            made.append(Buffer(name, kernel.buffer(x.buffer).shape, dtype, "temp", declared=True))
            one, at = box_copy(kernel, x.buffer, lambda row: row), replace(x, buffer=name)
            ahead.append((replace(one, dest=replace(one.dest, buffer=name), op="cast"), (i,)))
        here.append((replace(s, sources=(at,)), (i,)))
        new, origin = splice(kernel, {i: here}, buffers=(*kernel.buffers, *made), first=ahead)
        return Rewrite(new, Correspondence(origin, meanings=((at.buffer, f"{x.buffer} as {dtype}"),)))


def _between(kernel: Kernel, s: Statement) -> list[str]:
    """The dtypes by way of which a statement may cast."""
    x = s.sources[0]
    if s.op != "cast" or s.accumulate or not isinstance(x, Access):
        return []
    ends = (kernel.buffer(s.dest.buffer).dtype, kernel.buffer(x.buffer).dtype)
    return [d for d in DTYPES if d not in ends and holds(ends[0], d) and holds(d, ends[1])]


def _made(kernel: Kernel, given: str, dtype: str, before: int) -> str:
    """The temporary that all elements of an argument are cast to before a statement, whatever loops there are; '' where
    there is none."""
    for n, s in enumerate(takewhile(lambda item: isinstance(item, Statement), kernel.body[:before])):
        assert isinstance(s, Statement)
        x, b = s.sources[0], kernel.buffer(s.dest.buffer)
        if s.op != "cast" or not isinstance(x, Access) or (x.buffer, x.index) != (given, s.dest.index):
            continue
        whole = is_full_box(kernel, s) and b.shape == kernel.buffer(given).shape
        if whole and (b.role, b.dtype, writers(kernel, b.name)) == ("temp", dtype, (n,)):
            return b.name
    return ""
