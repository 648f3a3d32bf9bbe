"""A kernel for a range of batch sizes: a few variants are compiled ahead, and every size is made of calls of them.

Variants are chosen one after the other, each time that which lowers the mean regret most: the time over that with every
variant there might be. The idea of variants that shapes share is DietCode's (MLSys 2022).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Any

import numpy as np

from isam.approach.choice import Approach
from isam.artifact import RANGE, Artifact, Size
from isam.compiler.function import Function
from isam.compiler.job import Refused
from isam.compiler.keys import key_of
from isam.compiler.stages import new_job, scheduled
from isam.compiler.watch import told
from isam.cost.compared import seconds
from isam.diagnostics import IsamError, fail
from isam.ir.batch import not_a_batch, rows_of
from isam.ir.kernel import USUAL_TRIP, Kernel, Sym
from isam.ir.signature import arguments_of, sizes_of
from isam.ir.sizes import check_sizes, run_time, with_constants
from isam.ir.verify import require as well_formed
from isam.runtime.cache import Cache
from isam.runtime.dispatch import LARGEST, Dispatch
from isam.runtime.ranged import Batch, RangedFunction
from isam.runtime.signature import Signature
from isam.system.graph import System

CALL = 0.3e-6  # seconds for each of several calls of variants: 0.03 us as native code, 3 us from Python (measured)
SEVERAL = 0.1e-6  # seconds beside that where there are several (measured)
SAMPLED = 512  # sizes of a range that stand for all of them, where none is said to be likely
WORTH = 1.002  # times less regret than before, in the mean: what another variant has to give
SURE = 1e12  # the largest weight of a size, beside 1 of all others
VARIANTS = "variants.json"


def ranged(kernel: Kernel, system: System, size: str, limits: tuple[int, int], sizes: Mapping[str, int],
           likely: Mapping[int, float], most: int, approach: Approach | None, cache: Cache | None,
           **options: Any) -> RangedFunction:  # fmt: skip
    """As :func:`isam.compile_range` says, with everything read."""
    well_formed(kernel)
    kernel, known = with_constants(kernel, sizes)
    sym = _of_range(kernel, size, limits, known, likely, most)
    faults = not_a_batch(kernel, size)
    if faults:
        raise IsamError(faults)
    lo, hi, step = sym.lo, sym.hi or 0, sym.multiple_of
    base = _base(kernel, sym, twice := not _updated(kernel, size))
    asked = {**options, "range": json.dumps([size, lo, hi, most, sorted(likely.items())])}
    key = key_of(kernel, system, known, approach, asked) if cache is not None else None
    times = _kept(cache, key, base, step, hi)
    if times is None:
        may = _priced(kernel, system, known, size, candidates(base, hi, step, likely), approach, options)
        times = chosen(Dispatch(may, step, hi, twice, SEVERAL), _weights(lo, hi, step, likely), most).times
        if cache is not None and key is not None:
            said = json.dumps(list(times.items())).encode()
            cache.put(key, Artifact(kernel.name, RANGE, (), parts={VARIANTS: said}))
    made = {}
    for n, some in enumerate(sorted(times)):
        function = Function(kernel, system, {**known, size: some}, approach, None, cache, **options)
        made[some] = function.specialise({})
        told("variants compiled", n + 1, len(times))
    sized = kernel.with_sizes(known)
    open_ = [Size(s.name, lo, hi, step) if s.name == size else s for s in sizes_of(sized)]
    signature = Signature(kernel.name, arguments_of(sized), open_, (), kernel.loc)
    batch = Batch(size, rows_of(kernel, size), Dispatch(times, step, hi, twice, SEVERAL))
    return RangedFunction(signature, batch, made)


def _updated(kernel: Kernel, size: str) -> bool:
    """Whether rows are updated in place, so that none may be computed twice."""
    rows = rows_of(kernel, size)
    return any(b.role == "inout" and b.name in rows for b in kernel.arguments)


def _base(kernel: Kernel, sym: Sym, twice: bool) -> int:
    """The rows of the least variant, of which every size can be made. Raises ``IsamError`` where there is none."""
    step = sym.multiple_of
    if twice:
        return max(sym.lo, step)  # calls may overlap
    least = next(s.lo for s in kernel.given if s.name == sym.name)
    if least > step:
        what = f"rows are updated in place, and {sym.name} is {least} at least: sizes are not made of calls of {step}"
        raise fail("range-limits", what, kernel.loc)
    return step


def _of_range(kernel: Kernel, size: str, limits: tuple[int, int], known: Mapping[str, int],
              likely: Mapping[int, float], most: int) -> Sym:  # fmt: skip
    """The size, with the limits of the range. Raises ``IsamError`` where that is none, or a size beside it is open."""
    lo, hi = limits
    for n in (*((lo,) if lo else ()), hi, *likely):
        check_sizes(kernel, {**known, size: n})
    sym = next(s for s in kernel.given if s.name == size)
    if size in known:
        what = f"{size} is a number, {known[size]}, and a range"
        raise fail("range-limits", what, kernel.loc, "leave it out of the sizes")
    step = sym.multiple_of
    if lo > hi:
        what = f"{lo} <= {size} <= {hi} is no range: it begins behind its end"
        raise fail("range-limits", what, kernel.loc, f"from {hi} to {lo}?")
    if lo < 0 or hi < step or hi // step > LARGEST:
        most_rows = f"1 to {LARGEST * step} rows" + (f", a multiple of {step}" if step > 1 else "")
        raise fail("range-limits", f"{lo} <= {size} <= {hi} is no range of {most_rows}", kernel.loc)
    if any(not lo <= n <= hi for n in likely) or any(not 0 < w <= SURE for w in likely.values()):
        raise fail("range-limits", f"likely sizes are between {lo} and {hi}, with weights above 0, {SURE:g} at most: "
                   f"{dict(likely)}", kernel.loc)  # fmt: skip
    if most < 1:
        raise fail("range-limits", f"{most} variants are none", kernel.loc)
    left = run_time(kernel)
    if open_ := [s.name for s in kernel.given if s.name not in known and s.name != size and s.name not in left]:
        raise fail("size-open", f"the sizes {', '.join(open_)} of '{kernel.name}' are open", kernel.loc,
                   f"give sizes: {', '.join(f'{n} = ...' for n in open_)}")  # fmt: skip
    return replace(sym, lo=lo, hi=hi)


def _priced(kernel: Kernel, system: System, known: Mapping[str, int], size: str, rows: Sequence[int],
            approach: Approach | None, options: Mapping[str, Any]) -> dict[int, float]:  # fmt: skip
    """What a call takes by what is predicted, for each number of rows for which there is a schedule. Raises
    ``IsamError`` where there is none for the least."""
    by = approach if approach is None or approach.runs < 2 else None  # those taken are run, not all that might be
    out: dict[int, float] = {}
    for n, m in enumerate(rows):
        job = new_job(kernel, system, {**known, size: m}, by, **options)
        try:
            scheduled(job)
        except Refused:
            if not n:
                raise
            continue
        assert job.schedule is not None
        out[m] = CALL + seconds(job.schedule, job.schedule.kernel.usual(USUAL_TRIP))
        told("sizes of variants compared", n + 1, len(rows))
    return out


def candidates(least: int, hi: int, step: int, likely: Iterable[int]) -> list[int]:
    """Sizes of which variants may be made: powers of two and half as much again, the ends, and what is likely."""
    out = {least, hi, *likely}
    n = 1
    while n * step <= hi:
        out |= {n * step, 3 * n * step}
        n *= 2
    return sorted(n for n in out if least <= n <= hi)


def chosen(all_: Dispatch, weights: Mapping[int, float], most: int) -> Dispatch:
    """Some of these variants, at most so many, the least among them. ``weights``: how often each size of the range is
    met."""
    rows = np.array([m // all_.step for m in weights])
    weighed = np.array(list(weights.values())) / np.maximum(all_.all[rows], 1e-12)

    def regret(taken: Iterable[int]) -> float:
        return float(all_.some(taken).all[rows] @ weighed)

    taken = [min(all_.times)]
    least = regret(taken)
    while len(taken) < most:
        others = [(regret([*taken, p]), p) for p in all_.times if p not in taken]
        if not others or min(others)[0] * WORTH > least:
            break
        least, best = min(others)
        taken.append(best)
    return all_.some(taken)


def _weights(lo: int, hi: int, step: int, likely: Mapping[int, float]) -> dict[int, float]:
    """How often each size is met: those that are likely as often as is said, and the others together as often as a
    weight of 1, between a number and its double as often as between any other and its."""
    first = -(-max(lo, 1) // step) * step
    apart = max(1, ((hi - first) // step + 1) // SAMPLED)
    few = range(first, min(hi, first + SAMPLED * step) + 1, step)
    others = {m: 1 / m for m in few if m not in likely}
    others |= {m: apart / m for m in range(few[-1] + step * apart, hi + 1, step * apart) if m not in likely}
    return {**{m: w / sum(others.values()) for m, w in others.items()}, **likely}


def _kept(cache: Cache | None, key: str | None, base: int, step: int, hi: int) -> dict[int, float] | None:
    """The variants that were chosen before, and their times; None where there are none, or they are none."""
    found = cache.get(key) if cache is not None and key is not None else None
    if found is None:
        return None
    try:
        times = {int(rows): float(t) for rows, t in json.loads(found.text(VARIANTS))}
    except (IsamError, ValueError, TypeError):
        return None
    fit = all(base <= rows <= hi and rows % step == 0 and 0 < t < inf for rows, t in times.items())
    return times if fit and base in times else None
