"""The visited set's key: equal for kernels that differ only in the names of temporaries and axes."""

from __future__ import annotations

import hashlib

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Item, Kernel, Recurrence, Source, Statement


def fingerprint(kernel: Kernel) -> str:
    """A digest of the kernel's structure. Axes are numbered per statement, temporaries by first use; locations and the
    kernel's name do not count."""
    temps: dict[str, str] = {}
    lines: list[str] = [",".join(f"{b.name}:{b.dtype}{[str(d) for d in b.shape]}:{b.role}" for b in kernel.arguments)]

    def buffer(name: str) -> str:
        b = kernel.buffer(name)
        if b.role != "temp":
            return name
        return temps.setdefault(name, f"%{len(temps)}:{b.dtype}{[str(d) for d in b.shape]}")

    def statement(s: Statement, loops: dict[str, Affine]) -> str:
        names = loops | {a.name: Affine.of(f"@{i}") for i, a in enumerate(s.domain.axes)}

        def source(x: Source) -> str:
            if not isinstance(x, Access):
                return repr(x.value)
            return f"{buffer(x.buffer)}{[str(r.substitute(names)) for r in x.index]}"

        where = sorted(str(w.substitute(names)) for w in s.domain.where)
        extents = [str(a.extent) for a in s.domain.axes]
        return f"{source(s.dest)} {s.op} {s.accumulate} {[source(x) for x in s.sources]} {extents} {where}"

    def walk(body: tuple[Item, ...], loops: dict[str, Affine]) -> None:
        for it in body:
            if isinstance(it, Recurrence):
                lines.append(f"loop {it.axis.extent}")
                walk(it.body, loops | {it.axis.name: Affine.of(f"t{len(loops)}")})
                lines.append("end")
            else:
                lines.append(statement(it, loops))

    walk(kernel.body, {})
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()
