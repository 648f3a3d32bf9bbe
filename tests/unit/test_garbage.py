"""Python looks for garbage seldom while values are made that stay, and as before afterwards."""

from __future__ import annotations

import gc

import pytest

from isam.garbage import APART, seldom


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
