"""Python looks for garbage seldom while values are made that stay, and as before afterwards."""

from __future__ import annotations

import gc
import weakref

import pytest

from isam.garbage import APART, YOUNG, seldom
from tests.pipeline import compiled, simulated
from tests.suite.columns import SUITE


@pytest.fixture
def threshold():
    was = gc.get_threshold()
    yield was
    gc.set_threshold(*was)


def test_it_looks_seldom_inside_and_as_before_afterwards(threshold):
    gc.set_threshold(700, 11, 12)
    with seldom():
        assert gc.get_threshold() == (APART, 11, 12)
        with seldom():
            pass
        assert gc.get_threshold()[0] == APART
    assert gc.get_threshold() == (700, 11, 12)
    with pytest.raises(ZeroDivisionError), seldom():
        raise ZeroDivisionError
    assert gc.get_threshold() == (700, 11, 12)


@pytest.mark.parametrize("mine", [0, APART, 2 * APART])
def test_what_the_user_has_set_to_be_rarer_or_never_stays(threshold, mine):
    gc.set_threshold(mine, 10, 10)
    with seldom():
        assert gc.get_threshold()[0] == mine
    assert gc.get_threshold()[0] == mine


def test_two_that_overlap_end_as_before(threshold):
    gc.set_threshold(700, 10, 10)
    one, two = seldom(), seldom()
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    two.__exit__(None, None, None)
    assert gc.get_threshold()[0] == 700


def young(monkeypatch: pytest.MonkeyPatch, looks: int) -> None:
    monkeypatch.setattr(gc, "get_stats", lambda: [{"collections": 50}, {"collections": looks}, {"collections": 0}])


def new_values() -> list[list[int]]:
    gc.collect(0)  # nothing is new
    with seldom():
        return [[n] for n in range(5000)]


@pytest.mark.parametrize(("looks", "old"), [(YOUNG - 1, True), (YOUNG, False)])
def test_in_a_young_process_what_was_made_counts_as_old(threshold, monkeypatch, looks, old):
    young(monkeypatch, looks)
    gc.set_threshold(10_000, 10, 10)
    made = new_values()
    assert any(v is made for v in gc.get_objects(generation=2)) == old


def test_what_the_user_has_frozen_stays_frozen(threshold, monkeypatch):
    young(monkeypatch, 0)
    gc.set_threshold(10_000, 10, 10)
    try:
        gc.freeze()
        frozen = gc.get_freeze_count()
        new_values()
        assert gc.get_freeze_count() > 0.9 * frozen > 0
    finally:
        gc.unfreeze()


def test_what_counts_as_old_is_still_found_when_nobody_reaches_it(threshold, monkeypatch):
    young(monkeypatch, 0)
    gc.set_threshold(10_000, 10, 10)

    class Round:
        pass

    with seldom():
        one = Round()
        one.itself = one
        gone = weakref.ref(one)
        del one
    assert gone() is not None
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("on", ["toy", "host-generic"])
def test_a_compilation_leaves_hardly_anything_to_look_for(threshold, on):
    """What a function within another calls itself holds, say, stays until it is found: most of a compilation did."""
    kernel, system = SUITE["conv2d"].load(), simulated(on)
    gc.freeze()  # what is there already is not looked through
    gc.set_threshold(0)
    try:
        job = compiled(kernel, {s.name: 6 for s in kernel.syms}, system, check=True)
        made = len(gc.get_objects())
        del job
        assert gc.collect() < made / 50
    finally:
        gc.unfreeze()
