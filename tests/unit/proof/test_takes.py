"""What calls take, and where a condition holds, against every choice of calls at small sizes."""

from __future__ import annotations

from itertools import product

import pytest

from isam.ir.affine import Affine
from isam.ir.condition import Condition
from isam.ir.poly import Set, make
from isam.mapper.admissible import Values, possible, simplified
from isam.proof.calls import Takes, _satisfying

T, SIZES = Affine.of("T"), range(-3, 26)


def at(where: Set) -> list[int]:
    """The sizes in a set, of those from -3 to 25."""
    return [n for n in SIZES if not (where & make((), [], [T - n])).is_empty()]


def made_up(blocks: list[int], several: bool) -> list[int]:
    """Sizes that calls of these blocks make up; below one, or below zero for a single call, there is none to make."""
    if not several:
        return [n for n in SIZES if n in blocks or (n < 0 and 0 in blocks)]
    sums = {0}
    for n in range(1, SIZES.stop):
        if any(n - b in sums for b in blocks if 0 < b <= n):
            sums.add(n)
    return [n for n in SIZES if n in sums or n < 0]


TAKES = [Takes(least, most, step) for least in (0, 1, 2, 5) for step in (1, 3)
         for most in (None, least, least + step, least + 2 * step)]  # fmt: skip


@pytest.mark.parametrize("takes", TAKES, ids=str)
def test_what_calls_take_together(takes: Takes):
    top = SIZES.stop - 1 if takes.most is None else takes.most
    blocks = list(range(takes.least, top + 1, takes.step))
    for several in (False, True):
        assert at(takes.sizes(T, several)) == made_up(blocks, several), several
    assert takes.any_number == (takes.least <= 1 and takes.step == 1)


def test_takes_in_words():
    assert [str(Takes(*x)) for x in ((8, 8), (4, None), (0, 9), (0, None, 4), (2, 10, 4), (8, 8, 4))] == [
        "exactly 8", "from 4", "from 0 to 9", "0, 4, ...", "2, 6, ..., 10", "exactly 8"]  # fmt: skip


RESTS = [(1, (0,)), (4, (0, 1)), (4, (1, 2)), (3, (2,))]
CONDITIONS = [Condition(T, least, most, step, rests, some)
              for least, most in product((-1, 0, 3), (None, 0, 3, 7, 12)) for step, rests in RESTS
              for some in ((), (0,), (5, 6))]  # fmt: skip


def defined(c: Condition, n: int) -> bool:
    """By what the class says of itself."""
    n = max(n, 0)
    between = range(max(c.least, 0), (SIZES.stop if c.most is None else c.most) + 1)
    return n in c.some or (n in between and any(n == r + c.step * k for r in c.rests for k in range(SIZES.stop)))


def test_a_condition_admits_what_it_says_and_the_checker_reads_it_so():
    for x, c in enumerate(CONDITIONS):
        admitted = [n for n in SIZES if defined(c, n)]
        assert [n for n in SIZES if c.admits(n)] == admitted, c
        if x % 3 == 0:
            assert at(_satisfying(c)) == admitted, c


VALUES = [Values(low, high, by, low in (2, 5)) for low, by in ((0, 1), (0, 4), (2, 3), (3, 1), (5, 1), (5, 2))
          for high in (None, low + 4 * by)]


def listed(v: Values) -> list[int]:
    """In order, all below 61."""
    values = {n for n in range(61) if n >= v.low and (n - v.low) % v.by == 0 and (v.high is None or n <= v.high)}
    return sorted(values | ({0} if v.zero else set()))


@pytest.mark.parametrize("v", VALUES, ids=str)
def test_what_is_simplified_holds_at_the_same_values(v: Values):
    values = listed(v)
    assert [n for n in range(61) if n in v] == values
    for least in range(9):
        for most in (None, 20):
            assert list(v.from_(least, most if most or v.high else 60)) == [
                n for n in values if least <= n <= (most or 60) and (n or not v.zero)]  # fmt: skip
    for c in CONDITIONS:
        holds = [n for n in values if defined_to_60(c, n)]
        assert possible([c], v) == bool(holds), c
        if holds and (c.least > 0 or c.admits(0)):  # as what ``condition`` makes
            short = simplified(c, v)
            assert [n for n in values if short is None or short.admits(n)] == holds, (c, short)
            assert (short is None) == (holds == values), (c, short)
            if short is not None and c.least >= 0:
                assert needed(short, values, v), (c, short)
                assert short.most is None or c.least != c.most or short.least == c.least, (c, short)  # one number


def needed(short: Condition, values: list[int], v: Values) -> bool:
    """Whether every part of a condition says something of the values."""
    above = [n for n in values if n >= short.least and (n or not v.zero)]
    return all((
        short.least == 0 or short.least == short.most or any(n < short.least for n in values),
        short.most is None or any(n > short.most for n in values),
        short.step == 1 or any(n % short.step not in short.rests for n in above),
        len(short.rests) > 0, set(short.some) <= set(values),
    ))  # fmt: skip


def defined_to_60(c: Condition, n: int) -> bool:
    return n in c.some or (n >= c.least and (c.most is None or n <= c.most) and n % c.step in c.rests)
