"""The normal form (IR-2): one form whatever was typed, so that matching never depends on spelling.

Laws, applied until nothing changes (each keeps the values of all outputs, bit by bit):

* an accumulation that reduces over nothing is a plain operation: ``t *= b`` is ``t = t * b``;
* a temporary that is assigned anew in full is a new temporary (*versions*);
* a copy into a temporary is read where the temporary was (*forward*); a temporary that is only copied out is the
  target from the start (*backward*);
* a temporary is laid out as the axes of its first statement stand, and those that use it call them as that one does;
* an axis begins and ends where conditions on it alone say, and counts from there (not of a sum: what begins its results
  may go on over all of them, in the same loops);
* a cast to the dtype at hand is a copy; a literal stands second in a commutative operation;
* statements over an empty domain, and those whose results nobody reads, go;
* recurrent loops that share a name get names of their own.

Products and the sums over them stay two statements. Temporaries keep their names where they can: compare kernels by
``isam.ir.hashing.structural_hash``. Needs a kernel that ``verify`` accepts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from isam.ir.apart import loops_apart
from isam.ir.kernel import COMMUTATIVE, REDUCTIONS, Access, Domain, Kernel, Literal, Statement
from isam.ir.lines import Lines
from isam.ir.normal_copies import backward, forward
from isam.ir.normal_ends import within_ends
from isam.ir.normal_names import one_name
from isam.ir.normal_versions import split_versions, straighten
from isam.once import know, once

ROUNDS = 1000  # far above what any kernel needs: each round but the last removes a copy or a name


@once
def normal_form(kernel: Kernel) -> Kernel:
    """The kernel in normal form; idempotent, and computed once per kernel object.

    >>> from isam.ir.text import parse
    >>> k = parse("kernel p(N)\\n in a: f32[N]\\n inout c: f32\\n forall i < N\\n  t[i] = a[i]\\n  t[i] *= 2"
    ...           "\\n  c += t[i]")
    >>> print(*map(str, normal_form(k).statements[0].sources))
    a[i] 2
    """
    lines = Lines(loops_apart(kernel))
    for _ in range(ROUNDS):
        changed = [step(lines) for step in STEPS]
        if not any(changed):
            break
    _old_names(lines, kernel)
    one_name(lines)
    found = lines.kernel()
    if found == kernel:
        return kernel
    know(normal_form, found, found)
    return found


def simplify(lines: Lines) -> bool:
    """Laws on single statements: plain accumulations, idle casts, literals second, empty domains, ends of axes."""
    changed = False
    sums = {s.domain for _, s in lines.live() if s.accumulate and s.reduces}
    for at, s in lines.live():
        new = _simple(s, lines, sums)
        if new is not s:
            lines.put(at, new)
            changed = True
    return changed


def _simple(s: Statement, lines: Lines, sums: Collection[Domain]) -> Statement | None:
    if any(a.extent.is_constant and a.extent.const <= 0 for a in s.domain.axes):
        return None
    if any(w.is_constant and w.const < 0 for w in s.domain.where):
        return None
    if s.domain not in sums and (cut := within_ends(s)) is not s:
        return cut
    if s.accumulate and s.op in REDUCTIONS and one_to_one(s):
        return replace(s, sources=(s.dest, *s.sources), accumulate=False)
    if s.op in ("cast", "cast_sat"):
        x = s.sources[0]
        if isinstance(x, Access) and lines.buffers[x.buffer].dtype == lines.buffers[s.dest.buffer].dtype:
            return replace(s, op="copy")
    if s.op in COMMUTATIVE and len(s.sources) == 2 and isinstance(s.sources[0], Literal):
        a, b = s.sources
        if isinstance(b, Access):
            return replace(s, sources=(b, a))
    return s


def one_to_one(s: Statement) -> bool:
    """Whether different points certainly have different destinations: each axis has a dimension to itself."""
    own = set(s.domain.names)
    alone: set[str] = set()
    for row in s.dest.index:
        mine = [n for n in row.names if n in own]
        alone.update(mine if len(mine) == 1 else ())
    return alone >= own


def drop_dead(lines: Lines) -> bool:
    """Removes statements that write temporaries which no other statement reads."""
    changed = False
    while True:
        read = {a.buffer for _, s in lines.live() for a in s.reads if a.buffer != s.dest.buffer}
        dead = [at for at, s in lines.live() if lines.is_temp(s.dest.buffer) and s.dest.buffer not in read]
        if not dead:
            return changed
        for at in dead:
            lines.put(at, None)
        changed = True


STEPS: tuple[Callable[[Lines], bool], ...] = (simplify, split_versions, forward, drop_dead, backward, straighten)


def _old_names(lines: Lines, kernel: Kernel) -> None:
    """A version takes the name of the temporary it came from when that one has gone."""
    used = {a.buffer for _, s in lines.live() for a in (s.dest, *s.reads)}
    for name, origin in lines.origin.items():
        if name in used and origin not in used and origin in kernel.by_name:
            lines.rename(name, origin)
            used.add(origin)
            used.discard(name)
