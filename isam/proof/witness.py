"""An example of two elements that share a byte, found by trying: then isl need not be asked whether there is one.

Loops are put at their first and last iterations, and the byte of a corner of one layout is looked for in the other.
What is found is an example, so the answer "they clash" is certain; finding none says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from isam.proof.context import Var
from isam.proof.digits import Layout

TRIED = 32  # choices of iterations

Env = dict[str, int]


def clash(one: Layout, two: Layout, size: tuple[int, int], same: bool, around: Sequence[Var]) -> bool:
    """Whether an example was found: an element of each layout with a common byte; of the ``same`` buffer, two different
    ones. ``size``: bytes of an element of each; ``around``: the variables outside."""
    try:
        for env in islice(_values(around, {}), TRIED):
            for mine in islice(_values(one[3], env), TRIED):
                for theirs in islice(_values(two[3], env), TRIED):
                    if _meet(one, mine, two, theirs, size, same):
                        return True
    except KeyError:  # a name without a value: nothing can be tried
        pass
    return False


def _values(variables: Sequence[Var], env: Env) -> Iterator[Env]:
    """Each variable at its least and its greatest value, given those before it; nothing where one has no limit."""
    if not variables:
        yield env
        return
    v = variables[0]
    if not v.lo or not v.hi:
        return
    low = max(-(-b.expr.evaluate(env) // b.div) for b in v.lo)
    high = min(b.expr.evaluate(env) // b.div for b in v.hi)
    if v.step != 1 and v.origin is not None:
        start = v.origin.evaluate(env)
        low = start + -(-(low - start) // v.step) * v.step
        high = start + (high - start) // v.step * v.step
    if low <= high:
        for value in dict.fromkeys((low, high)):
            yield from _values(variables[1:], {**env, v.name: value})


def _meet(one: Layout, mine: Env, two: Layout, theirs: Env, size: tuple[int, int], same: bool) -> bool:
    """Whether the first or last element of ``one`` shares a byte with an element of ``two``."""
    boxes = [[(lo.evaluate(env), hi.evaluate(env)) for lo, hi in x[0]] for x, env in ((one, mine), (two, theirs))]
    if any(lo >= hi for box in boxes for lo, hi in box):
        return False
    ours, others = boxes
    for corner in ([lo for lo, _ in ours], [hi - 1 for _, hi in ours]):
        byte = one[1].evaluate(mine) + sum(k * (x - lo) for k, x, (lo, _) in zip(one[2], corner, ours, strict=True))
        there, left = _nearest(byte - two[1].evaluate(theirs), two[2], others)
        if -size[0] < left < size[1] and not (same and there == corner):
            return True
    return False


def _nearest(byte: int, strides: Sequence[int], box: Sequence[tuple[int, int]]) -> tuple[list[int], int]:
    """An element of a box that lies near a byte, and how far the byte is behind it: the longest strides first."""
    there = [lo for lo, _ in box]
    for d in sorted(range(len(box)), key=lambda d: -strides[d]):
        if strides[d] > 0:
            steps = min(max(byte // strides[d], 0), box[d][1] - box[d][0] - 1)
            there[d] += steps
            byte -= steps * strides[d]
    return there, byte
