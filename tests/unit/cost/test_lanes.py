"""A stream remembers as many finished calls as someone may ask for, and no more, however long it repeats."""

from __future__ import annotations

import random

import pytest

from isam.cost.lanes import Again, Item, Lane


def follow(lane: Lane, seed: int, rounds: int) -> list[int]:
    """Calls at random and repetitions of the last of them; when each was finished."""
    draw, moments = random.Random(seed), list[int]()
    for _ in range(rounds):
        for _ in range(draw.randint(1, 5)):
            moments.append((moments[-1] if moments else 0) + draw.randint(0, 9))
            lane.tail.append(moments[-1])
        size, times = draw.randint(1, min(len(moments), 7)), draw.randint(1, 40)
        last, shift = moments[-size:], moments[-1] - moments[-size] + draw.randint(0, 9)
        lane.repeat(size, shift, times)
        moments += [m + shift * n for n in range(1, times + 1) for m in last]
    return moments


def held(item: Item) -> int:
    return sum(map(held, item.items)) + 1 if isinstance(item, Again) else len(item)


@pytest.mark.parametrize("keep", [1, 3, 90, 400])
@pytest.mark.parametrize("seed", range(5))
def test_what_may_be_asked_for_is_known(keep: int, seed: int) -> None:
    lane = Lane("a", keep)
    moments = follow(lane, seed, 30)
    assert [lane.back(n) for n in range(keep)] == list(reversed(moments[-keep:]))


@pytest.mark.parametrize("keep", [3, 90])
def test_what_nobody_asks_for_is_forgotten(keep: int) -> None:
    sizes = []
    for rounds in (100, 400):
        lane = Lane("a", keep)
        follow(lane, 1, rounds)
        sizes.append(sum(map(held, lane.older)) + len(lane.tail))
    assert max(sizes) <= 4 * keep + 16


def test_what_is_still_held_but_not_asked_for_makes_no_state_another() -> None:
    """Else a loop whose iterations are alike would seem to change for as long as nothing is left out."""
    short, long = Lane("a", 4, tail=[5, 6, 8, 9]), Lane("a", 4, tail=[1, 3, 5, 6, 8, 9])
    assert short.since(0) == long.since(0)
    assert short.since(0) != Lane("a", 4, tail=[5, 6, 7, 9]).since(0)
