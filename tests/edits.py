"""Small edits of a kernel, most of which change what it computes: what an equivalence checker must tell apart.

Each takes a kernel and a source of choices and returns another kernel, or ``None`` where it finds nothing to edit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from isam.ir.affine import Affine
from isam.ir.kernel import Access, Item, Kernel, Literal, Recurrence, Source, Statement
from tests.random_kernels import Chooser

OTHER = {"add": "sub", "sub": "add", "mul": "add", "div": "mul", "max": "min", "min": "max", "exp": "tanh",
         "neg": "abs", "lt": "le", "gt": "lt", "and": "or", "sqrt": "exp", "sigmoid": "tanh",
         "tanh": "sigmoid"}  # fmt: skip


def put(k: Kernel, at: int, new: Sequence[Statement]) -> Kernel:
    """The kernel with its statement number ``at`` replaced."""
    count = 0

    def walk(body: tuple[Item, ...]) -> tuple[Item, ...]:
        nonlocal count
        out: list[Item] = []
        for it in body:
            if isinstance(it, Recurrence):
                out.append(replace(it, body=walk(it.body)))
                continue
            out.extend(new if count == at else [it])
            count += 1
        return tuple(out)

    return replace(k, body=walk(k.body), template=None)


def pick(choose: Chooser, options: Sequence) -> object:
    return options[choose.integer(0, len(options) - 1)] if options else None


def sign(choose: Chooser) -> int:
    return 2 * choose.integer(0, 1) - 1


def reads(s: Statement) -> list[tuple[int, Access]]:
    return [(i, x) for i, x in enumerate(s.sources) if isinstance(x, Access)]


def with_source(s: Statement, i: int, x: Source) -> Statement:
    return replace(s, sources=(*s.sources[:i], x, *s.sources[i + 1 :]))


def moved(a: Access, choose: Chooser, by: Affine) -> Access | None:
    if not a.index:
        return None
    d = choose.integer(0, len(a.index) - 1)
    return replace(a, index=(*a.index[:d], a.index[d] + by, *a.index[d + 1 :]))


def offset(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """A source is read one element further."""
    found = pick(choose, reads(s))
    new = found and moved(found[1], choose, Affine((), sign(choose)))
    return put(k, n, [with_source(s, found[0], new)]) if new else None


def coefficient(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """An axis counts once more, or once less, in an index."""
    found, axis = pick(choose, reads(s)), pick(choose, s.domain.names)
    new = found and axis and moved(found[1], choose, Affine.of(axis, sign(choose)))
    return put(k, n, [with_source(s, found[0], new)]) if new else None


def reversal(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """An axis is run backwards in one access only."""
    found, axis = pick(choose, reads(s)), pick(choose, s.domain.axes)
    if not found or not axis:
        return None
    back = {axis.name: axis.extent - 1 - axis.name}
    new = replace(found[1], index=tuple(r.substitute(back) for r in found[1].index))
    return put(k, n, [with_source(s, found[0], new)])


def literal(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    found = pick(choose, [(i, x) for i, x in enumerate(s.sources) if isinstance(x, Literal)])
    if not found:
        return None
    value = not found[1].value if isinstance(found[1].value, bool) else found[1].value + 1
    return put(k, n, [with_source(s, found[0], Literal(value))])


def swap(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    return put(k, n, [replace(s, sources=s.sources[::-1])]) if len(s.sources) == 2 else None


def drop(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    return put(k, n, [])


def twice(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    return put(k, n, [s, s])


def operation(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    new = OTHER.get(s.op)
    if s.accumulate and new not in ("add", "mul", "max", "min"):
        new = {"add": "mul", "mul": "add"}.get(s.op)
    return put(k, n, [replace(s, op=new)]) if new else None


def overwrite(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """An accumulation becomes an assignment."""
    return put(k, n, [replace(s, op="copy", accumulate=False)]) if s.accumulate and len(s.sources) == 1 else None


def extent(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    axes = s.domain.axes
    if not axes:
        return None
    i = choose.integer(0, len(axes) - 1)
    new = replace(axes[i], extent=axes[i].extent + sign(choose))
    return put(k, n, [replace(s, domain=replace(s.domain, axes=(*axes[:i], new, *axes[i + 1 :])))])


def condition(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """A condition goes, or bites one point earlier."""
    where = s.domain.where
    if not where:
        return None
    i = choose.integer(0, len(where) - 1)
    kept = (where[i] - 1,) if choose.integer(0, 1) else ()
    return put(k, n, [replace(s, domain=replace(s.domain, where=(*where[:i], *kept, *where[i + 1 :])))])


def buffer(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """Another buffer of the same rank and dtype is read."""
    found = pick(choose, reads(s))
    if not found:
        return None
    x = found[1]
    like = [b.name for b in k.buffers
            if b.name != x.buffer and len(b.shape) == len(x.index) and b.dtype == k.buffer(x.buffer).dtype]  # fmt: skip
    other = pick(choose, like)
    return put(k, n, [with_source(s, found[0], replace(x, buffer=other))]) if other else None


def destination(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    new = moved(s.dest, choose, Affine((), sign(choose)))
    return put(k, n, [replace(s, dest=new)]) if new else None


def transposed(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """Two rows of an index change places."""
    found = pick(choose, [(i, x) for i, x in reads(s) if len(x.index) > 1])
    if not found:
        return None
    index = list(found[1].index)
    d = choose.integer(0, len(index) - 2)
    index[d], index[d + 1] = index[d + 1], index[d]
    return put(k, n, [with_source(s, found[0], replace(found[1], index=tuple(index)))])


def exchange(k: Kernel, n: int, s: Statement, choose: Chooser) -> Kernel | None:
    """Two neighbouring items change places."""
    if len(k.body) < 2:
        return None
    i = choose.integer(0, len(k.body) - 2)
    body = (*k.body[:i], k.body[i + 1], k.body[i], *k.body[i + 2 :])
    return replace(k, body=body, template=None)


Edit = Callable[[Kernel, int, Statement, Chooser], "Kernel | None"]
EDITS: tuple[Edit, ...] = (offset, coefficient, reversal, literal, swap, drop, twice, operation, overwrite, extent,
                           condition, buffer, destination, transposed, exchange)  # fmt: skip


def edited(k: Kernel, choose: Chooser) -> Kernel | None:
    """One edit, somewhere."""
    if not k.statements:
        return None
    n = choose.integer(0, len(k.statements) - 1)
    return EDITS[choose.integer(0, len(EDITS) - 1)](k, n, k.statements[n], choose)
