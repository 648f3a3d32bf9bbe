"""A stable structural hash (IR-9): names and places excluded, the same in every process and on every machine.

Equal hashes mean equal kernels up to the names of kernels, sizes, buffers and axes, the order of the operands of
commutative operations and the order of conditions. The order of statements, of arguments and of a ``forall``'s axes
counts. Hash normal forms (`isam.ir.normal`) to be independent of spelling.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from isam.ir.affine import Affine
from isam.ir.kernel import COMMUTATIVE, Item, Kernel, Literal, Recurrence, Source, Statement
from isam.once import once

Names = Mapping[str, str]


@once
def structural_hash(kernel: Kernel) -> str:
    """32 hexadecimal digits; see the module's text for what they depend on.

    >>> from isam.ir.text import parse
    >>> one = parse("kernel a(N)\\n in x: f32[N]\\n out y: f32[N]\\n forall i < N\\n  y[i] = x[i] * 2")
    >>> two = parse("kernel b(M)\\n in u: f32[M]\\n out v: f32[M]\\n forall k < M\\n  v[k] = 2.0 * u[k]")
    >>> structural_hash(one) == structural_hash(two)
    True
    """
    return hashlib.sha256(canonical_text(kernel).encode()).hexdigest()[:32]


def canonical_text(kernel: Kernel) -> str:
    """The kernel with every name replaced by a number: what is hashed."""
    sizes = {s.name: f"s{n}" for n, s in enumerate(kernel.syms)}
    buffers = {b.name: f"a{n}" for n, b in enumerate(kernel.arguments)}
    for s in kernel.statements:
        for a in (s.dest, *s.reads):
            buffers.setdefault(a.buffer, f"t{len(buffers)}")
    lines = [" ".join(sorted(kernel.permits))]
    lines += [f"{s.lo} {s.hi} {s.multiple_of}" + (f" {sizes[s.whole[0]]}//{s.whole[1]}" if s.whole else "")
              for s in kernel.syms]  # fmt: skip
    for name, short in buffers.items():
        b = kernel.buffer(name)
        lines.append(f"{short} {b.role} {b.dtype} " + ",".join(_affine(d, sizes) for d in b.shape))
    _body(kernel.body, sizes, buffers, 0, lines)
    return "\n".join(lines)


def _body(body: tuple[Item, ...], names: Names, buffers: Names, depth: int, lines: list[str]) -> None:
    for item in body:
        if isinstance(item, Recurrence):
            lines.append(f"loop {_affine(item.axis.extent, names)} {{")
            _body(item.body, {**names, item.axis.name: f"l{depth}"}, buffers, depth + 1, lines)
            lines.append("}")
        else:
            lines.append(_statement(item, names, buffers))


def _statement(s: Statement, names: Names, buffers: Names) -> str:
    inner = {**names, **{n: f"i{k}" for k, n in enumerate(s.domain.names)}}
    box = ",".join(_affine(a.extent, names) for a in s.domain.axes)
    where = ";".join(sorted(_affine(w, inner) for w in s.domain.where))
    sources = [_source(x, inner, buffers) for x in s.sources]
    if s.op in COMMUTATIVE:
        sources.sort()
    return f"{box}|{where}|{_source(s.dest, inner, buffers)}|{s.op}{'+' * s.accumulate}|{'|'.join(sources)}"


def _source(x: Source, names: Names, buffers: Names) -> str:
    if isinstance(x, Literal):
        return _literal(x.value)
    return f"{buffers[x.buffer]}[{','.join(_affine(row, names) for row in x.index)}]"


def _literal(value: float | int | bool) -> str:
    if isinstance(value, bool):
        return f"#{value}"
    if isinstance(value, float):
        return f"#{int(value)}" if value.is_integer() and str(value) != "-0.0" else f"#{value.hex()}"
    return f"#{value}"


def _affine(e: Affine, names: Names) -> str:
    terms = sorted((names.get(n, n), c) for n, c in e.terms)
    return "".join(f"{c:+d}{n}" for n, c in terms) + f"{e.const:+d}"
