"""Variants that make up sizes: against all ways there are; which ones are chosen."""

from __future__ import annotations

from itertools import combinations_with_replacement
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isam.compiler.ranged import candidates, chosen
from isam.diagnostics import InternalError
from isam.runtime.dispatch import Dispatch, covers

TIMES = st.dictionaries(st.integers(2, 9), st.floats(0.5, 20), max_size=3)


def least(times: dict[int, float], rows: int, twice: bool, several: float) -> float:
    """By trying all ways: variants no larger than the batch, so many rows, or more where some may be computed twice."""
    fits = [p for p in times if p <= rows]
    best = 0.0 if rows == 0 else inf
    for count in range(1, rows + 1):
        for some in combinations_with_replacement(fits, count):
            if sum(some) == rows or (twice and sum(some) > rows):
                extra = 0.0 if some == (rows,) else several
                best = min(best, sum(times[p] for p in some) + extra)
    return best


@given(TIMES, st.integers(0, 11), st.booleans(), st.sampled_from([0.0, 1.5]))
@settings(max_examples=150, deadline=None)
def test_the_quickest_way_is_found(more: dict[int, float], rows: int, twice: bool, several: float) -> None:
    times = {1: 1.0, **more}
    parts = Dispatch(times, 1, 11, twice, several)
    assert parts.seconds(rows) == pytest.approx(least(times, rows, twice, several))
    took = sum(times[p] for p in parts.of(rows))
    assert took + (0 if parts.of(rows) in ((rows,), ()) else several) == pytest.approx(parts.seconds(rows))


@given(TIMES, st.integers(1, 3), st.integers(0, 40), st.booleans())
@settings(max_examples=150, deadline=None)
def test_spans_hold_every_row(more: dict[int, float], step: int, steps: int, twice: bool) -> None:
    times = {step: 1.0, **{p * step: t for p, t in more.items()}}
    parts = Dispatch(times, step, 40 * step, twice)
    rows = steps * step
    spans = parts.spans(rows)
    met = [n for begin, end in spans for n in range(begin, end)]
    assert set(met) == set(range(rows))
    assert all(end - begin in times for begin, end in spans)
    assert twice or len(met) == rows


def test_rows_computed_twice_save_calls() -> None:
    times = {1: 1.0, 8: 2.0}
    assert Dispatch(times, 1, 20, twice=False).of(15) == (8, 1, 1, 1, 1, 1, 1, 1)
    assert Dispatch(times, 1, 20, twice=True).spans(15) == ((0, 8), (7, 15))
    assert Dispatch(times, 1, 20, twice=True).of(7) == (1,) * 7, "no variant is larger than the batch"
    assert Dispatch({5: 1.0, 8: 1.5}, 1, 20, twice=True).spans(11) == ((0, 8), (6, 11)), "the least need not be one row"


@pytest.mark.parametrize(("spans", "rows", "twice", "right"), [
    ([(0, 4), (4, 6)], 6, False, True), ([(0, 4), (3, 6)], 6, True, True), ([], 0, False, True),
    ([(0, 4), (3, 6)], 6, False, False), ([(0, 4), (5, 6)], 6, True, False), ([(0, 4)], 6, True, False),
    ([(0, 4), (4, 7)], 6, True, False), ([(1, 6)], 6, True, False), ([], 1, True, False),
    ([(0, 6), (2, 6)], 6, True, False),
])  # fmt: skip
def test_what_covers_a_batch(spans: list[tuple[int, int]], rows: int, twice: bool, right: bool) -> None:
    assert covers(spans, rows, twice) == right


@pytest.mark.parametrize("rows", [-1, 21, 3])
def test_other_numbers_of_rows_are_refused(rows: int) -> None:
    with pytest.raises(InternalError, match="rows are asked for"):
        Dispatch({2: 1.0}, 2, 20).of(rows)


def test_variants_are_chosen_for_what_is_met() -> None:
    times = {n: 1 + n / 8 for n in (1, 2, 3, 4, 8, 16, 32)}
    all_ = Dispatch(times, 1, 32)
    assert list(chosen(all_, {32: 1.0}, 8).times) == [1, 32]
    assert list(chosen(all_, {32: 1.0, 3: 1.0}, 3).times) == [1, 3, 32]
    assert len(chosen(all_, dict.fromkeys(range(1, 33), 1.0), 4).times) == 4
    assert list(chosen(all_, dict.fromkeys(range(1, 33), 1.0), 1).times) == [1]


def test_the_regret_counts_not_the_time() -> None:
    """A variant of 100 rows would save more time, one of two more of what calls take."""
    all_ = Dispatch({1: 1.0, 2: 1.0, 100: 14.0}, 1, 100)
    assert list(chosen(all_, {2: 4.0, 100: 1.0}, 2).times) == [1, 2]


def test_candidates() -> None:
    assert candidates(1, 20, 1, []) == [1, 2, 3, 4, 6, 8, 12, 16, 20]
    assert candidates(5, 20, 1, [7]) == [5, 6, 7, 8, 12, 16, 20]
    assert candidates(8, 40, 8, []) == [8, 16, 24, 32, 40]
