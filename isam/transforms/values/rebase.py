"""Take bytes with a sign as bytes without one, and the other way round: some instructions want one kind."""

from __future__ import annotations

from dataclasses import replace

from isam.ir.dtype import DTYPES
from isam.ir.kernel import Access, Buffer, Kernel, Literal, Source, Statement
from isam.transforms.edit import Part, fresh, names_in, splice
from isam.transforms.law import Correspondence, NoSite, Rewrite, Site, Transform
from isam.transforms.staging import box_copy

OTHER = {"i8": ("u8", 128), "u8": ("i8", -128)}  # the type that a byte is taken as, and what is added to it there


class Rebase(Transform):
    """A widened byte is the widened byte of the other type, 128 more, less 128: the addition wraps, and its result is
    in the other
    type's range whatever the byte is. Of an array that was given, all bytes are made so, at the begin."""

    law = "rebase"
    equation = "t = i32(a)  =>  f = u8(a) + 128; t = i32(f) - 128   (a: i8; of u8 the other way round)"
    judge = "interpreter"
    grows = True
    wants = frozenset({"cast"})
    makes = frozenset({"add", "cast", "copy"})

    def sites(self, kernel: Kernel) -> tuple[Site, ...]:
        return tuple(Site.of(statement=i) for i, s in enumerate(kernel.statements) if _widened(kernel, s))

    def apply(self, kernel: Kernel, site: Site) -> Rewrite:
        i = site["statement"]
        s = kernel.statements[i]
        x = s.sources[0]
        if not _widened(kernel, s) or not isinstance(x, Access):
            raise NoSite(f"'{self.law}' does not apply at {site}")
        (dtype, more), taken = OTHER[kernel.buffer(x.buffer).dtype], names_in(kernel)
        whole = kernel.buffer(x.buffer).role in ("in", "const")
        one = box_copy(kernel, x.buffer, lambda at: at) if whole else s
        made, ahead, here = list[Buffer](), list[Part](), list[Part]()

        def put(like: Statement, op: str, *sources: Source, kind: str, of: str, into: list[Part]) -> Access:
            name = fresh(taken, "f")
            taken.add(name)
            made.append(Buffer(name, kernel.buffer(of).shape, kind, "temp", declared=True))
            at = replace(like.dest, buffer=name)
            into.append((replace(like, dest=at, op=op, sources=sources), (i,)))
            return at

        of, into = (x.buffer, ahead) if whole else (s.dest.buffer, here)
        byte = put(one, "cast", one.sources[0], kind=dtype, of=of, into=into)
        byte = put(one, "add", byte, Literal(more), kind=dtype, of=of, into=into)
        byte = replace(x, buffer=byte.buffer) if whole else byte
        wide = put(s, "cast", byte, kind=kernel.buffer(s.dest.buffer).dtype, of=s.dest.buffer, into=here)
        here.append((replace(s, op="add", sources=(wide, Literal(-more))), (i,)))
        new, origin = splice(kernel, {i: here}, buffers=(*kernel.buffers, *made), first=ahead)
        return Rewrite(new, Correspondence(origin, meanings=((byte.buffer, f"{x.buffer}, {more} more"),)))


def _widened(kernel: Kernel, s: Statement) -> bool:
    """Whether a statement makes a wider integer, with a sign, of a byte."""
    x = s.sources[0]
    wide = DTYPES[kernel.buffer(s.dest.buffer).dtype]
    byte = isinstance(x, Access) and kernel.buffer(x.buffer).dtype in OTHER
    return byte and s.op == "cast" and not s.accumulate and wide.kind == "i" and wide.bits > 8

